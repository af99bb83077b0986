"""A value that its option cannot read: JSON without its quotes, numbers with commas."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from mtpdoctor.case import Case
from mtpdoctor.diagnose.written import left_out, required, said_by, written_values
from mtpdoctor.kb.types import EditTemplate, Match, Remedy, Safety
from mtpdoctor.patterns import lazy
from mtpdoctor.sglang.flags import flag_table

_BAD_JSON = lazy(
    r"JSONDecodeError|Expecting (?:value|property name|',' delimiter)|invalid (?:json\.)?loads value|[Ii]nvalid JSON|"
    r"invalid (?:parse_json|json)\w* value"
)
_NUMBERS = lazy(r"\d+(?:\s*,\s*\d+)+,?|\[\s*\d+(?:\s*,\s*\d+)*\s*\]")
_NULL = lazy(r"(?<=[:,\[\s])(?:null|Null|NULL|~)(?=\s*[,}\]])")
_COLON = lazy(r"(?<=[\w\"']):(?=[\w\"'\[{-])")  # of a name and its value; "://" of a URL is none


def value_remedies(match: Match, case: Case) -> list[Remedy]:
    """The value as the option reads it, where that can be told; nothing where no value is of these kinds.

    Captures: ``flag`` and ``value``, where the message names the option itself.
    """
    text = said_by(match.traceback, match.line)
    if _BAD_JSON.search(text):
        return list(_json_remedies(case, match.captures))
    if _NUMBERS.fullmatch(match.captures.get("value", "")):
        return list(_number_remedies(match, case))
    return []


def _json_remedies(case: Case, captures: Mapping[str, str]) -> Iterator[Remedy]:
    """For each option whose value was meant to be JSON and is none: the value as JSON, where it can be told. What the
    message itself shows of the value is what the server was given."""
    names = set(captures.get("flag", "").split("/"))
    for use, value in written_values(case):
        if use.name in names:
            value = captures.get("value") or value
        elif names - {""} or value[:1] not in ("{", "["):
            continue
        if _parses(value):
            continue
        mended, fault = balanced(value)
        if mended is None:
            mended, fault = as_json(value), _WORDS
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
                why=f"it is no JSON as it stands: {fault[0]}",
                edits=(EditTemplate("set", use.name, mended),),
                risk=fault[1],
            )
        if not required(use, case):
            yield left_out(use)


_WORDS = (
    "names and words want double quotes, and the shell takes away those that are not quoted themselves",
    "words without quotes were read as the values that they resemble",
)
_CLOSERS = {"{": "}", "[": "]"}


def balanced(value: str) -> tuple[str | None, tuple[str, str]]:
    """The value with as many closing braces and brackets as it opens, and what was wrong; None where that is not its fault.

    A brace too many is what ``${VAR:-{...}}`` of a shell leaves, one too few what a cut line or template does.
    """
    text = value.strip()
    try:
        read, end = json.JSONDecoder().raw_decode(text)
    except RecursionError:
        return None, _WORDS
    except ValueError:
        missing = _unclosed(text)
        if not missing or not _parses(text + missing):
            return None, _WORDS
        return text + missing, (f'"{missing}" is missing at its end', "what else was cut off is not known")
    rest = text[end:].strip()
    if not isinstance(read, (dict, list)) or not rest or set(rest) - set("}] "):
        return None, _WORDS
    return text[:end], (
        f'"{rest}" stands behind its end, as ${{NAME:-{{...}}}} in a shell script leaves it',
        "what follows the end is left out",
    )


def _unclosed(text: str) -> str:
    """The closing braces and brackets that the text lacks, from the inside out."""
    open_ones: list[str] = []
    quoted = escaped = False
    for sign in text:
        if quoted:
            quoted, escaped = escaped or sign != '"', not escaped and sign == "\\"
        elif sign == '"':
            quoted = True
        elif sign in _CLOSERS:
            open_ones.append(_CLOSERS[sign])
        elif open_ones and sign == open_ones[-1]:
            open_ones.pop()
    return "" if quoted else "".join(reversed(open_ones))


def _parses(value: str) -> bool:
    try:
        json.loads(value)
    except (ValueError, RecursionError):
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
    if not isinstance(read, (dict, list)) or not read or _nones(read) != len(_NULL.findall(value)):
        return None
    try:
        return json.dumps(_words_mended(read, value))
    except (TypeError, ValueError):
        return None


def _nones(read: Any) -> int:
    """How many values are None; more than ``null`` was written is a name without a value, as YAML reads ``{a b}``."""
    if isinstance(read, dict):
        return sum(1 if v is None else _nones(v) for v in read.values())
    return sum(1 if v is None else _nones(v) for v in read) if isinstance(read, list) else 0


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
