"""NVML as a real host answered it: each call's answer, recorded, and changed where a test says so."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

DATA = Path(__file__).resolve().parent.parent / "data" / "hosts"


class RecordedNvml:
    """Stands in for pynvml. ``changes``: call (``nvmlDeviceGetName["h0"]``) -> answer, or an NVMLError code.

    What was not recorded is not supported by the driver."""

    nvmlMemory_v2 = 33554472

    class NVMLError(Exception):
        def __init__(self, value: int, said: str = "Not Supported") -> None:
            super().__init__(said)
            self.value = value

    def __init__(self, name: str, changes: Mapping[str, Any] | None = None) -> None:
        self.calls: dict[str, Any] = json.loads((DATA / f"{name}.json").read_text())
        self.calls |= changes or {}
        self.open = 0

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if not name.startswith("nvml"):
            raise AttributeError(name)

        def call(*arguments: Any) -> Any:
            self.open += {"nvmlInit": 1, "nvmlShutdown": -1}.get(name, 0)
            said = self.calls.get(name + json.dumps(list(arguments)), {"error": 3})
            if "error" in said:
                raise self.NVMLError(said["error"], said.get("said", "Not Supported"))
            return said["handle"] if "handle" in said else _object(said["is"])

        return call


def _object(value: Any) -> Any:
    if isinstance(value, dict):
        return SimpleNamespace(**value)
    return [_object(v) for v in value] if isinstance(value, list) else value
