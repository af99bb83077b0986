"""Options and variables that a sentence says to set, to leave out, to raise or to lower."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from math import ceil, floor, inf
from typing import Any

from mtpdoctor.diagnose.named_options import Named, is_setting, is_word, named_in, number, usable, value_after
from mtpdoctor.facts import UNKNOWN, Facts
from mtpdoctor.kb.types import EditTemplate
from mtpdoctor.patterns import lazy
from mtpdoctor.records import dataclass
from mtpdoctor.sglang.flags import FlagSpec, FlagTable
from mtpdoctor.sglang.options import same_option
from mtpdoctor.sglang.releases import EnvSpec

_EXPLICIT = lazy(
    r"""[`'"]?(?:\s*=\s*[`'"]?(?P<value>-?[A-Za-z0-9_.][A-Za-z0-9_.:/+-]*)"""
    r"""|\s+to\s+(?:be\s+)?(?:['"`](?P<quoted>[\w.-]+)['"`]|(?P<plain>-?\d[\w.]*|(?i:true|false|on|off|none)\b)))(?![|<{*\w])"""
)
_AT_LEAST = lazy(
    r"^[`'\"]?\s*(?:to )?(?:be )?(?:at least|>=|at most|<=|no more than|no less than|up to|=|to)\s*(?P<number>\d+(?:\.\d+)?)\b(?!\.?\d)"
)
# A bound that the value itself may not take: "Raise --x above 0.912".
_BEYOND = lazy(
    r"^[`'\"]?\s*(?:to )?(?:be )?(?:(?P<above>above|over|more than|greater than|larger than|higher than|beyond|>)"
    r"|below|under|less than|smaller than|lower than|<)\s*(?P<number>\d+(?:\.\d+)?)\b(?!\.?\d)"
)
# What stands between a verb and a name that it does not speak of.
_TURNS = lazy(
    r"(?i)\b(?:when|if|while|where|under|because|since|unless|which|that|until|from|than|for|on|due to|instead of|rather than)\b"
)
_EXAMPLE = lazy(
    r"\(?(?:e\.g\.,?|for example,?|such as)\s*(?P<values>-?\d+(?:\.\d+)?(?:(?:\s*,\s*|\s+or\s+)-?\d+(?:\.\d+)?)*)"
)
_NUMBER = lazy(r"-?\d+(?:\.\d+)?")
_AWAY = lazy(
    r"(?i)(?<![-\w])(?:disabl(?:e|ing)|remov(?:e|ing)|drop(?:ping)?|omit(?:ting)?|unset(?:ting)?|turn(?:ing)? off|"
    r"(?:run|launch|start|restart|re-?run|serve|retry|try)(?: \w+){0,3} without|leav(?:e|ing) out|"
    r"(?:not|don't|avoid) (?:use|using|set|setting|pass|passing|specify\w*))\b"
)
_TOWARDS = lazy(
    r"(?i)(?<![-\w])(?:use|using|set|setting|specify|specifying|add|adding|pass|passing|provide|try|enabl(?:e|ing)|switch(?:ing)? to|choose|select|"
    r"export|(?:re-?run|launch|start|run|retry|serve|relaunch|restart)(?: \w+){0,3} with|run)\b"
)
_REQUIRES = lazy(
    r"(?i)\b(?:requires?|needs?|only supports?|only works? with|must (?:be )?(?:use[d]?|run|launched|combined|set) with|must use|must set)\b"
)
_LESS = lazy(r"(?i)\b(?:decreas(?:e|ing)|reduc(?:e|ing)|lower(?:ing)?|shrink(?:ing)?|small(?:er)?)\b")
_MORE = lazy(r"(?i)\b(?:increas(?:e|ing)|rais(?:e|ing)|larger|bigger|higher)\b")
# Said of what is or of a case, not to be done.
_NO_ORDER = lazy(
    r"(?i)\b(?:when|if|while|for|cannot|can't|could not|not|is|are|was|were|be|been|being|that|which|who|what|already|currently|has|have|had|"
    r"to be|got|will|would|does|did|may|might|because|since|after|before|once|unless)(?: (?:also|only|both|explicitly|now|you))?\s+$"
)
_PURPOSE = lazy(
    r"(?i)(?<!need )(?<!needs )(?<!have )(?<!has )(?<!try )(?<!sure )(?<!want )(?<!required )\bto\s+$"
)
_REFUSED = lazy(
    r"(?i)\b(?:is|are|was|were|does|do|can)(?:n't| not)\b|\bcannot\b|\bunsupported\b|\bincompatible\b|\bmutually exclusive\b|\bconflicts?\b"
)
_SHOWN = lazy(
    r"(?i)\b(?:got|but|found|current(?:ly)?|is|was|with|has|have|given|received|observed|when|if|for)\s+(?:\S+\s+)?[`'\"(]*$"
)
_MEANS = lazy(r"(?i)\b(?:by|via|through|with)\s+(?:adding |setting |passing |using )?[`'\"(]*$")
_JOINED = lazy(
    r"(?i)^[\s`'\",()]*(?P<word>and(?: (?:set|use|add|pass))?|or|and/or|with|together with|plus|\+|&|/|,)?[\s`'\",()]*$"
)
_SMALLER = lazy(r"(?i)^[`'\"]?\s*(?:to )?(?:be )?(?:a )?(?P<word>smaller|lower|larger|bigger|higher)\b")
# Behind the name of a variable.
_SWITCHED = lazy(
    r"(?i)[`'\"]?\s+(?:must|should|needs? to|ha(?:s|ve) to)\s+be\s+(?:(?P<on>enabled?|turned on|switched on)|disabled?|turned off|unset)\b(?! when| if)"
)
# Variables that only make more be said.
_TELLING = frozenset(
    [
        "CUDA_LAUNCH_BLOCKING",
        "TORCH_USE_CUDA_DSA",
        "TORCHDYNAMO_VERBOSE",
        "TORCH_LOGS",
        "NCCL_DEBUG",
        "NCCL_DEBUG_SUBSYS",
        "AMD_SERIALIZE_KERNEL",
        "TORCH_SHOW_CPP_STACKTRACES",
        "TORCH_DISTRIBUTED_DEBUG",
        "HYDRA_FULL_ERROR",
        "PYTHONFAULTHANDLER",
        "TORCH_CPP_LOG_LEVEL",
        "NVSHMEM_DEBUG",
        "HIP_LAUNCH_BLOCKING",
        "AMD_LOG_LEVEL",
        "CUDA_ENABLE_USER_TRIGGERED_COREDUMP",
        "TORCH_NCCL_TRACE_BUFFER_SIZE",
        "CUDA_VISIBLE_DEVICES",
        "HIP_VISIBLE_DEVICES",
        "TORCH_NCCL_DUMP_ON_TIMEOUT",
        "HF_TOKEN",
        "TORCHINDUCTOR_COMPILE_THREADS",
        "TOKENIZERS_PARALLELISM",
    ]
)
_TRUE, _FALSE = frozenset({"true", "1", "on", "yes"}), frozenset({"false", "0", "off", "no", "none"})
# What says where a launch runs and how many GPUs it has: not changed for a message that only requires it.
_WHERE = frozenset({"node_rank", "nnodes", "dist_init_addr", "host", "port", "model_path", "base_gpu_id"})
_PLACE = {"towards": _WHERE, "requires": _WHERE | {"tp_size", "dp_size"}}
ALWAYS_TYPED = frozenset({"model_path", "host", "port", "tokenizer_path", "served_model_name"})


