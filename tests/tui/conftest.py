"""A state folder for each test, and pauses that end when what was set off is done."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from waiting import LONG

TURNS = 100  # of the event loop: far more than a message needs from the widget that posts it to the last that draws


@pytest.fixture(autouse=True)
def _own_state(own_state: Path) -> None:
    """What one test copies, exports or launches is nothing of another's."""


@pytest.fixture(autouse=True)
def _whole_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pilot goes on after so many turns of the event loop. Textual goes by how much processor time is used: a process
    that gets none, on a busy machine, would be taken for one with nothing to do."""
    wait = Pilot._wait_for_screen

    async def wait_for_screen(self: Pilot[Any], timeout: float = LONG) -> bool:
        done = await wait(self, timeout)
        for _ in range(TURNS):
            await asyncio.sleep(0)
        return done

    monkeypatch.setattr(Pilot, "_wait_for_screen", wait_for_screen)
