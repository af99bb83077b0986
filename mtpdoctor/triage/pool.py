"""The local engine: launches over worker processes that may be killed, hang, or be interrupted.

The standard pools lose every result when one worker is killed, and cannot end one that hangs. Here each worker has
a pipe of its own and one launch at a time: one that dies takes only its launch with it (which is tried once more),
one over its time is killed, and new ones take their places.
"""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

from mtpdoctor.children import elsewhere
from mtpdoctor.errors import UserError
from mtpdoctor.triage.examine import examine, unreadable
from mtpdoctor.triage.opening import Limits
from mtpdoctor.triage.types import LaunchFiles, Member

_TRIES = 2  # of a launch whose worker died: the kernel may have chosen it for another's memory
_START_SECONDS = 120.0
_MAX_FAILED_STARTS = 3


@dataclass(frozen=True, slots=True)
class Task:
    """One launch, and where those of its files lie that are not opened by their names."""

    launch: LaunchFiles
    places: dict[str, str]


def in_process(tasks: Iterable[Task], limits: Limits) -> Generator[Member, None, None]:
    """One launch after the other, in this process: no time limit, and nothing survives an OOM kill."""
    from mtpdoctor.kb.load import load_knowledge

    knowledge = load_knowledge()
    for task in tasks:
        yield examine(task.launch, knowledge, places=task.places, limits=limits)


def over_processes(tasks: Iterable[Task], limits: Limits, jobs: int) -> Generator[Member, None, None]:
    """The members, in the order in which they are done. At most ``jobs`` launches are under way. Closing the
    iterator ends all workers. Raises UserError when workers cannot be started at all."""
    pool = _Pool(limits)
    try:
        yield from pool.run(iter(tasks), max(jobs, 1))
    finally:
        pool.close()


class _Worker:
    __slots__ = ("pipe", "process", "ready", "since", "task", "tries")

    def __init__(self, context: Any, limits: Limits) -> None:
        self.pipe: Connection
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_work, args=(theirs, limits), daemon=True)
        with elsewhere():
            self.process.start()
        theirs.close()
        self.ready = False
        self.task: Task | None = None
        self.tries = 0
        self.since = time.monotonic()

    def give(self, task: Task, tries: int) -> None:
        self.task, self.tries, self.since = task, tries, time.monotonic()
        self.pipe.send(task)

    def kill(self) -> None:
        with contextlib.suppress(Exception):
            self.process.kill()
            self.process.join(5)
        self.pipe.close()


class _Pool:
    def __init__(self, limits: Limits) -> None:
        import multiprocessing

        # no fork: the caller may have threads (the search, fsspec's event loop)
        self._context = multiprocessing.get_context("spawn")
        self._limits = limits
        self._workers: list[_Worker] = []
        self._again: deque[tuple[Task, int]] = deque()
        self._failed_starts = 0

    def close(self) -> None:
        for worker in self._workers:
            worker.kill()
        self._workers = []

    def run(self, tasks: Iterator[Task], jobs: int) -> Generator[Member, None, None]:
        self._next = next(tasks, None)
        while self._next is not None or self._again or any(w.task for w in self._workers):
            under_way = sum(w.task is not None for w in self._workers)
            if len(self._workers) < jobs and (self._again or self._next) and under_way == len(self._workers):
                self._workers.append(_Worker(self._context, self._limits))
            yield from self._step(tasks)

    def _take(self, tasks: Iterator[Task]) -> tuple[Task, int] | None:
        if self._again:
            return self._again.popleft()
        task = self._next
        if task is None:
            return None
        self._next = next(tasks, None)
        return task, 1

    def _step(self, tasks: Iterator[Task]) -> Generator[Member, None, None]:
        """Waits for something to happen, and deals with it."""
        for worker in self._workers:
            if worker.ready and worker.task is None:
                given = self._take(tasks)
                if given is None:
                    break
                try:
                    worker.give(*given)
                except OSError:  # it died while idle
                    self._again.appendleft(given)
                    worker.task = None
        now = time.monotonic()
        left = min((self._deadline(w) - now for w in self._workers if w.task or not w.ready), default=1.0)
        of_pipe: dict[Any, _Worker] = {w.pipe: w for w in self._workers}
        for pipe in wait(list(of_pipe), timeout=min(max(left, 0.0), 1.0)):
            yield from self._hear(of_pipe[pipe])
        now = time.monotonic()
        for worker in [w for w in self._workers if (w.task or not w.ready) and self._deadline(w) <= now]:
            if worker.pipe.poll():  # it was in time; whoever takes the members, or a busy machine, was not
                yield from self._hear(worker)
                continue
            self._drop(worker)
            if worker.task is None:
                self._not_started("it did not start in time")
            else:
                yield unreadable(
                    worker.task.launch, f"examining it took longer than {self._limits.seconds:g} seconds"
                )

    def _deadline(self, worker: _Worker) -> float:
        return worker.since + (self._limits.seconds if worker.task else _START_SECONDS)

    def _hear(self, worker: _Worker) -> Generator[Member, None, None]:
        try:
            said = worker.pipe.recv()
        except (EOFError, OSError):
            yield from self._died(worker)
            return
        if isinstance(said, Member):
            worker.task = None
            yield said
        elif said is None:
            worker.ready = True
            self._failed_starts = 0
        else:
            self._drop(worker)
            raise UserError(str(said))

    def _died(self, worker: _Worker) -> Generator[Member, None, None]:
        self._drop(worker)
        code = worker.process.exitcode
        if worker.task is None:
            if not worker.ready:
                self._not_started(f"exit code {code}")
            return
        if worker.tries < _TRIES:
            self._again.append((worker.task, worker.tries + 1))
            return
        how = f"was killed by signal {-code}" if code is not None and code < 0 else f"ended with code {code}"
        hint = ", for want of memory?" if code == -9 else ""
        yield unreadable(worker.task.launch, f"the process that examined it {how}{hint} ({_TRIES} times)")

    def _drop(self, worker: _Worker) -> None:
        worker.kill()
        self._workers.remove(worker)

    def _not_started(self, why: str) -> None:
        self._failed_starts += 1
        if self._failed_starts >= _MAX_FAILED_STARTS:
            raise UserError(f"worker processes cannot be started: {why}", hint="try --jobs 0")


def _work(pipe: Connection, limits: Limits) -> None:
    """What a worker does, until its pipe closes. ``None`` says it is ready, a text that it cannot be."""
    import gc
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent hears it, and decides
    from mtpdoctor.kb.load import load_knowledge

    try:
        knowledge = load_knowledge()
    except UserError as error:
        pipe.send(str(error))
        return
    gc.freeze()
    gc.set_threshold(100_000, 10, 10)  # a log makes much that lives as long as its examination, and no cycles
    pipe.send(None)
    while True:
        try:
            task = pipe.recv()
        except (EOFError, OSError):
            return
        member = examine(task.launch, knowledge, places=task.places, limits=limits)
        try:
            pipe.send(member)
        except OSError:
            return
