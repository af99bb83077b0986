"""Taking off what stands in front of a log line because of the way the log was carried.

Which transports a file uses is learned from samples of it (``learn``), since most prefixes are not
telling by themselves: ``0: `` is a Slurm task only where every line has one. Kinds that nothing
else looks like (``Kind.strong``) are taken off wherever they stand. Wrappers nest (compose around
Kubernetes timestamps around Slurm), so prefixes come off one by one, from the outermost inwards.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from mtpdoctor.log.clean import decode, strip_text
from mtpdoctor.log.kinds import JSON_KINDS, KINDS, STRONG, Kind, Peeled, constant
from mtpdoctor.log.pasted import announces
from mtpdoctor.log.shapes import shape_of
from mtpdoctor.records import dataclass

_MAX_DEPTH = 6
_SAMPLE_LINES = 360
# an indentation, a mark of quotation, a name; and what shows that the log itself begins behind it
_CONSTANT = r"[ \t]+|(?:> ?)+|\[?[A-Za-z][\w.@/-]*\]?(?: [\w.@/-]+)?(?:: ?| ?[|>] ?| )"
_TELLING = r"\[20\d\d-\d\d-\d\d |Traceback \(most recent call last\):|usage: |\$ |[\w.]+Error: "
_STRONG_FIRST = frozenset("([0123456789")  # what a strong prefix can begin with


@dataclass(frozen=True, slots=True)
class Transports:
    """What was learned of a file: the kinds of each level, outermost first (alternatives side by
    side), and the names of the strong kinds met."""

    levels: tuple[tuple[Kind, ...], ...] = ()
    strong: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.strong, *(kind.name for level in self.levels for kind in level))

    @property
    def json_levels(self) -> int:
        """How many times over the text was written as JSON."""
        return sum(any(kind.name in JSON_KINDS for kind in level) for level in self.levels)

    @property
    def may_split(self) -> bool:
        """True where the container runtime cuts long lines into several records."""
        return "cri" in self.names or "docker_json" in self.names

    def peel(self, text: str) -> Peeled:
        """``text`` without its prefixes. ``stream`` joins what they name with ``/``; ``time`` is the
        innermost timestamp."""
        stream, time, partial = "", None, False
        depth = 0
        for _ in range(_MAX_DEPTH):
            found = _strong(text) if text[:1] in _STRONG_FIRST else None
            if found is None:
                found, depth = self._learned(text, depth)
                if found is None:
                    break
            if found.stream:
                stream = f"{stream}/{found.stream}" if stream else found.stream
            time = found.time or time
            partial = partial or found.partial
            text = found.rest
            if "\x1b" in text:  # a JSON message brought its own escapes: a prefix may stand in them
                text = strip_text(text)
        return Peeled(stream, time, text, partial)

    def _learned(self, text: str, depth: int) -> tuple[Peeled | None, int]:
        for at in range(depth, len(self.levels)):
            for kind in self.levels[at]:
                if kind.might(text):
                    found = kind.peel(text)
                    if found is not None:
                        return found, at + 1
        return None, depth


PLAIN = Transports()


def _strong(text: str, names: set[str] | None = None) -> Peeled | None:
    for kind in STRONG:
        if kind.might(text):
            found = kind.peel(text)
            if found is not None:
                if names is not None:
                    names.add(kind.name)
                return found
    return None


def learn(samples: Iterable[bytes]) -> Transports:
    """The transports of a file, from samples of it (each a run of whole lines)."""
    lines: list[str] = []
    runs = [sample.split(b"\n") for sample in samples]
    share = max(_SAMPLE_LINES // max(len(runs), 1), 1)
    for run in runs:
        # both ends of a run: what wraps a log often differs before the first container starts
        for raw in run if len(run) <= share else run[: share // 2] + run[-share // 2 :]:
            text = decode(raw[: 1 << 18] if raw[:1] == b"{" else raw[:4096]).lstrip("\ufeff")
            text = text.split("\r", 1)[0]
            if text and not text.isspace() and not announces(text):
                lines.append(text)
    levels = []
    names: set[str] = set()
    for _ in range(_MAX_DEPTH):
        lines = [text for text in (_without_strong(line, names) for line in lines) if text.strip()]
        kinds, lines = _level(lines)
        if not kinds:
            kind = _constant(lines) or shape_of(lines)
            if kind is None:
                break
            kinds = (kind,)
            lines = [found.rest if (found := kind.peel(text)) is not None else text for text in lines]
        levels.append(kinds)
    return Transports(tuple(levels), tuple(sorted(names)))


def _without_strong(text: str, names: set[str]) -> str:
    for _ in range(_MAX_DEPTH):
        found = _strong(text, names) if text[:1] in _STRONG_FIRST else None
        if found is None:
            break
        text = found.rest
    return text


def _level(lines: Sequence[str]) -> tuple[tuple[Kind, ...], list[str]]:
    """The kinds that the lines have in common, and the lines without them."""
    fits: dict[str, dict[int, Peeled]] = {}  # kind -> line -> what was peeled
    for at, text in enumerate(lines):
        json = text[:1] == "{"
        for kind in KINDS:
            if not kind.strong and kind.might(text):
                found = kind.peel(text)
                if found is not None:
                    fits.setdefault(kind.name, {})[at] = found
                    if json:  # the shapes are tried from the narrowest on
                        break
    _choose_between_times(fits)
    kinds = tuple(k for k in KINDS if k.name in fits and _believed(k, fits[k.name].values(), len(lines)))
    rest: dict[int, str] = {}
    for kind in kinds:
        for at, peeled in fits[kind.name].items():
            rest.setdefault(at, peeled.rest)
    return kinds, [strip_text(rest.get(at, text)) for at, text in enumerate(lines)]


def _choose_between_times(fits: dict[str, dict[int, Peeled]]) -> None:
    """A journal puts host and program behind *every* time. Where only some lines look so, it is
    their text ("2026-... WARNING root: ...") and the times are bare."""
    journal = fits.get("journald")
    bare = [fits[name] for name in ("iso_time", "clock") if name in fits]
    if not journal or not bare:
        return
    if len(journal) < 0.9 * max(map(len, bare)):
        del fits["journald"]
    else:
        for name in ("iso_time", "clock"):
            fits.pop(name, None)


def _believed(kind: Kind, peeled: Collection[Peeled], total: int) -> bool:
    count = len(peeled)
    if kind.few and len({p.stream for p in peeled}) > min(16, count // 3):
        return False
    if kind.alone and count == total:
        return True
    return count >= kind.least and count >= kind.share * total


def _constant(lines: Sequence[str]) -> Kind | None:
    """The kind of a prefix that all lines share, where what follows shows that it is one."""
    long = [text for text in lines if len(text) > 32]  # of empty lines only a part of it may be left
    if len(long) < 5:
        return None
    first, last = min(long), max(long)
    size = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
    m = re.match(_CONSTANT, first[:size])
    if m is None or not any(re.match(_TELLING, text[m.end() :]) for text in long):
        return None
    kind = constant(m[0])
    return kind if all(kind.peel(text) is not None for text in lines) else None
