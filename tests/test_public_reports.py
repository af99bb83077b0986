"""How well launches from public reports are told: a measure on logs that no rule was written from.

Each pair in ``data/public_reports`` is one published report, set in the start-up lines of its release:
the ``.log`` as the person had it, the ``.json`` with what the report (not this program) says about it.
Single misses are allowed, within floors; a harmful remedy and a false alarm are not.

``python tests/test_public_reports.py`` prints the table and every miss.
"""

from __future__ import annotations

import json
import random
import re
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from own_knowledge import own_knowledge

if __name__ == "__main__":  # run as a script: the checkout is not installed
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mtpdoctor.diagnose.engine import diagnose
from mtpdoctor.kb.load import Knowledge
from mtpdoctor.log.reading import read_logs
from mtpdoctor.report.json import to_json
from tests.log.wrap import TRANSPORTS, wrap

CORPUS = Path(__file__).parent / "data" / "public_reports"
NAMES = sorted(p.stem for p in CORPUS.glob("*.json"))
ROOT_FLOOR = 0.95
REMEDY_FLOOR = 0.60
KIND_FLOOR = 0.80  # of reports whose rules are left out: what is known of their kind has to help


def lines_of(name: str) -> list[str]:
    """The log's lines, split at line feeds only: progress bars hold carriage returns."""
    return (CORPUS / f"{name}.log").read_bytes().decode().rstrip("\n").split("\n")


@cache
def truth(name: str) -> dict[str, Any]:
    return json.loads((CORPUS / f"{name}.json").read_text(encoding="utf-8"))


FAILED = [n for n in NAMES if truth(n)["outcome"] == "failed"]
QUIET = [n for n in NAMES if truth(n)["outcome"] != "failed"]


def report_of(log: Path) -> dict[str, Any]:
    knowledge = own_knowledge()
    return to_json(diagnose(read_logs([str(log)], knowledge.literals), knowledge))


@cache
def plain_report(name: str) -> dict[str, Any]:
    return report_of(CORPUS / f"{name}.log")


def remedy_text(fix: dict[str, Any]) -> str:
    """What a remedy proposes: title, why, each edit, and what is to be run."""
    edits = (
        f"{e['name']}={e['value']}" if e["op"] == "env" else f"{e['op']} {e['name']} {e['value'] or ''}"
        for e in fix["edits"]
    )
    return " ".join([fix["title"], fix["why"] or "", *edits, *fix.get("run", [])])


@dataclass(frozen=True)
class Verdict:
    """One failing report held against its label; ``remedy`` is None where the report names none."""

    name: str
    stage: str
    outcome: bool
    stage_right: bool
    root: bool
    remedy: bool | None
    rule: str | None
    harmful: tuple[str, ...]  # offered as safe, and wrong
    doubtful: tuple[str, ...]  # offered with a warning, and wrong
    said: str
    offered: tuple[str, ...]


def is_root(diagnosis: dict[str, Any], label: dict[str, Any]) -> bool:
    root = diagnosis["root"]
    return root["line"] in label["root_lines"] or (bool(root["text"]) and label["root"] in root["text"])


@cache
def report_without_its_rules(name: str) -> dict[str, Any]:
    """The report as if the failure were not known: every specific rule that names its root is left out."""
    full = own_knowledge()
    reading = read_logs([str(CORPUS / f"{name}.log")], full.literals)
    left_out: set[str] = set()
    while True:
        known = Knowledge.of([r for r in full.rules if r.id not in left_out], full.resolution)
        report = to_json(diagnose(reading, known))
        first = report["diagnoses"][0] if report["diagnoses"] else None
        specific = first is not None and first["rule"] is not None and not full.by_id[first["rule"]].generic
        if not specific or not is_root(first, truth(name)):
            return report
        left_out.add(first["rule"])


