"""docs/release-facts.md and docs/seed-points.md say what the knowledge holds."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mtpdoctor.kb.load import knowledge_folder, load_knowledge
from mtpdoctor.release import Release, parse_release
from mtpdoctor.sglang.releases import known_releases

ROOT = Path(__file__).resolve().parent.parent
FACTS = (ROOT / "docs" / "release-facts.md").read_text(encoding="utf-8")
POINTS = (ROOT / "docs" / "seed-points.md").read_text(encoding="utf-8")
IDS = (ROOT / "tests" / "data" / "release_fact_ids.txt").read_text(encoding="utf-8").split()
FACT_ROWS = [
    row
    for row in re.findall(r"^\| ([a-z]\w*(?:\.\w+)*) \| ([^|]+) \| (.+) \|$", FACTS.split("\n## ")[0], re.M)
    if row[0] != "fact"
]
POINT_ROWS = [
    (point, releases, where)
    for point, releases, where in re.findall(r"^\| ([^|]*)\| ([^|]+) \|[^|]*\| (.+) \|$", POINTS, re.M)
    if releases not in ("releases", "---")
]
NAMED = re.compile(r"(MTP\d{4})(?: \(`([^`]+)`\))?")


@pytest.fixture(scope="module")
def ranges() -> dict[str, str]:
    return {rule.id: rule.releases.text for rule in load_knowledge().rules}


def window(text: str) -> list[Release]:
    """The known releases that a cell of the second column names."""
    known = known_releases()
    if text == "all":
        return list(known)
    if text.startswith("below "):
        return [r for r in known if r < parse_release(text[6:])]
    first, _, last = text.removesuffix(" on").partition(" - ")
    low = parse_release(first)
    high = parse_release(last) if last else max(known) if text.endswith(" on") else low
    return [r for r in known if low <= r <= high]


def test_every_fact_is_listed_once() -> None:
    assert sorted(name for name, _, _ in FACT_ROWS) == sorted(IDS)
    assert len(IDS) == 94


def test_every_point_of_the_seed_is_listed() -> None:
    numbers = [int(point.split()[0]) for point, _, _ in POINT_ROWS if point.strip()]
    assert numbers == list(range(1, 15))


@pytest.mark.parametrize("page", [FACTS, POINTS], ids=["facts", "seed"])
def test_named_rules_exist_with_the_releases_given(page: str, ranges: dict[str, str]) -> None:
    named = NAMED.findall(page)
    assert len(named) > 30
    for rule, releases in named:
        assert rule in ranges
        assert releases in ("", ranges[rule]), rule


@pytest.mark.parametrize("rows", [FACT_ROWS, POINT_ROWS], ids=["facts", "seed"])
def test_rules_hold_for_the_releases_of_the_fact(rows: list[tuple[str, str, str]]) -> None:
    """Where a row begins with a rule, the rules of the row reach over all its releases."""
    rules = {rule.id: rule.releases for rule in load_knowledge().rules}
    looked = 0
    for name, releases, where in rows:
        if where.startswith("MTP"):
            looked += 1
            assert window(releases), releases
            for release in window(releases):
                assert any(release in rules[rule] for rule, _ in NAMED.findall(where)), (name, str(release))
    assert looked > 15


def test_named_blocks_of_the_resolution_exist() -> None:
    text = "".join(p.read_text(encoding="utf-8") for p in (knowledge_folder() / "resolution").glob("*.yaml"))
    blocks = set(re.findall(r"^  ([a-z-]+):$", text, re.M))
    for _, _, where in [*FACT_ROWS, *POINT_ROWS]:
        for names in re.findall(r"resolution ((?:`[a-z-]+`(?:, )?)+)", where):
            assert set(re.findall(r"`([a-z-]+)`", names)) <= blocks


def test_what_is_not_covered_has_a_reason() -> None:
    for name, _, where in FACT_ROWS:
        lives = re.search(r"MTP\d{4}|resolution `|`\w+\.json`", where)
        assert lives or re.match(r"not covered: (?:\w+\W+){4}|no r(?:ule|emedy) \w+", where), name
