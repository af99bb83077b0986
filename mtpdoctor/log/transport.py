"""What stands in front of a log line because of the way the log was carried.

Each kind of transport is one pattern. Which kinds a file uses is learned from samples of it
(``learn``), since most prefixes are not telling by themselves: ``0: `` is a Slurm task only where
every line has one. Kinds that nothing else looks like (``strong``) are taken off wherever they stand.
Wrappers nest (compose around Kubernetes timestamps around Slurm), so prefixes come off one by one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from mtpdoctor.log.clean import decode, strip_text
from mtpdoctor.log.jsonlines import peel_json

_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_ISO = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)"
_DAY = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d+)?"
_IDENT = r"(?P<stream>[^\s\[\]:|]+(?:\[\d+\])?): ?(?P<rest>.*)"


@dataclass(frozen=True, slots=True)
class Peeled:
    """One prefix taken off. ``partial``: the line goes on in the next one of this stream."""

    stream: str
    time: str | None
    rest: str
    partial: bool = False


@dataclass(frozen=True, slots=True)
class Kind:
    """One transport. ``share``: of the lines of a sample that must have the prefix, ``least``: how
    many lines (or all of them); ``strong``: tried on every line, learned or not."""

    name: str
    peel: Callable[[str], Peeled | None]
    share: float
    least: int
    strong: bool = False
    json: bool = False


def _pattern(*patterns: str) -> Callable[[str], Peeled | None]:
    compiled: list[re.Pattern[str]] = []

    def peel(text: str) -> Peeled | None:
        if not compiled:
            compiled.extend(re.compile(p, re.S) for p in patterns)
        for p in compiled:
            m = p.match(text)
            if m:
                g = m.groupdict()
                return Peeled(g.get("stream") or "", g.get("time"), g["rest"], g.get("flag") == "P")
        return None

    return peel


_JSON_SHAPES = {"docker_json": "docker", "journald_json": "journald", "json": "any"}


def _json(shape: str) -> Callable[[str], Peeled | None]:
    def peel(text: str) -> Peeled | None:
        if not text.startswith("{"):
            return None
        record = peel_json(text, shape)
        return None if record is None else Peeled(record.stream, record.time, record.text, record.partial)

    return peel


KINDS: tuple[Kind, ...] = (
    Kind("docker_json", _json("docker"), 0.2, 2, json=True),
    Kind("journald_json", _json("journald"), 0.2, 2, json=True),
    Kind("json", _json("any"), 0.6, 3, json=True),
    Kind(
        "kubectl_prefix",
        _pattern(r"\[(?P<stream>(?:pod|deployment|job|statefulset)/[^\]\s/]+/[^\]\s]+)\] ?(?P<rest>.*)"),
        0.2,
        1,
        strong=True,
    ),
    Kind(
        "cri",
        _pattern(rf"(?P<time>{_ISO}) (?:stdout|stderr) (?P<flag>[FP])(?:$| )(?P<rest>.*)"),
        0.2,
        1,
        strong=True,
    ),
    Kind(
        "journald",
        _pattern(
            rf"(?:<\d+>)?(?P<time>{_MONTH} [ \d]\d \d\d:\d\d:\d\d(?:\.\d+)?) \S+ {_IDENT}",
            rf"(?:<\d+>)?(?P<time>{_ISO}) \S+ (?=\S+\[\d+\]: ?){_IDENT}",
            rf"(?P<time>\d{{10}}\.\d{{6}}) \S+ {_IDENT}",
            rf"(?P<time>(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) {_DAY} \S+) \S+ {_IDENT}",
            rf"<\d+>1 (?P<time>{_ISO}) \S+ (?P<stream>\S+) \S+ \S+ (?:-|\[[^\]]*\]) ?(?P<rest>.*)",
        ),
        0.2,
        2,
    ),
    Kind(
        "ray",
        _pattern(
            r"(?:\[\d+m)?\((?P<stream>(?:\S+ )?pid=\d+(?:, ip=[^)\s]+)?|raylet(?:, ip=[^)\s]+)?)\)"
            r"(?:\[0m)?(?: |$)(?P<rest>.*)"
        ),
        0.02,
        1,
        strong=True,
    ),
    Kind("mpi", _pattern(r"\[(?P<stream>\d+,\d+)\]<std(?:out|err)>: ?(?P<rest>.*)"), 0.2, 1, strong=True),
    Kind(
        "rank_prefix", _pattern(r"\[(?P<stream>(?:rank|default)\d+)\]: ?(?P<rest>.*)"), 0.02, 1, strong=True
    ),
    Kind("iso_time", _pattern(rf"(?P<time>{_ISO})(?: |$)(?P<rest>.*)"), 0.5, 2),
    Kind(
        "compose",
        _pattern(
            r"(?:(?P<time>\d\d:\d\d:\d\d) )?(?P<stream>[A-Za-z0-9][\w.@-]*[-_.]\d+(?:\.\w+@[\w.-]+)?) *\|(?: |$)(?P<rest>.*)",
            r"(?P<stream>[A-Za-z0-9][\w.@-]*[-_.]\d+)(?P<rest> exited with code -?\d+.*)",
        ),
        0.2,
        2,
    ),
    Kind("compose_name", _pattern(r"\[?(?P<stream>[A-Za-z][\w.@-]*)\]? *\|(?: |$)(?P<rest>.*)"), 0.6, 3),
    Kind("slurm", _pattern(r" *(?P<stream>\d{1,5}):(?: |$)(?P<rest>.*)"), 0.6, 3),
    Kind(
        "clock",
        _pattern(
            rf"(?P<time>{_MONTH} [ \d]\d \d\d:\d\d:\d\d(?:\.\d+)?|{_DAY}|\[{_ISO}\]|\d\d:\d\d:\d\d(?:\.\d+)?)(?: |$)(?P<rest>.*)"
        ),
        0.9,
        3,
    ),
    Kind("host", _pattern(r"(?P<stream>(?=[a-z])[\w.-]*\d): (?P<rest>.*)"), 0.95, 4),
)
_STRONG = tuple(k for k in KINDS if k.strong)
_FIRST = {  # a strong kind can only begin with one of these
    "kubectl_prefix": "[",
    "cri": "0123456789",
    "ray": "([",
    "mpi": "[",
    "rank_prefix": "[",
}
_MAX_DEPTH = 6


@dataclass(frozen=True, slots=True)
class Transports:
    """The kinds learned from a file, outermost level first; each level lists alternatives."""

    levels: tuple[tuple[Kind, ...], ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(kind.name for level in self.levels for kind in level)

    @property
    def has_json(self) -> bool:
        return any(kind.json for level in self.levels for kind in level)

    @property
    def may_split(self) -> bool:
        """True where one line of the program may be carried in several (16 KiB pieces)."""
        return any(name in ("cri", "docker_json") for name in self.names)

    def peel(self, text: str) -> Peeled:
        """``text`` without its prefixes. ``stream`` joins what the prefixes name with ``/``,
        ``time`` is the innermost timestamp."""
        streams: list[str] = []
        time = None
        partial = False
        depth = 0
        for _ in range(_MAX_DEPTH):
            found, depth = self._one(text, depth)
            if found is None:
                break
            if found.stream:
                streams.append(found.stream)
            time = found.time or time
            partial = partial or found.partial
            text = found.rest
        return Peeled("/".join(streams), time, text, partial)

    def _one(self, text: str, depth: int) -> tuple[Peeled | None, int]:
        first = text[:1]
        if first and first in "([0123456789":
            for kind in _STRONG:
                if first in _FIRST[kind.name]:
                    found = kind.peel(text)
                    if found is not None:
                        return found, depth
        for at in range(depth, len(self.levels)):
            for kind in self.levels[at]:
                found = kind.peel(text)
                if found is not None:
                    return found, at + 1
        return None, depth


PLAIN = Transports()


def learn(samples: Iterable[bytes], most: int = 900) -> Transports:
    """The transports of a file, from samples of it (each a run of whole lines), at most ``most``
    lines in all (spread over the samples)."""
    lines: list[str] = []
    chosen = [s.split(b"\n") for s in samples]
    for sample in chosen:
        share = max(most // len(chosen), 1)
        for raw in sample[:share]:
            text = decode(raw[:4096] if not raw.lstrip().startswith(b"{") else raw[: 1 << 18])
            text = text.lstrip("\ufeff").split("\r")[0]
            if text.strip():
                lines.append(text)
    levels = []
    for _ in range(_MAX_DEPTH - 1):
        lines = [text for text in (_peel_strong(line) for line in lines) if text.strip()]
        kinds, lines = _level(lines)
        if not kinds:
            break
        levels.append(kinds)
    return Transports(tuple(levels))


def _peel_strong(text: str) -> str:
    for _ in range(_MAX_DEPTH):
        for kind in _STRONG:
            found = kind.peel(text) if text[:1] and text[0] in _FIRST[kind.name] else None
            if found is not None:
                text = found.rest
                break
        else:
            break
    return text


def _level(lines: Sequence[str]) -> tuple[tuple[Kind, ...], list[str]]:
    counts: dict[str, int] = {}
    peeled: list[tuple[str, str | None, str]] = []  # text, kind that fits, rest
    for text in lines:
        for kind in KINDS:
            found = None if kind.strong else kind.peel(text)
            if found is not None:
                counts[kind.name] = counts.get(kind.name, 0) + 1
                peeled.append((text, kind.name, found.rest))
                break
        else:
            peeled.append((text, None, text))
    total = len(lines)
    kinds = tuple(
        k
        for k in KINDS
        if (n := counts.get(k.name, 0))
        and n >= k.share * total
        and (n >= k.least or (n == total and k.share < 0.6))
    )
    names = {k.name for k in kinds}
    rest = [after if name in names else text for text, name, after in peeled]
    return kinds, [strip_text(text) for text in rest if text.strip()]
