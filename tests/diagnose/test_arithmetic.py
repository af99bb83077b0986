"""Fixes whose figures follow from the figures of the log."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtpdoctor.diagnose.engine import diagnose
from mtpdoctor.diagnose.given import Given
from mtpdoctor.kb.load import load_knowledge
from mtpdoctor.launch.document import read_launch
from mtpdoctor.log.reading import reading_from_text
from mtpdoctor.report.json import to_json

KNOWLEDGE = load_knowledge()
LAUNCH = "python -m sglang.launch_server --model-path org/M"
CRASH = "[2026-05-25 03:30:26 TP0] Scheduler hit an exception: Traceback (most recent call last):\n"


def first(log: str, options: str, release: str = "0.5.19") -> dict[str, Any]:
    launch = Given(document=read_launch(f"{LAUNCH} {options}"), release=release)
    report = to_json(diagnose(reading_from_text(log, KNOWLEDGE.literals), KNOWLEDGE, launch))
    found: dict[str, Any] = report["diagnoses"][0]
    return found


def edits(diagnosis: dict[str, Any]) -> list[str]:
    return [
        f"{e['name']} {e['value']}" for f in diagnosis["fixes"] for e in f["edits"] if e["op"] != "remove"
    ]


def too_narrow(width: int, block: int = 128) -> str:
    return (
        CRASH
        + f"ValueError: Weight output_partition_size = {width} is not divisible by weight quantization block_n = {block}.\n"
    )


@given(blocks=st.integers(1, 40), shift=st.sampled_from([1, 2, 4, 8]), tp=st.sampled_from([2, 4, 8, 16]))
def test_a_smaller_split_is_offered_only_where_it_gives_whole_blocks(
    blocks: int, shift: int, tp: int
) -> None:
    whole = 128 * blocks // shift
    if whole % tp or (whole // tp) % 128 == 0:
        return
    offered = [
        int(e.split()[1]) for e in edits(first(too_narrow(whole // tp), f"--tp {tp}")) if e.startswith("--tp")
    ]
    assert all((whole // n) % 128 == 0 for n in offered)
    if whole % 128:
        assert offered == []


def test_a_matrix_smaller_than_its_block_is_helped_by_no_split() -> None:
    found = first(too_narrow(8), "--tp 8", "0.5.8")
    assert edits(found) == []
    assert "64 wide" in found["cause"] and "no --tp-size helps" in found["cause"]
    assert found["fixes"][0]["title"].startswith("Upgrade SGLang")


def test_experts_are_kept_whole_and_marlin_is_named() -> None:
    log = (
        CRASH + "ValueError: The output_size of gate's and up's weight = 192 is not divisible by "
        "weight quantization block_n = 128.\n"
    )
    found = edits(first(log, "--tp 16 --moe-runner-backend flashinfer_mxfp4", "0.5.12"))
    assert found[:2] == ["--ep-size 16", "--moe-runner-backend marlin"]
    assert "--tp-size 8" in found


def pools(*sizes: float) -> str:
    return "".join(
        f"[2026-09-18 06:20:53 TP{n}] Allocating {size:.2f} GB host memory for hierarchical KV cache.\n"
        for n, size in enumerate(sizes)
    )


@given(
    ranks=st.sampled_from([1, 2, 4, 8]),
    done=st.integers(0, 1),
    want=st.floats(20, 400),
    free=st.floats(11, 400),
)
def test_all_ranks_of_a_host_cache_fit(ranks: int, done: int, want: float, free: float) -> None:
    if free >= want:
        return
    held = [want] * min(done, ranks - 1)
    log = (
        pools(*held)
        + CRASH
        + f"ValueError: Not enough host memory available. Requesting {want:.2f} GB but only have {free:.2f} GB free. "
        "Please reduce the size of the hierarchical cache.\n"
    )
    found = edits(first(log, f"--tp {ranks} --enable-hierarchical-cache --hicache-ratio 2"))
    sizes = [int(e.split()[1]) for e in found if e.startswith("--hicache-size")]
    assert all(size * ranks <= free + sum(held) for size in sizes)


def test_the_limit_of_the_pod_bounds_the_host_cache() -> None:
    log = (
        pools(150, 150, 150, 150)
        + "    Last State:     Terminated\n      Reason:       OOMKilled\n      Exit Code:    137\n"
        + "    Limits:\n      memory:          700Gi\n"
    )
    found = first(log, "--tp 4 --enable-hierarchical-cache --hicache-size 150")
    size = int(next(e for e in edits(found) if e.startswith("--hicache-size")).split()[1])
    assert 0 < 4 * size < 700 * 1.08 and size < 150
    assert "600 GB" in found["cause"] and "752 GB" in found["cause"]
    assert not any("unified" in f["title"] for f in found["fixes"])


@pytest.mark.parametrize(("release", "offered"), [("0.5.14", False), ("0.5.19", True)])
def test_a_pool_smaller_than_the_gpus_is_offered_where_the_release_takes_it(
    release: str, offered: bool
) -> None:
    log = (
        "[2026-09-18 06:20:38 TP0] KV Cache is allocated. dtype: torch.bfloat16, #tokens: 791552, K size: 24.16 GB, V size: 24.16 GB\n"
        + CRASH
        + "ValueError: Not enough host memory available. Requesting 103.75 GB but only have 40.00 GB free. "
        "Please reduce the size of the hierarchical cache.\n"
    )
    found = edits(first(log, "--enable-hierarchical-cache", release))
    assert any(e.startswith("--hicache-size") for e in found) is offered


@pytest.mark.parametrize(
    ("said", "rule"),
    [
        ("[c10d] The IPv6 network addresses of (node-0.x, 5000) cannot be retrieved (gai error: -2 - Name or service not known).", "MTP1743"),
        ("[c10d] The client socket has failed to connect to [node-0.x]:5000 (errno: 111 - Connection refused).", "MTP1744"),
        ("[c10d] The client socket has failed to connect to [node-0.x]:5000 (errno: 110 - Connection timed out).", "MTP0528"),
    ],
)  # fmt: skip
def test_no_name_nobody_listening_and_no_answer_are_three_causes(said: str, rule: str) -> None:
    log = (
        f"[W928 05:18:04.608 socket.cpp:755] {said}\n"
        + CRASH
        + "torch.distributed.DistNetworkError: The client socket has timed out after 600000ms while trying to connect to (node-0.x, 5000).\n"
    )
    found = first(log, "--tp 16 --nnodes 2 --node-rank 1 --dist-init-addr node-0.x:5000")
    assert found["rule"] == rule
    assert any("node-0.x" in command for command in found["fixes"][0]["run"])


@pytest.mark.parametrize(
    ("message", "tp", "sizes"),
    [
        ("AssertionError: 16 is not divisible by 3", 3, ["--tp-size 2"]),
        ("ValueError: warp rows of each rank = 8 is not divisible by warp_tile = 128", 8, []),
        ("ValueError: warp rows of each rank = 48 is not divisible by warp_tile = 64", 16, ["--tp-size 4"]),
    ],
)
def test_a_split_offered_divides_the_numbers_of_the_message(message: str, tp: int, sizes: list[str]) -> None:
    found = first(
        f'{CRASH}  File "/x/sglang/srt/layers/warp_attn.py", line 9, in ensure_divisible\n    f(num_heads)\n{message}\n',
        f"--tp {tp}",
    )
    assert [edit for edit in edits(found) if edit.startswith(("--tp", "--ep"))] == sizes
