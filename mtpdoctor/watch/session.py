"""A launch, or somebody else's log, watched from its start until it generates or has ended.

``events()`` blocks between events: a thread drives it, and prints or posts what it yields. ``end`` and ``detach``
may be called from any other thread. What takes long (the proof, a look at the processes) runs in threads of its own,
so that output is never late.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from queue import Empty, SimpleQueue

from mtpdoctor.diagnose.given import Given
from mtpdoctor.errors import UserError
from mtpdoctor.log.types import Line, Stage
from mtpdoctor.redact import mask_secrets, secret_values
from mtpdoctor.watch import postmortem, runs
from mtpdoctor.watch.gpus import GpuSampler
from mtpdoctor.watch.plan import LaunchPlan, plan_to_follow
from mtpdoctor.watch.source import Piece, Source
from mtpdoctor.watch.spawn import Child, Exit, spawn
from mtpdoctor.watch.stages import StageTracker
from mtpdoctor.watch.target import Target, target_of
from mtpdoctor.watch.types import (
    End,
    Ended,
    Generated,
    GpuUse,
    Launched,
    Output,
    Ready,
    Resumed,
    Stuck,
    WatchEvent,
)

INT_PATIENCE, TERM_PATIENCE = 15.0, 15.0  # seconds for a gentle end: SIGINT, then SIGTERM, then SIGKILL
_BUSY, _IDLE = 0.05, 0.25  # seconds between two looks at the log
_GPU_STARTING, _GPU_SERVING = 1.0, 5.0
_QUIET = 2.0  # seconds without output after trouble in somebody else's log until it is diagnosed
_QUIET_LEVELS = (
    "warning",
    "error",
    "critical",
)  # of --log-level: such a server does not say that it is ready
_ASK_EVERY = 3.0  # seconds between two questions whether such a server is up
_TELLING = ("server_args=", "running on", "Granian")


class LaunchSession:
    """One launch, or one log. ``log`` is the file that keeps the output (for a run: under the state folder).

    For ``paths`` (files that somebody else's launch writes) there is no plan. Raises UserError when the log
    cannot be kept or read.
    """

    def __init__(
        self,
        plan: LaunchPlan | None = None,
        *,
        paths: Sequence[str] = (),
        given: Given | None = None,
        prove: bool = True,
        watchdog: bool = True,
        gpus: bool = True,
        attempt: int = 1,
        after: str | None = None,
        edits: Sequence[str] = (),
    ) -> None:
        self.plan = plan
        self._given = given or (plan.given if plan else Given())
        self._prove = plan.prove if plan else prove
        self._gpus = GpuSampler() if gpus else None
        self._watchdog = None
        if watchdog and plan is not None and plan.server:
            from mtpdoctor.watch.stuck import Watchdog

            self._watchdog = Watchdog()
        self._hidden: tuple[str, ...] = ()
        self.run: runs.Run | None = None
        self.folder: Path | None = None
        if plan is not None:
            self._hidden = _secrets_of(plan)
            folder, run = runs.new_run(self._masked(" ".join(_shown(plan))), plan.model)
            self.folder = plan.folder or folder
            self.run = replace(run, attempt=attempt, after=after, edits=tuple(map(self._masked, edits)))
            self._source = Source([run.log], own=True)
        else:
            self._source = Source(paths, own=False)
        self.paths = self._source.paths
        self.log = self.paths[0]
        self.tracker = StageTracker(Stage.IMPORT if plan is not None and plan.server else None)
        self._child: Child | None = None
        self._exit: Exit | None = None
        self._results: SimpleQueue[Callable[[], Iterator[WatchEvent]]] = SimpleQueue()
        self._wake = threading.Event()
        self._lock = threading.RLock()  # a signal handler of the driving thread may come in between
        self._asked: float | None = None  # when the person asked for the end
        self._sent = ""  # the last signal of a gentle end
        self._detached = False
        self._late = False  # it was not ready in time
        self._ready = False
        self._looking = self._asking = False
        self._telling: list[str] = []  # lines that tell where it listens
        self._trouble = self._quiet_since = 0.0
        self._next_gpu = self._next_ask = 0.0
        self._last_gpu: GpuUse | None = None
        self._oom = postmortem.oom_kills()

    # -- for other threads -------------------------------------------------------------------------------
    def end(self, hard: bool = False) -> None:
        """End it: SIGINT, then SIGTERM, then SIGKILL when that does not help; ``hard`` SIGKILL at once.

        Somebody else's log is only watched no longer."""
        with self._lock:
            first = self._asked is None
            if first:
                self._asked = time.monotonic()
            child = self._child
            if child is not None and (hard or first):
                gentle = "int" if self.plan is not None and self.plan.server else "kill"
                self._sent = "kill" if hard else gentle
                child.end(self._sent)
        self._wake.set()

    def detach(self) -> None:
        """Watch no longer and leave it running; its output goes on into the log."""
        with self._lock:
            self._detached = True
            if self._child is not None:
                self._child.detach()
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
        if self.plan is not None and self.plan.server:
            started = self.tracker.start(self._now())
            if started is not None:
                yield started
        while True:
            some = yield from self._read()
            yield from self._arrived()
            yield from self._each_second()
            if self._detached:
                yield self._finish(End.DETACHED, None)
                return
            if self._exit is not None and not some:
                yield from self._rest()
                yield self._finish(End.STOPPED if self._asked is not None else End.DIED, self._exit)
                return
            if self._child is None and self._asked is not None:
                yield self._finish(End.STOPPED, None)
                return
            if self._child is None or (self.plan is not None and not self.plan.server):
                report = self._died_in_the_log()
                if report is not None:
                    yield report
                    return
            self._pause(some)

    def _launch(self) -> Launched:
        plan = self.plan
        if plan is None:
            return Launched(0.0, None, "", self.log, ())
        assert self.run is not None and self.folder is not None
        try:
            child = spawn(
                plan.argv,
                plan.env,
                log=self.log,
                cwd=plan.cwd,
                pty=plan.pty,
                detach=plan.detach,
                hidden=self._hidden,
                exit_file=runs.exit_file(self.folder),
                grace=3.0 if plan.server else 0.2,
            )
        except UserError:
            self._save(how=End.REFUSED.value, seconds=0.0)
            raise
        with self._lock:
            self._child = child
        started = runs.began(child.guard)
        self._save(pid=child.pid, guard=child.guard, guard_started=started, detached=plan.detach)
        if self._asked is not None:  # asked for while it was starting
            self._asked = None
            self.end()
        sets = tuple(self._masked(text) for text in plan.sets)
        return Launched(self._now(), child.pid, self.run.command, self.log, sets)

    def _read(self) -> Iterator[WatchEvent]:
        """What is new in the log. Returns whether there was anything."""
        piece = self._source.next()
        if not piece.lines and not piece.bars and not piece.skipped:
            return bool(piece.read)
        now = self._now()
        self._quiet_since = now
        shown = tuple(
            self._clean(line) for line in piece.lines if not piece.old and not _overwritten(line, piece)
        )
        if piece.skipped and not piece.old:
            shown = (*shown, f"... {piece.skipped} lines came too fast to be shown; they are in {self.log}")
        if piece.old_end:
            shown = (*(self._clean(line) for line in piece.old_end), *shown)
        if shown:
            yield Output(now, shown)
        for line in (*piece.lines, *piece.bars):
            self._note(line, now)
            for event in self.tracker.feed(line, now):
                yield event
        if self.tracker.ready_line is None:
            self._ready = False  # it begins anew
        elif not self._ready and not self._source.old:
            yield from self._is_ready()
        return True

    def _note(self, line: Line, now: float) -> None:
        body = line.body
        if any(text in body for text in _TELLING):
            self._telling = [*self._telling[-7:], body]
        if postmortem.is_trouble(body):
            self._trouble = now

    def _is_ready(self) -> Iterator[WatchEvent]:
        self._ready = True
        target = self.target
        yield Ready(self._now(), target.url)
        if self._prove:
            timeout = self.plan.prove_timeout if self.plan else 60.0
            began = self._began

            def ask() -> Callable[[], Iterator[WatchEvent]]:
                from mtpdoctor.watch.ready import prove

                generated = prove(target, timeout, started=began)
                return lambda: self._proven(generated)

            self._apart(ask, "proof")

    @property
    def target(self) -> Target:
        """Where the server listens, as far as command and log tell."""
        document = self._given.document
        environment = self.plan.env if self.plan is not None else None
        return target_of(document.command if document else None, environment, self._telling)

    def _proven(self, generated: Generated) -> Iterator[WatchEvent]:
        if generated.ok and self.run is not None:
            self._save(ready_after=round(self._now(), 2))
        yield generated

    def _each_second(self) -> Iterator[WatchEvent]:
        now = self._now()
        if self._gpus is not None and now >= self._next_gpu:
            self._next_gpu = now + (_GPU_SERVING if self._ready else _GPU_STARTING)
            use = self._gpus.sample(now, self._child.processes() if self._child else ())
            if use is None:
                self._gpus = None
            elif self._last_gpu is None or _differs(use, self._last_gpu):
                self._last_gpu = use
                yield use
        if self._child is None or self.plan is None:
            return
        if self._asked is not None:
            self._insist()
            return
        if self._watchdog is not None and not self._looking and self._watchdog.due(now):
            self._look()
        if not self._ready and self.plan.server:
            self._ask_quiet(now)
            limit = self.plan.ready_timeout
            if limit is not None and now > limit and not self._late:
                self._late = True
                self._child.end("kill")

    def _insist(self) -> None:
        """The gentle end did not help: SIGTERM, then SIGKILL."""
        assert self._child is not None and self._asked is not None
        waited = time.monotonic() - self._asked
        for how, limit in (("kill", INT_PATIENCE + TERM_PATIENCE), ("term", INT_PATIENCE)):
            if waited > limit and self._sent not in (how, "kill"):
                self._sent = how
                self._child.end(how)
                return

    def _look(self) -> None:
        self._looking = True
        assert self._child is not None
        pids = self._child.processes()
        watchdog = self._watchdog

        def look() -> Callable[[], Iterator[WatchEvent]]:
            from mtpdoctor.watch import processes

            seen, signs = processes.look(pids), processes.signs(pids)

            def judged() -> Iterator[WatchEvent]:
                self._looking = False
                assert watchdog is not None
                found = watchdog.judge(self._now(), seen, signs)
                if isinstance(found, Stuck):
                    yield found

            return judged

        self._apart(look, "look")

    def _ask_quiet(self, now: float) -> None:
        """A server that was told not to log does not say that it is ready: it is asked."""
        document = self._given.document
        level = document.command.value("log_level") if document else None
        if self._asking or now < self._next_ask or not level or level[-1].lower() not in _QUIET_LEVELS:
            return
        self._asking, self._next_ask = True, now + _ASK_EVERY
        target = self.target

        def ask() -> Callable[[], Iterator[WatchEvent]]:
            from mtpdoctor.watch.ready import reachable

            up = reachable(target)

            def told() -> Iterator[WatchEvent]:
                self._asking = False
                if up and not self._ready:
                    yield from self._is_ready()

            return told

        self._apart(ask, "question")

    def _apart(self, work: Callable[[], Callable[[], Iterator[WatchEvent]]], name: str) -> None:
        def body() -> None:
            self._results.put(work())
            self._wake.set()

        threading.Thread(target=body, name=f"mtpdoctor-{name}", daemon=True).start()

    def _arrived(self) -> Iterator[WatchEvent]:
        while True:
            try:
                result = self._results.get_nowait()
            except Empty:
                return
            yield from result()

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
                self._note(line, now)
                yield from self.tracker.feed(line, now)

    def _died_in_the_log(self) -> Ended | None:
        """Somebody else's server leaves no exit code: trouble and then silence is looked into."""
        now = self._now()
        if not self._trouble or self._source.old or now - self._quiet_since < _QUIET:
            return None
        self._trouble = 0.0
        report = postmortem.report_on(self.paths, self._given)
        if report.outcome != "failed":
            return None
        return self._finish(End.DIED, None)

    def _finish(self, how: End, exit_: Exit | None) -> Ended:
        report = None
        stage = self.tracker.stage
        code = exit_.code if exit_ is not None else None
        if how is End.DIED:
            notes = []
            if self._late and self.plan is not None:
                notes.append(f"it was not ready after {self.plan.ready_timeout:g} s, and was ended")
            report = postmortem.report_on(
                self.paths, self._given, (*notes, *postmortem.killed(code, self._oom))
            )
            if report.outcome == "failed":
                stage = Stage(report.stage)
        cause = report.diagnoses[0] if report is not None and report.diagnoses else None
        now = self._now()
        self._save(
            how=how.value,
            code=code,
            stage=stage.value,
            seconds=round(now, 2),
            rule=cause.rule if cause else None,
            cause=self._masked(cause.title) if cause else None,
            sglang=report.sglang_version if report else None,
        )
        return Ended(now, how, code, stage, report, exit_.left if exit_ is not None else ())

    def _let_go(self) -> None:
        """Whatever happened: nothing stays but what was to stay."""
        child, self._child = self._child, None
        if child is not None:
            if self._detached:
                child.close()
            else:
                child.kill()
            if self.run is not None and self.run.how == "running":
                self._save(
                    how=End.STOPPED.value, stage=self.tracker.stage.value, seconds=round(self._now(), 2)
                )
        self._source.close()
        if self._gpus is not None:
            self._gpus.close()

    # -- small things ------------------------------------------------------------------------------------
    def _now(self) -> float:
        return time.monotonic() - self._began

    def _save(self, **changes: object) -> None:
        if self.run is not None and self.folder is not None:
            self.run = replace(self.run, **changes)  # type: ignore[arg-type]
            runs.save(self.folder, self.run)

    def _masked(self, text: str) -> str:
        from mtpdoctor.redact import mask_values
        from mtpdoctor.text import one_line

        return mask_values(mask_secrets(one_line(text)), self._hidden)

    def _clean(self, line: Line) -> str:
        from mtpdoctor.text import safe

        return safe(line.text) if self._source.own else self._masked(line.text)


def watch_log(paths: Sequence[str], given: Given | None = None, *, prove: bool = True) -> LaunchSession:
    """Follow log files that somebody else's launch writes. Raises UserError when one cannot be read."""
    return LaunchSession(paths=paths, given=given, prove=prove)


def watch_command(argv: Sequence[str], given: Given | None = None, *, prove: bool = True) -> LaunchSession:
    """Follow the output of a program that shows a server's log (``docker logs -f NAME``)."""
    return LaunchSession(plan_to_follow(tuple(argv), given, prove=prove))


def _shown(plan: LaunchPlan) -> tuple[str, ...]:
    """The command as a person would type it, variables first."""
    import shlex

    document = plan.document
    env = document.command.env if document is not None else {}
    return (*(f"{name}={shlex.quote(value)}" for name, value in env.items()), *map(shlex.quote, plan.argv))


def _secrets_of(plan: LaunchPlan) -> tuple[str, ...]:
    """Secrets that command and environment name, which may stand anywhere in the output."""
    texts = [" ".join(_shown(plan)), *(f"{name}={value}" for name, value in plan.env.items())]
    return tuple(sorted(secret_values(texts)))


def _overwritten(line: Line, piece: Piece) -> bool:
    """A state of a progress bar that a later one took the place of."""
    return (
        line.number in piece.bar_numbers and "%|" in line.body and piece.bar_numbers[line.number] != line.part
    )


def _differs(new: GpuUse, old: GpuUse) -> bool:
    """By more than 16 MiB on any GPU, or some time ago."""
    pairs = zip((*new.used_gib, *new.own_gib), (*old.used_gib, *old.own_gib), strict=False)
    return len(new.used_gib) != len(old.used_gib) or any(abs(a - b) > 1 / 64 for a, b in pairs)
