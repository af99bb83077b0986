"""However a log is carried, the same events are found at the same lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from mtpdoctor.log.reading import outcome, read_logs, reading_from_text
from mtpdoctor.log.types import LogReading
from tests.log.wrap import TRANSPORTS, wrap

LOGS = Path(__file__).parents[1] / "data" / "real_logs"
NAMES = sorted(p.stem for p in LOGS.glob("*.log"))


def seen(reading: LogReading) -> dict[str, object]:
    attempt = reading.attempt
    assert attempt is not None
    events = []
    for e in attempt.events:
        chain = []
        node = e.traceback
        while node is not None:
            exception = node.exception.number if node.exception else None
            frames = [(f.path, f.lineno, f.function, f.code) for f in node.frames]
            chain.append((node.type, node.message, exception, node.cut, frames))
            node = node.inner
        events.append((e.kind, e.line.number, e.line.text, e.stage, e.fatal, e.summary, chain))
    return {
        "outcome": outcome(reading),
        "attempts": len(reading.attempts),
        "sglang": reading.is_sglang,
        "events": events,
        "marks": [(m.stage, m.line.number) for m in attempt.marks],
        "stage": attempt.stage,
        "ready": attempt.ready.number if attempt.ready else None,
        "shutdown": attempt.shutdown.number if attempt.shutdown else None,
        "command": attempt.command_text,
        "values": [(o.name, o.value, o.line.number) for o in attempt.observations],
    }


@pytest.fixture(scope="module")
def plain() -> dict[str, dict[str, object]]:
    return {name: seen(read_logs([str(LOGS / f"{name}.log")])) for name in NAMES}


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_every_transport_reads_the_same(
    transport: str, plain: dict[str, dict[str, object]], tmp_path: Path
) -> None:
    # a third of the logs per transport: every log is met with every kind of wrapping
    for name in NAMES[TRANSPORTS.index(transport) % 3 :: 3]:
        path = tmp_path / f"{name}.log"
        path.write_bytes(wrap((LOGS / f"{name}.log").read_bytes().decode().split("\n")[:-1], transport))
        found = seen(read_logs([str(path)]))
        for key, value in plain[name].items():
            assert found[key] == value, (name, key)


def test_ranks_as_streams_of_one_file(tmp_path: Path) -> None:
    """Two Slurm tasks, line by line: each keeps its own traceback."""
    first = (LOGS / "no_weight_files.log").read_bytes().decode().split("\n")[:-1]
    second = (LOGS / "lora_path_missing.log").read_bytes().decode().split("\n")[:-1]
    lines = []
    for i in range(max(len(first), len(second))):
        lines += [f"0: {first[i]}"] if i < len(first) else []
        lines += [f"1: {second[i]}"] if i < len(second) else []
    path = tmp_path / "slurm.out"
    path.write_text("\n".join(lines) + "\n")
    reading = read_logs([str(path)])
    assert reading.attempt is not None
    found = {
        e.traceback.message.split(" with")[0][:40] for e in reading.attempt.events if e.traceback is not None
    }
    assert any(m.startswith("Cannot find any model weights") for m in found)
    assert any(m.startswith("Failed to load LoRA adapter a") for m in found)
    assert all(not e.traceback.cut for e in reading.attempt.events if e.traceback is not None)


LEFTOVERS = {
    "logging": "2025-03-07 23:50:27,{i:03d} - __main__ - INFO - ",
    "loguru": "2025-03-07 23:50:27.{i:03d} | INFO     | runner:go:12 - ",
    "airflow": "[2025-03-07, 23:50:27 UTC] {{subprocess.py:93}} INFO - ",
    "supervisor": "sglang: ",
    "tabs": "\t",
    "indented": "    ",
    "quoted": "> ",
    "cloudwatch": "2025-03-07T23:50:27.{i:03d}Z\t",
}


@pytest.mark.parametrize("form", LEFTOVERS)
def test_prefixes_that_no_transport_explains(
    form: str, plain: dict[str, dict[str, object]], tmp_path: Path
) -> None:
    for name in ("no_weight_files", "fa3_not_in_sgl_kernel", "spec_no_buffer_with_radix", "ready_dense"):
        lines = (LOGS / f"{name}.log").read_bytes().decode().split("\n")[:-1]
        path = tmp_path / f"{name}.log"
        path.write_text(
            "".join(LEFTOVERS[form].format(i=i) + line + "\n" for i, line in enumerate(lines)), newline=""
        )
        found = seen(read_logs([str(path)]))
        for key in ("outcome", "events", "stage", "ready", "command", "values"):
            assert found[key] == plain[name][key], (name, key)


PLATFORMS = {
    "job": "[2025-12-18T16:{m:02d}:{s:02d}+08:00] qwen3-rl >> (SGLangEngine pid=3111) ",
    "glog": "I1218 16:{m:02d}:{s:02d}.{i:06d} 4242 worker-3/0 | ",
    "level": "2025-12-18 16:{m:02d}:{s:02d} [{level}] sglang/server-0: ",
    "build": "#12 {i}.37 ",
    "counter": "[{i:06d}] srv1 ",
    "date": "Thu Dec 18 16:{m:02d}:{s:02d} 2025 gpu-7 ",
    "arrow": "head-0 -> ",
    "epoch": "1764{i:06d}ms stdout ",
}


@pytest.mark.parametrize("form", PLATFORMS)
def test_prefixes_of_a_platform_of_its_own(form: str, plain: dict[str, dict[str, object]]) -> None:
    for name in ("no_weight_files", "spec_no_buffer_with_radix", "ready_dense"):
        lines = (LOGS / f"{name}.log").read_bytes().decode().split("\n")[:-1]
        text = "".join(
            PLATFORMS[form].format(i=i, m=i // 60, s=i % 60, level=("info", "warn")[i % 2]) + line + "\n"
            for i, line in enumerate(lines)
        )
        found = seen(reading_from_text(text))
        for key in ("outcome", "events", "marks", "stage", "ready", "command", "values"):
            assert found[key] == plain[name][key], (name, key)


BORDERS = {
    "k9s": "│ {:<140} │",
    "tmux": "│{:<140}│",
    "ascii": "| {:<140} |",
    "right": "{:<140}│",
    "left": "│ {}",
}


@pytest.mark.parametrize("form", BORDERS)
def test_borders_of_a_terminal(form: str, plain: dict[str, dict[str, object]]) -> None:
    for name in ("no_weight_files", "spec_no_buffer_with_radix", "ready_dense"):
        lines = (LOGS / f"{name}.log").read_bytes().decode().split("\n")[:-1]
        found = seen(reading_from_text("".join(BORDERS[form].format(line) + "\n" for line in lines)))
        for key in ("outcome", "events", "marks", "stage", "ready", "command", "values"):
            assert found[key] == plain[name][key], (name, key)


def test_three_times_in_a_row(plain: dict[str, dict[str, object]]) -> None:
    name = "no_weight_files"
    lines = (LOGS / f"{name}.log").read_bytes().decode().split("\n")[:-1]
    stamped = [f"2025-04-06 14:30:{i % 60:02d} {line}" for i, line in enumerate(lines)]
    for transport in ("ts", "docker_json_ansi", "journald", "indented", "supervisor", "compose_timestamps"):
        text = wrap(stamped, transport).decode()
        found = seen(reading_from_text(text))
        for key in ("outcome", "events", "marks", "stage", "command", "values"):
            assert found[key] == plain[name][key], (transport, key)
