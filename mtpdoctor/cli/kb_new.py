"""``mtpdoctor kb new``: draft a rule from a log."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from mtpdoctor.errors import EXIT_OK, UserError

if TYPE_CHECKING:
    from mtpdoctor.sglang.source import SourceTree

HEALTHY_LINES = 60_000  # lines of healthy logs that are searched for a look-alike


def add_new_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("log", metavar="LOG", help="the log of the failed launch; - is standard input")
    parser.add_argument(
        "--line", type=int, metavar="N", help="the line that says it (default: the root cause)"
    )
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="write the draft there, not over another file"
    )
    parser.add_argument(
        "--source",
        action="append",
        default=[],
        metavar="DIR",
        help="SGLang's sources: a wheel, an environment, a checkout, or a folder of these (repeat)",
    )
    parser.add_argument(
        "--id", metavar="MTPNNNN", help="the first id to consider (default: the first free one)"
    )


def run_new(args: argparse.Namespace) -> int:
    """0 when a draft was written; UserError (2) when the log shows no failure, cannot be read, or FILE is there."""
    from mtpdoctor.diagnose.draft import draft_of, failure_in
    from mtpdoctor.kb.draft import draft_text
    from mtpdoctor.kb.load import load_knowledge
    from mtpdoctor.log.reading import read_logs

    if args.out is not None and args.out.exists():
        raise UserError(f"{args.out} is there already", hint="give another file, and merge by hand")
    least = _number(args.id)
    knowledge = load_knowledge()
    reading = read_logs([args.log], knowledge.literals, stdin=sys.stdin.buffer)
    failure = failure_in(reading, knowledge, args.line)
    sources = sources_at_hand(args.source, str(failure.case.release) if failure.case.release else None)
    draft = draft_of(failure, knowledge, sources, _healthy_lines(), least)
    text = draft_text(draft)
    for rule in failure.known:
        print(
            f"note: {rule.id} ({rule.title}) fires on this line already: see mtpdoctor explain {rule.id}",
            file=sys.stderr,
        )
    if args.out is None:
        print(text, end="")
        return EXIT_OK
    try:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(f"{args.out} cannot be written: {error.strerror or error}") from None
    print(
        f"wrote {args.out}: look it through, write what says FILL IN, then mtpdoctor kb lint {args.out}",
        file=sys.stderr,
    )
    return EXIT_OK


def _number(text: str | None) -> int | None:
    if text is None:
        return None
    digits = text.upper().removeprefix("MTP")
    if not digits.isdigit() or len(digits) > 4:
        raise UserError(f"--id {text}: an id is MTP and four digits")
    return int(digits)


def sources_at_hand(named: list[str], release: str | None) -> dict[str, SourceTree]:
    """Release -> source, oldest first: those named, those in ``$MTPDOCTOR_SGLANG_SOURCES``, the installed one and
    the log's own. Raises UserError when a named one holds no SGLang."""
    from mtpdoctor.sglang.source import find_source, installed_source, source_release
    from mtpdoctor.sglang.store import sort_releases

    found: dict[str, SourceTree] = {}
    for where in named:
        trees = list(_trees(Path(where).expanduser()))
        if not trees:
            raise UserError(
                f"no SGLang source in {where}",
                hint="a wheel, an environment, a checkout, or a folder of these",
            )
        for name, tree in trees:
            found[source_release(tree) or name] = tree
    shared = os.environ.get("MTPDOCTOR_SGLANG_SOURCES")
    for name, tree in _trees(Path(shared)) if shared else ():
        found.setdefault(source_release(tree) or name, tree)
    for here in (installed_source(), find_source(release) if release else None):
        told = source_release(here) if here is not None else None
        if here is not None and told is not None:
            found.setdefault(told, here)
    from mtpdoctor.release import release_or_none

    return {name: found[name] for name in sort_releases(n for n in found if release_or_none(n))}


def _trees(path: Path) -> list[tuple[str, SourceTree]]:
    """The source that a path is, or those in the folders and wheels right below it, with their names."""
    from mtpdoctor.sglang.source import open_source

    try:
        return [(path.name, open_source(path))]
    except UserError:
        pass
    out = []
    for child in sorted(path.iterdir()) if path.is_dir() else ():
        try:
            out.append((child.name, open_source(child)))
        except UserError:
            continue
    return out


def _healthy_lines() -> list[str]:
    from mtpdoctor.kb.trial import healthy_logs

    out: list[str] = []
    for path in healthy_logs():
        text = path.read_text(encoding="utf-8", errors="replace")
        out += [line.strip() for line in text.split("\n")]
        if len(out) > HEALTHY_LINES:
            break
    return out
