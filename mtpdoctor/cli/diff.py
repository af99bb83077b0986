"""``mtpdoctor diff GOOD.log BAD.log``: what differs between a launch that worked and one that did not."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from mtpdoctor.cli.given import given_from
from mtpdoctor.errors import EXIT_OK, UserError

if TYPE_CHECKING:
    from mtpdoctor.compare.launch import Launch
    from mtpdoctor.kb.load import Knowledge

EXIT_DIFFERENT = 1
_GIVEN = {
    "command": ("TEXT", "the launch command of the {side} launch, where its log does not show it"),
    "command-file": ("FILE", "the file that the {side} launch's command stands in"),
    "host": ("FILE", "a saved `mtpdoctor probe --json` of the {side} launch's host"),
    "gpu": ("SPEC", "pretend GPUs of the {side} launch: COUNTxsmNNN[@GIB]"),
    "sglang": ("RELEASE", "the SGLang release of the {side} launch"),
    "model": ("DIR", "folder or config.json of the {side} launch's model"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("good", metavar="GOOD", help="log of the launch that worked; - is standard input")
    parser.add_argument("bad", metavar="BAD", help="log of the launch that did not")
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")
    parser.add_argument("--verbose", "-v", action="store_true", help="differences that hardly matter, too")
    for side in ("good", "bad"):
        for name, (metavar, text) in _GIVEN.items():
            parser.add_argument(f"--{side}-{name}", metavar=metavar, help=text.format(side=side))


def run(args: argparse.Namespace) -> int:
    """Exit code: 0 no difference that matters, 1 there are such, 2 usage."""
    from mtpdoctor.compare.compare import compare
    from mtpdoctor.kb.load import load_knowledge

    if args.good == args.bad == "-":
        raise UserError("only one of the logs can be standard input", hint="name the other's file")
    knowledge = load_knowledge()
    found = compare(_launch(args, "good", knowledge), _launch(args, "bad", knowledge), knowledge)
    if args.json:
        import json

        from mtpdoctor.report.diff_json import diff_to_json

        print(json.dumps(diff_to_json(found), ensure_ascii=True, indent=2))
    else:
        from mtpdoctor.report.diff_text import render_diff
        from mtpdoctor.report.style import terminal

        width, color = terminal(sys.stdout)
        if hasattr(sys.stdout, "reconfigure"):  # a log may hold what the terminal's encoding does not
            sys.stdout.reconfigure(errors="replace")
        print(render_diff(found, width=width, color=color, verbose=args.verbose), end="")
    return EXIT_DIFFERENT if found.matters else EXIT_OK


def _launch(args: argparse.Namespace, side: str, knowledge: Knowledge) -> Launch:
    from mtpdoctor.compare.launch import read_launch_log
    from mtpdoctor.log.reading import read_logs

    names = {name.replace("-", "_") for name in _GIVEN}
    given = given_from(argparse.Namespace(**{n: getattr(args, f"{side}_{n}") for n in names}))
    reading = read_logs([getattr(args, side)], knowledge.literals, stdin=sys.stdin.buffer)
    launch = read_launch_log(reading, knowledge, given)
    if not reading.is_sglang and not launch.report.diagnoses:
        raise UserError(f"{getattr(args, side)}: no sign of SGLang in it", hint="give the server's own log")
    return launch