def judge(name: str, report: dict[str, Any] | None = None) -> Verdict:
    label, report = truth(name), report or plain_report(name)
    first = report["diagnoses"][0] if report["diagnoses"] else None
    fixes = first["fixes"] if first else []
    texts = [remedy_text(f) for f in fixes]
    line, said = (first["root"]["line"], first["root"]["text"]) if first else (0, "")
    right_line = line in label["root_lines"] or (bool(said) and label["root"] in said)

    def wrong(text: str) -> bool:
        return any(re.search(p, text, re.I) for p in label["fix_never"])

    return Verdict(
        name=name,
        stage=label["stages"][0],
        outcome=report["outcome"] == "failed",
        stage_right=report["stage"] in label["stages"],
        root=right_line and not any(d in said for d in label["decoys"]),
        remedy=any(re.search(p, t, re.I) for p in label["fix_any"] for t in texts)
        if label["fix_any"]
        else None,
        rule=first["rule"] if first else None,
        harmful=tuple(t for f, t in zip(fixes, texts, strict=True) if f["safety"] == "safe" and wrong(t)),
        doubtful=tuple(t for f, t in zip(fixes, texts, strict=True) if f["safety"] != "safe" and wrong(t)),
        said=f"{line}: {said}" if first else f"nothing ({report['outcome']})",
        offered=tuple(texts),
    )


def share(marks: list[bool]) -> float:
    return sum(marks) / len(marks) if marks else 1.0


def misses(verdicts: list[Verdict]) -> str:
    return "\n".join(f"{v.name}: said {v.said[:160]!r} [{v.rule}], offered {v.offered!r}" for v in verdicts)


@cache
def verdicts() -> tuple[Verdict, ...]:
    return tuple(judge(n) for n in FAILED)


@pytest.mark.parametrize("name", NAMES)
def test_label_fits_its_log(name: str) -> None:
    label = truth(name)
    lines = lines_of(name)
    assert label["outcome"] in {"failed", "ready", "unfinished"}
    assert bool(label["root_lines"]) == (label["outcome"] == "failed")
    if label["root_lines"]:
        assert any(label["root"] in lines[n - 1] for n in label["root_lines"])
    for decoy in label["decoys"]:
        assert any(decoy in line for line in lines)
    for pattern in [*label["fix_any"], *label["fix_never"]]:
        re.compile(pattern)


@pytest.mark.parametrize("name", QUIET)
def test_no_false_alarm(name: str) -> None:
    report = plain_report(name)
    assert report["outcome"] == truth(name)["outcome"]
    assert [d["root"]["text"] for d in report["diagnoses"]] == []


def test_root_cause_is_found() -> None:
    wrong = [v for v in verdicts() if not v.root]
    assert share([v.root for v in verdicts()]) >= ROOT_FLOOR, misses(wrong)


def test_a_right_remedy_is_offered() -> None:
    asked = [v for v in verdicts() if v.remedy is not None]
    assert share([bool(v.remedy) for v in asked]) >= REMEDY_FLOOR, misses([v for v in asked if not v.remedy])


def test_no_harmful_remedy_is_called_safe() -> None:
    assert [(v.name, v.harmful) for v in verdicts() if v.harmful] == []


@pytest.mark.parametrize("part", range(3))  # three, so that two processes share the work
def test_where_no_rule_knows_it_the_kind_of_failure_helps(part: int) -> None:
    """Each report with its own rules left out: the root stays, more often than not a right remedy is
    offered, and no wrong one as safe."""
    unknown = [judge(name, report_without_its_rules(name)) for name in FAILED[part::3]]
    assert share([v.root for v in unknown]) >= ROOT_FLOOR, misses([v for v in unknown if not v.root])
    asked = [v for v in unknown if v.remedy is not None]
    assert share([bool(v.remedy) for v in asked]) >= KIND_FLOOR, misses([v for v in asked if not v.remedy])
    assert [(v.name, v.harmful) for v in unknown if v.harmful] == []


def transport_of(name: str) -> str:
    """One transport for each log, drawn by its name, so that a new log changes no other's draw."""
    return random.Random(f"transport of {name}").choice([t for t in TRANSPORTS if t != "plain"])


