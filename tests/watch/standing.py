"""Using the stand-in: in this process (its HTTP side alone) or as a launch of its own."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from ports import free_port

from mtpdoctor.watch.target import Target

__all__ = ["answering", "environment", "free_port", "launch_environment"]

HERE = Path(__file__).resolve().parent
SITE = HERE / "stand_in" / "site"
REPO = HERE.parent.parent
RECORDED = REPO / "tests" / "data" / "h200_logs"
SAMPLES = REPO / "sample_logs"


def _module(name: str) -> ModuleType:
    path = SITE / "sglang" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


HTTP = _module("stand_in_http")


@contextmanager
def answering(play: dict[str, Any] | None = None, **args: Any) -> Iterator[Target]:
    """The HTTP side alone, ready; yields where it listens."""
    given = {"host": "127.0.0.1", "port": free_port(), "model_path": "M", **args}
    server = HTTP.Server(play or {}, given, lambda line: None)
    server.up = True
    server.start()
    try:
        yield Target(
            host=given["host"],
            port=given["port"],
            tls=bool(given.get("ssl_certfile")),
            model="M",
            speculative=given.get("speculative_algorithm"),
            token_ids_only=bool(given.get("skip_tokenizer_init")),
            disaggregation=given.get("disaggregation_mode"),
        )
    finally:
        server.stop()


def environment(*plays: dict[str, Any], **defaults: Any) -> dict[str, str]:
    """The variables that make ``python -m sglang.launch_server`` the stand-in."""
    return {"PYTHONPATH": str(SITE), "STAND_IN": json.dumps({"plays": list(plays), **defaults})}


def launch_environment(*plays: dict[str, Any], **defaults: Any) -> dict[str, str]:
    return {**os.environ, **environment(*plays, **defaults)}
