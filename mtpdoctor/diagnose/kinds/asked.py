"""What a message asks of each option that it names: to have it (with which value), or to do without it.

The words right before and right after a name decide, not the nearest verb: "--a is required for --b" asks for --a
only, "--a without --b is unsupported" asks for --b, "use --a instead of --b" asks for the one and against the other.
"""

from __future__ import annotations

from collections.abc import Iterator

from mtpdoctor.diagnose.named_options import named_in, number, usable, value_after
from mtpdoctor.patterns import lazy
from mtpdoctor.records import dataclass
from mtpdoctor.sglang.flags import FlagSpec, FlagTable

_SENTENCE = lazy(r"(?<=[.;])\s+|\n")
# Before a name.
_WITHOUT = lazy(r"(?i)\b(?:without|omitting)\s+(?:setting |using |passing )?$")
_RUN = lazy(
    r"(?i)\b(?:re-?run|run|launch|relaunch|restart|start|serve|use|try|do)(?: \w+){0,3} without\s+(?:\w+ )?$"
)
_INSTEAD = lazy(r"(?i)\b(?:instead of|rather than|in place of)\s+$")
_FOR = lazy(r"(?i)\b(?:required|needed|mandatory|necessary)\s+(?:for|by|when|in|if)\s+(?:using |setting )?$")
_IF = lazy(
    r"(?i)\b(?:when|if|while|under|for|with|by|unless|alongside|together with)\s+(?:using |setting |the )?$"
)
_UNLESS = lazy(r"(?i)\bunless\s+(?:using |setting |the )?$")
_ONLY = lazy(
    r"(?i)\b(?:only|must be|required|requires?|needs?|please|(?:re-?run|run|launch\w*|relaunch|restart|start|serve)(?: \w+){0,3}) "
    r"(?:\w+ ){0,4}(?:with|when|if|under|for|by)\s+(?:using |setting |the )?$|\b(?:re-?run|launch(?:ed)?|relaunch|restart|start|serve|run) with\s+(?:the )?$"
)
_SHOWN = lazy(r"(?i)\b(?:got|found|current(?:ly)?|given|received|resolved)\s*:?\s*(?:the )?$")
_REFUSED = lazy(
    r"(?i)\bnot (?:yet |currently )?(?:be )?(?:supported|compatible|allowed|used|combined|set|enabled|available|implemented)\b|\bunsupported\b|"
    r"\bincompatible\b|\bcannot\b|\bcan't\b|(?:does|do)(?: not|n't)\b|\bconflicts?\b|\bexclusive\b|\bdisallowed\b"
)
_AWAY = lazy(
    r"(?i)\b(?:disabl\w+|remov\w+|unset\w*|drop\w*|omit\w*|turn(?:ing)? off|"
    r"(?:do not|don't|cannot|can't|can not|must not) (?:use|set|pass|enable|combine|specify)|"
    r"not (?:yet |currently )?(?:be )?(?:supported|compatible|allowed|used)|cannot be (?:used|combined|enabled|set)|"
    r"(?:in|not )compatible|conflicts?|mutually exclusive|"
    r"(?:does not|doesn't|do not)(?: yet| currently)? support|unsupported)\b"
)
_TOWARDS = lazy(
    r"(?i)\b(?:use|using|set|setting|specify|specifying|add|adding|pass|passing|provide|try|enable|switch to|choose|select|"
    r"only (?:supports?|works? with|allows?)|(?:supports?|allows?) only|limited to|"
    r"require[sd]?|need(?:s|ed)?|must|should|please|consider|increas\w+|reduc\w+|lower\w*|rais\w+|decreas\w+)\b"
)
_STRICT = lazy(
    r"(?i)\b(?:requires?|needs?|only supports?|supports? only|only works? with|only allows?|must have|set|use|pass)\b"
)
_TURNS = lazy(r"(?i)\b(?:because|since|so that|whereas|got|which|but)\b|: ")
# After a name.
_SKIPPED = lazy(
    r"(?i)^[`'\")\]]*(?:\s+(?:flag|option|argument|switch|also|both)\b)*(?:\s*\([^)]*\))?(?:\s*(?:,|and|or|/|\+|with)\s*[`'\"]?--[\w-]+[`'\"]?)*\s*"
)
_OFF = lazy(
    r"(?i)^(?:must|should|needs? to|ha(?:s|ve) to)\s+(?:also )?(?:be (?:set to )?(?:explicitly )?['\"]?(?:False|disabled|off|unset|None|omitted|removed|dropped|left unset)\b|"
    r"not be (?:set|used|enabled|combined|specified|passed|given)|stay off|be left)"
)
_ON = lazy(
    r"(?i)^(?:(?:must|should|needs? to|ha(?:s|ve) to)\s+(?:also )?be (?:explicitly )?(?:set(?! to)|specified|provided|passed|given|enabled|used|True|set to True)\b|"
    r"(?:is|are) (?:also )?(?:required|needed|mandatory|necessary)\b|"
    r"(?:is|are|was) (?:not|n't) (?:set|enabled|active|specified|provided|given|passed|configured)\b|"
    r"(?:is|are) missing)"
)
_BE = lazy(
    r"(?i)^(?:must|should|needs? to|ha(?:s|ve) to)\s+(?:be|equal)\s+(?:set to |equal to |exactly |one of \W?|either )?(?P<sign>>=|>|at least |greater than )?\s*['\"]?(?P<value>-?\d[\w.]*|[A-Za-z_][\w./:-]*)"
)
_NOT = lazy(
    r"(?i)^(?:[\w-]+ )?(?:(?:is|are|was|were|does|do|can|could|will)(?:n't| not| no longer| only)\b|cannot\b|can't\b|unsupported|(?:is|are) (?:temporarily |currently )?(?:unsupported|incompatible|mutually|deprecated|reserved)|"
    r"conflicts?|ha(?:s|ve) no effect|only (?:supports?|works?)|supports? only|supports?\b|(?:currently )?requires?|needs?)"
)
_BEFORE = 80  # characters before a name in which a verb speaks of it
ORDER = ("told", "needed", "refused", "subject", "")