@pytest.mark.parametrize("name", NAMES)
def test_same_root_in_a_transport(name: str, tmp_path: Path) -> None:
    log = tmp_path / "carried.log"
    log.write_bytes(wrap(lines_of(name), transport_of(name)))
    plain, carried = plain_report(name), report_of(log)
    assert carried["outcome"] == plain["outcome"], transport_of(name)
    roots = [[d["root"]["line"] for d in r["diagnoses"]][:1] for r in (plain, carried)]
    assert roots[0] == roots[1], transport_of(name)


def main() -> None:
    """Print the table by stage, then every miss: what was said, what was wanted."""
    rows = verdicts()
    print(f"{'stage':<15}{'logs':>5}{'root':>6}{'remedy':>9}{'rule':>6}{'stage ok':>10}")
    for stage, count in [*sorted(Counter(v.stage for v in rows).items()), ("all", len(rows))]:
        part = [v for v in rows if stage in (v.stage, "all")]
        asked = [v for v in part if v.remedy is not None]
        print(
            f"{stage:<15}{count:>5}{sum(v.root for v in part):>6}"
            f"{sum(bool(v.remedy) for v in asked):>5}/{len(asked):<3}"
            f"{sum(v.rule is not None for v in part):>6}{sum(v.stage_right for v in part):>10}"
        )
    known = [v for v in rows if truth(v.name)["family"]]
    for title, part in (("known families", known), ("others", [v for v in rows if v not in known])):
        asked = [v for v in part if v.remedy is not None]
        print(
            f"{title}: root {share([v.root for v in part]):.0%} of {len(part)}, "
            f"remedy {share([bool(v.remedy) for v in asked]):.0%} of {len(asked)}, "
            f"rule known {share([v.rule is not None for v in part]):.0%}"
        )
    unknown = [judge(name, report_without_its_rules(name)) for name in FAILED]
    asked = [v for v in unknown if v.remedy is not None]
    print(
        f"their rules left out: root {share([v.root for v in unknown]):.0%} of {len(unknown)}, "
        f"remedy {share([bool(v.remedy) for v in asked]):.0%} of {len(asked)}"
    )
    for name in QUIET:
        report, want = plain_report(name), truth(name)["outcome"]
        if report["outcome"] != want or report["diagnoses"]:
            said = report["diagnoses"][0]["root"] if report["diagnoses"] else None
            print(f"\nFALSE ALARM {name}: {report['outcome']} (wanted {want}), {said and said['text'][:150]}")
    for v in rows:
        label = truth(v.name)
        notes = [
            *([] if v.outcome else ["OUTCOME"]),
            *([] if v.root else ["ROOT"]),
            *([] if v.remedy is not False else ["REMEDY"]),
            *([] if v.stage_right else [f"stage {plain_report(v.name)['stage']}, wanted {label['stages']}"]),
            *(["HARMFUL " + " | ".join(v.harmful)] if v.harmful else []),
            *(["doubtful " + " | ".join(v.doubtful)] if v.doubtful else []),
        ]
        if notes:
            print(f"\n{v.name} [{v.rule}] {'; '.join(notes)}\n  said     {v.said[:200]}")
            if not v.root:
                print(f"  wanted   {label['root_lines']}: {label['root'][:200]}")
            if v.remedy is False:
                print(
                    f"  offered  {list(v.offered) or 'nothing'}\n  wanted   {label['fix_any']} ({label['cause']})"
                )
    with tempfile.TemporaryDirectory() as folder:
        for name in NAMES:
            log = Path(folder) / "carried.log"
            log.write_bytes(wrap(lines_of(name), transport_of(name)))
            plain, carried = plain_report(name), report_of(log)
            a, b = ([(d["root"]["line"], d["rule"]) for d in r["diagnoses"]][:1] for r in (plain, carried))
            if (a, plain["outcome"]) != (b, carried["outcome"]):
                print(
                    f"\nTRANSPORT {transport_of(name)} {name}: {plain['outcome']} {a} -> {carried['outcome']} {b}"
                )


if __name__ == "__main__":
    main()
