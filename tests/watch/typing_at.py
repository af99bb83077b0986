"""What is typed at the doctor, on the stand-in server."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
from standing import REPO, environment, free_port

REAL = REPO / "tests" / "data" / "real_logs"
READY = {"log": str(REAL / "ready_dense.log"), "speed": 0}
SEED = "--speculative-algorithm NEXTN --attention-backend triton"
UNFIT = ["--sglang", "0.5.13.post1", "--gpu", "1xsm90@140"]  # a command that would not start there
HYBRID = [*UNFIT, "--model", str(REPO / "tests" / "data" / "models" / "Qwen3.5-27B")]
FAILS = {
    "log": str(REAL / "spec_no_buffer_with_radix.log"),
    "speed": 0,
    "then": "exit",
    "code": 1,
    "unless": "extra_buffer",
}


def stand_in(monkeypatch: pytest.MonkeyPatch, *plays: dict[str, Any]) -> None:
    for name, value in environment(*plays).items():
        monkeypatch.setenv(name, value)


def server(options: str = "") -> list[str]:
    words = f"-m sglang.launch_server --model-path M --port {free_port()} {options}".split()
    return ["--", sys.executable, *words]


def events_of(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]
