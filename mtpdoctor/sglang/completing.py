"""Help while a launch command is typed: which flag or value may stand here, what a flag means, what is wrong.

Works on text in any form (shell, YAML list, unit file) and while it is half typed: words are told apart by
white space, quotes, commas and brackets, and only those behind the server's program count. Whether the
command as a whole would start is ``check``'s business.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from mtpdoctor.patterns import lazy
from mtpdoctor.records import dataclass
from mtpdoctor.sglang.flags import FlagSpec, FlagTable

MAX_ITEMS = 60

_PART = r"""[^\s'"`,\[\]{}()\\;|&<>=]+"""
_WORD = lazy(rf"{_PART}(?:,{_PART})*|[;|&]+")
_PROGRAM = lazy(r"sglang[./]launch_server|launch_server\.py|sglang(?=\s+serve\b)|\blaunch_server\b")
_NUMBER = {"int": lazy(r"[+-]?\d+\Z"), "float": lazy(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\Z")}
_TYPES = {
    "int": "whole number", "float": "number", "bool": "true or false", "str": "text", "json": "JSON",
    "human_readable_int": "whole number, as 4096 or 4k", "json_list_type": "JSON list",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that may stand here."""

    text: str
    note: str  # what it means, in a few words
    flag: bool  # a flag; else a value
    deprecated: bool = False


@dataclass(frozen=True, slots=True)
class Completion:
    """``items`` may replace the characters ``start`` to ``end`` of the text."""

    start: int
    end: int
    items: tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class Mark:
    """Something wrong in the text, from ``start`` to ``end``. ``kind``: "unknown", "value", "deprecated"."""

    start: int
    end: int
    kind: str
    why: str


@dataclass(frozen=True, slots=True)
class _Typed:
    start: int
    end: int
    text: str
    joined: bool = False  # behind "=": the value of the word before it


def complete(text: str, cursor: int, table: FlagTable) -> Completion | None:
    """What may stand at ``cursor`` (characters from the start): flags that begin with, else that hold, the
    word typed so far; the choices of the flag before it. None where nothing is to be said."""
    words = _server_words(text)
    here = next((w for w in words if w.start <= cursor <= w.end), None)
    typed = text[here.start : cursor] if here else ""
    if here is None and (not words or cursor < words[0].start):
        return None
    end = here.end if here else cursor
    start = here.start if here else cursor
    if typed.startswith("-"):
        items = _flags(typed, table)
        return Completion(start, end, items) if items else None
    spec = _flag_of(words, here, cursor, table)
    if spec is None:
        return None
    items = tuple(
        Item(value, note, False)
        for value, note in _values(spec)
        if typed.lower() in value.lower() or not typed
    )
    exact = [i for i in items if i.text.lower().startswith(typed.lower())]
    items = (*exact, *(i for i in items if i not in exact))
    return Completion(start, end, items[:MAX_ITEMS]) if items else None


def flag_at(text: str, cursor: int, table: FlagTable) -> FlagSpec | None:
    """The flag that the cursor stands on, or whose value it stands on."""
    words = _server_words(text)
    here = next((w for w in words if w.start <= cursor <= w.end), None)
    if here is not None and here.text.startswith("--"):
        return table.resolve(here.text)
    return _flag_of(words, here, cursor, table)


def marks(text: str, table: FlagTable) -> tuple[Mark, ...]:
    """Flags that the release does not have or would rather not have, and values that it would refuse."""
    out: list[Mark] = []
    spec: FlagSpec | None = None
    values = 0
    for word in _server_words(text):
        if word.text.startswith("--") and not word.joined and len(word.text) > 2:
            spec, values = table.resolve(word.text), 0
            mark = _flag_mark(word, spec, table)
            if mark is not None:
                out.append(mark)
        elif spec is not None and _takes(spec, values):
            values += 1
            why = _refusal(spec, word.text)
            if why:
                out.append(Mark(word.start, word.end, "value", why))
    return tuple(out)


def explain(spec: FlagSpec, release: str | None = None) -> tuple[str, ...]:
    """A flag in a few lines of plain text: what it does, what it takes, its default, where it exists."""
    head = spec.name if spec.arity == "switch" else f"{spec.name} {_metavar(spec)}"
    lines = [head]
    words = flag_words(spec.dest)
    if words:
        lines.append(words[0].upper() + words[1:] + ".")
    if spec.refused:
        lines.append(f"Refused by this release: {spec.refused}")
    elif spec.deprecated:
        lines.append(f"Deprecated{f'; use {spec.replacement}' if spec.replacement else ''}.")
    if spec.choices:
        lines.append("Choices: " + ", ".join(map(str, spec.choices)) + ".")
    facts = []
    if spec.arity != "switch":
        facts.append("the release decides at start" if spec.default is None else f"default {spec.default}")
    if len(spec.spellings) > 1:
        facts.append("also " + ", ".join(spec.aliases))
    facts.append(_when(spec, release))
    text = "; ".join(f for f in facts if f)
    if text:
        lines.append(text[0].upper() + text[1:] + ".")
    return tuple(lines)


def flag_words(dest: str) -> str | None:
    """What the flag of this field does, in one line of our own words; None where nobody has written it."""
    from mtpdoctor.paths import releases_folder
    from mtpdoctor.sglang.options import same_option

    words = _words(releases_folder())
    return next((words[name] for name in same_option(dest) if name in words), None)


@lru_cache(maxsize=4)
def _words(folder: Path) -> Mapping[str, str]:
    import json

    file = folder / "flag_words.json"
    found: Mapping[str, str] = json.loads(file.read_text(encoding="utf-8"))["words"] if file.is_file() else {}
    return found


# -- words ----------------------------------------------------------------------------------------------
def _server_words(text: str) -> list[_Typed]:
    """The words behind the server's program, up to the end of its command; all where no program is seen."""
    m = _PROGRAM.search(text)
    out: list[_Typed] = []
    for word in _words_of(text, m.end() if m else 0):
        if word.text[0] in ";|&":
            if out:
                break
            continue
        out.append(word)
    return out


def _words_of(text: str, start: int) -> Iterator[_Typed]:
    for m in _WORD.finditer(text, start):
        if m[0] == "-":  # the mark of an item of a YAML list
            continue
        yield _Typed(m.start(), m.end(), m[0], m.start() > 0 and text[m.start() - 1] == "=")


def _flag_of(words: Sequence[_Typed], here: _Typed | None, cursor: int, table: FlagTable) -> FlagSpec | None:
    """The flag whose value stands, or may stand, at the cursor."""
    before = [w for w in words if w.end <= cursor and w is not here]
    for values, word in enumerate(reversed(before)):
        if word.text.startswith("--"):
            spec = table.resolve(word.text)
            return spec if spec is not None and _takes(spec, values) else None
    return None


def _takes(spec: FlagSpec, values: int) -> bool:
    """Whether a further value may follow ``values`` ones."""
    return spec.arity == "many" or (spec.arity in ("one", "optional") and values == 0)


# -- what may stand there ----------------------------------------------------------------------------------
def _flags(typed: str, table: FlagTable) -> tuple[Item, ...]:
    wanted = typed.lstrip("-").lower().replace("_", "-")
    found: dict[str, tuple[int, FlagSpec, str]] = {}

    def order(rank: int, spec: FlagSpec, option: str) -> tuple[int, bool, bool]:
        """Of one flag its name, else the spelling that stands there already."""
        return rank, option != spec.name, option[2:] != wanted

    for option in table:
        if not option.startswith("--"):
            continue
        bare = option[2:]
        rank = 0 if bare.startswith(wanted) else 1 if all(p in bare for p in wanted.split("-") if p) else 2
        if rank == 2:
            continue
        spec = table[option]
        if spec.refused is not None:
            continue
        known = found.get(spec.name)
        if known is None or order(rank, spec, option) < order(*known):
            found[spec.name] = (rank, spec, option)
    # Flags that somebody found worth a line of words are the ones that people type.
    ordered = sorted(
        found.values(), key=lambda f: (f[0], f[1].deprecated, flag_words(f[1].dest) is None, f[2])
    )
    return tuple(Item(option, _note(spec), True, spec.deprecated) for _, spec, option in ordered[:MAX_ITEMS])


def _note(spec: FlagSpec) -> str:
    if spec.deprecated:
        return f"deprecated{f': {spec.replacement}' if spec.replacement else ''}"
    return flag_words(spec.dest) or ("switch" if spec.arity == "switch" else _metavar(spec))


def _values(spec: FlagSpec) -> list[tuple[str, str]]:
    """Values worth offering: the choices (those known of another release where this one takes any text)."""
    default = None if spec.default is None else str(spec.default)
    from mtpdoctor.sglang.help import known_choices

    values = list(known_choices(spec))
    if not values and default not in (None, "", "True", "False"):
        values = [str(default)]
    return [(v, "default" if v == default else "") for v in values]


def _metavar(spec: FlagSpec) -> str:
    what = _TYPES.get(spec.type, spec.type.replace("_", " "))
    return f"<{what}>" + (" ..." if spec.arity == "many" else "")


def _when(spec: FlagSpec, release: str | None) -> str:
    first = spec.first if spec.releases else ""
    if not first:
        return ""
    last = f" to {spec.last}" if spec.last else ""
    return f"in SGLang since {first}{last}" if not last else f"in SGLang {first}{last}"


# -- what is wrong ----------------------------------------------------------------------------------------
def _flag_mark(word: _Typed, spec: FlagSpec | None, table: FlagTable) -> Mark | None:
    if spec is None:
        from mtpdoctor.sglang.help import explain_unknown

        return Mark(word.start, word.end, "unknown", explain_unknown(word.text, table.release).text)
    if spec.refused is not None:
        return Mark(word.start, word.end, "unknown", spec.refused)
    if spec.deprecated:
        instead = f"; use {spec.replacement}" if spec.replacement else ""
        return Mark(word.start, word.end, "deprecated", f"{spec.name} is deprecated{instead}")
    return None


def _refusal(spec: FlagSpec, value: str) -> str | None:
    """Why the parser would refuse the value; None where it takes it, or a shell fills it in."""
    if "$" in value:
        return None
    if spec.choices:
        choices = [str(c) for c in spec.choices]
        if value not in choices:
            import difflib

            near = difflib.get_close_matches(value, choices, n=1)
            hint = f"; nearest: {near[0]}" if near else f"; one of {', '.join(choices[:12])}"
            return f"{spec.name} has no {value}{hint}"
    number: re.Pattern[str] | None = _NUMBER.get(spec.type)
    if number is not None and not number.match(value):
        return f"{spec.name} wants a {_TYPES[spec.type]}, not {value}"
    return None
