"""``mtpdoctor kb matrix``: which rules fire on which examples."""

from __future__ import annotations

import argparse
import csv
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from mtpdoctor.errors import EXIT_OK, UserError

if TYPE_CHECKING:
    from mtpdoctor.kb.matrix import Matrix

EXIT_PROBLEMS = 1
KEYS = ("rule", "kind", "example", "fires", "undeclared", "alone", "wrong")


def add_matrix_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files", nargs="*", type=Path, metavar="FILE", help="only the examples of these files"
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="one JSON document on standard output")
    form.add_argument("--csv", action="store_true", help="one example a line, comma-separated")
    form.add_argument("--summary", action="store_true", help="only what stands out")


def run_matrix(args: argparse.Namespace) -> int:
    """0, or 1 when a rule fires undeclared on another's example, is silent on its bad or speaks on its ok one;
    UserError (2) for a file that does not exist or holds no rules of the knowledge."""
    from mtpdoctor.diagnose.examples import apply_remedy, facts_of
    from mtpdoctor.kb.lint import Hooks
    from mtpdoctor.kb.load import load_knowledge
    from mtpdoctor.kb.matrix import matrix_of

    for path in args.files:
        if not path.is_file():
            raise UserError(f"no such file: {path}")
    knowledge = load_knowledge()
    rules = list(knowledge.rules)
    if args.files:
        only = [str(p.resolve()) for p in args.files]
        files = [(r, r.origin.rpartition(":")[0]) for r in rules]
        rules = [r for r, file in files if any(p.endswith("/" + file) or p == file for p in only)]
        if not rules:
            raise UserError(
                f"no rules of the knowledge in use in {', '.join(map(str, args.files))}",
                hint="put the file into the knowledge folder",
            )
    matrix = matrix_of(rules, knowledge, Hooks(apply_remedy, facts_of))
    if args.json:
        _json(matrix)
    elif args.csv:
        _csv(matrix)
    else:
        _text(matrix, rows=not args.summary)
    return EXIT_PROBLEMS if matrix.undeclared or matrix.wrong else EXIT_OK


def _json(matrix: Matrix) -> None:
    rows = [
        dict(zip(KEYS, (r.rule, r.kind, r.where, r.fires, r.undeclared, r.alone, r.wrong), strict=True))
        for r in matrix.rows
    ]
    told = {"schema": 1, "examples": rows, "fires_elsewhere": matrix.elsewhere, "only_own": matrix.only_own}
    print(json.dumps(told, indent=2))


def _csv(matrix: Matrix) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(KEYS)
    for r in matrix.rows:
        writer.writerow(
            (r.rule, r.kind, r.where, " ".join(r.fires), " ".join(r.undeclared), int(r.alone), int(r.wrong))
        )


def _text(matrix: Matrix, *, rows: bool) -> None:
    """``!`` before a rule: it fires undeclared, or is wrong on its own example."""
    for r in matrix.rows:
        marked = bool(r.undeclared) or r.wrong
        if rows or marked:
            fires = " ".join(f"!{i}" if i in r.undeclared else i for i in r.fires) or "-"
            print(
                f"{r.rule}  {r.kind:<3}  {fires:<24}  {r.where}{'  ! wrong on its own example' if r.wrong else ''}"
            )
    bad = [r for r in matrix.rows if r.kind == "bad"]
    often = ", ".join(f"{rule} ({count})" for rule, count in list(matrix.elsewhere.items())[:8])
    print(f"{len(matrix.rows)} examples of {len({r.rule for r in matrix.rows})} rules", file=sys.stderr)
    print(f"on {len(matrix.alone)} of {len(bad)} bad ones nothing else fires", file=sys.stderr)
    print(f"{len(matrix.only_own)} rules fire on no other rule's example", file=sys.stderr)
    if often:
        print(f"most often on others' examples: {often}", file=sys.stderr)
    print(f"undeclared: {len(matrix.undeclared)}, wrong on their own: {len(matrix.wrong)}", file=sys.stderr)
