"""Several nodes of one launch: who failed first, whatever their clocks say."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest
from triage_logs import server_args, traceback

from mtpdoctor.triage.types import Triage

PEER = (
    "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:544] Connection closed by peer "
    "[10.0.0.{n}]:3{n}001"
)
OWN = "OddError: page 7 is not mapped"
SPEC = "AssertionError: tp_size must be divisible by number of nodes"


def node(rank: int, at: str, error: str, started: str, stage: str = "") -> str:
    args = server_args(nnodes=3, node_rank=rank, address="10.0.0.1:5000", seed=rank, time=started)
    begin = f"[{started} TP{rank}] Init torch distributed begin.\n[{started} TP{rank}] Load weight begin. avail mem=80.00 GB"
    return "\n".join([args, begin, traceback(error, at=at, rank=f"TP{rank}")])


# the clock of the node that failed first is behind, right, or ahead of the others
@pytest.mark.parametrize("clock", ["2026-11-29 10:00:40", "2026-11-29 10:01:30", "2026-11-29 12:31:00"])
@pytest.mark.parametrize("first", [0, 1, 2])
def test_a_cause_of_its_own_goes_before_those_who_lost_a_peer(
    first: int, clock: str, tmp_path: Path, triaged: Callable[..., Triage]
) -> None:
    for n in range(3):
        folder = tmp_path / f"node{n}"
        folder.mkdir()
        mine = n == first
        text = node(
            n,
            clock if mine else "2026-11-29 10:00:55",
            OWN if mine else PEER.format(n=n),
            "2026-11-29 10:00:00",
        )
        (folder / "server.log").write_text(text)
    result = triaged(tmp_path)
    (group,) = result.groups
    (member,) = group.members
    assert member.launch.nodes == ("node0", "node1", "node2")
    assert member.root is not None
    assert (member.root.node, member.root.rank) == (f"node{first}", f"TP{first}")
    assert member.root.text.startswith("OddError") and f"node{first}" in member.root.file
    assert (tmp_path / f"node{first}" / "server.log").read_text().split("\n")[member.root.line - 1] == OWN


def test_the_order_of_the_nodes_does_not_change_the_fingerprint(
    tmp_path: Path, triaged: Callable[..., Triage]
) -> None:
    keys = set()
    for number, order in enumerate(itertools.permutations((OWN, PEER.format(n=1), PEER.format(n=2)))):
        folder = tmp_path / f"run{number}"
        folder.mkdir()
        for n, error in enumerate(order):
            (folder / f"node{n}.log").write_text(
                node(n, f"2026-11-29 10:00:5{n}", error, "2026-11-29 10:00:00")
            )
        (group,) = triaged(folder).groups
        keys.add(group.fingerprint.key)
    assert len(keys) == 1
