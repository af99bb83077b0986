"""``mtpdoctor kb``: lint, list, draft, try, learn and verify the knowledge."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from mtpdoctor.cli.kb_learn import (
    add_learn_arguments,
    add_verify_arguments,
    range_problems,
    run_learn,
    run_verify,
)
from mtpdoctor.cli.kb_matrix import add_matrix_arguments, run_matrix
from mtpdoctor.cli.kb_new import add_new_arguments, run_new
from mtpdoctor.cli.kb_try import add_try_arguments, run_try
from mtpdoctor.errors import EXIT_OK, UserError

if TYPE_CHECKING:
    from mtpdoctor.kb.hangs import HangCause
    from mtpdoctor.kb.lint import Hooks
    from mtpdoctor.kb.types import Rule

EXIT_PROBLEMS = 1
HANG = "hang"  # as kb.search.HANG, which is not loaded to start


def add_arguments(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(dest="kb_command", required=True, metavar="COMMAND")

    lint = commands.add_parser("lint", help="check the knowledge; exit code 1 when anything is wrong")
    lint.add_argument("files", nargs="*", type=Path, metavar="FILE", help="only the rules of these files")
    lint.add_argument("--folder", type=Path, help="another knowledge folder")
    lint.add_argument("--ci", action="store_true", help="a check that cannot be made is an error")
    lint.add_argument("--json", action="store_true", help="one JSON document on standard output")

    listing = commands.add_parser("list", help="the rules, one a line")
    listing.add_argument("words", nargs="*", metavar="WORD", help="only rules that hold all of these words")
    listing.add_argument("--role", help="cause, consequence, noise or degrades; hang: what holds launches up")
    listing.add_argument("--stage", help="only rules of this stage")
    listing.add_argument("--families", action="store_true", help="families of reports and the rules for them")
    listing.add_argument("--json", action="store_true", help="one JSON document on standard output")

    add_new_arguments(commands.add_parser("new", help="draft a rule from a log"))
    add_try_arguments(commands.add_parser("try", help="hold a regex against logs before making it a rule"))
    add_matrix_arguments(commands.add_parser("matrix", help="which rules fire on which examples"))
    add_learn_arguments(
        commands.add_parser("learn", help="learn the flags, environment and messages of SGLang releases")
    )
    add_verify_arguments(
        commands.add_parser("verify", help="hold the rules' releases against SGLang's sources")
    )


def run(args: argparse.Namespace) -> int:
    """0, or 1 when lint finds a problem or a regex matches nothing; UserError for bad usage."""
    commands = {
        "lint": _lint,
        "list": _list,
        "new": run_new,
        "try": run_try,
        "matrix": run_matrix,
        "learn": run_learn,
        "verify": run_verify,
    }
    return commands[args.kb_command](args)


def hooks() -> Hooks:
    """What lint needs of the layers above the knowledge."""
    from mtpdoctor.diagnose.examples import apply_remedy, facts_of, host_finder
    from mtpdoctor.kb.lint import Hooks

    return Hooks(apply_remedy, facts_of, host_finder)


def _check_files(files: list[Path]) -> None:
    for path in files:
        if not path.is_file():
            raise UserError(f"no such file: {path}")


def _lint(args: argparse.Namespace) -> int:
    from mtpdoctor.kb.lint import report, summary
    from mtpdoctor.kb.load import knowledge_folder

    _check_files(args.files)
    if args.folder and not args.folder.is_dir():
        raise UserError(f"no such folder: {args.folder}")
    result = report(args.folder, args.files or None, hooks=hooks(), ci=args.ci)
    folder = (args.folder or knowledge_folder()) / "releases"
    if folder.is_dir():  # knowledge of one's own may go without
        result.problems = sorted([*result.problems, *range_problems(result.checked, folder, args.ci)])
    if args.json:
        problems = [
            {"file": p.file, "line": p.line, "rule": p.rule or None, "level": p.level, "message": p.message}
            for p in result.problems
        ]
        counts = {"rules": result.rules, "examples": result.examples, "healthy_logs": result.healthy}
        print(json.dumps({"schema": 1, **counts, "problems": problems}, indent=2))
    else:
        for problem in result.problems:
            print(problem)
        print(summary(result), file=sys.stderr)
    return EXIT_PROBLEMS if result.errors else EXIT_OK


def _list(args: argparse.Namespace) -> int:
    from mtpdoctor.kb.load import load_knowledge

    hangs = [] if args.families else _hangs(args)
    rules = [] if args.role == HANG else [r for r in load_knowledge().rules if _wanted(r, args)]
    if args.families:
        return _families(rules, args.json)
    if args.json:
        listed = [_hang_summary(c) for c in hangs]
        print(json.dumps({"schema": 1, "rules": [_summary(r) for r in rules], "hangs": listed}, indent=2))
        return EXIT_OK
    for rule in rules:
        print(f"{rule.id}  {rule.role.value:<11}  {rule.stage.value:<13}  {rule.title}")
    for cause in hangs:
        stages = cause.stages[0].value + ("+" if len(cause.stages) > 1 else "")
        print(f"{cause.id}  {HANG}  {stages}  {cause.title}")
    return EXIT_OK


def _hangs(args: argparse.Namespace) -> list[HangCause]:
    """What holds launches up, where that is asked for."""
    if args.role and args.role != HANG:
        return []
    from mtpdoctor.kb.hangs_source import hang_files, load_hangs
    from mtpdoctor.paths import knowledge_folder

    if not hang_files(knowledge_folder()):  # knowledge of one's own may go without
        return []

    def wanted(cause: HangCause) -> bool:
        if args.stage and args.stage not in [stage.value for stage in cause.stages]:
            return False
        text = f"{cause.id} {HANG} {cause.title} {cause.tell} {cause.do}".lower()
        return all(word.lower() in text for word in args.words)

    return [cause for cause in load_hangs().causes if wanted(cause)]


def _hang_summary(cause: HangCause) -> dict[str, object]:
    return {
        "id": cause.id,
        "title": cause.title,
        "stages": [stage.value for stage in cause.stages],
        "releases": str(cause.releases),
        "origin": cause.origin,
    }


def _wanted(rule: Rule, args: argparse.Namespace) -> bool:
    from mtpdoctor.kb.types import Role
    from mtpdoctor.log.types import Stage

    for name, value, kind in (("role", args.role, Role), ("stage", args.stage, Stage)):
        if value and value not in [m.value for m in kind]:
            known = ", ".join(m.value for m in kind)
            raise UserError(f"unknown {name} {value!r}", hint=f"{name}s: {known}")
    if (args.role and rule.role.value != args.role) or (args.stage and rule.stage.value != args.stage):
        return False
    patterns = " ".join(p.regex for p in rule.match)
    text = f"{rule.id} {rule.title} {rule.source} {rule.cause} {patterns} {' '.join(rule.families)}".lower()
    return all(word.lower() in text for word in args.words)


def _summary(rule: Rule) -> dict[str, object]:
    return {
        "id": rule.id,
        "title": rule.title,
        "role": rule.role.value,
        "stage": rule.stage.value,
        "source": rule.source,
        "releases": str(rule.releases),
        "predicts": rule.predicts is not None,
        "families": list(rule.families),
        "origin": rule.origin,
    }


def _families(rules: list[Rule], as_json: bool) -> int:
    from mtpdoctor.kb.lint_static import known_families

    covered: dict[str, list[str]] = {family: [] for family in sorted(known_families())}
    for rule in rules:
        for family in rule.families:
            covered.setdefault(family, []).append(rule.id)
    if as_json:
        print(json.dumps({"schema": 1, "families": covered}, indent=2))
        return EXIT_OK
    width = max(map(len, covered))
    for family, ids in covered.items():
        print(f"{family:<{width}}  {' '.join(ids) or '-'}")
    print(f"{sum(map(bool, covered.values()))} of {len(covered)} families have rules", file=sys.stderr)
    return EXIT_OK
