"""The rules say what the real SGLang says about a launch: floors over recorded verdicts of six releases.

Commands are random (``benchmarks/oracle/gen.py``); "shared" ones are of the distribution that mixes what
people combine, "wide" ones give every flag now and then, which no set of rules can know in full.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).resolve().parent.parent / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

from agreement import VERDICTS, compare, kind_of, kind_of_command, read_records  # noqa: E402

from mtpdoctor.kb.load import load_knowledge  # noqa: E402

EVERY = 4  # of the records, so that the test stays fast; benchmarks/agreement.py reads all of them
FILES = sorted(VERDICTS.glob("*.jsonl.xz"))


def some(file: Path, kind: str) -> Iterator[tuple[str, dict[str, Any]]]:
    records = [(release, r) for release, r in read_records([file]) if kind_of_command(r) == kind]
    return iter(records[::EVERY])


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.name.removesuffix(".jsonl.xz"))
@pytest.mark.parametrize(("kind", "agreement", "alarms"), [("shared", 0.98, 0.005), ("wide", 0.9, 0.02)])
def test_the_rules_agree_with_sglang(file: Path, kind: str, agreement: float, alarms: float) -> None:
    for release, tally in compare(some(file, kind), load_knowledge()).items():
        missed = sorted(kind_of(record) for record, _ in tally.misses)
        alarmed = [f"{record['id']}: {said.why}" for record, said in tally.false_alarms]
        assert tally.cases >= 10, release
        assert tally.agreement >= agreement, (release, missed, alarmed)
        assert tally.alarm_rate <= alarms, (release, alarmed)


def test_every_recorded_release_is_measured() -> None:
    assert {f.name.removesuffix(".jsonl.xz") for f in FILES} >= {"0.5.9", "0.5.10.post1", "0.5.16", "0.5.23"}
