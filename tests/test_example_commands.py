"""Every before -> after command of the rules was put before the real SGLang of a release that the rule is about.

tests/data/example_commands.json holds its answers (benchmarks/example_commands.py asks, without a GPU).
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from mtpdoctor.release import parse_release

ROOT = Path(__file__).resolve().parent.parent


def benchmark() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "example_commands", ROOT / "benchmarks" / "example_commands.py"
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    import sys

    sys.modules[spec.name] = module  # its dataclasses look their module up
    spec.loader.exec_module(module)
    return module


BENCHMARK = benchmark()
RECORDED = BENCHMARK.read_recorded()
EXAMPLES = {e.key: e for e in BENCHMARK.examples()}


def test_every_example_has_an_answer() -> None:
    missing = [key for key in EXAMPLES if key not in RECORDED]
    assert not missing, (
        "SGLang was not asked about these command examples (new or changed): run `python "
        "benchmarks/example_commands.py record --sglang RELEASE=PYTHON ...` with an environment of a release that "
        "the rule is about, and commit tests/data/example_commands.json\n" + "\n".join(missing)
    )


@pytest.mark.parametrize("key", sorted(EXAMPLES.keys() & RECORDED.keys()))
def test_sglang_takes_what_the_remedy_leads_to(key: str) -> None:
    row, example = RECORDED[key], EXAMPLES[key]
    assert row["after"] != "reject", f"SGLang {row['release']} refuses it: {row['after_said']}"
    if row["after"] == "not asked":
        assert row["reason"]
        return
    release = parse_release(row["release"])
    assert release in example.rule.releases and release in example.rule.remedies[example.remedy].releases
    if row["after"] == "unknown":
        assert row["after_said"]


def test_nearly_all_could_be_asked() -> None:
    accepted = [row for row in RECORDED.values() if row["after"] == "accept"]
    assert len(accepted) >= 0.95 * len(RECORDED) and len(accepted) >= 165
    assert (
        sum(row["before"] == "reject" for row in accepted) >= 50
    )  # the others fail later than in the argument checks
