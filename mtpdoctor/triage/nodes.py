"""Which node of several failed first, clocks aside. Pure.

Clocks of hosts differ, and every node of a launch fails in the end: one of its own trouble, the others because the
first is gone. So the order is taken from what each says: a node with a cause of its own goes before one that only
reports that a peer went away or did not come; among those of their own trouble, the one that got less far.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mtpdoctor.diagnose.types import Diagnosis, Report
from mtpdoctor.kb.types import Rule
from mtpdoctor.log.types import Stage

# What a node says when another one is gone or never came.
_PEER = re.compile(
    r"(?i)connection (?:reset|closed|refused)|reset by peer|closed by (?:remote )?peer|broken pipe|remote process"
    r"|peer.{0,40}(?:gone|died|exited|closed)|socket ?timeout|timed out.{0,60}(?:clients|store|barrier|rendezvous)"
    r"|wait timeout|watchdog.{0,40}timeout|collective operation timeout|heartbeat|connectFullMesh|TCPStore|DistStoreError"
    r"|DistNetworkError|\bEOFError\b|clients joined|unhandled system error|remote error|failed to recv|got 0 bytes"
)


@dataclass(frozen=True, slots=True)
class NodeReport:
    """What the files of one node alone say."""

    node: str
    report: Report


def first_to_fail(reports: Sequence[NodeReport], rules: Mapping[str, Rule]) -> NodeReport | None:
    """The node that failed first; None when none of them failed."""
    failed = [r for r in reports if r.report.outcome == "failed" and r.report.diagnoses]
    return min(failed, key=lambda r: _order(r, rules), default=None)


def _order(said: NodeReport, rules: Mapping[str, Rule]) -> tuple[int, int, int]:
    diagnosis = said.report.diagnoses[0]
    number = re.search(r"\d+$", said.node)
    return (_kind(diagnosis, rules), _stage(said.report), int(number[0]) if number else 0)


def _kind(diagnosis: Diagnosis, rules: Mapping[str, Rule]) -> int:
    """0: a cause of its own; 1: a symptom that may be its own; 2: it says that others went away."""
    rule = rules[diagnosis.rule] if diagnosis.rule is not None else None
    if rule is not None and not rule.generic:
        return 1 if rule.stage is Stage.DIST_INIT and _PEER.search(diagnosis.root.body) else 0
    return 2 if _PEER.search(diagnosis.root.body) else 1 if rule is not None else 0


def _stage(report: Report) -> int:
    try:
        return Stage(report.stage).order
    except ValueError:
        return len(Stage)
