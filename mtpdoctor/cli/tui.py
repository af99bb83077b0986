"""``mtpdoctor``, ``mtpdoctor LOG...``, ``mtpdoctor -- COMMAND``: the interactive doctor.

Textual is imported here and nowhere else on the command line, and only once it is certain to be used.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import replace

from mtpdoctor.cli.given import add_given_arguments, given_from
from mtpdoctor.errors import EXIT_OK, UserError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = (
        "mtpdoctor [options] [LOG...]\n       mtpdoctor [options] -- COMMAND\n"
        "       mtpdoctor [options] --command-file FILE\n       mtpdoctor --serve [PORT] [LOG...]"
    )
    parser.add_argument("logs", nargs="*", metavar="LOG", help="log(s) of one launch: its ranks or nodes")
    parser.add_argument(
        "--theme",
        choices=("dark", "light", "high-contrast"),
        default=os.environ.get("MTPDOCTOR_THEME") or "dark",
        help="colours (default: $MTPDOCTOR_THEME, else dark); NO_COLOR takes them away",
    )
    parser.add_argument(
        "--serve",
        nargs="?",
        type=int,
        const=8000,
        metavar="PORT",
        help="in a browser on this machine instead (default port 8000); needs mtpdoctor[serve]",
    )
    add_given_arguments(parser)


def run_interactive(arguments: Sequence[str]) -> int:
    """Exit code. Raises UserError for bad input."""
    words: list[str] = []
    arguments = list(arguments)
    if "--" in arguments:
        at = arguments.index("--")
        arguments, words = arguments[:at], arguments[at + 1 :]
        if not words:
            raise UserError(
                "no launch command after --", hint="mtpdoctor -- python -m sglang.launch_server ..."
            )
    parser = argparse.ArgumentParser(
        prog="mtpdoctor", description="The interactive doctor.", formatter_class=argparse.HelpFormatter
    )
    add_arguments(parser)
    try:
        args = parser.parse_args(arguments)
    except SystemExit as exit_:
        return int(exit_.code or 0)
    if args.serve is not None:
        from mtpdoctor.cli.serve import serve

        return serve(args.serve, _without_serve(arguments), words)
    return _run(args, words)


def _run(args: argparse.Namespace, words: list[str]) -> int:
    if words:
        if args.command is not None:
            raise UserError("more than one launch command", hint="give --command or -- COMMAND")
        from mtpdoctor.cli.check import as_typed

        args.command = as_typed(words)
    given = given_from(args)
    if words:
        given = replace(given, command_where="command")
    for log in args.logs:
        if not os.path.exists(log):
            raise UserError(f"{log}: no such file", hint="mtpdoctor without a LOG looks for logs itself")
        if os.path.isdir(log):
            raise UserError(f"{log} is a folder", hint="name the log file itself")
    from mtpdoctor.tui.app import DoctorApp
    from mtpdoctor.tui.session import Session

    app = DoctorApp(Session(given=given, logs=tuple(args.logs)), theme=args.theme)
    app.run()
    return EXIT_OK if app.return_code in (None, 0) else 1


def _without_serve(arguments: Sequence[str]) -> list[str]:
    """The arguments for the application that the server starts for each browser."""
    out: list[str] = []
    skip = False
    for i, word in enumerate(arguments):
        if skip:
            skip = False
            continue
        if word == "--serve":
            skip = i + 1 < len(arguments) and arguments[i + 1].isdigit()
            continue
        if not word.startswith("--serve="):
            out.append(word)
    return out


def is_terminal() -> bool:
    """Whether somebody sits at both ends, or a browser does (textual-serve names its driver)."""
    if os.environ.get("TEXTUAL_DRIVER"):
        return True
    try:
        ends = (sys.stdin, sys.stdout, sys.stderr)  # Textual draws on standard error
        return all(end.isatty() for end in ends) and os.environ.get("TERM") != "dumb"
    except ValueError:  # closed
        return False