@dataclass(frozen=True, slots=True)
class Told:
    """One way that a sentence names: the edits that belong together, or (without edits) an option to move."""

    edits: tuple[EditTemplate, ...]
    sentence: str
    look: str = ""  # an option without a value that could be written: what to do about it


@dataclass(frozen=True, slots=True)
class _Way:
    start: int
    end: int  # behind the value
    told: Told


def told(sentence: str, table: FlagTable, facts: Facts, known_env: Mapping[str, EnvSpec]) -> Iterator[Told]:
    """The ways that the sentence names, in its order; what it joins by "and" is one way."""
    ways: list[_Way] = []
    verb, behind = "", 0
    for found in named_in(sentence, table):
        between = sentence[behind : found.start]
        joined = _JOINED.match(between) if ways or verb else None
        if joined is None or (not joined["word"] and between.strip()):
            verb = _verb(sentence, found.start, between)
        way = _way(sentence, found, verb, facts, known_env)
        behind = way.end if way is not None else found.end
        if way is None:
            continue
        if (
            ways
            and joined
            and (joined["word"] or "").lower()
            in (
                "and",
                "and set",
                "and use",
                "and add",
                "and pass",
                "with",
                "together with",
                "plus",
                "+",
                "&",
                ",",
            )
            and ways[-1].told.edits
            and way.told.edits
        ):
            before = ways.pop()
            way = _Way(before.start, way.end, Told((*before.told.edits, *way.told.edits), sentence))
        ways.append(way)
    yield from (w.told for w in ways)


