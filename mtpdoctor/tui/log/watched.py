"""Long work on a log, beside the screen: how far it is is told, and it ends when whoever waits is cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from mtpdoctor.tui.work import in_thread

T = TypeVar("T")
_EVERY = 0.3  # seconds between two words about it


async def watched(
    saying: str,
    function: Callable[[Callable[[float], None], Callable[[], bool]], T],
    tell: Callable[[str], None],
) -> T:
    """What ``function`` gives, from a thread. It is handed where to tell the share it has done, and whom to
    ask whether it should stop."""
    share, ended = 0.0, False

    def done(part: float) -> None:
        nonlocal share
        share = part

    job = asyncio.ensure_future(in_thread(lambda: function(done, lambda: ended)))
    try:
        while not job.done():
            await asyncio.wait({job}, timeout=_EVERY)
            if not job.done():
                tell(f"{saying}, {share:.0%}")
        return job.result()
    except asyncio.CancelledError:
        ended = True
        job.cancel()
        raise
