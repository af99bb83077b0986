"""Which ranks are behind the others, by what each has written. Pure."""

from __future__ import annotations

import re

from mtpdoctor.log.types import Line, Stage
from mtpdoctor.patterns import lazy

_NUMBER = lazy(r"\d+")
_END = lazy(r"\b(ends?|finish(?:ed)?|done)\b", re.I)
_TP = lazy(r"\bTP(\d+)\b")
_EP = lazy(r"\s*\bEP\d+")
MOST_RANKS = 512


class RankMarks:
    """Fed with the lines of ranks in order. Not every rank writes every line, so a rank is behind only where it began
    something that another ended, where most others wrote a mark that it did not, or where it has written nothing."""

    def __init__(self) -> None:
        self.stages: dict[str, Stage] = {}  # how far each rank has got
        self._marks: dict[str, set[str]] = {}  # mark line, numbers out -> ranks that wrote it

    def heard(self, rank: str, stage: Stage) -> None:
        """The rank exists: it has written something, in this stage at the earliest where it is new."""
        self.stages.setdefault(plain(rank), stage)

    def reached(self, rank: str, stage: Stage) -> None:
        name = plain(rank)
        before = self.stages.get(name)
        if before is None or before.order < stage.order:
            self.stages[name] = stage

    def mark(self, line: Line, stage: Stage) -> None:
        """A line of a rank that proves a stage."""
        if line.rank is None:
            return
        self._marks.setdefault(_milestone(line.body), set()).add(plain(line.rank))
        self.reached(line.rank, stage)

    def behind(self, local: range | None = None) -> tuple[str, ...]:
        """Names of ranks, those that have written nothing last. ``local``: the TP ranks of this log's nodes."""
        late: set[str] = set()
        ranks = set(self.stages)
        for mark, wrote in self._marks.items():
            if len(ranks) > 2 and len(wrote) * 2 > len(ranks):
                late |= ranks - wrote
            if _END.search(mark):
                began = self._marks.get(
                    _END.sub("begin", mark), set()
                )  # "Load weight end" -> "Load weight begin"
                late |= began - wrote
        return tuple(sorted(late, key=_natural)) + self._silent(local)

    def tp_ranks(self) -> set[int]:
        """The TP ranks that have written."""
        return {int(m[1]) for rank in self.stages if (m := _TP.search(rank))}

    def _silent(self, local: range | None) -> tuple[str, ...]:
        heard = self.tp_ranks()
        if local is None or not heard:
            return ()
        return tuple(f"TP{i}" for i in local[:MOST_RANKS] if i not in heard)


def local_ranks(
    tp_size: int | None, nodes: int | None, node_rank: int | None = None, pp_size: int | None = None
) -> range | None:
    """The TP ranks that run on this node; None where that is not known."""
    if not tp_size:
        return None
    if (nodes or 1) == 1:
        return range(tp_size)
    if node_rank is None or (pp_size or 1) > 1 or tp_size % nodes or not 0 <= node_rank < nodes:  # type: ignore[operator]
        return None
    each = tp_size // nodes  # type: ignore[operator]
    return range(node_rank * each, (node_rank + 1) * each)


def plain(rank: str) -> str:
    """A rank's name without its expert rank, which some of its lines carry and others do not."""
    return _EP.sub("", rank).strip() or rank


def _milestone(body: str) -> str:
    """A mark without what differs between ranks: numbers, and what stands after the first sentence."""
    return _NUMBER.sub("#", re.split(r"[.,:]\s", body, maxsplit=1)[0])[:80].rstrip(".")


def _natural(rank: str) -> list[int | str]:
    return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", rank)]
