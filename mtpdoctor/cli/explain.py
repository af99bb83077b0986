"""``mtpdoctor explain ID``: the long form of one rule, or of one thing that holds launches up."""

from __future__ import annotations

import argparse
import shutil
import sys
from typing import TYPE_CHECKING

from mtpdoctor.errors import EXIT_OK, UserError

if TYPE_CHECKING:
    from mtpdoctor.kb.hangs import HangCause


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "id",
        metavar="ID",
        help="a rule's id, e.g. MTP0007, or that of a hang, e.g. nodes-missing (mtpdoctor kb list shows all)",
    )


def run(args: argparse.Namespace) -> int:
    """Prints the rule or the cause of hangs. Raises UserError (exit code 2) when there is none of this id."""
    from mtpdoctor.kb.load import load_knowledge
    from mtpdoctor.report.rule_text import explain

    width = min(100, max(40, shutil.get_terminal_size((80, 24)).columns)) if sys.stdout.isatty() else 80
    hangs = {} if args.id[:1].isdigit() or args.id.upper().startswith("MTP") else _hangs()
    if args.id.lower() in hangs:
        from mtpdoctor.report.hang_text import explain_hang

        print("\n".join(explain_hang(hangs[args.id.lower()], width)))
        return EXIT_OK
    knowledge = load_knowledge()
    wanted = args.id.upper()
    if wanted.isdigit():
        wanted = f"MTP{int(wanted):04}"
    if wanted not in knowledge.by_id:
        raise UserError(f"there is no rule {args.id!r}", hint=_nearest(args.id, [*knowledge.by_id, *hangs]))
    print("\n".join(explain(knowledge.by_id[wanted], width)))
    return EXIT_OK


def _hangs() -> dict[str, HangCause]:
    from mtpdoctor.kb.hangs_source import load_hangs

    return {cause.id: cause for cause in load_hangs().causes}


def _nearest(wanted: str, ids: list[str]) -> str:
    import difflib

    close = difflib.get_close_matches(wanted, ids, n=3, cutoff=0.5)
    close = close or difflib.get_close_matches(wanted.upper(), ids, n=3, cutoff=0.5)
    return f"nearest: {', '.join(close)}" if close else "mtpdoctor kb list shows all"
