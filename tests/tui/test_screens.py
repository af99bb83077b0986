"""What the screens look like: `pytest tests/tui/test_screens.py --snapshot-update` after a wanted change."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from still import EMPTY_MACHINE, FAILED, HEALTHY, app_of, settled
from textual.pilot import Pilot

SMALL, LARGE = (80, 24), (140, 40)
BOTH = [(SMALL, "dark"), (LARGE, "light")]
ALL = [(SMALL, "dark"), (SMALL, "light"), (LARGE, "dark"), (LARGE, "light")]

UNKNOWN = """\
$ python -m sglang.launch_server --model-path /models/tiny --tp 2 --port 31020
[2026-11-29 13:45:08] server_args=ServerArgs(model_path='/models/tiny', tp_size=2, port=31020)
[2026-11-29 13:45:20 TP1] Init torch distributed begin.
[2026-11-29 13:45:21 TP0] Init torch distributed begin.
[2026-11-29 13:45:22 TP1] Scheduler hit an exception: Traceback (most recent call last):
  File "/opt/site/house_plugin/warp.py", line 12, in start
    raise WarpDriveError("dilithium crystals out of phase")
house_plugin.warp.WarpDriveError: dilithium crystals out of phase

[2026-11-29 13:45:23] Received sigquit from a child process. It usually means the child failed.
Killed
"""

STOPPED = """\
$ python -m sglang.launch_server --model-path /models/tiny --tp 4 --nnodes 2 --node-rank 0 --dist-init-addr 10.0.0.1:5000
[2026-11-29 13:45:08] server_args=ServerArgs(model_path='/models/tiny', tp_size=4, nnodes=2, node_rank=0)
[2026-11-29 13:45:20 TP1] Init torch distributed begin.
[2026-11-29 13:45:21 TP0] Init torch distributed begin.
"""


def after(*keys: str) -> Callable[[Pilot[Any]], Any]:
    async def run(pilot: Pilot[Any]) -> None:
        await settled(pilot)
        await pilot.press(*keys)
        await settled(pilot)

    return run


@pytest.mark.parametrize(("size", "theme"), ALL)
def test_diagnosis_of_a_failure(snap_compare: Any, size: tuple[int, int], theme: str) -> None:
    assert snap_compare(app_of(FAILED, theme=theme), terminal_size=size, run_before=after("2"))


@pytest.mark.parametrize(("size", "theme"), BOTH)
def test_diagnosis_of_a_healthy_log(snap_compare: Any, size: tuple[int, int], theme: str) -> None:
    assert snap_compare(app_of(HEALTHY, theme=theme), terminal_size=size, run_before=after("2"))


@pytest.mark.parametrize(("size", "theme"), BOTH)
def test_diagnosis_of_an_unknown_failure(
    snap_compare: Any, size: tuple[int, int], theme: str, tmp_path: Path
) -> None:
    log = tmp_path / "server.log"
    log.write_text(UNKNOWN)
    assert snap_compare(app_of(str(log), theme=theme), terminal_size=size, run_before=after("2"))


@pytest.mark.parametrize(("size", "theme"), BOTH)
def test_diagnosis_of_a_log_that_just_stops(
    snap_compare: Any, size: tuple[int, int], theme: str, tmp_path: Path
) -> None:
    log = tmp_path / "server.log"
    log.write_text(STOPPED)
    assert snap_compare(app_of(str(log), theme=theme), terminal_size=size, run_before=after("2"))


@pytest.mark.parametrize(("size", "theme"), ALL)
def test_log_of_a_failure(snap_compare: Any, size: tuple[int, int], theme: str) -> None:
    assert snap_compare(app_of(FAILED, theme=theme), terminal_size=size, run_before=after("3", "c"))


def test_log_with_ranks(snap_compare: Any, tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text(UNKNOWN)
    assert snap_compare(app_of(str(log)), terminal_size=SMALL, run_before=after("3", "c", "f"))


@pytest.mark.parametrize(("size", "theme"), BOTH)
def test_an_empty_machine(snap_compare: Any, size: tuple[int, int], theme: str) -> None:
    assert snap_compare(app_of(places=EMPTY_MACHINE, theme=theme), terminal_size=size, run_before=after())


def test_help(snap_compare: Any) -> None:
    assert snap_compare(app_of(FAILED), terminal_size=SMALL, run_before=after("3", "question_mark"))


def test_high_contrast(snap_compare: Any) -> None:
    app = app_of(FAILED, theme="high-contrast")
    assert snap_compare(app, terminal_size=SMALL, run_before=after("3", "c"))
