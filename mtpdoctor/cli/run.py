"""``mtpdoctor run -- COMMAND``: check it, launch it, watch it until it generates, diagnose it if it dies."""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass, replace

from mtpdoctor.cli import check as check_command
from mtpdoctor.cli.asking import add_asking_argument
from mtpdoctor.cli.given import add_given_arguments
from mtpdoctor.cli.watching import Screen, Watched, add_patience_argument, drive, exit_code_of, print_report
from mtpdoctor.diagnose.check import CheckReport
from mtpdoctor.diagnose.given import Given
from mtpdoctor.errors import EXIT_FAILURE_DIAGNOSED, UserError
from mtpdoctor.launch.document import LaunchDocument
from mtpdoctor.launch.render import command_line
from mtpdoctor.launch.types import Edit
from mtpdoctor.redact import mask_secrets
from mtpdoctor.report.style import terminal
from mtpdoctor.text import safe
from mtpdoctor.watch.types import AttemptRecord, End

_READY_TIMEOUT = 3600.0  # seconds; only with --until-ready: somebody waits for the answer


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "mtpdoctor run [options] -- COMMAND\n       mtpdoctor run [options] --command-file FILE"
    parser.add_argument(
        "words", nargs="*", metavar="COMMAND", help="the launch command, after --; its flags alone will do"
    )
    parser.add_argument(
        "--yes-safe", action="store_true", help="apply the safe fixes of what would stop it, without asking"
    )
    parser.add_argument("--no-check", action="store_true", help="launch it without the preflight")
    parser.add_argument(
        "--retry",
        type=_count,
        default=0,
        metavar="N",
        help="if it dies, apply the safe fix and launch again, up to N times, while it gets further each time",
    )
    parser.add_argument(
        "--bench",
        action="store_true",
        help="measure it with and without speculation on the same prompts, one launch after the other, and end",
    )
    parser.add_argument(
        "--until-ready", action="store_true", help="end when it has generated tokens: exit code 0"
    )
    parser.add_argument("--detach", action="store_true", help="leave it running when the doctor ends")
    parser.add_argument(
        "--ready-timeout",
        type=_seconds,
        metavar="SECONDS",
        help=f"it counts as failed when not ready by then (default: none; {_READY_TIMEOUT:.0f} with --until-ready)",
    )
    add_patience_argument(parser)
    parser.add_argument(
        "--no-prove", action="store_true", help="do not ask it for tokens when it says it is ready"
    )
    parser.add_argument(
        "--no-pty", action="store_true", help="its output goes through a pipe, not a terminal"
    )
    parser.add_argument(
        "--quiet", "-q", action="store_true", help="do not show the server's output (the log has it)"
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="one JSON document on standard output, at the end")
    form.add_argument(
        "--events", action="store_true", help="every event as a line of JSON on standard output"
    )
    add_given_arguments(parser)
    add_asking_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Exit code: 0 healthy end, 1 refused or died of a known cause, 2 usage, 3 died of an unknown cause; the
    server's own where the person ended it after it had generated."""
    if args.bench and (args.detach or args.retry or args.events):
        raise UserError(
            "--bench launches, measures and ends", hint="leave out --detach, --retry and --events"
        )
    from mtpdoctor.kb.load import load_knowledge

    load_knowledge()  # broken rules are said before anything is launched, not when it has died
    given = _prepared(args)
    if given is None:
        return EXIT_FAILURE_DIAGNOSED
    screen = Screen(output=not (args.quiet or args.json), events=args.events)
    if args.bench:
        from mtpdoctor.cli.benching import bench

        timeout = args.ready_timeout or _READY_TIMEOUT
        return bench(given, screen, ready_timeout=timeout, patience=args.patience, as_json=args.json)
    return _Launching(args, screen).run(given)


# -- before ----------------------------------------------------------------------------------------------


def _prepared(args: argparse.Namespace) -> Given | None:
    """What is to be launched; None: it would not start, and that was the last word."""
    from mtpdoctor.watch.plan import plan_of

    if args.no_check:
        given = check_command.with_local_model(check_command._given(args))
        plan_of(given)
        return given
    given, report = check_command.checked(args)
    plan_of(given)  # what cannot be launched at all is said before anything else
    if not any(p.decisive for p in report.problems):
        _warn(report)
        return given
    chosen = _chosen(args, given, report)
    if chosen is None:
        _refused(args, report)
    return chosen


def _refused(args: argparse.Namespace, report: CheckReport) -> None:
    """The document, or the event, of a launch that was not made."""
    if not (args.json or args.events):
        return
    import json

    from mtpdoctor.report.check_json import check_to_json

    how = {"how": End.REFUSED.value, "exit_code": EXIT_FAILURE_DIAGNOSED}
    check = {"check": check_to_json(report)}
    if args.events:
        print(json.dumps({"event": "refused", "at": 0.0, **how, **check}, ensure_ascii=True))
    else:
        print(json.dumps({"schema": 1, **how, **check}, ensure_ascii=True, indent=2))


def _chosen(args: argparse.Namespace, given: Given, report: CheckReport) -> Given | None:
    """The person, or ``--yes-safe``, decides about a launch that would not start."""
    from mtpdoctor.report.check_text import render_check

    width, color = terminal(sys.stderr)
    print(render_check(report, width=width, color=color), end="", file=sys.stderr)
    fixed = report.fixed
    if args.yes_safe and fixed is not None:
        print("mtpdoctor: launching it with the safe fixes (--yes-safe)", file=sys.stderr)
        return replace(given, document=fixed)
    if args.yes_safe:
        print(
            "mtpdoctor: not launched: no safe fix takes all of this away (--no-check launches it)",
            file=sys.stderr,
        )
        return None
    if not sys.stdin.isatty() or not sys.stderr.isatty():
        way = "--yes-safe applies the safe fixes, " if fixed is not None else ""
        print(f"mtpdoctor: not launched ({way}--no-check launches it as it is)", file=sys.stderr)
        return None
    choices = (
        "[f]ix and launch, launch [a]s it is, [q]uit" if fixed is not None else "launch [a]s it is, [q]uit"
    )
    while True:
        print(f"{choices}? ", end="", file=sys.stderr, flush=True)
        line = sys.stdin.readline()
        answer = line.strip().lower()[:1]
        if answer == "f" and fixed is not None:
            return replace(given, document=fixed)
        if answer == "a":
            return given
        if answer == "q" or not line:
            return None


