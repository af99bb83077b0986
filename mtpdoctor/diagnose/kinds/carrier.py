"""The option of the command that carries the value which a failure names.

A message says ``No such file: '/data/map.pt'`` or ``No module named 'hooks'`` and not where the name came from. Where it
stands in the value of one option of the launch, that option is what to look at, whatever the code that failed on it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from mtpdoctor.case import Case
from mtpdoctor.kb.types import EditTemplate, Match, Remedy, Safety
from mtpdoctor.launch.types import FlagUse
from mtpdoctor.patterns import lazy
from mtpdoctor.records import dataclass
from mtpdoctor.sglang.flags import flag_table

# Options whose values stand in many messages and say nothing of the cause, or have rules of their own.
_NOT_MEANT = frozenset(
    {
        "model_path",
        "tokenizer_path",
        "served_model_name",
        "host",
        "port",
        "dist_init_addr",
        "tp_size",
        "api_key",
        "device",
    }
    | {"speculative_draft_model_path"}
)
_PIECE = lazy(r"[\w./:@~+-]{3,}")
_PATH = lazy(r"[~/.]?[\w.@+-]*/[\w./@+-]+")
_SOURCE = lazy(r"[A-Za-z_]\w*(?:\.\w+)*:\w+")  # package.module:name
_DOTTED = lazy(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
_MODULE = lazy(r"No module named '([\w.]+)'")
_BAD_JSON = lazy(
    r"JSONDecodeError|Expecting (?:value|property name|',' delimiter)|invalid (?:json\.)?loads value|[Ii]nvalid JSON|"
    r"invalid (?:parse_json|json)\w* value"
)
_NUMBERS = lazy(r"\d+(?:\s*,\s*\d+)+,?|\[\s*\d+(?:\s*,\s*\d+)*\s*\]")
_COLON = lazy(r"(?<=[\w\"']):(?=[\w\"'\[{-])")  # of a name and its value; "://" of a URL is none
_WORDS = frozenset(
    {"true", "false", "null", "none", "auto", "name", "type", "config", "path", "model", "backend"}
)


@dataclass(frozen=True, slots=True)
class _Carried:
    name: str  # of the option, or of the environment variable
    piece: str
    use: FlagUse | None  # None: a variable


def carrier_remedies(match: Match, case: Case) -> list[Remedy]:
    """What to do with the option whose value the failure names; nothing where no option's value stands in it.

    Captures: ``flag`` and ``value``, where the message names the option itself.
    """
    text = _text(match)
    if _BAD_JSON.search(text):
        return list(_json_remedies(case, match.captures))
    if _NUMBERS.fullmatch(match.captures.get("value", "")):
        return list(_number_remedies(match, case))
    found = _carried(text, case)
    if found is not None:
        return list(_of_value(found, case))
    module = _MODULE.search(text)
    return list(_for_feature(module[1].partition(".")[0], case)) if module is not None else []


def _text(match: Match) -> str:
    traceback = match.traceback
    if traceback is not None and traceback.exception is not None:
        return f"{traceback.type}: {traceback.message}"
    return match.line.text


def _uses(case: Case) -> Iterator[tuple[FlagUse, str]]:
    """Options typed, with their whole value; the log's own form of it where a log shows what SGLang was given."""
    if case.document is None:
        return
    for use in case.document.command.flags:
        shown = case.facts.look(f"arg.{use.dest}")
        if isinstance(shown, (list, dict)) and use.values and use.values[0][:1] in ("{", "["):
            shown = json.dumps(shown, default=str)
        value = shown if isinstance(shown, str) and shown[:1] in ("{", "[") else " ".join(use.values)
        if value:
            yield use, value


def _carried(text: str, case: Case) -> _Carried | None:
    """The option or variable whose value, or the longest part of it, stands in the message as a word of its own."""
    module = _MODULE.search(text)
    model = str(case.facts.look("arg.model_path") or "")
    best: _Carried | None = None
    for name, value, use in _values(case):
        for piece in _pieces(value):
            if module is not None and (_SOURCE.fullmatch(piece) or _DOTTED.fullmatch(piece)):
                named = module[1] == piece.partition(":")[0] or piece.startswith(module[1] + ".")
            else:
                named = _telling(piece) and piece not in model and _named(piece, text)
            if named and (best is None or len(piece) > len(best.piece)):
                best = _Carried(name, piece, use)
    return best


def _values(case: Case) -> Iterator[tuple[str, str, FlagUse | None]]:
    for use, value in _uses(case):
        if use.dest not in _NOT_MEANT:
            yield use.name, value, use
    if case.document is not None:
        for name, value in case.document.command.env.items():
            if _PATH.fullmatch(value) or _DOTTED.fullmatch(value):
                yield name, value, None


def _named(piece: str, text: str) -> bool:
    """In the message as a word; or the folder of a file, in quotes of its own (code that looks the folder up)."""
    return _stands_in(piece, text) or (piece.count("/") > 1 and f"'{piece.rpartition('/')[0]}'" in text)


def _pieces(value: str) -> Iterator[str]:
    yield value
    for found in _PIECE.finditer(value):
        yield found[0].rstrip(".:")
        if "=" not in value:
            continue
    yield from value.replace("=", " ").split()


def _telling(piece: str) -> bool:
    """Is it a path or a name that no message would hold by chance?"""
    if _PATH.fullmatch(piece):
        return len(piece) > 4
    return (
        len(piece) > 3
        and piece.lower() not in _WORDS
        and not piece.replace(".", "").isdigit()
        and (not piece.isalpha() or len(piece) > 5)
    )


