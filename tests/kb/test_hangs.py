"""The knowledge of hangs: every cause comes first where it must, and a file that is wrong is told with its line."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from mtpdoctor.cli.main import main
from mtpdoctor.errors import UserError
from mtpdoctor.kb.hangs_lint import lint_hangs, scene_of_example
from mtpdoctor.kb.hangs_source import load_hangs
from mtpdoctor.log.types import Stage
from mtpdoctor.paths import knowledge_folder

HANGS = load_hangs()
SCENES = [
    pytest.param(cause.id, written, first, id=f"{cause.id}-{'first' if first else 'not'}-{n}")
    for cause in HANGS.causes
    for first, scenes in ((True, cause.first), (False, cause.not_first))
    for n, written in enumerate(scenes, 1)
]


@pytest.mark.parametrize(("cause", "written", "first"), SCENES)
def test_each_scene_is_told_as_its_cause_says(cause: str, written: dict[str, object], first: bool) -> None:
    stage, scene = scene_of_example(written)
    likely = HANGS.likely(stage, scene)
    assert likely, "nothing is told"
    assert (likely[0].cause.id == cause) is first, [one.cause.id for one in likely]


@pytest.mark.parametrize("stage", [stage for stage in Stage if stage is not Stage.SERVING])
def test_every_stage_has_a_usual_cause_and_a_reason_for_its_silence(stage: Stage) -> None:
    _, scene = scene_of_example({"stage": stage.value})
    assert HANGS.likely(stage, scene) and HANGS.quiet_why[stage]


def test_the_own_knowledge_is_well() -> None:
    problems, scenes = lint_hangs(knowledge_folder())
    assert problems == [] and scenes == len(SCENES)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copytree(knowledge_folder() / "hangs", tmp_path / "hangs")
    return tmp_path


CAUSE = """causes:
- id: lost-cable
  title: A cable is lost
  stages: [dist_init]
  if: {several: true}
  seen: [{line: 'cable'}]
  tell: "look at the cable"
  do: "plug it in"
  examples:
    first: [{stage: dist_init, ranks: 2, lines: [no cable]}]
    not_first: [{stage: dist_init, ranks: 1, lines: [no cable]}]
"""


def test_a_cause_of_ones_own_is_a_few_lines(folder: Path) -> None:
    (folder / "hangs" / "own.yaml").write_text(CAUSE)
    assert lint_hangs(folder, folder)[0] == []
    stage, scene = scene_of_example({"stage": "dist_init", "ranks": 2, "lines": ["no cable"]})
    assert load_hangs(folder).likely(stage, scene)[0].cause.id == "lost-cable"


@pytest.mark.parametrize(
    ("before", "after", "line", "says"),
    [
        ("{line: 'cable'}", "{lines: 'cable'}", 6, "no condition 'lines'"),
        ("{line: 'cable'}", "{line: '(cable'}", 6, "not a pattern"),
        ("{line: 'cable'}", "{launch: {tp: 2}}", 6, "unknown fact"),
        ("{several: true}", "{several: many}", 5, "several is one of"),
        ("[dist_init]", "[distinit]", 4, "no stage 'distinit'"),
        ("id: lost-cable", "id: p2p", 2, "is taken by"),
        ("id: lost-cable", "id: Lost Cable", 2, "lower-case"),
        ('do: "plug it in"', 'does: "plug it in"', 2, "missing do; unknown does"),
        ("plug it in", "plug it in.", 8, "full stop"),
        ("ranks: 2, lines: [no cable]", "ranks: 2, lines: [nothing]", 2, "first 1: told in this order"),
        ("ranks: 1, lines: [no cable]", "ranks: 3, lines: [no cable]", 2, "not_first 1: told in this order"),
        ("ranks: 1, lines", "rank: 1, lines", 2, "unknown rank"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(
    folder: Path, before: str, after: str, line: int, says: str
) -> None:
    assert before in CAUSE
    (folder / "hangs" / "own.yaml").write_text(CAUSE.replace(before, after, 1))
    problems, _ = lint_hangs(folder, folder)
    assert any(p.file == "hangs/own.yaml" and p.line == line and says in p.message for p in problems), (
        problems
    )


def test_knowledge_that_cannot_be_read_is_an_error_for_people(folder: Path) -> None:
    (folder / "hangs" / "stages.yaml").unlink()
    with pytest.raises(UserError, match="stages"):
        load_hangs(folder)


def test_a_folder_without_hangs_goes_by_the_doctors_own(tmp_path: Path) -> None:
    assert load_hangs(tmp_path).causes == HANGS.causes


def test_they_are_listed_and_explained_like_rules(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kb", "list", "--role", "hang", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["rules"] == [] and {c["id"] for c in document["hangs"]} == {c.id for c in HANGS.causes}
    assert main(["kb", "list", "--stage", "dist_init", "wrong", "network", "interface"]) == 0
    assert "interface  hang  dist_init  NCCL or Gloo" in capsys.readouterr().out
    for cause in HANGS.causes:
        assert main(["explain", cause.id]) == 0
        told = capsys.readouterr().out
        assert cause.title.split()[0] in told and "never a root cause" in told
    assert main(["explain", "nodes-mising"]) == 2
    assert "nodes-missing" in capsys.readouterr().err


def test_lint_of_one_file_looks_at_its_scenes(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    assert main(["kb", "lint", str(knowledge_folder() / "hangs" / "3_ranks.yaml")]) == 0
    assert "scenes of hangs: no problem" in capsys.readouterr().err
