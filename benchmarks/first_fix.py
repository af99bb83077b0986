"""How often the first fix of a labelled failing launch is the right one, and what stands before the right one.

    python benchmarks/first_fix.py [--blind] [--rules FOLDER] [--list] [SET ...]

``--blind`` leaves out the specific rules that name the labelled root line, so that what stands first is what is known
of the kind of failure: the state of a log that nobody has seen. ``--rules`` takes the rules of another state of the
knowledge (a folder as ``knowledge/``, with today's tables of releases): rules of before a set was published measure
today's order on it. ``--list`` prints every case whose first fix is not right. ``--held-out`` ranks each set by counts of the
others alone. ``--learn`` writes the counts of all sets (blind) to ``knowledge/advice/helped.json``. SET: unseen_reports_6 ...

A label's patterns tell a right fix; they are a person's, and looser or stricter than the truth in single cases.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from mtpdoctor.diagnose import ranking  # noqa: E402
from mtpdoctor.diagnose.engine import diagnose  # noqa: E402
from mtpdoctor.kb.load import Knowledge, knowledge_files, load_knowledge, read_rules  # noqa: E402
from mtpdoctor.log.reading import read_logs  # noqa: E402
from mtpdoctor.report.json import to_json  # noqa: E402

DATA = ROOT / "tests" / "data"
LEAST = 2  # times that a kind was offered, to be counted
WHAT = (
    "how often a kind of fix was right / offered for labelled launches whose own rules were left out; "
    "benchmarks/first_fix.py --learn"
)


@dataclass(frozen=True)
class Labelled:
    """A failing launch, the parts of its root line that tell it, and the patterns of a right fix."""

    group: str
    log: Path
    root: tuple[str, ...]
    lines: tuple[int, ...]
    right: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.log.stem

    def is_root(self, diagnosis: dict[str, Any]) -> bool:
        said = diagnosis["root"]
        return said["line"] in self.lines or any(part in (said["text"] or "") for part in self.root)


@dataclass(frozen=True)
class Seen:
    """What was said of one launch: ``at`` is the place of the first right fix, None where there is none."""

    case: Labelled
    rule: str | None
    root: bool
    fixes: tuple[dict[str, Any], ...]
    at: int | None


def labelled() -> Iterator[Labelled]:
    """The failing launches of the folders of ``tests/data`` that have labels with remedies."""
    for path in sorted(DATA.glob("unseen_reports*/labels.json")):
        for name, label in json.loads(path.read_text(encoding="utf-8")).items():
            if "failed" in label["outcome"] and label["remedy_any"]:
                log = path.parent / f"{name}.log"
                yield Labelled(
                    path.parent.name, log, tuple(label["root_line"]), (), tuple(label["remedy_any"])
                )
    for folder in ("public_reports", "h200_logs", "h200_logs_2"):
        for path in sorted((DATA / folder).glob("*.json")):
            label = json.loads(path.read_text(encoding="utf-8"))
            if label["outcome"] == "failed" and label["fix_any"]:
                yield Labelled(
                    folder,
                    path.with_suffix(".log"),
                    (label["root"],),
                    tuple(label["root_lines"]),
                    tuple(label["fix_any"]),
                )


def text_of(fix: dict[str, Any]) -> str:
    """What a fix proposes, as the labels' patterns read it."""
    edits = (
        f"{e['name']}={e['value']}" if e["op"] == "env" else f"{e['op']} {e['name']} {e['value'] or ''}"
        for e in fix["edits"]
    )
    return " ".join([fix["title"], fix["why"] or "", *edits, *fix.get("run", []), fix.get("command") or ""])


def look(case: Labelled, knowledge: Knowledge, blind: bool) -> Seen:
    reading = read_logs([str(case.log)], knowledge.literals)
    left_out: set[str] = set()
    while True:
        known = knowledge
        if left_out:
            known = Knowledge.of([r for r in knowledge.rules if r.id not in left_out], knowledge.resolution)
        report = to_json(diagnose(reading, known))
        first = report["diagnoses"][0] if report["diagnoses"] else None
        rule = first["rule"] if first else None
        specific = rule is not None and not knowledge.by_id[rule].generic
        if not blind or first is None or not specific or not case.is_root(first):
            break
        left_out.add(rule)
    fixes = tuple(first["fixes"]) if first else ()
    right = (n for n, f in enumerate(fixes) if is_right(case, f))
    return Seen(case, rule, first is not None and case.is_root(first), fixes, next(right, None))


