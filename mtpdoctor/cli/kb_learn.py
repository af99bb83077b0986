"""``mtpdoctor kb learn`` and ``mtpdoctor kb verify``: keep the release facts true to SGLang's sources."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mtpdoctor.errors import EXIT_OK, UserError

if TYPE_CHECKING:
    from mtpdoctor.kb.literals import Runs
    from mtpdoctor.kb.types import Rule
    from mtpdoctor.kb.yaml_source import Problem
    from mtpdoctor.sglang.source import SourceTree
    from mtpdoctor.sglang.verify import RuleText

EXIT_PROBLEMS = 1


def add_learn_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "sources", nargs="*", metavar="SOURCE", help="wheel, unpacked wheel, checkout or environment"
    )
    parser.add_argument("--installed", action="store_true", help="learn the SGLang of this interpreter")
    parser.add_argument(
        "--transformers",
        action="store_true",
        help="the sources are of transformers: learn the models it knows",
    )
    parser.add_argument("--folder", type=Path, help="another folder of release facts")


def add_verify_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "sources", nargs="*", metavar="SOURCE", help="sources to search; none: check the committed result"
    )
    parser.add_argument("--folder", type=Path, help="another folder of release facts")


def run_learn(args: argparse.Namespace) -> int:
    """Learn releases, write the tables, print what changed against the release before. Returns 0.

    Raises UserError for a source that is none.
    """
    from mtpdoctor.paths import releases_folder
    from mtpdoctor.sglang.diff import affected_rules, diff_releases
    from mtpdoctor.sglang.learn import load_releases, update
    from mtpdoctor.sglang.learn_dangling import learn_dangling, write_dangling
    from mtpdoctor.sglang.learn_frames import learn_frames, write_frames
    from mtpdoctor.sglang.learn_optional import learn_optional, write_optional
    from mtpdoctor.sglang.learn_symbols import learn_symbols, write_symbols
    from mtpdoctor.sglang.store import sort_releases

    if args.transformers:
        return _learn_transformers(args)
    sources = _open(args.sources)
    if args.installed:
        sources.append(_installed())
    if not sources:
        raise UserError("nothing to learn", hint="name a wheel or a folder, or say --installed")
    folder = args.folder or releases_folder()
    learned = update(folder, sources)
    by_release = {item.release: tree for item, tree in zip(learned, _in_order(sources), strict=True)}
    write_frames(folder, {release: learn_frames(tree) for release, tree in by_release.items()})
    write_symbols(folder, {release: learn_symbols(tree) for release, tree in by_release.items()})
    known = load_releases(folder)
    _learn_code(folder, by_release, frozenset(name for item in known.values() for name in item.fields))
    write_optional(folder, {release: learn_optional(tree) for release, tree in by_release.items()})
    write_dangling(folder, {release: learn_dangling(tree) for release, tree in by_release.items()})
    rules = _rules()
    _search(folder, by_release, rules)
    order = sort_releases(known)
    for item in learned:
        at = order.index(item.release)
        print(
            f"SGLang {item.release}: {len(item.flags)} flags, {len(item.env)} environment variables, "
            f"{len(item.models.architectures)} architectures"
        )
        if at == 0:
            continue
        diff = diff_releases(known[order[at - 1]], item)
        print(f"against {diff.old}:")
        for line in diff.lines():
            print(f"  {line}")
        touched = affected_rules(diff, [(rule.id, _whole_text(rule)) for rule in rules])
        for rule_id, names in touched.items():
            print(f"  rule      {rule_id} mentions {', '.join(names)}")
    return EXIT_OK


def _learn_code(folder: Path, sources: dict[str, SourceTree], fields: frozenset[str]) -> None:
    """Functions, their lines and messages of the sources. What was read of a text serves every release that has it."""
    from mtpdoctor.sglang.learn_code import write_code
    from mtpdoctor.sglang.learn_sites import LearnedSite, learn_sites, write_sites

    left = write_code(folder, sources, fields)
    sites: dict[tuple[str, bytes], tuple[LearnedSite, ...]] = {}
    write_sites(folder, {release: learn_sites(tree, fields, sites) for release, tree in sources.items()})
    if left:
        print(
            f"not in the history of functions: SGLang {', '.join(left)}; give the source of the newest release that it "
            "knows along with newer ones, or the sources of all"
        )


def _learn_transformers(args: argparse.Namespace) -> int:
    from mtpdoctor.paths import releases_folder
    from mtpdoctor.sglang.learn_transformers import update_transformers

    if args.installed or not args.sources:
        raise UserError(
            "nothing to learn", hint="name wheels of transformers, or folders that hold transformers/"
        )
    for item in update_transformers(args.folder or releases_folder(), args.sources):
        print(
            f"transformers {item.version}: {len(item.model_types)} model types, {len(item.classes)} classes, "
            f"{sum(item.classes.values())} that SGLang's wrapper can use"
        )
    return EXIT_OK


def run_verify(args: argparse.Namespace) -> int:
    """Search the sources for every rule's message and write the result; then hold the rules' ranges
    against it. 1 when a rule claims a release in which its message cannot occur."""
    from mtpdoctor.paths import releases_folder
    from mtpdoctor.sglang.claims import check_ranges
    from mtpdoctor.sglang.learn import source_release
    from mtpdoctor.sglang.verify import load_verified

    folder = args.folder or releases_folder()
    rules = _rules()
    if args.sources:
        named = {}
        for tree in _open(args.sources):
            release = source_release(tree)
            if release is None:
                raise UserError(f"{tree.origin} does not say which release it is")
            named[release] = tree
        _search(folder, named, rules)
    texts = [rule_text(rule) for rule in rules]
    verified = load_verified(folder)
    problems = check_ranges(texts, verified)
    for problem in problems:
        print(f"{problem.origin or problem.rule}: {problem.level}: {problem.rule} {problem.message}")
    rows = verified["rules"]
    found = sum(bool(row["spans"]) for row in rows.values())
    print(
        f"{found} of {len(rows)} rules for SGLang's own messages found in {len(verified['releases'])} releases"
    )
    return EXIT_PROBLEMS if any(p.level == "error" for p in problems) else EXIT_OK


def range_problems(rules: Sequence[Rule], folder: Path, ci: bool) -> list[Problem]:
    """What ``kb lint`` says of the rules' releases, from the result of ``kb verify`` in ``folder``: an error
    where a rule claims a release whose source does not have its message. A release that it leaves out without
    a word, or patterns that changed since, are errors only with ``ci``: the rest of the work goes on."""
    from mtpdoctor.kb.load import origin_problem
    from mtpdoctor.sglang.claims import check_ranges
    from mtpdoctor.sglang.verify import load_verified

    by_id = {rule.id: rule for rule in rules}
    return [
        origin_problem(
            by_id[item.rule],
            f"releases: {item.message}",
            level="error" if item.level == "error" or ci else "note",
        )
        for item in check_ranges([rule_text(rule) for rule in rules], load_verified(folder))
    ]


def rule_text(rule: Rule) -> RuleText:
    """A rule as verification needs it."""
    from mtpdoctor.kb.types import Span
    from mtpdoctor.sglang.standing import StandingText
    from mtpdoctor.sglang.verify import PatternText, RuleText

    bad = rule.examples.get("bad") or () if isinstance(rule.examples, dict) else ()
    return RuleText(
        id=rule.id,
        source=rule.source,
        releases=rule.releases.text,
        patterns=tuple(
            PatternText(p.regex, p.literal, p.span is Span.TRACEBACK, _runs(p.regex)) for p in rule.match
        ),
        examples=tuple(str(example.get("log", "")) for example in bad if isinstance(example, dict)),
        origin=rule.origin,
        elsewhere=tuple(note.releases.text for note in rule.elsewhere),
        unseen=tuple(note.releases.text for note in rule.unseen),
        unfixed=tuple(StandingText(u.through, u.files, u.text, u.since, u.lacks) for u in rule.unfixed),
    )


def _runs(pattern: str) -> Runs:
    from mtpdoctor.kb.literals import required_runs

    try:
        return required_runs(pattern)
    except ValueError:  # syntax that only the package regex knows
        return ()


def _search(folder: Path, sources: dict[str, SourceTree], rules: Sequence[Rule]) -> None:
    from mtpdoctor.paths import cache_folder
    from mtpdoctor.sglang.standing import find_standing
    from mtpdoctor.sglang.verify import build_index, verify, write_verified

    texts = [rule_text(rule) for rule in rules]
    index = build_index(sources, texts, cache_folder() / "messages.json.gz")
    standing = find_standing([u for text in texts for u in text.unfixed], sources)
    write_verified(folder, texts, verify(texts, index), index.releases, standing)


def _rules() -> list[Rule]:
    from mtpdoctor.kb.load import load_knowledge

    return list(load_knowledge().rules)


def _whole_text(rule: Rule) -> str:
    parts = [rule.title, rule.cause, repr(rule.when), repr(rule.predicts), repr(rule.remedies)]
    return "\n".join([*parts, *(p.regex for p in rule.match)])


def _open(sources: Sequence[str]) -> list[SourceTree]:
    from mtpdoctor.sglang.source import open_source

    return [open_source(source) for source in sources]


def _in_order(sources: Sequence[SourceTree]) -> list[SourceTree]:
    """Oldest release first, as ``update`` returns what it learned."""
    from mtpdoctor.sglang.source import source_release
    from mtpdoctor.sglang.store import release_order

    return sorted(sources, key=lambda tree: release_order(source_release(tree) or "0"))


def _installed() -> SourceTree:
    from mtpdoctor.sglang.source import installed_source

    tree = installed_source()
    if tree is None:
        raise UserError(
            "this interpreter has no SGLang", hint=f"looked in {sys.prefix}; name its environment instead"
        )
    return tree
