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
        "       mtpdoctor [options] --command-file FILE\n       mtpdoctor --serve [--port N] [LOG...]"
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
        action="store_true",
        help="in a browser on this machine instead of this terminal; needs mtpdoctor[serve]",
    )
    parser.add_argument(
        "--port",
        type=int,
        default=8000,
        metavar="N",
        help="the port of --serve (default 8000), on the loopback",
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
    if args.serve:
        from mtpdoctor.cli.serve import serve

        return serve(args.port, _without_serve(arguments), words)
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
        if not os.path.isfile(log):
            raise UserError(f"{log} is no file", hint=f"pipes are read by: mtpdoctor diagnose {log}")
    from mtpdoctor.tui.app import DoctorApp
    from mtpdoctor.tui.session import Session

    sys.setswitchinterval(0.0005)  # seconds: keys are answered while a worker thread reads or counts
    app = DoctorApp(Session(given=given, logs=tuple(args.logs)), theme=args.theme)
    app.run()
    return app.return_code or EXIT_OK


def _without_serve(arguments: Sequence[str]) -> list[str]:
    """The arguments for the application that the server starts for each browser."""
    out = [word for word in arguments if word != "--serve" and not word.startswith("--port=")]
    if "--port" in out:
        at = out.index("--port")
        del out[at : at + 2]
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
