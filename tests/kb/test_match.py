"""Rules fire where their message stands in the attempt, with the captures, conditions and root line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mtpdoctor.facts import Source, make_facts
from mtpdoctor.kb.knowledge import Knowledge
from mtpdoctor.kb.match import MAX_MATCHES, Matches, match_rules

from .rules import knowledge, rule_text
from .stand_in import read

TRACEBACK = """\
[2026-01-02 03:04:05] launching
[2026-01-02 03:04:06 TP1] Scheduler hit an exception: Traceback (most recent call last):
  File "/sgl/scheduler.py", line 10, in run
    self.check()
  File "/sgl/args.py", line 20, in check
    assert self.page_size == 1
AssertionError: the page size must be one
[2026-01-02 03:04:07] Received sigquit from a child process
"""
CHAINED = """\
Traceback (most recent call last):
  File "/hub.py", line 1, in fetch
    raise Inner("not a valid repository")
Inner: not a valid repository

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/config.py", line 2, in load
    raise Outer("cannot load the config")
Outer: cannot load the config
"""


def match(known: Knowledge, log: str, first: int = 1, last: int | None = None, **facts: Any) -> Matches:
    reading = read(log, first, last)
    values = {name.replace("__", "."): value for name, value in facts.items()}
    return match_rules(known, reading, reading.attempts[0], make_facts(values, Source.USER))


def places(found: Matches) -> list[tuple[str, int]]:
    return [(m.rule.id, m.line.number) for m in found]


def test_a_line_is_matched_with_its_captures(tmp_path: Path) -> None:
    known = knowledge(tmp_path, rule_text(r"match: ['cannot open (?P<path>\S+)(?P<rest> at all)?']"))
    found = match(known, "start\nOSError: cannot open /a/b\ncannot close\n")
    assert places(found) == [("MTP0001", 2)]
    assert found[0].captures == {"path": "/a/b"}
    assert found[0].certain and found[0].confidence == 0.95
    assert found.skipped == ()


def test_the_full_stop_behind_a_version_is_no_part_of_it(tmp_path: Path) -> None:
    known = knowledge(tmp_path, rule_text(r"match: ['code depends on (?P<what>\w+)>=(?P<need>[\d.]+)']"))
    (found,) = match(known, "the code depends on grpcio>=1.78.1. Please upgrade\n")
    assert found.captures == {"what": "grpcio", "need": "1.78.1"}


def test_every_place_of_a_match_is_told_in_order_once(tmp_path: Path) -> None:
    known = knowledge(tmp_path, rule_text("match: ['first words', 'second words']"))
    found = match(known, "second words\nfirst words\nfirst words and second words\n")
    assert places(found) == [("MTP0001", 1), ("MTP0001", 2), ("MTP0001", 3)]


def test_a_rule_that_matches_everywhere_is_capped(tmp_path: Path) -> None:
    known = knowledge(tmp_path, rule_text("match: ['same words']"))
    assert len(match(known, "the same words\n" * 5000)) == MAX_MATCHES


def test_only_the_attempt_counts(tmp_path: Path) -> None:
    rules = [
        rule_text("match: ['some words']"),
        rule_text("match: ['other words']\nrequires: ['some words']", "MTP0002"),
        rule_text("match: ['other words']\nunless: ['some words']", "MTP0003"),
    ]
    log = "some words\nother words\nsome words\n"
    assert places(match(knowledge(tmp_path, *rules), log, first=2, last=2)) == [("MTP0003", 2)]
    assert places(match(knowledge(tmp_path, *rules), log)) == [("MTP0001", 1), ("MTP0001", 3), ("MTP0002", 2)]


def test_what_is_required_is_evidence(tmp_path: Path) -> None:
    known = knowledge(tmp_path, rule_text("match: ['some words']\nrequires: ['other (?:words|works)']"))
    found = match(known, "other works\nsome words\n")
    assert [line.number for line in found[0].evidence] == [1]


def test_a_traceback_is_matched_across_its_lines(tmp_path: Path) -> None:
    body = r"""
    match:
    - pattern: 'in check\n\s+assert self\.page_size == 1\nAssertionError: (?P<why>.*)'
      span: traceback
    """
    found = match(knowledge(tmp_path, rule_text(body)), TRACEBACK)
    assert places(found) == [("MTP0001", 7)]
    assert found[0].captures == {"why": "the page size must be one"}
    assert found[0].traceback is not None and found[0].traceback.type == "AssertionError"


@pytest.mark.parametrize(
    ("pattern", "root", "line"),
    [
        ("in check", "match", 7),  # nor is a frame
        ("in check", "exception", 7),
        ("in check", "last-exception", 7),
        ("assert self", "match", 7),  # quoted source is no root: the exception is
        ("the page size must", "match", 7),
    ],
)
def test_the_root_line_is_as_declared(pattern: str, root: str, line: int, tmp_path: Path) -> None:
    body = f"match: [{{pattern: '{pattern}', span: traceback}}]\nroot: {root}"
    assert places(match(knowledge(tmp_path, rule_text(body)), TRACEBACK)) == [("MTP0001", line)]


def test_quoted_source_says_nothing_where_the_exception_speaks(tmp_path: Path) -> None:
    known = knowledge(tmp_path, rule_text("match: ['assert self\\.page_size == 1']"))
    assert match(known, TRACEBACK) == []
    silent = TRACEBACK.replace("AssertionError: the page size must be one", "AssertionError")
    assert places(match(known, silent)) == [("MTP0001", 7)]


@pytest.mark.parametrize(("root", "line"), [("match", 4), ("exception", 4), ("last-exception", 11)])
def test_each_exception_of_a_chain_is_a_text_of_its_own(root: str, line: int, tmp_path: Path) -> None:
    body = f"root: {root}\nmatch:\n- {{pattern: 'raise Inner', span: traceback}}\n"
    across = r"match: [{pattern: 'raise Inner[\s\S]*Outer', span: traceback}]"
    known = knowledge(tmp_path, rule_text(body), rule_text(across, "MTP0002"))
    assert places(match(known, CHAINED)) == [("MTP0001", line)]


def test_a_false_condition_silences_and_an_unknown_one_says_if(tmp_path: Path) -> None:
    known = knowledge(tmp_path, rule_text("match: ['some words']\nwhen: {host.platform: cuda}"))
    assert match(known, "some words", host__platform="rocm") == []
    sure, unsure = match(known, "some words", host__platform="cuda")[0], match(known, "some words")[0]
    assert sure.certain and not sure.notes
    assert not unsure.certain and unsure.notes == ("if the platform is cuda",)
    assert unsure.confidence < sure.confidence


def test_a_condition_on_captures_is_decided_for_each_match(tmp_path: Path) -> None:
    known = knowledge(
        tmp_path,
        rule_text("match: ['needs (?P<n>[0-9]+) devices']\nwhen: {capture.n: {gt: $host.gpu.count}}"),
    )
    log = "needs 8 devices\nneeds 2 devices\n"
    assert places(match(known, log, host__gpu__count=4)) == [("MTP0001", 1)]
    assert [m.certain for m in match(known, log)] == [False, False]


def test_the_message_counts_even_in_a_release_where_it_is_not_expected(tmp_path: Path) -> None:
    body = "match: ['some words']\nreleases: '{}'"
    old, new = rule_text(body.format("<0.5.14")), rule_text(body.format(">=0.5.14"), "MTP0002")
    found = match(knowledge(tmp_path, old), "some words", release="0.5.20")
    assert places(found) == [("MTP0001", 1)]
    assert found[0].confidence < 0.95 and "0.5.20" in found[0].notes[0]
    both = knowledge(tmp_path, old, new)
    assert places(match(both, "some words", release="0.5.20")) == [("MTP0002", 1)]
    assert places(match(both, "some words", release="0.5.13")) == [("MTP0001", 1)]
    assert places(match(both, "some words")) == [("MTP0001", 1), ("MTP0002", 1)]


def test_a_text_that_stands_for_something_else_is_no_evidence(tmp_path: Path) -> None:
    body = (
        "match: ['some words']\nreleases: '<0.5.14'\nelsewhere: [{releases: '>=0.5.20', why: said of a pump}]"
    )
    known = knowledge(tmp_path, rule_text(body))
    assert places(match(known, "some words", release="0.5.13")) == [("MTP0001", 1)]
    assert places(match(known, "some words", release="0.5.16")) == [("MTP0001", 1)]  # nothing is said of it
    assert places(match(known, "some words", release="0.5.21")) == []
    assert places(match(known, "some words")) == [("MTP0001", 1)]


def test_a_release_that_was_worked_out_silences_no_rule(tmp_path: Path) -> None:
    body = "match: ['some words']\nelsewhere: [{releases: '>=0.5.20', why: said of a pump}]"
    log = read("some words", 1, None)
    known, newer = (
        knowledge(tmp_path / "a", rule_text(body)),
        knowledge(tmp_path / "b", rule_text(body), rule_text("match: ['some words']", "MTP0002")),
    )
    facts = make_facts({"release": "0.5.21"}, Source.DERIVED, "worked out")
    found = match_rules(known, log, log.attempts[0], facts)
    assert places(found) == [("MTP0001", 1)]
    assert found[0].confidence < 0.95 and "0.5.21" in found[0].notes[0]
    assert places(match_rules(newer, log, log.attempts[0], facts)) == [("MTP0002", 1)]
    symptom = rule_text("match: ['some words']\ngeneric: true", "MTP0002")
    older = knowledge(tmp_path / "c", rule_text("match: ['some words']\nreleases: '<0.5.20'"), symptom)
    both = match_rules(older, log, log.attempts[0], facts)
    assert places(both) == [("MTP0001", 1), ("MTP0002", 1)]
    assert both[0].confidence > 0.8  # a build between two releases has lines of both
    assert places(match(older, "some words", release="0.5.21")) == [("MTP0002", 1)]


def test_a_regex_that_runs_out_of_time_is_named_and_the_others_go_on(tmp_path: Path) -> None:
    slow = rule_text("match: ['some words(?:a+)+(?:a+)+(?:a+)+(?:a+)+(?:a+)+$']")
    known = knowledge(tmp_path, slow, rule_text("match: ['some words']", "MTP0002"))
    stalling = "some words" + "a" * 7000 + "!\n"
    found = match(known, stalling * 5)
    assert found.skipped == ("MTP0001",)
    assert {m.rule.id for m in found} == {"MTP0002"}
    found = match(known, stalling + "some wordsaaaaaaaaa")  # one bad line does not hide the good one
    assert found.skipped == ("MTP0001",)
    assert places(found) == [("MTP0001", 2), ("MTP0002", 1), ("MTP0002", 2)]


def test_a_huge_line_is_searched_around_its_literals(tmp_path: Path) -> None:
    known = knowledge(tmp_path, rule_text(r"match: ['some words (?P<n>\d+)']"))
    line = "x" * 300_000 + "some words, " + "y" * 300_000 + "some words 42" + "z" * 300_000
    assert match(known, line)[0].captures == {"n": "42"}


def test_rules_without_their_literal_are_not_even_made(tmp_path: Path) -> None:
    text = rule_text("match: ['some words']"), rule_text("match: ['other words']", "MTP0002")
    rules = knowledge(tmp_path, *text).rules
    made: list[int] = []

    def make(index: int) -> Any:
        made.append(index)
        return rules[index]

    whole = Knowledge.of(rules)
    assert places(match(Knowledge(whole.heads, whole.literals, make), "other words")) == [("MTP0002", 1)]
    assert made == [1]