def _warn(report: CheckReport) -> None:
    """What is foreseen and does not stop it, a line each."""
    for problem in report.problems:
        if problem.certain and problem.severity == "degrades":
            text = safe(mask_secrets(f"{problem.rule or 'SGLang'}: {problem.title}"))
            print(f"mtpdoctor: warning: {text}", file=sys.stderr)


# -- the launches ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Next:
    document: LaunchDocument
    edits: tuple[Edit, ...]


class _Launching:
    """One launch, and its retries."""

    def __init__(self, args: argparse.Namespace, screen: Screen) -> None:
        self._args, self._screen = args, screen
        self._history: list[AttemptRecord] = []

    def run(self, given: Given) -> int:
        edits: tuple[Edit, ...] = ()
        after: str | None = None
        while True:
            watched, log, after = self._once(given, edits, after)
            self._record(watched, log, edits)
            step = self._next(watched, given)
            if step is None:
                break
            edits = step.edits
            given = replace(given, document=step.document)
        assert given.document is not None
        return self._finish(watched, log, given.document)

    def _once(
        self, given: Given, edits: tuple[Edit, ...], after: str | None
    ) -> tuple[Watched, str, str | None]:
        from mtpdoctor.watch.plan import plan_of
        from mtpdoctor.watch.session import LaunchSession

        args = self._args
        timeout = args.ready_timeout
        if timeout is None and args.until_ready:
            timeout = _READY_TIMEOUT
        plan = plan_of(
            given,
            detach=args.detach,
            pty=not args.no_pty and sys.stdout.isatty(),
            prove=not args.no_prove,
            ready_timeout=timeout,
        )
        session = LaunchSession(
            plan,
            patience=args.patience,
            attempt=len(self._history) + 1,
            after=after,
            edits=tuple(map(str, edits)),
        )
        watched = drive(
            session,
            self._screen,
            until_ready=args.until_ready,
            detach=args.detach,
            prove=not args.no_prove,
        )
        return watched, session.log, session.run.id if session.run else None

    def _record(self, watched: Watched, log: str, edits: tuple[Edit, ...]) -> None:
        ended = watched.ended
        cause = ended.report.diagnoses[0] if ended.report and ended.report.diagnoses else None
        self._history.append(
            AttemptRecord(
                number=len(self._history) + 1,
                edits=tuple(safe(mask_secrets(str(edit))) for edit in edits),
                stage=ended.stage,
                how=ended.how,
                rule=cause.rule if cause else None,
                cause=safe(mask_secrets(cause.title)) if cause else "",
                seconds=round(ended.at, 2),
                log=log,
            )
        )

    def _next(self, watched: Watched, given: Given) -> _Next | None:
        if watched.ended.how is not End.DIED or not self._args.retry:
            return None
        from mtpdoctor.watch.retry import Stop, next_attempt

        assert given.document is not None
        found = next_attempt(watched.ended.report, self._history, given.document, limit=self._args.retry)
        if isinstance(found, Stop):
            hint = f" ({found.hint})" if found.hint else ""
            self._screen.say(f"mtpdoctor: not launched again: {safe(mask_secrets(found.reason + hint))}")
            return None
        cause = self._history[-1]
        self._screen.say(f"mtpdoctor: {cause.rule or 'cause'}: {cause.cause}")
        for edit in found.edits:
            self._screen.say(f"mtpdoctor:   {safe(mask_secrets(str(edit)))}")
        number = len(self._history)
        self._screen.say(
            f"mtpdoctor: launching again ({number}. retry of {self._args.retry}), fixed: {safe(found.title)}"
        )
        return _Next(found.document, found.edits)

    def _finish(self, watched: Watched, log: str, document: LaunchDocument) -> int:
        code = exit_code_of(watched, until_ready=self._args.until_ready)
        if self._args.events:
            return code
        if len(self._history) > 1 or self._args.retry:
            from mtpdoctor.report.watch_text import history_lines

            for line in history_lines(self._history, terminal(sys.stderr)[0]):
                self._screen.say(line)
        print_report(watched)
        if self._args.json:
            import json

            from mtpdoctor.report.watch_json import run_to_json

            whole = run_to_json(watched.ended, watched.generated, self._history, log, code)
            print(json.dumps(whole, ensure_ascii=True, indent=2))
        elif len(self._history) > 1 and watched.generated is not None and watched.generated.ok:
            self._show_command(document)
        return code

    def _show_command(self, document: LaunchDocument) -> None:
        """What works, ready to be pasted."""
        from mtpdoctor.report.command import wrapped

        self._screen.say("mtpdoctor: this command works:\n")
        shown = safe(mask_secrets(command_line(document.command, written=document.written)))
        self._screen.say("\n".join(wrapped(shown, terminal(sys.stderr)[0])))


def _count(text: str) -> int:
    if not text.isdecimal() or not 0 <= int(text) <= 20:
        raise argparse.ArgumentTypeError("a number from 0 to 20")
    return int(text)


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1e7:
        raise argparse.ArgumentTypeError("a number of seconds")
    return value
