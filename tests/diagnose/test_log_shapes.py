"""The root line of composed logs, each of one shape that logs come in.

``tests/data/log_shapes/*.txt``: after ``=== NAME :: OUTCOME`` (failed where none is named) a log in which ``>>>`` marks the
line, or one of the lines, that may be named as its root, and ``{NAME}`` stands for a piece of ``macros.txt`` and ``\\e`` for the escape character.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from own_knowledge import own_knowledge

from mtpdoctor.diagnose.engine import diagnose
from mtpdoctor.diagnose.types import Report
from mtpdoctor.log.reading import reading_from_text

FOLDER = Path(__file__).parents[1] / "data" / "log_shapes"


def pieces(path: Path) -> list[tuple[str, str]]:
    found = re.split(r"^=== (.+)\n", path.read_text(encoding="utf-8"), flags=re.M)
    return list(zip(found[1::2], found[2::2], strict=True))


MACROS = {name: text.rstrip("\n") for name, text in pieces(FOLDER / "macros.txt")}
NAMED = re.compile(r"\{(" + "|".join(MACROS) + r")\}")


def expanded(text: str) -> str:
    while NAMED.search(text):
        text = NAMED.sub(lambda m: MACROS[m[1]], text)
    return text.replace("\\e", "\x1b")


CASES = {
    head: expanded(text)
    for path in sorted(FOLDER.glob("*.txt"))
    if path.stem != "macros"
    for head, text in pieces(path)
}


def report(text: str) -> Report:
    knowledge = own_knowledge()
    return diagnose(reading_from_text(text, knowledge.literals), knowledge)


@pytest.mark.parametrize("head", CASES)
def test_outcome_and_root(head: str) -> None:
    lines = CASES[head].split("\n")
    roots = {number for number, line in enumerate(lines, 1) if ">>>" in line}
    said = report("\n".join(line.replace(">>>", "", 1) for line in lines))
    assert said.outcome == (head.partition(" :: ")[2] or "failed")
    assert {d.root.number for d in said.diagnoses[:1]} <= roots
    assert bool(said.diagnoses) is bool(roots)


def stop(name: str) -> Report:
    return report(CASES[f"{name} :: unfinished"])


@pytest.mark.parametrize(
    ("name", "seconds"),
    [
        ("hang_date", 1942),
        ("hang_said", 1800),
        ("hang_said_comment", 2040),
        ("hang_smi", 2362),
        ("hang_soft_watchdog", 900),
        ("hang_ctrl_c_late", 2400),
        ("hang_ps", 2674),
        ("hang_docker_ps", 2964),
    ],
)
def test_how_long_it_was_quiet_is_read_off_what_people_left(name: str, seconds: float) -> None:
    found = stop(name).stop
    assert found is not None and found.silent_s == seconds and found.overdue
    assert found.causes[0].id == "collective"


def test_a_dump_of_stacks_asks_for_what_holds_it_up_though_somebody_ended_it() -> None:
    found = stop("hang_pyspy").stop
    assert found is not None and found.ended is not None
    assert found.causes and any("synchronize" in clue.text for clue in found.causes[0].clues)


def test_one_that_was_stopped_early_is_no_hang() -> None:
    found = stop("hang_stopped_early").stop
    assert found is not None and not found.overdue and not found.causes
