"""Which options and variables a line of SGLang runs under, by the frame of a traceback.

``gates.json.gz`` is written by ``learn_gates``; it is read only where no rule knows the cause of a failure.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from mtpdoctor.records import dataclass
from mtpdoctor.release import Release
from mtpdoctor.sglang.history import known_file
from mtpdoctor.sglang.lines import ENTRY, digest_of
from mtpdoctor.sglang.packed import open_packed

GATES_FILE = "gates.json.gz"
ON, OFF, IS, OVER = "+", "-", "=", ">"
CALLS = (
    "@"  # while learning, before the name of a function of the same file: what holds where that function runs
)
_DIGEST = ENTRY - 1


@dataclass(frozen=True, slots=True)
class Gate:
    """``name``: a field of ServerArgs, or ``$VARIABLE``. ``how``: ``+`` it is set, ``-`` it is not (only of options that
    switch something off), ``=`` it is one of ``values``, ``>`` it is over the one value."""

    name: str
    how: str = ON
    values: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.name}{self.how}{'|'.join(self.values)}"


Gates = frozenset[Gate]
NO_GATES: Gates = frozenset()
Span = tuple[Gates, int, int]  # with the first and the last release (numbers)


def gates_of_frame(folder: Path, path: str, function: str, line: str, release: Release) -> tuple[Gate, ...]:
    """What encloses the line in its function first, then what holds wherever the function runs. Empty where nothing is
    known. ``path`` may be a frame's whole path; ``line`` is what the frame quotes, "" where it quotes nothing."""
    table = open_packed(folder / GATES_FILE)
    file = known_file(path, table)
    releases: list[str] = table.head.get("releases", [])
    if file is None or str(release) not in releases:
        return ()
    at = releases.index(str(release))
    of = of_file(table.text(table.groups[file]), file)
    here = (
        _then(_spans(of.get(function, ""), digest_of(line), table.head["gates"]), at)
        if line.strip()
        else NO_GATES
    )
    whole = _then(_spans(of.get(f">{function}", ""), "", table.head["gates"]), at)
    return (*sorted(here, key=str), *sorted(whole - here, key=str))


def of_file(text: str, file: str) -> dict[str, str]:
    """Of the text of a member: function -> what is written of its lines; ``>function`` -> of the whole function."""
    start = text.find(f"\n#{file}\n")
    if start < 0:
        return {}
    end = text.find("\n#", start + 1)
    rows = text[start + 1 : end if end >= 0 else len(text)].split("\n")[1:]
    return {name: written for name, _, written in (row.partition("\t") for row in rows) if name}


def _then(spans: Iterator[Span], at: int) -> Gates:
    return next((gates for gates, first, last in spans if first <= at <= last), NO_GATES)


def _spans(written: str, digest: str, sets: list[str]) -> Iterator[Span]:
    for number, first, last, digests in parts_of(written):
        if not digest or any(digests[n : n + _DIGEST] == digest for n in range(0, len(digests), _DIGEST)):
            yield gates_in(sets[number]), first, last


def parts_of(written: str) -> Iterator[tuple[int, int, int, str]]:
    """Number of the set of gates, first and last release, digests of lines ("" for a whole function)."""
    for part in written.split("\t") if written else ():
        number, first, last, digests = part.split(" ")
        yield int(number), int(first), int(last), digests


def gates_in(text: str) -> Gates:
    """``enable_x+ attention_backend=fa3|triton page_size>1 $SGLANG_X+`` as gates."""
    out = []
    for word in text.split(" ") if text else ():
        at = next(n for n, char in enumerate(word) if char in "+-=>")
        values = word[at + 1 :]
        out.append(Gate(word[:at], word[at], tuple(values.split("|")) if values else ()))
    return frozenset(out)
