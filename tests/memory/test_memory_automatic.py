"""--mem-fraction-static and the other automatic values, against what SGLang's own argument checks made of them."""

from __future__ import annotations

import json
import lzma
import shlex

import pytest
from memory_sums import DATA, launch, model

from mtpdoctor.host.types import Gpu, HostFacts
from mtpdoctor.memory.cache import counts_draft
from mtpdoctor.memory.launch import read_launch
from mtpdoctor.memory.state import slots_per_request

RELEASES = ("0.5.9", "0.5.10.post1", "0.5.13.post1", "0.5.16", "0.5.20", "0.5.23")
STEP = 6  # every sixth record: all of them take half a minute
GIB = 1024


@pytest.mark.parametrize("release", RELEASES)
def test_as_the_release_resolved_it(release: str) -> None:
    wrong, seen = [], 0
    with lzma.open(DATA / "verdicts" / f"{release}.jsonl.xz", "rt") as lines:
        accepted = [r for r in map(json.loads, lines) if r["verdict"] == "accept"]
    for record in accepted[::STEP]:
        gpu = record["gpu"]
        gpus = tuple(
            Gpu(i, gpu["name"], gpu["sm"][0] * 10 + gpu["sm"][1], gpu["gib"]) for i in range(gpu["count"])
        )
        argv = [word.replace("{models}", str(DATA / "models")) for word in record["argv"]]
        env = " ".join(f"{name}={value}" for name, value in record["env"].items())
        command = f"{env} python -m sglang.launch_server {shlex.join(argv)}"
        on = HostFacts(platform="cuda", gpus=gpus, pretended=True)
        found = read_launch(launch(command, release, model(record["model"]), on), model(record["model"]))
        assert found is not None
        seen += 1
        if found.fraction != pytest.approx(record["args"]["mem_fraction_static"], abs=0.0015):
            wrong.append((record["id"], found.fraction, record["args"]["mem_fraction_static"]))
    assert seen >= 15
    assert len(wrong) <= 1, wrong


def fraction(release: str, gib: float, options: str = "", of: str = "Llama-3.1-8B") -> float | None:
    on = HostFacts(platform="cuda", gpus=(Gpu(0, "", 90, gib),), pretended=True)
    command = f"python -m sglang.launch_server --model-path M {options}"
    found = read_launch(launch(command, release, model(of), on), model(of))
    assert found is not None
    return found.fraction


@pytest.mark.parametrize(
    ("release", "gib", "options", "expected"),
    [
        ("0.4.6", 79.6, "", 0.88),
        ("0.4.6", 79.6, "--tp 8", 0.81),
        ("0.4.6", 139.8, "", (139.8 - 13) / 139.8),
        ("0.4.6.post2", 139.8, "", 1 - 18 / 139.8),
        ("0.4.7", 79.6, "--speculative-algorithm EAGLE", 0.88 * 0.95),
        ("0.4.7", 178.4, "", 0.79),
        ("0.4.10", 79.6, "", 1 - 10 / 79.6),
        ("0.4.10", 79.6, "--tp 8 --enable-dp-attention --dp 8", 1 - 17.5 / 79.6),
        ("0.5.2", 79.6, "--speculative-algorithm STANDALONE --speculative-draft-model-path D", 1 - 16 / 79.6),
        ("0.5.3", 79.6, "", 1 - (512 + 8192 * 1.5 + 512 + 128) / GIB / 79.6),
        ("0.5.3", 79.6, "--chunked-prefill-size 2048", 1 - 10 / 79.6),
        ("0.5.9", 79.6, "--speculative-algorithm EAGLE", 1 - (512 + 8192 * 1.5 + 512 + 128 + 2048) / GIB / 79.6),
        ("0.5.10", 79.6, "--speculative-algorithm EAGLE", 1 - (512 + 8192 * 1.5 + 512 + 128 + 4096) / GIB / 79.6),
        ("0.5.14", 79.6, "--disable-prefill-cuda-graph", 1 - (512 + 8192 * 1.5 + 512 + 128) / GIB / 79.6),
    ],
)  # fmt: skip
def test_the_formulas_of_each_range(release: str, gib: float, options: str, expected: float) -> None:
    assert fraction(release, gib, options) == pytest.approx(expected, abs=0.0006)


def test_not_known_without_a_gpu() -> None:
    found = read_launch(launch("python -m sglang.launch_server --model-path M", "0.5.13", None, None), None)
    assert found is not None and found.fraction is None


@pytest.mark.parametrize(
    ("release", "options", "slots"),
    [
        ("0.5.2", "", 1),
        ("0.5.6", "", 3),
        ("0.5.6", "--disable-radix-cache", 1),
        ("0.5.9", "--mamba-scheduler-strategy extra_buffer", 5),
        ("0.5.9", "--mamba-scheduler-strategy extra_buffer --speculative-algorithm NEXTN", 4),
        ("0.5.13.post1", "--mamba-scheduler-strategy extra_buffer --speculative-algorithm NEXTN", 5),
        ("0.5.13.post1", "--mamba-scheduler-strategy extra_buffer --disable-overlap-schedule", 4),
        ("0.5.13.post1", "--mamba-scheduler-strategy extra_buffer_lazy", 4),
        ("0.5.20", "--mamba-radix-cache-strategy extra_buffer", 5),
    ],
)
def test_slots_of_state_for_a_request(release: str, options: str, slots: int) -> None:
    of = model("Qwen3-Next-80B-A3B")
    on = HostFacts(platform="cuda", gpus=(Gpu(0, "", 90, 139.8),), pretended=True)
    command = f"python -m sglang.launch_server --model-path M {options}"
    found = read_launch(launch(command, release, of, on), of)
    assert found is not None
    assert slots_per_request(found) == slots


@pytest.mark.parametrize(
    ("release", "counted"), [("0.5.13.post1", False), ("0.5.14", True), ("0.5.23", True)]
)
def test_from_which_release_on_the_draft_is_counted_in(release: str, counted: bool) -> None:
    command = "python -m sglang.launch_server --model-path M --speculative-algorithm EAGLE"
    found = read_launch(launch(command, release, model("DeepSeek-V3"), None), model("DeepSeek-V3"))
    assert found is not None
    assert counts_draft(found) is counted
