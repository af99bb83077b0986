"""Whole logs: the recorded launches, long logs, values read off lines, damaged and odd input."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mtpdoctor.log.reading import outcome, read_logs, reading_from_text
from mtpdoctor.log.types import LogReading

LOGS = Path(__file__).parents[1] / "data" / "real_logs"
NAMES = sorted(p.stem for p in LOGS.glob("*.log"))
OUTCOMES = {"stopped_after_ready": "ready"}


def label(name: str) -> dict:
    return json.loads((LOGS / f"{name}.json").read_text())


def log(name: str) -> str:
    return (LOGS / f"{name}.log").read_bytes().decode()


def exception_lines(reading: LogReading) -> set[int]:
    found = set()
    assert reading.attempt is not None
    for event in reading.attempt.events:
        found.add(event.line.number)
        node = event.traceback
        while node is not None:
            if node.exception is not None:
                found.add(node.exception.number)
            node = node.inner
    return found


@pytest.mark.parametrize("name", NAMES)
def test_recorded_launch(name: str) -> None:
    truth = label(name)
    reading = read_logs([str(LOGS / f"{name}.log")])
    assert outcome(reading) == OUTCOMES.get(truth["outcome"], truth["outcome"])
    assert len(reading.attempts) == 1
    assert reading.is_sglang
    attempt = reading.attempts[0]
    assert attempt.stage.value in {truth["stage"], *truth["stage_accept"]}
    assert attempt.command is not None and attempt.command.number == 1
    assert attempt.command_text == log(name).split("\n", 1)[0].removeprefix("$ ")
    # the root line is an event, unless it is a warning that only knowledge can tell from the others
    if truth["root_line_number"] is not None and not truth["root_line"].startswith("_fix"):
        assert truth["root_line_number"] in exception_lines(reading)


@pytest.mark.parametrize("name", NAMES)
def test_long_logs_are_read_the_same(name: str) -> None:
    """What a long log is not read for must not change what is found."""
    head, _, rest = log(name).partition("\n")
    healthy = "".join(
        f"[2026-11-29 13:40:{i % 60:02} TP0] ssh tunnel alive, full token usage: 0.{i % 100:02}\n"
        for i in range(9000)
    )
    short = reading_from_text(f"{head}\n{rest}").attempt
    long_log = reading_from_text(f"{head}\n{healthy}{rest}{healthy}")
    long = long_log.attempt
    assert short is not None and long is not None
    assert outcome(long_log) == outcome(reading_from_text(log(name)))
    assert [(e.kind, e.line.number + 9000, e.stage, e.fatal, e.summary) for e in short.events] == [
        (e.kind, e.line.number, e.stage, e.fatal, e.summary) for e in long.events
    ]
    assert {m.stage for m in short.marks} == {m.stage for m in long.marks}
    assert short.stage is long.stage
    assert {o.name: o.value for o in short.observations} == {o.name: o.value for o in long.observations}


def test_only_neighbourhoods_of_a_long_log_are_read() -> None:
    class Counting:
        def __init__(self, hits: object) -> None:
            self.hits = hits
            self.read = 0

        def __getattr__(self, name: str) -> object:
            return getattr(self.hits, name)

        def window(self, file: int, first: int, last: int) -> list:
            self.read += last - first + 1
            return self.hits.window(file, first, last)  # type: ignore[attr-defined]

    from mtpdoctor.log.reading import _MARKERS, reading_of
    from mtpdoctor.log.scan import scan
    from mtpdoctor.log.source import LogSource

    decode = "".join(
        f"[2026-11-29 13:40:00 TP0] Decode batch, #full token: {i}, accept len: 2.50\n" for i in range(50_000)
    )
    scanned = scan([LogSource.of_bytes((log("ready_mtp_accept_len_1") + decode).encode())], list(_MARKERS))
    counting = Counting(scanned)
    reading = reading_of(counting, scanned.files)  # type: ignore[arg-type]
    assert counting.read < 1500
    assert outcome(reading) == "ready"
    values = {o.name: o.value for o in reading.attempts[0].observations}
    assert values["log.accept_len"] == 2.5


def test_values_read_off_the_lines() -> None:
    attempt = read_logs([str(LOGS / "ready_mtp_accept_len_1.log")]).attempt
    assert attempt is not None
    values = {o.name: o.value for o in attempt.observations}
    assert values["log.avail_mem_before_load_gib"] == 130.81
    assert values["log.avail_mem_after_load_gib"] == 130.55
    assert values["log.weights_gib"] == 0.27
    assert values["log.avail_mem_after_pool_gib"] == 124.24
    assert values["log.kv_tokens"] == values["log.max_total_num_tokens"] == 1784892
    assert values["log.max_running_requests"] == 48
    assert values["log.context_len"] == 262144
    assert values["log.accept_len"] == 1.0
    assert values["model.architecture"] == "Qwen3_5MoeForConditionalGeneration"
    assert values["arg.speculative_algorithm"] == "EAGLE"
    assert values["arg.mem_fraction_static"] == 0.05
    assert values["arg.disable_radix_cache"] is False
    assert values["arg.speculative_draft_model_path"] is None
    assert values["host.gpu.name"] == "NVIDIA H200"
    where = {o.name: o.line.number for o in attempt.observations}
    assert where["arg.speculative_algorithm"] == 10


@pytest.mark.parametrize(
    ("line", "release"),
    [
        ("sglang==0.5.9", "0.5.9"),
        ("sglang[all]==0.5.4.post3", "0.5.4.post3"),
        ("sglang                      0.5.15.dev318+g2b7c0d1e4 /w/sglang/python", "0.5.15.dev318"),
        ("sglang: 0.5.8.post2.dev214+g3f0c1d2a5", "0.5.8.post2.dev214"),
        ("Successfully installed foo-1.0 sglang-0.5.10.post1 torch-2.9", "0.5.10.post1"),
        ("docker run lmsysorg/sglang:v0.5.10-cu129 bash", "0.5.10"),
        ('  Image: "docker.io/lmsysorg/sglang:v0.5.13.post1"', "0.5.13.post1"),
        ("/usr/lib/python3/site-packages/sglang-0.5.9.dist-info/METADATA", "0.5.9"),
        ("sglang                    0.5.12", "0.5.12"),
        ("sglang: 0.4.6.post5", "0.4.6.post5"),
        ("SGLang version: 0.5.23", "0.5.23"),
        ("sglang-kernel==0.3.1", None),
        ("sgl-kernel==0.3.1", None),
        ("lmsysorg/sglang:latest", None),
        ("docker run nvcr.io/nvidia/ai-dynamo/sglang-runtime:1.2.0 bash", None),
        ("sglang-router==0.2.1", None),
    ],
)
def test_releases(line: str, release: str | None) -> None:
    attempt = reading_from_text(line + "\n").attempt
    assert attempt is not None
    assert [o.value for o in attempt.observations if o.name == "release"] == ([release] if release else [])


@pytest.mark.parametrize(
    ("line", "facts"),
    [
        ("GPU 0,1,2,3: NVIDIA H200", {"host.gpu.name": "NVIDIA H200"}),
        ("GPU 0,1,2,3 Compute Capability: 9.0", {"host.gpu.sm": 90}),
        ("GPU 0: NVIDIA GeForce RTX 4090", {"host.gpu.name": "NVIDIA GeForce RTX 4090"}),
        (
            "Config file not found at E=8,N=256,device_name=NVIDIA_H100_80GB_HBM3.json",
            {"host.gpu.name": "NVIDIA H100 80GB HBM3"},
        ),
        (
            "device_name=NVIDIA_RTX_PRO_6000_Blackwell_Server_Edition,dtype=fp8.json",
            {"host.gpu.name": "NVIDIA RTX PRO 6000 Blackwell Server Edition"},
        ),
        ("GPU 0: NVIDIA A100-SXM4-80GB", {"host.gpu.name": "NVIDIA A100-SXM4-80GB"}),
        (
            "device_name=AMD_Instinct_MI300X.json",
            {"host.gpu.name": "AMD Instinct MI300X", "host.platform": "rocm"},
        ),
        ("image: lmsysorg/sglang:v0.5.16-rocm720-mi30x", {"host.platform": "rocm"}),
        ("image: lmsysorg/sglang:v0.5.16-cann8.5.0-910b", {"host.platform": "npu"}),
        ("RAY_EXPERIMENTAL_NOSET_ASCEND_RT_VISIBLE_DEVICES=1", {}),
        ("root@mi300x-3:/sgl-workspace# pip list", {"host.platform": "rocm"}),
        ("root@milan-3:/sgl-workspace# pip list", {}),
        ("  Name:                    gfx950", {"host.platform": "rocm"}),
        ("+ SGLANG_USE_AITER=1 sglang serve --model-path M", {"host.platform": "rocm"}),
        ("+ SGLANG_USE_AITER=0 sglang serve --model-path M", {}),
        (
            "NVIDIA GeForce RTX 5090 with CUDA capability sm_120 is not compatible with the current PyTorch",
            {"host.gpu.name": "NVIDIA GeForce RTX 5090", "host.gpu.sm": 120},
        ),
        (
            "| NVIDIA-SMI 570.195.03             Driver Version: 570.195.03     CUDA Version: 12.8     |",
            {"host.driver": "570.195.03", "host.cuda_driver": "12.8"},
        ),
        ("CUDA Driver Version: 570.172.08", {"host.driver": "570.172.08", "host.cuda_driver": "12.8"}),
        (
            "NVIDIA GeForce RTX 5060, 12.0, 575.64.03",
            {
                "host.gpu.name": "NVIDIA GeForce RTX 5060",
                "host.driver": "575.64.03",
                "host.cuda_driver": "12.9",
            },
        ),
        ("Driver version: 6.10.5", {}),
        ("NVIDIA driver on your system is too old", {}),
        ("NVIDIA A New Era of Computing", {}),
    ],
)
def test_gpus(line: str, facts: dict) -> None:
    attempt = reading_from_text(line + "\n").attempt
    assert attempt is not None
    listed = ("host.gpu.count", "host.gpu.kind_count", "host.gpu.kinds")  # which log.shown reads
    shown = {o.name: o.value for o in attempt.observations if o.name.startswith("host.")}
    assert {name: value for name, value in shown.items() if name not in listed} == facts


@pytest.mark.parametrize(
    ("line", "values"),
    [
        ("SGLANG_DEEPEP_NUM_MAX_DISPATCH_TOKENS_PER_RANK=2048", ["2048"]),
        ("HF_TOKEN=hf_abc", []),
        ("export SGLANG_ROUTER_API_KEY=abc", []),
    ],
)
def test_a_number_of_tokens_is_no_secret(line: str, values: list[str]) -> None:
    attempt = reading_from_text(line + "\n").attempt
    assert attempt is not None
    assert [o.value for o in attempt.observations if o.name.startswith("env.")] == values


def test_memory_of_an_out_of_memory_message() -> None:
    attempt = reading_from_text(
        "[2026-01-01 00:00:02 TP1] Scheduler hit an exception: Traceback (most recent call last):\n"
        '  File "/s/a.py", line 1, in load_model\n'
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 1 has a total capacity of 79.10 GiB "
        "of which 512.00 MiB is free. Process 1 has 78.00 GiB memory in use.\n"
    ).attempt
    assert attempt is not None
    values = {o.name: o.value for o in attempt.observations}
    assert values["host.gpu.memory_gib"] == values["log.total_mem_gib"] == 79.1
    assert values["host.gpu.free_gib"] == 0.5


def test_server_args_of_newer_releases_are_a_dictionary() -> None:
    attempt = reading_from_text(
        "[2026-01-01 00:00:00] server_args={'model_path': '/m', 'tp_size': 4, 'api_key': 'sk-very-secret', "
        "'cuda_graph': {'decode': {'bs': [1, 2]}}, 'lora_paths': None, 'mode': <Mode.A: 'a'>, 'cut': 'of\n"
    ).attempt
    assert attempt is not None
    values = {o.name: o.value for o in attempt.observations}
    assert values == {
        "arg.model_path": "/m",
        "arg.tp_size": 4,
        "arg.api_key": "***",
        "arg.cuda_graph": {"decode": {"bs": [1, 2]}},
        "arg.lora_paths": None,
        "arg.mode": "a",
    }


@pytest.mark.parametrize("text", ["", "\n", "\n\n  \n"])
def test_nothing_in_it(text: str) -> None:
    reading = reading_from_text(text)
    assert outcome(reading) == "empty" and reading.attempt is None and not reading.is_sglang


def test_a_log_of_something_else() -> None:
    reading = reading_from_text("nginx: started\nGET / 200\n")
    assert not reading.is_sglang and outcome(reading) == "unfinished"


def test_literals_are_looked_for() -> None:
    reading = reading_from_text("a needle here\nnothing\nneedle\n", ["needle"])
    assert [line.number for line in reading.hits.lines("needle")] == [1, 3]


PIECES = [line for name in NAMES for line in log(name).split("\n")]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.randoms(use_true_random=False))
def test_mutated_logs_are_read_without_a_crash(rng: random.Random) -> None:
    lines = log(rng.choice(NAMES)).split("\n")
    for _ in range(rng.randint(1, 6)):
        kind = rng.randrange(7)
        i, j = sorted((rng.randrange(len(lines)), rng.randrange(len(lines))))
        if kind == 0:
            lines = lines[i:] or lines
        elif kind == 1:
            lines = lines[: j + 1]
        elif kind == 2:
            lines[i:i] = log(rng.choice(NAMES)).split("\n")[: rng.randint(1, 80)]
        elif kind == 3:
            lines[j:j] = lines[i:j]
        elif kind == 4:
            part = lines[i:j]
            rng.shuffle(part)
            lines[i:j] = part
        elif kind == 5:
            text = lines[i]
            cut = rng.randint(0, len(text))
            lines[i] = (
                text[:cut]
                + rng.choice(
                    ["\x1b[31m", "\0", "|", '  File "', "Traceback (most recent call last):", "\r", "é"]
                )
                + text[cut:]
            )
        else:
            lines[i] = rng.choice(PIECES)
    text = "\n".join(lines)
    reading = reading_from_text(text)
    count = len(text.split("\n"))
    assert outcome(reading) in {"failed", "ready", "unfinished", "empty"}
    for attempt in reading.attempts:
        assert [e.line.key for e in attempt.events] == sorted(e.line.key for e in attempt.events)
        for event in attempt.events:
            assert attempt.holds(event.line) and 1 <= event.line.number <= count
            assert event.line.text or event.traceback is not None
    spans = [s for a in reading.attempts for s in a.spans]
    assert [a.last + 1 for a in spans[:-1]] == [b.first for b in spans[1:]]
