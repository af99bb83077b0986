"""``mtpdoctor kb``: lint, list, try, learn and verify the knowledge."""

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
from mtpdoctor.errors import EXIT_OK, UserError

if TYPE_CHECKING:
    from mtpdoctor.kb.lint import Hooks
    from mtpdoctor.kb.types import Pattern, Rule

EXIT_PROBLEMS = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(dest="kb_command", required=True, metavar="COMMAND")

    lint = commands.add_parser("lint", help="check the knowledge; exit code 1 when anything is wrong")
    lint.add_argument("files", nargs="*", type=Path, metavar="FILE", help="only the rules of these files")
    lint.add_argument("--folder", type=Path, help="another knowledge folder")
    lint.add_argument("--ci", action="store_true", help="a check that cannot be made is an error")
    lint.add_argument("--json", action="store_true", help="one JSON document on standard output")

    listing = commands.add_parser("list", help="the rules, one a line")
    listing.add_argument("words", nargs="*", metavar="WORD", help="only rules that hold all of these words")
    listing.add_argument("--role", help="cause, consequence, noise or degrades")
    listing.add_argument("--stage", help="only rules of this stage")
    listing.add_argument("--families", action="store_true", help="families of reports and the rules for them")
    listing.add_argument("--json", action="store_true", help="one JSON document on standard output")

    trial = commands.add_parser("try", help="hold a regex against logs before making it a rule")
    trial.add_argument("regex", metavar="REGEX")
    trial.add_argument("logs", nargs="+", metavar="LOG", help="logs; - is standard input")
    trial.add_argument("--traceback", action="store_true", help="hold it against whole tracebacks")
    trial.add_argument("--literal", help="the text to look for first (default: derived from the regex)")

    matrix = commands.add_parser("matrix", help="which rules fire on which examples")
    matrix.add_argument(
        "files", nargs="*", type=Path, metavar="FILE", help="only the examples of these files"
    )
    matrix.add_argument("--json", action="store_true", help="one JSON document on standard output")

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
        "try": _try,
        "matrix": _matrix,
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

    rules = [r for r in load_knowledge().rules if _wanted(r, args)]
    if args.families:
        return _families(rules, args.json)
    if args.json:
        print(json.dumps({"schema": 1, "rules": [_summary(r) for r in rules]}, indent=2))
        return EXIT_OK
    for rule in rules:
        print(f"{rule.id}  {rule.role.value:<11}  {rule.stage.value:<13}  {rule.title}")
    return EXIT_OK


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


def _pattern(args: argparse.Namespace) -> Pattern:
    import regex as engine

    from mtpdoctor.kb.literals import MIN_LITERAL, required_literal
    from mtpdoctor.kb.types import Pattern, Span

    try:
        engine.compile(args.regex)
    except engine.error as error:
        raise UserError(f"not a regex: {error}") from None
    literal = args.literal
    if literal is None:
        try:
            literal = required_literal(args.regex)
        except ValueError as error:
            raise UserError(f"no rule can be made of it: {error}") from None
    elif len(literal.strip()) < MIN_LITERAL:
        raise UserError(f"a literal has at least {MIN_LITERAL} characters")
    return Pattern(args.regex, literal, Span.TRACEBACK if args.traceback else Span.LINE)


def _try(args: argparse.Namespace) -> int:
    from mtpdoctor.facts import Source, make_facts
    from mtpdoctor.kb.knowledge import Knowledge
    from mtpdoctor.kb.match import match_rules
    from mtpdoctor.kb.trial import trial_rule
    from mtpdoctor.log.reading import read_logs
    from mtpdoctor.text import safe

    pattern = _pattern(args)
    print(f"literal: {pattern.literal!r}")
    found = False
    for name in args.logs:
        reading = read_logs([name], (pattern.literal,), stdin=sys.stdin.buffer)
        print(f"{safe(name)}: the literal occurs {reading.hits.count(pattern.literal)} times")
        if reading.attempt is None:
            continue
        knowledge = Knowledge.of([trial_rule(pattern)])
        matches = match_rules(knowledge, reading, reading.attempt, make_facts({}, Source.USER))
        if matches.skipped:
            raise UserError("the regex takes too long on this log", hint="avoid nested and adjacent repeats")
        for match in matches:
            found = True
            print(f"{safe(name)}:{match.line.number}: {safe(match.line.text[:500])}")
            for group, value in match.captures.items():
                print(f"    {group} = {safe(value[:200])}")
    if not found:
        print("no match in the last launch attempt", file=sys.stderr)
    return EXIT_OK if found else EXIT_PROBLEMS


def _matrix(args: argparse.Namespace) -> int:
    from mtpdoctor.kb.lint_examples import matches_in
    from mtpdoctor.kb.load import load_knowledge, origin_problem

    _check_files(args.files)
    knowledge = load_knowledge()
    only = {str(p.resolve()) for p in args.files}
    rows = []
    for rule in knowledge.rules:
        file = rule.origin.rpartition(":")[0]
        if only and not any(path.endswith("/" + file) or path == file for path in only):
            continue
        for kind in ("bad", "ok"):
            for example in rule.examples.get(kind, ()):
                matches, _, _ = matches_in(example["log"], knowledge, example, hooks())
                fired = list(dict.fromkeys(m.rule.id for m in matches))
                place = origin_problem(rule, "", example["line"])
                rows.append((rule.id, kind, f"{place.file}:{place.line}", fired))
    if args.json:
        keys = ("rule", "kind", "example", "fires")
        print(
            json.dumps({"schema": 1, "examples": [dict(zip(keys, r, strict=True)) for r in rows]}, indent=2)
        )
        return EXIT_OK
    for rule_id, kind, where, fired in rows:
        print(f"{rule_id}  {kind:<3}  {' '.join(fired) or '-':<24}  {where}")
    return EXIT_OK