@dataclass(frozen=True, slots=True)
class Asked:
    """``verb``: "towards", "away" or "" (neither). ``how``: what says so, of :data:`ORDER`; the surest first."""

    spec: FlagSpec
    value: str | None
    verb: str
    how: str = ""


def asked(text: str, table: FlagTable) -> list[Asked]:
    """In the order in which it is best done: what is ordered, what is required, what is refused beside another,
    and last the option whose own needs the message states."""
    found = [one for sentence in _SENTENCE.split(text) for one in _sentence(sentence, table)]
    return sorted(found, key=lambda one: ORDER.index(one.how))


def _sentence(sentence: str, table: FlagTable) -> Iterator[Asked]:
    for name in named_in(sentence, table):
        spec, flag = name.spec, name.is_flag
        if spec is None:
            continue
        before = sentence[max(0, name.start - _BEFORE) : name.start].rstrip("`'\"([")
        text, sign, end = value_after(sentence, name.end) or ("", None, name.end)
        value = _usable(spec, text, sign)
        after = sentence[name.end :]
        if spec.arity == "one" and (value is not None or sign):
            after = sentence[end:]
        after = _SKIPPED.sub("", after, count=1)
        verb, how, other = _read(before, after, sentence[: name.start])
        if other is not None and verb == "towards":
            value = _usable(spec, other[1], other[0]) or value
        if not flag and verb == "towards" and (how == "" or (not value and spec.arity != "switch")):
            verb, how = "", ""
        if not flag and how in ("told", "needed") and other is None and not _STRICT.search(before[-50:]):
            verb, how = ("", "") if verb == "towards" else (verb, how)
        yield Asked(spec, value, verb, how)


def _read(before: str, after: str, all_before: str) -> tuple[str, str, tuple[str | None, str] | None]:
    """Verb, how it is said, and the sign and value that follow the predicate ("must be >= 4")."""
    refused = _REFUSED.search(all_before) is not None
    if _SHOWN.search(before):
        return "", "", None
    if _WITHOUT.search(before):
        if _RUN.search(before):
            return "away", "told", None
        return ("towards", "needed", None) if refused or _REFUSED.search(after) else ("away", "refused", None)
    if _INSTEAD.search(before):
        return "away", "told", None
    if _OFF.match(after):
        return "away", "told", None
    if _ON.match(after) and not _IF.search(before):
        return "towards", "needed", None
    be = _BE.match(after)
    if be is not None and not refused:
        return "towards", "needed", (be["sign"], be["value"].rstrip(".,:"))
    if _FOR.search(before):
        return "", "", None
    if _UNLESS.search(before):
        return "towards", "needed", None
    if _ONLY.search(before) and not refused:
        return "towards", "told", None
    if _IF.search(before):
        return ("away", "refused", None) if refused or _OFF.match(after) else ("", "", None)
    part = _TURNS.split(before)[-1]
    away = [m.end() for m in _AWAY.finditer(part)]
    towards = [(m.end(), m[0].lower()) for m in _TOWARDS.finditer(part)]
    if away and max(away) >= max((end for end, _ in towards), default=-1):
        last = max(_AWAY.finditer(part), key=lambda m: m.end())[0].lower()
        return (
            "away",
            "told" if last.startswith(("disabl", "remov", "unset", "drop", "omit", "turn")) else "refused",
            None,
        )
    if towards:
        word = max(towards)[1]
        needed = word.startswith(("requir", "need", "only", "support", "allow", "must", "limited"))
        return "towards", "needed" if needed else "told", None
    if _NOT.match(after):
        return "away", "subject", None
    return "", "", None


def _usable(spec: FlagSpec, value: str, sign: str | None = None) -> str | None:
    if spec.arity != "one" or sign == "<=":
        return None
    # Free text counts where it stands behind a sign: else the next word need not be one.
    found = usable(spec, value, lambda v: sign in ("=", "==") and v.lower() not in ("true", "false", "none"))
    if found is not None and sign is not None and sign.strip() in (">", "greater than") and not spec.choices:
        # above 0 any number does: which one, the message leaves open
        least = number(found) or 0
        return str(int(least) + 1) if spec.type == "int" and least > 0 else None
    return found
