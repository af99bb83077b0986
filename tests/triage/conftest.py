"""Launches on disk, and triage as a function."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from mtpdoctor.triage.find import find
from mtpdoctor.triage.run import triage
from mtpdoctor.triage.types import Triage

ROOT = Path(__file__).resolve().parents[2]
REAL = ROOT / "tests" / "data" / "real_logs"
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))


@pytest.fixture
def triaged() -> Callable[..., Triage]:
    """``triaged(path, ...)``: the triage of paths, in this process."""

    def run(*paths: object, **options: object) -> Triage:
        with find([str(p) for p in paths], look=options.get("mode") is None) as found:
            return triage(found, jobs=0, **options)  # type: ignore[arg-type]

    return run
