"""``mtpdoctor watch LOG...`` and ``mtpdoctor watch -- docker logs -f NAME``: a launch that somebody else started."""

from __future__ import annotations

import argparse
import os
import shutil
from collections.abc import Sequence

from mtpdoctor.cli.given import add_given_arguments, given_from
from mtpdoctor.cli.watching import Screen, drive, exit_code_of, print_report
from mtpdoctor.errors import UserError


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
    parser.add_argument("--quiet", "-q", action="store_true", help="do not show the log")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="one JSON document on standard output, at the end")
    form.add_argument(
        "--events", action="store_true", help="every event as a line of JSON on standard output"
    )
    add_given_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Exit code: 0 healthy or no longer watched, 1 died of a known cause, 2 usage, 3 died of an unknown cause."""
    from mtpdoctor.watch.session import watch_command, watch_log

    given = given_from(args)
    make = watch_command if is_command(args.words) else watch_log
    session = make(args.words, given, prove=not args.no_prove)
    screen = Screen(output=not (args.quiet or args.json), events=args.events)
    watched = drive(session, screen, until_ready=args.until_ready)
    code = exit_code_of(watched, until_ready=args.until_ready)
    if not args.events:
        print_report(watched)
    if args.json:
        import json

        from mtpdoctor.report.watch_json import run_to_json

        print(json.dumps(run_to_json(watched.ended, watched.generated, (), session.log, code), indent=2))
    return code


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
