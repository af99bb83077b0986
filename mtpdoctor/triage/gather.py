"""Which files belong to one launch: by folder and name, held against what both ends of them say. Pure.

A name proposes (``rank0.log`` beside ``rank1.log``, ``node0/`` beside ``node1/``, ``server.log.1``), the
content disposes: files that tell of different models, rendezvous addresses, seeds or hours are not put
together, so forty unrelated logs in one folder stay forty launches.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from mtpdoctor.triage.names import CURRENT, Named, read_name, shown_family
from mtpdoctor.triage.peek import Peek
from mtpdoctor.triage.types import LaunchFiles

ONE_LAUNCH, EACH_FILE = "one", "each"
_APART = timedelta(minutes=10)  # ranks of one launch start within minutes of each other
_UNKNOWN_LENGTH = timedelta(hours=1)  # of a file whose end was not looked at
_ZONE = timedelta(minutes=15)  # time zones differ by multiples of it
_SKEW = timedelta(minutes=5)
_COMPARED = 64  # clusters of one family that a file is held against
NOTHING = Peek()


@dataclass(frozen=True, slots=True)
class Item:
    """One file as found. ``given``: named by the person, not found in a folder."""

    path: str
    size: int | None = None
    given: bool = True


@dataclass(frozen=True, slots=True)
class _Log:
    """One log: a file, or the parts of a rotation."""

    paths: tuple[str, ...]
    named: Named
    peek: Peek
    size: int
    given: bool


def gather(
    items: Sequence[Item], peeks: Mapping[str, Peek] | None = None, *, mode: str | None = None
) -> list[LaunchFiles]:
    """The launches that the files are of, in order of name.

    ``mode``: ONE_LAUNCH puts all files together, EACH_FILE none; None goes by names and ``peeks``.
    """
    peeks = peeks or {}
    if not items:
        return []
    if mode == EACH_FILE:
        return [_single(i) for i in items]
    logs = _joined_parts(items, peeks)
    if mode == ONE_LAUNCH:
        name = logs[0].paths[-1] if len(logs) == 1 else f"{len(items)} files"
        return [_launch(name, logs, "asked for")]
    clusters = [c for family in _families(logs) for c in _clusters(family)]
    clusters = _nodes_by_arguments(_with_trunks(clusters))
    return sorted((_named(c) for c in clusters), key=lambda launch: launch.name)


def _single(item: Item) -> LaunchFiles:
    return LaunchFiles(item.path, (item.path,), "one file", item.size, given=item.given)


# -- rotated parts ---------------------------------------------------------------------------------


def _joined_parts(items: Iterable[Item], peeks: Mapping[str, Peek]) -> list[_Log]:
    read = [(item, read_name(item.path)) for item in items]
    there = {(n.folder, n.base) for _, n in read if n.turn == CURRENT}
    by_base: dict[tuple[str, str], list[tuple[Item, Named]]] = defaultdict(list)
    for item, named in read:
        if named.inner and (named.folder, named.inner) in there:
            named = replace(read_name(f"{named.folder}/{named.inner}"), turn=named.inner_turn)
        by_base[named.folder, named.base].append((item, named))
    logs: list[_Log] = []
    for parts in by_base.values():
        parts.sort(key=lambda part: part[1].turn)
        looks = [peeks.get(item.path, NOTHING) for item, _ in parts]
        turns = {named.turn for _, named in parts}
        if len(turns) < len(parts) or not all(map(_goes_on, looks, looks[1:])):
            logs += [_log([item], named, [look]) for (item, named), look in zip(parts, looks, strict=True)]
        else:
            logs.append(_log([item for item, _ in parts], parts[-1][1], looks))
    return logs


def _goes_on(older: Peek, newer: Peek) -> bool:
    if older.model and newer.model and older.model != newer.model:
        return False
    if older.own != newer.own:  # times of other clocks say nothing of each other
        return True
    if older.start and newer.start and older.start > newer.start:
        return False
    return not (older.end and newer.start and older.end > newer.start + _APART)


def _log(items: Sequence[Item], named: Named, looks: Sequence[Peek]) -> _Log:
    look = next((x for x in reversed(looks) if x.has_args), looks[-1])
    first = next((x for x in looks if x.start and x.own == looks[-1].own), looks[-1])
    look = replace(look, start=first.start, end=looks[-1].end, own=looks[-1].own)
    size = sum(i.size or 0 for i in items)
    return _Log(tuple(i.path for i in items), named, look, size, all(i.given for i in items))


# -- ranks, nodes, output and errors ---------------------------------------------------------------


def _families(logs: Iterable[_Log]) -> list[list[_Log]]:
    out: dict[str, list[_Log]] = defaultdict(list)
    for log in logs:
        out[log.named.family].append(log)
    return list(out.values())


def _clusters(family: Sequence[_Log]) -> list[list[_Log]]:
    """The logs of a family, those that may be of one launch together."""
    clusters: list[list[_Log]] = []
    for log in sorted(family, key=_place):
        for cluster in clusters[-_COMPARED:]:
            if all(_of_one_launch(other, log) for other in cluster):
                cluster.append(log)
                break
        else:
            clusters.append([log])
    return clusters


def _place(log: _Log) -> tuple[object, ...]:
    n = log.named
    said = log.peek.node_rank if (log.peek.nnodes or 1) > 1 else None
    node = n.node if n.node is not None else -1 if said is None else said
    return (node, [r for _, r in n.ranks], [r for _, r in n.weak], n.stream or "", log.paths)


def _of_one_launch(a: _Log, b: _Log) -> bool:
    said = _said(a.peek, b.peek)
    if said is False:
        return False
    x, y = a.named, b.named
    where = (x.node, x.ranks, x.weak, x.stream) != (y.node, y.ranks, y.weak, y.stream)
    if not where:
        return False
    if (x.node, x.ranks, x.weak) == (y.node, y.ranks, y.weak):  # output and errors of one process
        return True
    other_node = x.node != y.node
    if not _near(a.peek, b.peek, zones=other_node):
        return False
    if said is True:
        return True
    if other_node:  # a server that says it has one node is no part of two
        return not any(p.has_args and (p.nnodes or 1) == 1 for p in (a.peek, b.peek))
    if x.ranks != y.ranks:
        return True
    return _single_ranks(a.peek, b.peek)


def _said(a: Peek, b: Peek) -> bool | None:
    """Whether what both say makes them one launch; None when they do not say."""
    if a.model and b.model and a.model != b.model:
        return False
    if not (a.has_args and b.has_args):
        return None
    same_process = a.seed is not None and (a.seed, a.port, a.node_rank) == (b.seed, b.port, b.node_rank)
    if max(a.nnodes or 1, b.nnodes or 1) > 1:
        if (a.address, a.nnodes) != (b.address, b.nnodes):
            return False
        return a.node_rank != b.node_rank or same_process
    return same_process


def _single_ranks(a: Peek, b: Peek) -> bool:
    """Each tells of one rank, and not of the same."""
    return len(a.ranks) == 1 and len(b.ranks) == 1 and a.ranks != b.ranks


def _near(a: Peek, b: Peek, *, zones: bool) -> bool:
    """Written at about the same time, as far as both tell; clocks of nodes may be set to other zones."""
    if a.start is None or b.start is None or a.own != b.own:
        return True
    ends = [p.end or p.start + _UNKNOWN_LENGTH for p in (a, b) if p.start]
    if max(a.start, b.start) - min(ends) <= _APART:
        return True
    if not zones or abs(a.start - b.start) > timedelta(hours=26):
        return False
    rest = abs(a.start - b.start) % _ZONE
    return min(rest, _ZONE - rest) <= _SKEW


def _with_trunks(clusters: Sequence[list[_Log]]) -> list[list[_Log]]:
    """``server.log`` goes with ``server_tp0.log``, ``server_tp1.log``."""
    alone = {c[0].named.family: c for c in clusters if len(c) == 1}
    taken: set[int] = set()
    for cluster in clusters:
        first = cluster[0]
        if not first.named.ranks or first.named.trunk == first.named.family:
            continue
        main = alone.get(first.named.trunk)
        if main is None or id(main) in taken or main is cluster or main[0].named.ranks:
            continue
        if all(_said(main[0].peek, x.peek) is not False for x in cluster) and _near(
            main[0].peek, first.peek, zones=False
        ):
            taken.add(id(main))
            cluster.insert(0, main[0])
    return [c for c in clusters if id(c) not in taken]


def _nodes_by_arguments(clusters: Sequence[list[_Log]]) -> list[list[_Log]]:
    """Nodes of one launch that only their server arguments tell: the same rendezvous, another node rank."""
    out: list[list[_Log]] = []
    by_launch: dict[tuple[object, ...], list[list[_Log]]] = defaultdict(list)
    for cluster in clusters:
        look = next((x.peek for x in cluster if x.peek.has_args), NOTHING)
        if (look.nnodes or 1) > 1 and look.address and look.node_rank is not None:
            by_launch[look.address, look.nnodes, look.model].append(cluster)
        else:
            out.append(cluster)
    for candidates in by_launch.values():
        joined: list[list[_Log]] = []
        for cluster in sorted(candidates, key=lambda c: (c[0].named.folder, _place(c[0]))):
            home = next((c for c in joined if _other_nodes(c, cluster)), None)
            if home is None:
                joined.append(list(cluster))
            else:
                home.extend(cluster)
        out += joined
    return out


def _other_nodes(home: Sequence[_Log], more: Sequence[_Log]) -> bool:
    ranks = {x.peek.node_rank for x in home} & {x.peek.node_rank for x in more} - {None}
    if ranks or not _neighbours(home[0].named.folder, more[0].named.folder):
        return False
    return _near(home[0].peek, more[0].peek, zones=True)


def _neighbours(a: str, b: str) -> bool:
    return a == b or a.rpartition("/")[0] == b.rpartition("/")[0]


# -- what comes out --------------------------------------------------------------------------------


def _named(cluster: list[_Log]) -> LaunchFiles:
    if len(cluster) == 1:
        log = cluster[0]
        return _launch(log.paths[-1], cluster, "rotated parts" if len(log.paths) > 1 else "one file")
    cluster = sorted(cluster, key=_place)
    families = {x.named.family for x in cluster}
    nodes = {_node(x) for x in cluster} - {None}
    name = shown_family(cluster[-1].named.family) if len(families - {cluster[0].named.trunk}) <= 1 else ""
    if not name:
        names = [x.paths[-1] for x in cluster]
        name = names[0] if len(names) == 1 else f"{names[0]} +{len(names) - 1}"
    if len(nodes) > 1:
        by_name = all(x.named.node is not None for x in cluster)
        why = "nodes by name" if by_name else "nodes by their server arguments"
    elif any(x.named.ranks or x.named.weak for x in cluster):
        why = "ranks by name"
    else:
        why = "output and errors"
    return _launch(name, cluster, why)


def _node(log: _Log) -> str | None:
    if log.named.node is not None:
        return f"node{log.named.node}"
    return None if log.peek.node_rank is None else f"node{log.peek.node_rank}"


def _launch(name: str, logs: Sequence[_Log], why: str) -> LaunchFiles:
    parts = tuple(len(log.paths) for log in logs)
    nodes = tuple(_node(log) or "" for log in logs)
    return LaunchFiles(
        name=name,
        paths=tuple(p for log in logs for p in log.paths),
        why=why,
        size=sum(log.size for log in logs),
        parts=parts if any(n > 1 for n in parts) else (),
        nodes=nodes if len(set(nodes) - {""}) > 1 else (),
        given=all(log.given for log in logs),
    )