def _stands_in(piece: str, text: str) -> bool:
    at = text.find(piece)
    while at >= 0:
        before, after = text[at - 1 : at], text[at + len(piece) : at + len(piece) + 1]
        begins = piece.startswith("/") or not (before.isalnum() or before in ("_", "/", "-", "."))
        if begins and not (after.isalnum() or after in ("_", "-")):
            return True
        at = text.find(piece, at + 1)
    return False


def _of_value(found: _Carried, case: Case) -> Iterator[Remedy]:
    name, piece = found.name, found.piece
    path = _PATH.fullmatch(piece) is not None
    look = f"ls -l '{piece}'" if path and "'" not in piece else ""
    if not look and found.use is not None:
        look = f"python -m sglang.launch_server --help | grep -A4 -- {name}"
    yield Remedy(
        title=f"Correct {name}: the failure names {piece}, which comes from its value",
        safety=Safety.MANUAL,
        why="it must be there where the server runs (inside the container), and be what the setting takes"
        if path
        else "nothing else in the command holds that name",
        run=(look,) if look else (),
    )
    if found.use is None:
        yield Remedy(
            title=f"Leave {name} out",
            safety=Safety.RISKY,
            why="what failed is its value; without it the default is taken",
            edits=(EditTemplate("unset", name),),
            risk="the default folder must have room and be writable",
        )
    elif not _required(found.use, case):
        yield _left_out(found.use)


def _for_feature(module: str, case: Case) -> Iterator[Remedy]:
    """A module that only a feature needs: it stands in the name of an option that was typed."""
    if len(module) < 4 or case.document is None:
        return
    from mtpdoctor.diagnose.kinds.package import install_remedy, usable_name
    from mtpdoctor.sglang.packages import package_of

    if not usable_name(module):
        return
    for use in case.document.command.flags:
        if module.lower() in use.name.replace("-", "_") and use.dest not in _NOT_MEANT:
            yield install_remedy(module, package_of(module).distributions[-1], case)
            if not _required(use, case):
                yield _left_out(use)
            return


def _left_out(use: FlagUse) -> Remedy:
    return Remedy(
        title=f"Leave {use.name} out",
        safety=Safety.RISKY,
        why="what failed is its value, and the launch does not need the option",
        edits=(EditTemplate("remove", use.name),),
        risk="what the option asked for is not done",
    )


def _required(use: FlagUse, case: Case) -> bool:
    spec = flag_table(case.release).get(use.name)
    return spec is not None and spec.required


def _json_remedies(case: Case, captures: Mapping[str, str]) -> Iterator[Remedy]:
    """For each option whose value was meant to be JSON and is none: the value as JSON, where it can be told. What the
    message itself shows of the value is what the server was given."""
    names = set(captures.get("flag", "").split("/"))
    for use, value in _uses(case):
        if use.name in names:
            value = captures.get("value") or value
        elif names - {""} or value[:1] not in ("{", "["):
            continue
        if _parses(value):
            continue
        mended = as_json(value)
        if mended is None:
            yield Remedy(
                title=f"Correct the JSON of {use.name}",
                safety=Safety.MANUAL,
                why="names and words in double quotes, true/false/null in small letters, the whole in single quotes for the shell",
                run=(f"python -m sglang.launch_server --help | grep -A4 -- {use.name}",),
            )
        else:
            yield Remedy(
                title=f"Write the value of {use.name} as JSON",
                safety=Safety.RISKY,
                why="it is no JSON as it stands: names and words want double quotes, and the shell takes away those that are not quoted themselves",
                edits=(EditTemplate("set", use.name, mended),),
                risk="words without quotes were read as the values that they resemble",
            )
        if not _required(use, case):
            yield _left_out(use)


def _parses(value: str) -> bool:
    try:
        json.loads(value)
    except ValueError:
        return False
    return True


def as_json(value: str) -> str | None:
    """The value read with YAML's laxer rules; None where that gives no object or list either."""
    import yaml

    if value[:1] not in ("{", "["):
        return None
    try:
        read = yaml.safe_load(_COLON.sub(": ", value))
    except (yaml.YAMLError, ValueError, RecursionError):
        return None
    if not isinstance(read, (dict, list)) or not read or _has_none(read):
        return None
    try:
        return json.dumps(_words_mended(read, value))
    except (TypeError, ValueError):
        return None


def _has_none(read: Any) -> bool:
    """A name without a value: YAML reads ``{a b}`` so."""
    if isinstance(read, dict):
        return any(v is None or _has_none(v) for v in read.values())
    return any(_has_none(v) for v in read) if isinstance(read, list) else False


_MEANT = {"true": True, "false": False, "null": None, "none": None}


def _words_mended(read: Any, value: str) -> Any:
    """``tru`` and ``True`` without quotes as the word of JSON that was meant."""
    if isinstance(read, dict):
        return {str(k): _words_mended(v, value) for k, v in read.items()}
    if isinstance(read, list):
        return [_words_mended(v, value) for v in read]
    if isinstance(read, str) and f'"{read}"' not in value and f"'{read}'" not in value:
        near = get_close_matches(read.lower(), _MEANT, n=1, cutoff=0.8)
        if near:
            return _MEANT[near[0]]
    return read


def _number_remedies(match: Match, case: Case) -> Iterator[Remedy]:
    """Numbers with commas or in brackets, for an option that takes them one after the other."""
    name = match.captures.get("flag", "").split("/")[0]
    spec = flag_table(case.release).get(name)
    if spec is None or spec.arity != "many":
        return
    numbers = " ".join(
        n for n in match.captures["value"].replace("[", " ").replace("]", " ").replace(",", " ").split()
    )
    yield Remedy(
        title=f"Write {name} {numbers}",
        safety=Safety.SAFE,
        why="the option takes its numbers one after the other, without commas and brackets",
        edits=(EditTemplate("set", name, numbers),),
    )