def _verb(sentence: str, at: int, between: str) -> str:
    """What the sentence says about the name at ``at``: towards, requires, away, less, more, or nothing."""
    clause = re.split(r"[;:]\s|\.\s|, but |, so ", sentence[:at])[-1]
    found: list[tuple[int, str]] = []
    none = 0  # where the last verb that is no order ends
    for pattern, kind in (
        (_AWAY, "away"),
        (_TOWARDS, "towards"),
        (_REQUIRES, "requires"),
        (_LESS, "less"),
        (_MORE, "more"),
    ):
        for m in pattern.finditer(clause):
            before = clause[: m.start()]
            word = m[0].lower()
            order = kind == "requires" or not (_NO_ORDER.search(before) or _PURPOSE.search(before))
            if word.endswith("ing") and kind != "requires":
                order = (
                    order
                    and re.search(r"(?i)\b(?:by|consider|try|via|recommend\w*|suggest\w*)\s+$", before)
                    is not None
                )
            if not order:
                none = max(none, m.end())
                continue
            found.append((m.end(), kind))
    if not found:
        return ""
    if any(kind in ("away", "towards", "less", "more") for _, kind in found) and _MEANS.search(clause):
        end, kind = max(found)
        if none > end or _TURNS.search(clause, end):
            return ""
        return (
            "away"
            if kind == "away" and re.search(r"(?i)\b(?:not \w+ing|without)\s*[`'\"]*$", clause)
            else "towards"
        )
    end, kind = max(found)
    if none > end or _TURNS.search(clause, end):
        return ""
    if kind == "requires" and _REFUSED.search(clause):
        return ""
    return kind


def _way(
    sentence: str, found: Named, verb: str, facts: Facts, known_env: Mapping[str, EnvSpec]
) -> _Way | None:
    if found.variable:
        return _variable(sentence, found, verb, facts, known_env)
    if not verb:
        return None
    spec = found.spec
    if spec is None or (not found.is_flag and _SHOWN.search(sentence[: found.start])):
        return None
    edit, end = _option(sentence, found, spec, verb, facts)
    if edit is not None:
        return _Way(found.start, end, Told((edit,), sentence))
    look = _to_look_at(spec, verb, facts)
    return _Way(found.start, end, Told((), sentence, look)) if look else None


def _variable(
    sentence: str, found: Named, verb: str, facts: Facts, known: Mapping[str, EnvSpec]
) -> _Way | None:
    name = found.variable
    if name in _TELLING or not is_setting(name):
        return None
    spec, switched = known.get(name), _SWITCHED.match(sentence, found.end)
    if switched is not None and not verb:
        verb = "towards" if switched["on"] else "away"
    if not verb:
        return None
    value = _EXPLICIT.match(sentence, found.end)
    text = _explicit(value)
    unset = facts.look(f"env.{name}") in (UNKNOWN, None)
    if (
        not text
        and spec is not None
        and spec.type == "bool"
        and (verb == "towards" or (verb == "away" and unset))
    ):
        # On by default or set by the release itself, "disable" is a 0; what the command sets is left out.
        edit = EditTemplate("env", name, "1" if verb == "towards" else "0")
        return _Way(found.start, found.end, Told((edit,), sentence))
    if verb == "away" and not text:
        return _Way(found.start, found.end, Told((EditTemplate("unset", name),), sentence))
    if verb not in ("towards", "requires") or not text or is_word(text):
        return None
    if name.startswith("SGLANG_") and name not in known and "=" not in value[0]:  # type: ignore[index]
        return None
    assert value is not None
    return _Way(found.start, value.end(), Told((EditTemplate("env", name, text),), sentence))


