from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _own_state(own_state: Path) -> None:
    """What one test launches is no run of another's."""


@pytest.fixture
def state(own_state: Path) -> Path:
    """The folder of runs."""
    return own_state / "runs"
