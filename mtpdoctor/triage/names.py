"""What the name of a log file tells: which part of a rotation it is, which rank, which node. Pure.

A name only suggests; whether files belong together is decided in ``gather`` with what they say.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_COMPRESSED = (".gz", ".gzip", ".zst", ".zstd", ".xz", ".bz2")
_LOG = r"log|txt|out|err|stdout|stderr"
_NUMBERED = re.compile(rf"(?P<base>.*\.(?:{_LOG}))\.(?P<n>\d{{1,4}})$", re.I)
_DATED = re.compile(
    rf"(?P<base>.*\.(?:{_LOG}))[-._](?P<date>20\d\d-?[01]\d-?[0-3]\d(?:[-T_.]?\d\d[-:_]?\d\d(?:[-:_]?\d\d)?)?|1\d{{9}})$",
    re.I,
)
_OLDER = re.compile(rf"(?P<base>.*\.(?:{_LOG}))\.(?:old|prev|previous)$", re.I)
_INNER = re.compile(rf"(?P<stem>.*[^.\d])\.(?P<n>\d{{1,3}})\.(?P<ext>{_LOG})$", re.I)  # server.1.log

# Words that say "rank of one launch"; a worker or a GPU may as well be a server of its own.
_RANK = re.compile(
    r"(?<![a-z0-9])(?P<kind>(?:global|local)[-_]?rank|rank|tp|dp|pp|ep|cp)[-_]?(?P<n>\d{1,4})(?![a-z0-9])",
    re.I,
)
_WEAK = re.compile(
    r"(?<![a-z0-9])(?P<kind>workers?|gpu|proc(?:ess)?|task)[-_]?(?P<n>\d{1,4})(?![a-z0-9])", re.I
)
_NODE = re.compile(
    r"(?<![a-z0-9])(?P<kind>nodes?|node[-_]?rank|host|machine)[-_]?(?P<n>\d{1,4})(?![a-z0-9])", re.I
)
_STD_EXT = re.compile(r"\.(?P<kind>out|err)$", re.I)
_STD_WORD = re.compile(r"(?<![a-z0-9])(?P<kind>stdout|stderr)(?![a-z0-9])", re.I)
_TORCHRUN = re.compile(r"(?<=/)attempt_\d+/(?P<n>\d{1,4})/(?:stdout|stderr)\.log$")

CURRENT = (9, 0)  # sorts behind every older part


@dataclass(frozen=True, slots=True)
class Named:
    """A path, taken apart. ``folder`` and ``base`` are without compression and rotation suffixes;
    ``family`` is the same for files that differ in rank, node or output stream alone."""

    folder: str
    base: str
    turn: tuple[int, int]  # order among the parts of a rotation, oldest first; CURRENT for the file itself
    inner: str | None  # base, if ``server.1.log`` is a rotated part of it
    inner_turn: tuple[int, int]
    ranks: tuple[tuple[str, int], ...]  # ("tp", 3)
    weak: tuple[tuple[str, int], ...]  # of words that may mean a rank
    node: int | None
    stream: str | None  # "out" | "err"
    family: str

    @property
    def trunk(self) -> str:
        """The family without the places of ranks: "run/server" of "run/server_tp3.log"."""
        return re.sub(r"[-_.]*\{(?:rank|weak)\}", "", self.family)


def read_name(path: str) -> Named:
    """``path`` with ``/`` between folders; an archive counts as a folder."""
    whole = path.replace("\\", "/").replace("!", "/")
    folder, _, name = whole.rpartition("/")
    lowered = name.lower()
    for suffix in _COMPRESSED:
        if lowered.endswith(suffix):
            name = name[: -len(suffix)]
            break
    base, turn = _rotation(name)
    inner = _INNER.match(base)
    place = f"{folder}/{base}" if folder else base
    ranks: list[tuple[str, int]] = []
    weak: list[tuple[str, int]] = []
    node: int | None = None
    stream: str | None = None
    family = place
    torchrun = _TORCHRUN.search(family)
    if torchrun:
        ranks.append(("rank", int(torchrun["n"])))
        family = family[: torchrun.start("n")] + "{rank}" + family[torchrun.end("n") :]

    def rank(m: re.Match[str]) -> str:
        ranks.append((m["kind"].lower(), int(m["n"])))
        return "{rank}"

    def weakly(m: re.Match[str]) -> str:
        weak.append((m["kind"].lower(), int(m["n"])))
        return "{weak}"

    nodes = list(_NODE.finditer(family))
    if nodes:
        last = nodes[-1]
        node = int(last["n"])
        family = family[: last.start()] + "{node}" + family[last.end() :]
    family = _RANK.sub(rank, family)
    family = _WEAK.sub(weakly, family)
    for pattern in (_STD_WORD, _STD_EXT):
        found = pattern.search(family)
        if found:
            stream = "err" if found["kind"].lower().endswith("err") else "out"
            family = family[: found.start("kind")] + "{std}" + family[found.end("kind") :]
            break
    return Named(
        folder=folder,
        base=base,
        turn=turn,
        inner=f"{inner['stem']}.{inner['ext']}" if inner and turn == CURRENT else None,
        inner_turn=(1, -int(inner["n"])) if inner else CURRENT,
        ranks=tuple(ranks),
        weak=tuple(weak),
        node=node,
        stream=stream,
        family=family,
    )


def _rotation(name: str) -> tuple[str, tuple[int, int]]:
    if m := _NUMBERED.match(name):
        return m["base"], (1, -int(m["n"]))
    if m := _DATED.match(name):
        return m["base"], (0, int(re.sub(r"\D", "", m["date"]).ljust(14, "0")))
    if m := _OLDER.match(name):
        return m["base"], (2, 0)
    return name, CURRENT


def shown_family(family: str) -> str:
    """The family as people write it: ``run/server_tp*.log``."""
    return (
        family.replace("{std}", "*").replace("{rank}", "*").replace("{weak}", "*").replace("{node}", "node*")
    )
