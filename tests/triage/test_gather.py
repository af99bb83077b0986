"""Which files are put together as one launch, and which are not."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from triage_logs import server_args, traceback

from mtpdoctor.triage.gather import EACH_FILE, ONE_LAUNCH, Item, gather
from mtpdoctor.triage.names import read_name
from mtpdoctor.triage.peek import Peek, peek_of
from mtpdoctor.triage.types import LaunchFiles, Triage


def together(files: dict[str, str], mode: str | None = None) -> list[LaunchFiles]:
    peeks = {name: peek_of(text.encode(), name=name) for name, text in files.items()}
    return gather([Item(name, len(text)) for name, text in files.items()], peeks, mode=mode)


def names(launches: list[LaunchFiles]) -> list[tuple[str, ...]]:
    return [launch.paths for launch in launches]


def test_forty_unrelated_logs_of_one_folder_stay_forty_launches() -> None:
    files = {f"ticket/node{i}.log": server_args(seed=i, model=f"/m/model-{i % 3}") for i in range(20)}
    files |= {f"ticket/server_{i}.log": server_args(seed=100 + i) for i in range(10)}
    files |= {f"ticket/worker{i}.log": "ImportError: nothing\n" for i in range(10)}
    launches = together(files)
    assert len(launches) == 40
    assert {launch.why for launch in launches} == {"one file"}


def test_ranks_by_name() -> None:
    body = "[2026-11-29 10:00:0{} TP{}] Load weight begin.\n"
    (launch,) = together({f"run/rank{i}.log": body.format(i, i) for i in (2, 0, 1, 10)})
    assert [p.rpartition("/")[2] for p in launch.paths] == [
        "rank0.log",
        "rank1.log",
        "rank2.log",
        "rank10.log",
    ]
    assert launch.why == "ranks by name"


def test_the_main_log_goes_with_those_of_its_ranks() -> None:
    files = {"run/server.log": server_args()}
    files |= {f"run/server_tp{i}.log": f"[2026-11-29 10:00:02 TP{i}] Load weight begin.\n" for i in range(4)}
    (launch,) = together(files)
    assert launch.paths[0] == "run/server.log" and len(launch.paths) == 5


def test_ranks_of_other_models_or_hours_are_other_launches() -> None:
    files = {"a/rank0.log": server_args(seed=1), "a/rank1.log": server_args(seed=1, model="/models/other")}
    assert len(together(files)) == 2
    late = {"a/rank0.log": "[2026-11-29 10:00:00 TP0] x\n", "a/rank1.log": "[2026-11-29 17:00:00 TP1] x\n"}
    assert len(together(late)) == 2


def test_nodes_in_folders_with_their_clocks_apart() -> None:
    def node(rank: int, time: str) -> str:
        return server_args(nnodes=2, node_rank=rank, address="10.0.0.1:5000", seed=rank, time=time)

    files = {
        "j/node0/server.log": node(0, "2026-11-29 10:00:00"),
        "j/node1/server.log": node(1, "2026-11-29 18:02:10"),
    }
    (launch,) = together(files)
    assert launch.nodes == ("node0", "node1") and launch.why == "nodes by name"


def test_nodes_that_only_their_arguments_tell() -> None:
    def node(rank: int, address: str, seed: int) -> str:
        return server_args(nnodes=2, node_rank=rank, address=address, seed=seed)

    files = {
        "j/alpha.log": node(1, "10.0.0.1:5000", 1),
        "j/beta.log": node(0, "10.0.0.1:5000", 2),
        "j/gamma.log": node(0, "10.0.0.9:5000", 3),
    }
    launches = together(files)
    assert sorted(names(launches)) == [("j/beta.log", "j/alpha.log"), ("j/gamma.log",)]
    joint = next(x for x in launches if len(x.paths) == 2)
    assert joint.nodes == ("node0", "node1") and joint.why == "nodes by their server arguments"


@pytest.mark.parametrize(
    "parts",
    [
        ("server.log.10", "server.log.2.gz", "server.log.1", "server.log"),
        ("server.log-20261127", "server.log-20261128.gz", "server.log"),
        ("server.2.log", "server.1.log", "server.log"),
        ("server.log.old", "server.log"),
    ],
)
def test_rotated_parts_in_their_order(parts: tuple[str, ...]) -> None:
    items = [Item(f"d/{name}") for name in sorted(parts)]
    (launch,) = gather(items, {})
    assert launch.paths == tuple(f"d/{name}" for name in parts)
    assert launch.logs == (launch.paths,) and launch.why == "rotated parts"


def test_numbered_logs_of_other_servers_are_no_rotation() -> None:
    files = {"d/a.log.1": server_args(model="/m/one"), "d/a.log": server_args(model="/m/two")}
    assert len(together(files)) == 2
    later = {"d/a.log.1": "[2026-11-29 12:00:00] x\n", "d/a.log": "[2026-11-28 12:00:00] x\n"}
    assert len(together(later)) == 2


def test_output_and_errors_of_one_job() -> None:
    (launch,) = together({"slurm-77.err": "Traceback\n", "slurm-77.out": server_args()})
    assert launch.why == "output and errors" and launch.paths == ("slurm-77.err", "slurm-77.out")


def test_the_modes_go_before_names() -> None:
    files = {"a/rank0.log": "x", "a/rank1.log": "x", "b/other.log": "x"}
    assert len(together(files, ONE_LAUNCH)) == 1
    assert len(together(files, EACH_FILE)) == 3


NAMES = st.lists(
    st.from_regex(
        r"[a-c]/(server|rank[0-3]|node[0-2]|job)(_tp[0-2])?\.(log|out)(\.[1-3])?(\.gz)?", fullmatch=True
    ),
    unique=True,
    max_size=14,
)


@given(NAMES)
def test_every_file_is_of_exactly_one_launch(files: list[str]) -> None:
    launches = gather([Item(name) for name in files], {})
    taken = [path for launch in launches for path in launch.paths]
    assert sorted(taken) == sorted(files)
    for launch in launches:
        assert tuple(path for log in launch.logs for path in log) == launch.paths
        assert launch.nodes == () or len(launch.nodes) == len(launch.logs)


@given(NAMES)
def test_the_order_of_the_files_does_not_matter(files: list[str]) -> None:
    there = gather([Item(name) for name in files], {})
    assert gather([Item(name) for name in reversed(files)], {}) == there


@given(st.binary(max_size=400), st.binary(max_size=100))
def test_a_look_at_anything_never_fails(head: bytes, tail: bytes) -> None:
    assert isinstance(peek_of(head, tail, name="x.log"), Peek)


@given(st.text(max_size=60))
def test_any_name_can_be_read(path: str) -> None:
    assert read_name(path).family is not None


def test_a_part_that_begins_in_an_older_file_is_told_with_its_own_line(
    tmp_path: Path, triaged: Callable[..., Triage]
) -> None:
    failing = traceback("OddError: slot 4 is taken")
    rows = (server_args() + "\n" + failing).splitlines(keepends=True)
    (tmp_path / "server.log.1.gz").write_bytes(gzip.compress("".join(rows[:3]).encode()))
    (tmp_path / "server.log").write_text("".join(rows[3:]))
    (group,) = triaged(tmp_path).groups
    (member,) = group.members
    assert member.root is not None
    assert member.root.file == str(tmp_path / "server.log")
    assert "".join(rows[3:]).splitlines()[member.root.line - 1].startswith("OddError")
