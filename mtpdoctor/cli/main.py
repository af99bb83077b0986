"""The command line: picks the command, loads only what it needs, turns errors into one clear line."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence

from mtpdoctor import __version__
from mtpdoctor.errors import EXIT_OK, EXIT_USAGE, UserError
from mtpdoctor.report.style import terminal

# command -> (module, one line of help); a module has add_arguments(parser) and run(args) -> exit code
COMMANDS = {
    "diagnose": ("mtpdoctor.cli.diagnose", "root cause, evidence and fix from the log(s) of one launch"),
    "check": ("mtpdoctor.cli.check", "before launching: would this command start here?"),
    "fix": ("mtpdoctor.cli.fix", "preflight and repair a launch command, or the file it stands in"),
    "run": ("mtpdoctor.cli.run", "launch it and watch it until it generates; diagnose it if it dies"),
    "watch": ("mtpdoctor.cli.watch", "the same for a launch somebody else started: its log, docker logs -f"),
    "runs": ("mtpdoctor.cli.runs", "what was launched from here, how it ended, where its log is"),
    "probe": ("mtpdoctor.cli.probe", "this host: GPUs and who holds them, memory, disks, ports, SGLang"),
    "memory": ("mtpdoctor.cli.memory", "what a launch needs of each GPU: will it fit, and what to move"),
    "triage": ("mtpdoctor.cli.triage", "many launches at once: which are one problem, what each should type"),
    "bundle": (
        "mtpdoctor.cli.bundle",
        "one archive for support: logs, host, diagnosis; private names taken out",
    ),
    "diff": ("mtpdoctor.cli.diff", "what differs between a launch that worked and one that did not"),
    "explain": ("mtpdoctor.cli.explain", "the long form of one rule"),
    "kb": ("mtpdoctor.cli.kb", "the knowledge: draft, try, lint and list its rules"),
}

USAGE = """\
usage: mtpdoctor [LOG... | -- COMMAND]   the interactive doctor
       mtpdoctor COMMAND ...

The doctor for SGLang servers that do not start.

{commands}

  mtpdoctor COMMAND --help says more; mtpdoctor --version.
"""


def usage() -> str:
    width = max(len(name) for name in COMMANDS)
    return USAGE.format(commands="\n".join(f"  {n:<{width}}  {text}" for n, (_, text) in COMMANDS.items()))


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point. Returns the exit code (docs/command-line.md)."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # closed by who started us (2>&-)
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115
    try:
        return _main(arguments)
    except UserError as error:
        print(_one_line(error), file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("mtpdoctor: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of our output went away (| head)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_OK


def _main(arguments: list[str]) -> int:
    if _interactive(arguments):
        from mtpdoctor.cli.tui import run_interactive

        return run_interactive(arguments)
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(usage(), end="")
        return EXIT_OK if arguments else EXIT_USAGE
    if arguments[0] in ("-V", "--version"):
        print(f"mtpdoctor {__version__}")
        return EXIT_OK
    name = arguments[0]
    if name not in COMMANDS:
        if not name.startswith("-") and (os.path.exists(name) or name.endswith(".log")):
            raise UserError(f"{name} is no command", hint=f"to diagnose a log: mtpdoctor diagnose {name}")
        raise UserError(f"unknown command {name!r}", hint="commands: " + ", ".join(COMMANDS))
    module = importlib.import_module(COMMANDS[name][0])
    parser = argparse.ArgumentParser(
        prog=f"mtpdoctor {name}", description=COMMANDS[name][1], formatter_class=_Help
    )
    module.add_arguments(parser)
    try:
        args = parser.parse_args(arguments[1:])
    except SystemExit as exit_:
        return int(exit_.code or 0)
    return int(module.run(args))


def _interactive(arguments: list[str]) -> bool:
    """Nothing, a log, or a launch command, and a person at a terminal: not one of the commands."""
    if arguments and (arguments[0] in COMMANDS or arguments[0] in _NO_SCREEN):
        return False
    if "--serve" in arguments:
        return True
    first = arguments[0] if arguments else "-"
    if not first.startswith("-") and not first.endswith(".log") and not os.path.exists(first):
        return False  # a misspelled command
    from mtpdoctor.cli.tui import is_terminal

    return is_terminal()


_NO_SCREEN = frozenset({"-h", "--help", "help", "-V", "--version"})


class _Help(argparse.HelpFormatter):
    """As wide as the reports. argparse's own measure, ``shutil``, imports every archive format there is."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=terminal(sys.stdout)[0] - 2)


def _one_line(error: UserError) -> str:
    from mtpdoctor.text import safe

    text = f"mtpdoctor: {error}" + (f" ({error.hint})" if error.hint else "")
    return safe(" ".join(text.split()))
