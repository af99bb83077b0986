"""``mtpdoctor diagnose LOG...``: root cause, evidence, remedies and a fixed command."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from mtpdoctor.cli.asking import add_asking_argument, asker_from
from mtpdoctor.cli.given import add_given_arguments, given_from
from mtpdoctor.cli.output import FOR_PROGRAMS, add_output_arguments, deliver, output_format
from mtpdoctor.diagnose.given import Given
from mtpdoctor.diagnose.types import Fix, Report
from mtpdoctor.errors import (
    EXIT_FAILURE_DIAGNOSED,
    EXIT_FAILURE_UNKNOWN,
    EXIT_OK,
    EXIT_USAGE,
    UserError,
)
from mtpdoctor.records import replace

if TYPE_CHECKING:
    from mtpdoctor.kb.load import Knowledge


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "logs",
        nargs="+",
        metavar="LOG",
        help="log(s) of one launch (its ranks or nodes); - is standard input; .gz .zst .xz .bz2 as they are",
    )
    add_output_arguments(parser)
    parser.add_argument("--verbose", "-v", action="store_true", help="all evidence, consequences and fixes")
    parser.add_argument(
        "--write", action="store_true", help="apply a fix to --command-file, after a yes, with a backup"
    )
    parser.add_argument(
        "--fix", type=int, metavar="N", help="which fix --write applies (default: the first safe one)"
    )
    parser.add_argument("--yes", action="store_true", help="say yes to --write")
    add_given_arguments(parser)
    add_asking_argument(parser)


def run(args: argparse.Namespace) -> int:
    """The exit code of the contract: 0 healthy, 1 diagnosed, 2 unreadable, 3 failed for an unknown cause."""
    from mtpdoctor.diagnose.engine import diagnose
    from mtpdoctor.kb.load import load_knowledge
    from mtpdoctor.log.reading import read_logs
    from mtpdoctor.sglang.installed import installed_release
    from mtpdoctor.sglang.newer import learn_when_new

    if args.write and args.command_file is None:
        raise UserError("--write needs --command-file", hint="name the file that the fix goes into")
    form = output_format(args, (*args.logs, *([args.command_file] if args.command_file else [])))
    given = replace(given_from(args), models_here=True)
    knowledge = load_knowledge()
    reading = read_logs(args.logs, knowledge.literals, stdin=sys.stdin.buffer)
    found = installed_release()
    learned = learn_when_new(*found) if found is not None else None
    report = diagnose(reading, knowledge, given)
    if learned is not None and found is not None and report.sglang_version == found[0]:
        report = replace(report, notes=(*report.notes, learned))
    asker, notes = asker_from(args, given)
    if asker is not None:
        from mtpdoctor.diagnose.asking import confirm_report

        report = confirm_report(replace(report, notes=(*report.notes, *notes)), asker)
    foreign = not reading.is_sglang and report.outcome == "unfinished"
    if report.outcome == "empty" and form not in FOR_PROGRAMS:
        raise UserError(f"{', '.join(args.logs)}: nothing in it", hint="was the log written elsewhere?")
    if foreign and form not in FOR_PROGRAMS:
        raise UserError(f"{', '.join(args.logs)}: no sign of SGLang in it", hint="give the server's own log")
    deliver(_rendered(args, form, report, given, knowledge), args.out, form)
    if args.write:
        _write(args, given, report)
    return EXIT_USAGE if foreign else exit_code(report)


def _rendered(args: argparse.Namespace, form: str, report: Report, given: Given, knowledge: Knowledge) -> str:
    """The answer in the form asked for; only what that form needs is loaded."""
    if form == "markdown":
        from mtpdoctor.report.markdown import render_markdown

        return render_markdown(report)
    if form == "html":
        from mtpdoctor.report.html import render_html

        return render_html(report)
    if form in FOR_PROGRAMS:
        import json

        return json.dumps(_document(args, form, report, given, knowledge), ensure_ascii=True, indent=2)
    from mtpdoctor.report.style import DEFAULT_WIDTH, terminal
    from mtpdoctor.report.text import render

    width, color = terminal(sys.stdout) if args.out is None else (DEFAULT_WIDTH, False)
    return render(report, width=width, color=color, verbose=args.verbose)


def _document(
    args: argparse.Namespace, form: str, report: Report, given: Given, knowledge: Knowledge
) -> dict[str, Any]:
    if form == "json":
        from mtpdoctor.report.json import to_json

        return to_json(report)
    from mtpdoctor.report.sarif import report_to_sarif

    launch_file = given.document if args.command_file is not None else None
    return report_to_sarif(report, knowledge.by_id, launch_file)


def _write(args: argparse.Namespace, given: Given, report: Report) -> None:
    from mtpdoctor.cli.writing import write_fixed

    fix = chosen_fix(report, args.fix)
    assert given.document is not None and fix.document is not None
    backup = write_fixed(
        args.command_file, given.document.text, fix.document.text, diff=fix.diff or "", yes=args.yes
    )
    print(f"wrote {args.command_file}: {fix.title}; the old one is {backup}", file=sys.stderr)


def chosen_fix(report: Report, number: int | None) -> Fix:
    """The fix to write: the numbered one, else the first that is safe. Raises UserError when there is none."""
    fixes = report.diagnoses[0].fixes if report.diagnoses else ()
    if number is None:
        for fix in fixes:
            if fix.safety == "safe" and fix.document is not None:
                return fix
        raise UserError("there is no safe fix to write", hint="choose one by its number: --fix N")
    if not 1 <= number <= len(fixes) or fixes[number - 1].document is None:
        raise UserError(f"fix {number} changes no launch file", hint="choose a fix that shows a diff")
    return fixes[number - 1]


def exit_code(report: Report) -> int:
    if report.outcome == "empty":
        return EXIT_USAGE
    if report.outcome != "failed":
        return EXIT_OK
    known = any(d.rule is not None for d in report.diagnoses[:1])
    return EXIT_FAILURE_DIAGNOSED if known else EXIT_FAILURE_UNKNOWN
