"""The fixed command of every recorded failing launch is one the real SGLang of its release accepted.

tests/data/fixed_commands.json holds its answers; when a command changes, ask again
(benchmarks/real_log_fixes.py says how).
"""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RECORDED = json.loads((ROOT / "tests" / "data" / "fixed_commands.json").read_text())["rows"]


def best_commands() -> dict[str, dict[str, str]]:
    spec = importlib.util.spec_from_file_location("fixes", ROOT / "benchmarks" / "real_log_fixes.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.best_commands()


def test_every_fixed_command_was_accepted() -> None:
    assert len(RECORDED) >= 45
    assert {row["verdict"] for row in RECORDED.values()} == {"accept"}


def test_they_are_still_the_commands_that_are_offered() -> None:
    now = {name: fix["command"] for name, fix in best_commands().items()}
    assert now == {name: row["command"] for name, row in RECORDED.items()}
