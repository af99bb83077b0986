"""``mtpdoctor explain ID``: the long form of one rule."""

from __future__ import annotations

import argparse
import shutil
import sys
import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING

from mtpdoctor.errors import EXIT_OK, UserError

if TYPE_CHECKING:
    from mtpdoctor.kb.types import EditTemplate, Remedy, Rule

_EVIDENCE = {
    "confirmed": "confirmed by reports or by running it",
    "stated": "stated by SGLang's authors or sources",
    "symptom": "a symptom; the cause is advice",
}
_GENERATED = {
    "unknown-flag": "Remedies are computed: the nearest flags of the release in use.",
    "bad-choice": "Remedies are computed: the choices of the flag in the release in use.",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", help="a rule's id, e.g. MTP0007 (mtpdoctor kb list shows all)")


def run(args: argparse.Namespace) -> int:
    """Prints the rule. Raises UserError (exit code 2) when there is none of this id."""
    from mtpdoctor.kb.load import load_knowledge

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


def explain(rule: Rule, width: int = 80) -> list[str]:
    """The rule as lines of plain text at most ``width`` wide (commands and log lines are kept whole)."""
    from mtpdoctor.kb.conditions import describe
    from mtpdoctor.kb.types import ALWAYS

    lines = _wrap(f"{rule.id}  {rule.title}", width, indent=9)
    generic = ", names only a symptom" if rule.generic else ""
    lines += [
        "",
        f"role      {rule.role.value}{generic}",
        f"stage     {rule.stage.value}",
        f"message   of {rule.source}",
        f"releases  {'all' if str(rule.releases) == '*' else rule.releases}",
        f"evidence  {_EVIDENCE[rule.evidence]} (confidence {rule.confidence:.2f})",
    ]
    if rule.when != ALWAYS:
        lines += _wrap(f"when      {describe(rule.when)}", width, indent=10)
    if rule.predicts is not None:
        lines += _wrap(
            f"foreseen  before launch if {describe(rule.predicts)} ({rule.severity})", width, indent=10
        )
    if rule.explains:
        lines += _wrap(f"explains  {', '.join(rule.explains)}", width, indent=10)
    lines += ["", "Cause", *_wrap(rule.cause, width, indent=2, first=2)]
    if rule.misleading:
        lines += ["", "What it is taken for", *_wrap(rule.misleading, width, indent=2, first=2)]
    if rule.match:
        lines += ["", "Recognised by", *(f"  {p.regex}" for p in rule.match)]
    if rule.remedies:
        lines += ["", "Remedies, best first"]
        for number, remedy in enumerate(rule.remedies, 1):
            lines += _remedy(number, remedy, width)
    bad = rule.examples.get("bad") or ()
    if bad:
        lines += ["", "Example", *(f"  {line}" for line in bad[0]["log"].rstrip("\n").split("\n")[:30])]
    if rule.refs:
        lines += ["", "References", *(f"  {ref}" for ref in rule.refs)]
    return lines


def _remedy(number: int, remedy: Remedy, width: int) -> Iterator[str]:
    from mtpdoctor.kb.conditions import describe
    from mtpdoctor.kb.types import ALWAYS

    lead = f"  {number}. "
    if remedy.generate:
        yield from _wrap(lead + _GENERATED[remedy.generate], width, indent=len(lead))
        return
    yield from _wrap(f"{lead}{remedy.title} [{remedy.safety.value}]", width, indent=len(lead))
    pad = " " * len(lead)
    for edit in remedy.edits:
        yield f"{pad}{edit_text(edit)}"
    for command in remedy.run:
        yield f"{pad}$ {command}"
    yield from _wrap(f"{pad}why: {remedy.why}", width, indent=len(lead) + 5)
    if remedy.risk:
        yield from _wrap(f"{pad}risk: {remedy.risk}", width, indent=len(lead) + 6)
    if remedy.when != ALWAYS:
        yield from _wrap(f"{pad}if: {describe(remedy.when)}", width, indent=len(lead) + 4)
    if str(remedy.releases) != "*":
        yield f"{pad}releases: {remedy.releases}"


def edit_text(edit: EditTemplate) -> str:
    """The edit as it is written in the knowledge."""
    if edit.op == "env":
        return f"env {edit.name}={edit.value}"
    return " ".join(part for part in (edit.op, edit.name, edit.value) if part)


def _wrap(text: str, width: int, indent: int, first: int = 0) -> list[str]:
    return textwrap.wrap(
        " ".join(text.split()) if first else text,
        width,
        initial_indent=" " * first,
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
