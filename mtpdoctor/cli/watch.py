"""``mtpdoctor watch LOG...`` and ``mtpdoctor watch -- docker logs -f NAME``: a launch that somebody else started."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mtpdoctor.cli.given import add_given_arguments, given_from
from mtpdoctor.cli.watching import Screen, Watched, add_patience_argument, drive, exit_code_of, print_report
from mtpdoctor.errors import EXIT_USAGE, UserError
from mtpdoctor.log.types import Stage
from mtpdoctor.text import safe
from mtpdoctor.watch.types import End

if TYPE_CHECKING:
    from mtpdoctor.watch.session import LaunchSession


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "mtpdoctor watch [options] LOG...\n       mtpdoctor watch [options] -- docker logs -f NAME"
    parser.add_argument(
        "words",
        nargs="+",
        metavar="LOG",
        help="log file(s) of one launch, followed through rotation; or, after --, a program that shows its log "
        "(docker logs -f, kubectl logs -f, journalctl -f); it is ended with the watch, the server never",
    )
    parser.add_argument(
        "--until-ready", action="store_true", help="end when it has generated tokens: exit code 0"
    )
    parser.add_argument(
        "--no-prove", action="store_true", help="do not ask it for tokens when it says it is ready"
    )
    parser.add_argument("--wait", action="store_true", help="wait for a log that is not there yet")
    add_patience_argument(parser)
    parser.add_argument("--quiet", "-q", action="store_true", help="do not show the log")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="one JSON document on standard output, at the end")
    form.add_argument(
        "--events", action="store_true", help="every event as a line of JSON on standard output"
    )
    add_given_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Exit code: 0 healthy or no longer watched, 1 died of a known cause, 2 usage, 3 died of an unknown cause."""
    from mtpdoctor.kb.load import load_knowledge
    from mtpdoctor.report.watch_json import run_to_json
    from mtpdoctor.watch.session import watch_command, watch_log

    given = given_from(args)
    load_knowledge()  # broken rules are said now, not when it dies
    program = is_command(args.words)
    if program:
        session = watch_command(args.words, given, prove=not args.no_prove, patience=args.patience)
    else:
        for path in args.words:
            _refuse_unfit(path)
            _await(path, args.wait)
        session = watch_log(args.words, given, prove=not args.no_prove, patience=args.patience)
    screen = Screen(output=not (args.quiet or args.json), events=args.events)
    watched = drive(session, screen, until_ready=args.until_ready, prove=not args.no_prove)
    code = exit_code_of(watched, until_ready=args.until_ready)
    failed = _showed_nothing(watched, session) if program else None
    if not args.events and failed is None:
        print_report(watched)
    if args.json:
        import json

        code = EXIT_USAGE if failed is not None else code
        print(json.dumps(run_to_json(watched.ended, watched.generated, (), session.log, code), indent=2))
    if failed is not None:
        raise failed
    return code


def _refuse_unfit(path: str) -> None:
    """Raises UserError for what is no file that grows."""
    if path == "-" or (os.path.exists(path) and not os.path.isfile(path)):
        what = (
            "a folder" if os.path.isdir(path) else "a pipe or device, not a file" if path != "-" else "a pipe"
        )
        hint = (
            "name the log files in it"
            if os.path.isdir(path)
            else "mtpdoctor watch -- PROGRAM, e.g. -- cat PIPE"
        )
        raise UserError(f"cannot follow {path}: it is {what}", hint=hint)
    try:
        with open(path, "rb") as file:
            start = file.read(6)
    except OSError:
        return
    if start.startswith((b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\xfd7zXZ", b"BZh")):
        raise UserError(f"{path} is compressed, so nothing writes to it", hint=f"mtpdoctor diagnose {path}")


def _await(path: str, wait: bool) -> None:
    """Until the file is there, where that is wanted."""
    if wait and not os.path.exists(path):
        print(f"mtpdoctor: waiting for {safe(path)}", file=sys.stderr)
        while not os.path.exists(path):
            time.sleep(0.2)
        _refuse_unfit(path)


def _showed_nothing(watched: Watched, session: LaunchSession) -> UserError | None:
    """Why the program itself failed, where it ended in error and nothing of SGLang was seen."""
    ended = watched.ended
    known = ended.report is not None and any(found.rule for found in ended.report.diagnoses)
    if ended.how is not End.DIED or not ended.code or known or session.tracker.stage is not Stage.ENV:
        return None
    words = session.plan.argv if session.plan is not None else ("the program",)
    try:
        with open(session.log, encoding="utf-8", errors="replace") as file:
            last = [line.strip() for line in file if line.strip()][-1:]
    except OSError:
        last = []
    said = f": {safe(last[0])[:300]}" if last else ", without a word"
    return UserError(
        f"{words[0]} failed with exit code {ended.code}, and showed no log of SGLang{said}",
        hint="nothing was watched",
    )


def is_command(words: Sequence[str]) -> bool:
    """A program and its arguments, not log files. Raises UserError for what is neither."""
    first = words[0]
    program = shutil.which(first) is not None
    if all(os.path.exists(word) for word in words) and not (program and len(words) > 1):
        return False
    if program:
        return True
    if len(words) > 1 and not any(os.path.exists(word) for word in words):
        raise UserError(
            f"{first} is neither a file nor a program here", hint="is it installed, and on the PATH?"
        )
    return False
