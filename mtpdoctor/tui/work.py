"""Work off the screen's thread: one of each kind at a time, with a name to show, and it can be ended.

Threads are daemons: whoever quits does not wait for a gigabyte to be read. What a job that was ended still
finds is thrown away.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from textual.app import App
from textual.worker import Worker, WorkerState

from mtpdoctor.errors import UserError

T = TypeVar("T")


async def in_thread(function: Callable[[], T]) -> T:
    """The function's answer, from a thread of its own."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, error: BaseException | None) -> None:
        if future.done():  # ended meanwhile
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)  # type: ignore[arg-type]

    def run() -> None:
        result: T | None = None
        error: BaseException | None = None
        try:
            result = function()
        except Exception as caught:
            error = caught
        with contextlib.suppress(RuntimeError):  # the application has ended
            loop.call_soon_threadsafe(settle, result, error)

    threading.Thread(target=run, daemon=True).start()
    return await future


class Work:
    """The jobs of an application. ``on_busy`` is told what is at work whenever that changes."""

    def __init__(self, app: App[Any], on_busy: Callable[[tuple[str, ...]], None]) -> None:
        self._app = app
        self._on_busy = on_busy
        self._jobs: dict[str, tuple[str, Worker[Any]]] = {}

    def start(
        self,
        kind: str,
        saying: str,
        function: Callable[[], T],
        done: Callable[[T], None],
        failed: Callable[[str], None] | None = None,
    ) -> None:
        """Run ``function``, then ``done`` with its answer. A job of the same kind gives way to this one.

        A UserError is told to the person (or to ``failed``); any other exception ends the application as
        one on the screen's thread would."""

        async def job() -> None:
            try:
                result = await in_thread(function)
            except UserError as error:
                self._end(kind, worker)
                text = f"{error}" + (f" ({error.hint})" if error.hint else "")
                if failed is not None:
                    failed(text)
                else:
                    self._app.notify(text, severity="error", markup=False, timeout=10)
                return
            self._end(kind, worker)
            done(result)

        if kind in self._jobs:
            self._jobs[kind][1].cancel()
        worker: Worker[None] = self._app.run_worker(job, group=kind, exit_on_error=True)
        self._jobs[kind] = (saying, worker)
        self._tell()

    @property
    def idle(self) -> bool:
        return not self._jobs

    def cancel(self) -> bool:
        """End everything at work. False when nothing was."""
        running = [w for _, w in self._jobs.values() if w.state in (WorkerState.PENDING, WorkerState.RUNNING)]
        for worker in running:
            worker.cancel()
        self._jobs.clear()
        self._tell()
        return bool(running)

    def _end(self, kind: str, worker: Worker[Any]) -> None:
        if kind in self._jobs and self._jobs[kind][1] is worker:
            del self._jobs[kind]
            self._tell()

    def _tell(self) -> None:
        self._on_busy(tuple(saying for saying, _ in self._jobs.values()))
