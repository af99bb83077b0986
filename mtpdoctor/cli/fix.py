"""``mtpdoctor fix -- COMMAND``: preflight and repair without a log."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from mtpdoctor.cli import check as check_command
from mtpdoctor.cli.asking import add_asking_argument
from mtpdoctor.cli.given import add_given_arguments
from mtpdoctor.diagnose.check import CheckReport
from mtpdoctor.errors import EXIT_FAILURE_DIAGNOSED, EXIT_FAILURE_UNKNOWN, EXIT_OK, UserError
from mtpdoctor.launch.document import LaunchDocument
from mtpdoctor.launch.types import Form


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = (
        "mtpdoctor fix [options] -- COMMAND\n       mtpdoctor fix [options] --command-file FILE [--write]"
    )
    parser.add_argument("words", nargs="*", metavar="COMMAND", help="the launch command, after --")
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")
    parser.add_argument(
        "--write", action="store_true", help="change --command-file, after a yes, with a backup"
    )
    parser.add_argument("--yes", action="store_true", help="say yes to --write")
    add_given_arguments(parser)
    add_asking_argument(parser)


def run(args: argparse.Namespace) -> int:
    """0: nothing stands in its way, or everything that did has a safe fix; 1: something is left; 2: usage;
    3: not decided."""
    if args.write and args.command_file is None:
        raise UserError("--write needs --command-file", hint="name the file that the fix goes into")
    given, report = check_command.checked(args)
    assert given.document is not None
    fixed = report.fixed
    changed = fixed is not None and fixed.text != given.document.text
    left = _left(report)
    if args.json:
        import json

        print(json.dumps(_to_json(report, given.document, left), ensure_ascii=True, indent=2))
    else:
        _print(report, given.document, left)
    if args.write and fixed is not None and changed:
        from mtpdoctor.cli.writing import write_fixed

        diff = given.document.diff(fixed)
        backup = write_fixed(args.command_file, given.document.text, fixed.text, diff=diff, yes=args.yes)
        print(f"wrote {args.command_file}; the old one is {backup}", file=sys.stderr)
    if left:
        return EXIT_FAILURE_DIAGNOSED
    return EXIT_FAILURE_UNKNOWN if report.verdict == "unknown" and not changed else EXIT_OK


def _left(report: CheckReport) -> tuple[str, ...]:
    """Fatal problems that no safe fix takes away."""
    fatal = [p for p in report.problems if p.severity == "fatal" and p.certain]
    return () if report.fixed is not None else tuple(p.title for p in fatal)


def _to_json(report: CheckReport, before: LaunchDocument, left: tuple[str, ...]) -> dict[str, Any]:
    from mtpdoctor.redact import mask_secrets
    from mtpdoctor.report.check_json import check_to_json
    from mtpdoctor.text import safe

    fixed = report.fixed
    check = check_to_json(report)
    return {
        "schema": 1,
        "command": check["fixed_command"]
        or (check_command_line(report) if report.verdict == "accept" else None),
        "diff": mask_secrets(safe(_diff(before, fixed))) if fixed is not None else None,
        "left": list(left),
        "check": check,
    }


def check_command_line(report: CheckReport) -> str:
    """The command as it was given: nothing in it needs a change."""
    from mtpdoctor.redact import mask_secrets
    from mtpdoctor.text import safe

    return mask_secrets(safe(report.command))


def _diff(before: LaunchDocument, fixed: LaunchDocument) -> str:
    return before.diff(fixed, before.name.lstrip("/"))


def _print(report: CheckReport, before: LaunchDocument, left: tuple[str, ...]) -> None:
    from mtpdoctor.redact import mask_secrets
    from mtpdoctor.report.command import wrapped
    from mtpdoctor.report.style import Style, terminal
    from mtpdoctor.text import safe

    width, color = terminal(sys.stdout)
    style = Style(color)
    for problem in report.problems:
        if problem.severity == "fatal":
            mark = "" if problem.certain else " (if " + ", ".join(problem.unknown) + ")"
            print(style("bold", safe(f"{problem.rule or 'SGLang'}: {problem.title}{mark}")))
            for fix in problem.fixes[:1]:
                print(f"  {fix.safety}: {safe(mask_secrets(fix.title))}")
    fixed = report.fixed
    if fixed is None:
        if left:
            print("No safe fix takes away: " + safe("; ".join(left)))
        elif report.verdict == "accept":
            print("Nothing to fix.")
        else:
            print("Not decided; see mtpdoctor check.")
        return
    if fixed.text == before.text:
        print("Nothing that is known needs a fix.")
        return
    print()
    if before.form is Form.SHELL:
        print("\n".join(wrapped(safe(mask_secrets(fixed.line)), width)))
    else:
        print(safe(mask_secrets(_diff(before, fixed))), end="")