def is_right(case: Labelled, fix: dict[str, Any]) -> bool:
    return any(re.search(p, text_of(fix), re.I | re.S) for p in case.right)


def shape(fix: dict[str, Any]) -> str:
    return ranking.kind_of(fix["title"], fix["why"] or "")


def counted(seen: Iterable[Seen]) -> dict[str, tuple[int, int]]:
    """Kind of fix, and family of kinds -> how often right, how often offered."""
    out: dict[str, tuple[int, int]] = {}
    for s in seen:
        for fix in s.fixes:
            for name in (shape(fix), f"{ranking.family_of(shape(fix))} ..."):
                right, offered = out.get(name, ranking.NONE)
                out[name] = right + is_right(s.case, fix), offered + 1
    return {name: counts for name, counts in sorted(out.items()) if counts[1] >= LEAST}


def learn(seen: list[Seen]) -> None:
    path = ROOT / "knowledge" / ranking.FILE
    text = ",\n".join(f"  {json.dumps(kind)}: {list(counts)}" for kind, counts in counted(seen).items())
    path.write_text(
        f'{{"what": "{WHAT}",\n "launches": {len(seen)}, "kinds": {{\n{text}\n}}}}\n', encoding="utf-8"
    )


def rules_of(folder: Path) -> Knowledge:
    today = load_knowledge()
    problems: list[Any] = []
    rules = read_rules(knowledge_files(folder), problems, folder)
    return Knowledge.of(rules, today.resolution)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("sets", nargs="*")
    parser.add_argument("--blind", action="store_true")
    parser.add_argument("--rules", type=Path)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--only", nargs="*", help="names of single launches")
    parser.add_argument("--learn", action="store_true")
    parser.add_argument("--held-out", action="store_true")
    asked = parser.parse_args()
    blind = asked.blind or asked.learn or asked.held_out
    knowledge = rules_of(asked.rules) if asked.rules else load_knowledge()
    cases = [c for c in labelled() if not asked.sets or c.group in asked.sets or asked.held_out]
    cases = [c for c in cases if not asked.only or c.name in asked.only]
    seen = [look(c, knowledge, blind) for c in cases]
    if asked.learn:
        learn(seen)
    if asked.held_out:
        seen = held_out(seen, knowledge)
        seen = [s for s in seen if not asked.sets or s.case.group in asked.sets]
    for group in dict.fromkeys(s.case.group for s in seen):
        _row(group, [s for s in seen if s.case.group == group])
    _row("all", seen)
    places = Counter("none" if s.at is None else s.at + 1 for s in seen)
    print("place of the first right fix:", dict(sorted(places.items(), key=lambda p: str(p[0]))))
    ahead = Counter(shape(f) for s in seen if s.at for f in s.fixes[: s.at])
    print("kinds that stood before it:", dict(ahead.most_common(20)))
    for s in seen if asked.list else ():
        if s.at != 0:
            _show(s)


def held_out(seen: list[Seen], knowledge: Knowledge) -> list[Seen]:
    """Every launch again, ranked by what the other sets count."""
    whole = ranking._table
    out: list[Seen] = []
    for group in dict.fromkeys(s.case.group for s in seen):
        counts = counted(s for s in seen if s.case.group != group)
        ranking._table = lambda counts=counts: counts  # type: ignore[assignment,misc]
        out += [look(s.case, knowledge, True) for s in seen if s.case.group == group]
    ranking._table = whole
    return out


def _row(group: str, seen: list[Seen]) -> None:
    first, some, root = (
        sum(s.at == 0 for s in seen),
        sum(s.at is not None for s in seen),
        sum(s.root for s in seen),
    )
    n = len(seen)
    print(f"{group:18} {n:4} failed: root {root}, right first {first} ({first / max(n, 1):.0%}), among the fixes {some} ({some / max(n, 1):.0%})")  # fmt: skip


def _show(s: Seen) -> None:
    print(
        f"\n{s.case.name} [{s.case.group}] rule {s.rule} root {'ok' if s.root else 'WRONG'} right at {s.at and s.at + 1}"
    )
    print(f"   label: {' | '.join(s.case.right)[:300]}")
    for n, f in enumerate(s.fixes):
        mark = "*" if n == s.at else " "
        notes = f" [{'; '.join(f['notes'])[:120]}]" if f.get("notes") else ""
        print(f"  {mark}{n + 1} {f['safety']:7}{text_of({**f, 'command': None})[:260]}{notes}")


if __name__ == "__main__":
    main()
