"""A launch, or somebody else's log, watched from its start until it generates or has ended.

``events()`` blocks between events: a thread drives it, and prints or posts what it yields. ``end`` and ``detach``
may be called from any other thread. What takes long (the proof, a look at the processes) runs in threads of its own,
so that output is never late.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Generator, Iterator, Sequence
from functools import partial
from pathlib import Path

from mtpdoctor.diagnose.given import Given
from mtpdoctor.errors import UserError
from mtpdoctor.log.types import Line, Stage
from mtpdoctor.text import safe
from mtpdoctor.watch import postmortem, runs
from mtpdoctor.watch.asides import Asides
from mtpdoctor.watch.ending import Ending
from mtpdoctor.watch.gpus import GpuSampler, differs
from mtpdoctor.watch.hangs import facts_of
from mtpdoctor.watch.kept import Kept, masked, shown
from mtpdoctor.watch.plan import LaunchPlan, plan_to_follow
from mtpdoctor.watch.source import Source
from mtpdoctor.watch.spawn import Child, Exit, spawn
from mtpdoctor.watch.stages import StageTracker
from mtpdoctor.watch.stuck import Watchdog
from mtpdoctor.watch.target import Target, target_of
from mtpdoctor.watch.trouble import OVERDUE, Trouble
from mtpdoctor.watch.types import (
    End,
    Ended,
    Generated,
    GpuUse,
    Launched,
    Output,
    Ready,
    Resumed,
    WatchEvent,
)
from mtpdoctor.watch.usual import weight_bytes

_BUSY, _IDLE = 0.05, 0.25  # seconds between two looks at the log
_GPU_STARTING, _GPU_SERVING = 1.0, 5.0
_QUIET_LEVELS = ("warning", "error", "critical")  # of --log-level: such a server does not say that it is up
_ASK_EVERY = 3.0  # seconds between two questions whether such a server is up
_TELLING = ("server_args=", "running on", "Granian")


class LaunchSession:
    """One launch, or one log. ``log`` is the file that keeps the output (for a run: under the state folder).

    For ``paths`` (files that somebody else's launch writes) there is no plan. ``patience`` multiplies what a stage
    may be quiet before it is said to stand still. Raises UserError when the log cannot be kept or read.
    """

    def __init__(
        self,
        plan: LaunchPlan | None = None,
        *,
        paths: Sequence[str] = (),
        given: Given | None = None,
        prove: bool = True,
        watchdog: bool = True,
        patience: float = 1.0,
        gpus: bool = True,
        attempt: int = 1,
        after: str | None = None,
        edits: Sequence[str] = (),
    ) -> None:
        self.plan = plan
        self._given = given or (plan.given if plan else Given())
        self._prove = plan.prove if plan else prove
        self._gpus = (
            GpuSampler(visible=plan.env.get("CUDA_VISIBLE_DEVICES") if plan else None) if gpus else None
        )
        self._launches = plan is not None and plan.server
        facts = partial(facts_of, self._given)
        self._watchdog = Watchdog(scale=patience, facts=facts) if watchdog else None
        self._kept: Kept | None = None
        if plan is not None:
            self._kept = Kept(plan, attempt, after, edits)
            self._source = Source([self._kept.run.log], own=True)
        else:
            self._source = Source(paths, own=False)
        self.paths = self._source.paths
        self.log = self.paths[0]
        self.tracker = StageTracker(Stage.IMPORT if self._launches else None, weight_bytes(self._given))
        self._child: Child | None = None
        self._exit: Exit | None = None
        self._wake = threading.Event()
        self._asides = Asides(self._wake.set)
        self._ending = Ending("int" if self._launches else "kill")
        self._late = ""  # why it was ended: not ready in time, or failed and not ended
        self._unwritten = False  # it was said that the log cannot be written
        self._ready = False
        self._asked_up = False  # it answers, and did not say so
        self._telling: list[str] = []  # lines that tell where it listens
        self._trouble = Trouble(lambda: postmortem.report_on(self.paths, self._given), self._now)
        self._next_gpu = self._next_ask = 0.0
        self._last_gpu: GpuUse | None = None
        self._oom = postmortem.oom_kills()

    @property
    def run(self) -> runs.Run | None:
        """The run as it is kept; None for somebody else's log."""
        return self._kept.run if self._kept is not None else None

    @property
    def folder(self) -> Path | None:
        return self._kept.folder if self._kept is not None else None

    # -- for other threads -------------------------------------------------------------------------------
    def end(self, hard: bool = False) -> None:
        """End it: SIGINT, then SIGTERM, then SIGKILL when that does not help; ``hard`` SIGKILL at once.

        Somebody else's log is only watched no longer, and what was detached is left alone."""
        self._ending.end(hard)
        self._wake.set()

    def detach(self) -> None:
        """Watch no longer and leave it running; its output goes on into the log."""
        self._ending.detach()
        self._wake.set()

    # -- the loop ----------------------------------------------------------------------------------------
    def events(self) -> Iterator[WatchEvent]:
        """Launched first, Ended last; in between what happens. To be driven by one thread, once.

        Raises UserError when the program cannot be started. Leaving the generator early (``close()``, an
        exception) ends the launch as ``end(hard=True)`` does."""
        try:
            for event in self._events():
                if self._watchdog is not None:
                    resumed = self._watchdog.saw(event)
                    if isinstance(resumed, Resumed):
                        yield resumed
                yield event
        finally:
            self._let_go()

    def _events(self) -> Iterator[WatchEvent]:
        self._began = time.monotonic()
        yield self._launch()
        if self._launches:
            started = self.tracker.start(self._now())
            if started is not None:
                yield started
        while True:
            some = yield from self._read()
            yield from self._asides.arrived()
            yield from self._each_second()
            if self._ending.detached:
                yield from self._finish(End.DETACHED, None)
                return
            if self._exit is not None and not some:
                yield from self._rest()
                self._trouble.report = None
                yield from self._finish(End.STOPPED if self._ending.asked else End.DIED, self._exit)
                return
            if self._child is None and self._ending.asked:
                yield from self._finish(End.STOPPED, None)
                return
            if not self._launches and not self._source.old and self._trouble.died():
                yield from self._finish(End.DIED, None)
                return
            self._pause(some)

    def _launch(self) -> Launched:
        plan = self.plan
        if plan is None:
            return Launched(0.0, None, "", ", ".join(self.paths), ())
        assert self._kept is not None
        kept = self._kept
        try:
            child = spawn(
                plan.argv,
                plan.env,
                log=self.log,
                cwd=plan.cwd,
                pty=plan.pty,
                detach=plan.detach,
                hidden=kept.hidden,
                exit_file=runs.exit_file(kept.folder),
                grace=3.0 if plan.server else 0.2,
            )
        except UserError:
            kept.save(how=End.REFUSED.value, seconds=0.0)
            raise
        self._child = child
        started = runs.began(child.guard)
        kept.save(pid=child.pid, guard=child.guard, guard_started=started, detached=plan.detach)
        self._ending.started(child)
        sets = tuple(map(kept.masked, plan.sets))
        pid = child.pid if plan.server else None
        return Launched(self._now(), pid, kept.run.command, self.log, sets)

    def _read(self) -> Generator[WatchEvent, None, bool]:
        """What is new in the log. Returns whether there was anything."""
        piece = self._source.next()
        if not piece.read:
            return False
        now = self._now()
        shown = tuple(map(self._clean, piece.shown()))
        if piece.skipped and not piece.old:
            shown = (*shown, f"... {piece.skipped} lines came too fast to be shown; they are in {self.log}")
        if shown:
            yield Output(now, shown)
        for line in (*piece.lines, *piece.bars):
            if self._trouble.spoke():
                yield Resumed(now, self.tracker.stage)
            self._note(line)
            yield from self.tracker.feed(line, now, late=piece.old or not self._launches)
        if self.tracker.ready_line is None:
            self._ready = self._ready and self._asked_up  # else it begins anew
        elif not self._ready and not self._source.old:
            yield from self._is_ready()
        return True

    def _note(self, line: Line) -> None:
        body = line.body
        if any(text in body for text in _TELLING):
            self._telling = [*self._telling[-7:], body]
        self._trouble.note(body)

    def _is_ready(self) -> Iterator[WatchEvent]:
        self._ready = True
        target = self.target
        yield Ready(self._now(), target.url)
        if target.node_rank:
            said = f"all ranks of node {target.node_rank} are up; node 0 answers requests"
            yield Generated(self._now(), ok=True, said=said)
        elif self._prove:
            timeout = self.plan.prove_timeout if self.plan else 60.0
            self._asides.prove(target, timeout, self._began, self._proven)

    @property
    def target(self) -> Target:
        """Where the server listens, as far as command and log tell."""
        document = self._given.document
        environment = self.plan.env if self.plan is not None else None
        return target_of(document.command if document else None, environment, self._telling)

    def _proven(self, generated: Generated) -> None:
        if generated.ok:
            self._save(ready_after=round(self._now(), 2))

    def _each_second(self) -> Iterator[WatchEvent]:
        now = self._now()
        if self._child is not None and self._child.unwritten and not self._unwritten:
            self._unwritten = True
            yield Output(
                now, (f"... its output cannot be kept in {self.log}: {safe(self._child.unwritten)}",)
            )
        if now >= self._next_gpu:
            self._next_gpu = now + (_GPU_SERVING if self._ready else _GPU_STARTING)
            pids = (
                self._child.processes() if self._child else ()
            )  # it remembers them, should the guard be killed
            use = self._gpus.sample(now, pids) if self._gpus is not None else None
            if use is None:
                self._gpus = None
            elif self._last_gpu is None or differs(use, self._last_gpu):
                self._last_gpu = use
                yield use
        if self._ending.asked:
            self._ending.insist()
            return
        if self._watchdog is not None and not self._asides.looking and self._watchdog.due(now):
            pids = self._child.processes() if self._launches and self._child else ()
            self._asides.look(pids, self._watchdog, self._now)
        if not self._ready and self._launches and self._child is not None:
            self._ask_quiet(now)
            lingers = self._trouble.lingers()
            if lingers is not None:
                yield lingers
            limit = self.plan.ready_timeout if self.plan else None
            if limit is not None and (now > limit or self._trouble.overdue) and not self._late:
                self._late = f"was not ready after {limit:g} s"
                if self._trouble.overdue:
                    self._late = f"had failed, and had not ended by itself {OVERDUE:g} s after its last line"
                self._child.end("kill")

    def _ask_quiet(self, now: float) -> None:
        """A server that was told not to log does not say that it is ready: it is asked."""
        document = self._given.document
        level = document.command.value("log_level") if document else None
        if not level or level[-1].lower() not in _QUIET_LEVELS or self._asides.asking or now < self._next_ask:
            return
        self._next_ask = now + _ASK_EVERY
        self._asides.ask(self.target, self._is_up)

    def _is_up(self) -> Iterator[WatchEvent]:
        if not self._ready:
            self._asked_up = True
            yield from self._is_ready()

    def _pause(self, some: bool) -> None:
        pause = _BUSY if some or not self._ready else _IDLE
        if self._child is not None:
            if self._exit is None:
                self._exit = self._child.wait(0.0005 if self._source.behind else pause)
        elif not self._source.behind:
            self._wake.wait(pause)
            self._wake.clear()

    # -- the end -----------------------------------------------------------------------------------------
    def _rest(self) -> Iterator[WatchEvent]:
        """Everything that is still in the log after the end."""
        while (yield from self._read()):
            pass
        lines = self._source.last()
        if lines:
            now = self._now()
            yield Output(now, tuple(map(self._clean, lines)))
            for line in lines:
                self._note(line)
                yield from self.tracker.feed(line, now)

    def _finish(self, how: End, exit_: Exit | None) -> Iterator[WatchEvent]:
        """The diagnosis of one that died, and the end."""
        report = None
        stage = self.tracker.stage
        code = exit_.code if exit_ is not None else None
        if how is End.DIED:
            notes = []
            if self._late:
                notes.append(f"it {self._late}, and was ended")
            notes += postmortem.killed(code, self._oom)
            try:
                report = self._trouble.report or postmortem.report_on(self.paths, self._given, notes)
            except UserError as error:  # its log is gone, or the knowledge has changed since it was launched
                yield Output(self._now(), (f"... it cannot be diagnosed: {safe(str(error))}",))
        if report is not None and report.outcome == "failed":
            stage = Stage(report.stage)
        cause = report.diagnoses[0] if report is not None and report.diagnoses else None
        now = self._now()
        self._save(
            how=how.value,
            code=code,
            stage=stage.value,
            seconds=round(now, 2),
            rule=cause.rule if cause else None,
            cause=masked(cause.title, self._kept) if cause else None,
            sglang=report.sglang_version if report else None,
        )
        yield Ended(now, how, code, stage, report, exit_.left if exit_ is not None else ())

    def _let_go(self) -> None:
        """Whatever happened: nothing stays but what was to stay."""
        if self._ending.let_go() and self.run is not None and self.run.how == "running":
            self._save(how=End.STOPPED.value, stage=self.tracker.stage.value, seconds=round(self._now(), 2))
        self._source.close()
        if self._gpus is not None:
            self._gpus.close()

    # -- small things ------------------------------------------------------------------------------------
    def _now(self) -> float:
        return time.monotonic() - self._began

    def _save(self, **changes: object) -> None:
        if self._kept is not None:
            self._kept.save(**changes)

    def _clean(self, line: Line) -> str:
        return shown(line.text, self._kept, masked_already=self._source.own)


def watch_log(
    paths: Sequence[str], given: Given | None = None, *, prove: bool = True, patience: float = 1.0
) -> LaunchSession:
    """Follow log files that somebody else's launch writes. Raises UserError when one cannot be read."""
    return LaunchSession(paths=paths, given=given, prove=prove, patience=patience)


def watch_command(
    argv: Sequence[str], given: Given | None = None, *, prove: bool = True, patience: float = 1.0
) -> LaunchSession:
    """Follow the output of a program that shows a server's log (``docker logs -f NAME``)."""
    return LaunchSession(plan_to_follow(tuple(argv), given, prove=prove), patience=patience)