def _explicit(value: re.Match[str] | None) -> str:
    return "" if value is None else (value["value"] or value["quoted"] or value["plain"] or "").rstrip(".,:")


def _option(
    sentence: str, found: Named, spec: FlagSpec, verb: str, facts: Facts
) -> tuple[EditTemplate | None, int]:
    end = found.end
    typed = _look("flag", spec, facts)
    given = typed not in (UNKNOWN, None, False)
    text, sign, behind = _value(sentence, found)
    if spec.arity == "switch":
        off = text.lower() in _FALSE and sign == "="
        away = (verb == "away") != off
        if away:
            return (EditTemplate("remove", spec.name) if given else None), end
        return (
            EditTemplate("add", spec.name) if not given and verb in ("towards", "requires") else None
        ), end
    if verb == "away":
        drops = given and spec.dest not in ALWAYS_TYPED
        return (EditTemplate("remove", spec.name) if drops else None), end
    if spec.arity != "one":
        return None, end
    wanted = usable(spec, text, _is_value)
    if wanted is not None and verb in ("towards", "requires") and spec.dest not in _PLACE[verb]:
        return EditTemplate("set", spec.name, wanted), behind
    direction = _SMALLER.match(sentence[end:])
    way = direction["word"].lower() if direction else verb
    less = way in ("less", "smaller", "lower")
    if less or way in ("more", "larger", "bigger", "higher"):
        least = _AT_LEAST.match(sentence[end:])
        if least is not None and (wanted := usable(spec, least["number"], _is_value)) is not None:
            return EditTemplate("set", spec.name, wanted), end + least.end()
        bound = _BEYOND.match(sentence[end:])
        if bound is not None and (bound["above"] is None) == less and (wanted := _beyond(bound, spec)):
            return EditTemplate("set", spec.name, wanted), end + bound.end()
        example = _EXAMPLE.search(sentence, end)
        now = number(_look("arg", spec, facts))
        for other in _NUMBER.findall(example["values"]) if example else ():
            if now is not None and ((float(other) < now) if less else (float(other) > now)):
                return EditTemplate("set", spec.name, other), example.end()  # type: ignore[union-attr]
    return None, end


def _beyond(bound: re.Match[str], spec: FlagSpec) -> str:
    """The nearest value on the other side of a bound: of shares the next hundredth, a share stays between 0 and 1."""
    step, limit = (1 if bound["above"] else -1), float(bound["number"])
    if spec.type == "int":
        value = int(limit) + step if limit == int(limit) or step > 0 else int(limit)
        return str(value) if value > 0 else ""
    if spec.type != "float":
        return ""
    hundredths = limit * 100
    value = floor(hundredths + 1e-9) + 1 if step > 0 else ceil(hundredths - 1e-9) - 1
    inside = 0 < value < (100 if limit < 1 else inf)
    return f"{value / 100:g}" if inside else ""


def _to_look_at(spec: FlagSpec, verb: str, facts: Facts) -> str:
    if verb not in ("less", "more") or spec.type not in ("int", "float"):
        return ""
    now = _look("arg", spec, facts)
    here = f" (here {now})" if now not in (UNKNOWN, None) else ""
    return f"{'Lower' if verb == 'less' else 'Raise'} {spec.name}{here}"


def _look(kind: str, spec: FlagSpec, facts: Facts) -> Any:
    for dest in same_option(spec.dest):
        value = facts.look(f"{kind}.{dest}")
        if value is not UNKNOWN:
            return value
    return UNKNOWN


def _value(sentence: str, found: Named) -> tuple[str, str | None, int]:
    """The value behind a name, its sign, and where it ends: that of a field only where it is said outright."""
    if not found.is_flag:
        value = _EXPLICIT.match(sentence, found.end)
        sign = "=" if value is not None and "=" in value[0] else None
        return _explicit(value), sign, value.end() if value else found.end
    text, sign, end = value_after(sentence, found.end) or ("", None, found.end)
    return (text, sign, end) if sign in (None, "=") else ("", None, found.end)


def _is_value(text: str) -> bool:
    return any(c in "_0123456789" for c in text) and "/" not in text and ":" not in text
