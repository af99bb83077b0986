"""``mtpdoctor explain ID``: the long form of one rule."""

from __future__ import annotations

import argparse
import shutil
import sys

from mtpdoctor.errors import EXIT_OK, UserError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", help="a rule's id, e.g. MTP0007 (mtpdoctor kb list shows all)")


def run(args: argparse.Namespace) -> int:
    """Prints the rule. Raises UserError (exit code 2) when there is none of this id."""
    from mtpdoctor.kb.load import load_knowledge
    from mtpdoctor.report.rule_text import explain

    knowledge = load_knowledge()
    wanted = args.id.upper()
    if wanted.isdigit():
        wanted = f"MTP{int(wanted):04}"
    if wanted not in knowledge.by_id:
        raise UserError(f"there is no rule {args.id!r}", hint=_nearest(wanted, list(knowledge.by_id)))
    width = min(100, max(40, shutil.get_terminal_size((80, 24)).columns)) if sys.stdout.isatty() else 80
    print("\n".join(explain(knowledge.by_id[wanted], width)))
    return EXIT_OK


def _nearest(wanted: str, ids: list[str]) -> str:
    import difflib

    close = difflib.get_close_matches(wanted, ids, n=3, cutoff=0.5)
    return f"nearest: {', '.join(close)}" if close else "mtpdoctor kb list shows all"
