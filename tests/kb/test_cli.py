"""``mtpdoctor kb`` and ``mtpdoctor explain``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mtpdoctor.cli.kb_learn import rule_text as text_of
from mtpdoctor.cli.main import main
from mtpdoctor.kb.load import knowledge_folder, load_knowledge

from .rules import rule_text, write
from .test_lint import GOOD

LOG = "one\nOSError: cannot open the file /a/b\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A knowledge of two rules, in use."""
    other = rule_text("predicts: {flag.tp_size: {gt: $host.gpu.count}}", "MTP0042").replace(
        "A rule", "Some rule"
    )
    own = knowledge_folder()
    write(tmp_path / "knowledge", rule_text(GOOD), other)
    (tmp_path / "knowledge" / "releases").symlink_to(own / "releases")
    monkeypatch.setenv("MTPDOCTOR_KNOWLEDGE", str(tmp_path / "knowledge"))
    monkeypatch.setenv("MTPDOCTOR_CACHE", str(tmp_path / "cache"))
    return tmp_path / "knowledge"


def test_list(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kb", "list"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["MTP0001", "MTP0042"]
    assert main(["kb", "list", "CANNOT", "open", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [r["id"] for r in told["rules"]] == ["MTP0001"]
    assert main(["kb", "list", "--stage", "weights"]) == 0
    assert capsys.readouterr().out == ""
    assert main(["kb", "list", "--stage", "wieghts"]) == 2
    assert "unknown stage 'wieghts'" in capsys.readouterr().err


def test_families(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kb", "list", "--families", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["families"]
    assert len(told) > 100 and not any(told.values())


def test_lint(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kb", "lint", "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    errors = [(p["rule"], p["message"]) for p in told["problems"] if p["level"] == "error"]
    assert errors == [("MTP0042", "a cause without remedies")]
    assert told["rules"] == 2
    assert main(["kb", "lint", "no.yaml"]) == 2


def test_lint_holds_releases_against_the_sources(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What `kb verify` found counts: a claim beyond it is an error, a rule it did not see one only with --ci."""
    learned = (folder / "releases").resolve()
    (folder / "releases").unlink()
    (folder / "releases").mkdir()
    for file in learned.iterdir():
        if file.name != "verified.json":
            (folder / "releases" / file.name).symlink_to(file)

    def said(*options: str) -> list[tuple[str, str]]:
        main(["kb", "lint", "--json", *options])
        problems = json.loads(capsys.readouterr().out)["problems"]
        return [(p["level"], p["message"]) for p in problems if p["rule"] == "MTP0001"]

    ((level, message),) = said()
    assert level == "note" and "not verified" in message
    ((level, message),) = said("--ci")
    assert level == "error" and "not verified" in message

    key = text_of(next(r for r in load_knowledge().rules if r.id == "MTP0001")).key
    table = {"format": 1, "releases": ["0.5.9", "0.5.10"]}
    rows = {"MTP0001": {"key": key, "spans": [["0.5.9", "0.5.9"]]}}
    (folder / "releases" / "verified.json").write_text(json.dumps({**table, "rules": rows}))
    ((level, message),) = said()
    assert level == "error" and "does not occur in 0.5.10" in message


def test_try(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "x.log"
    log.write_text("$ python -m sglang.launch_server --model-path M\n" + LOG)
    assert main(["kb", "try", r"cannot open the file (?P<path>\S+)", str(log)]) == 0
    out = capsys.readouterr().out
    assert "literal: 'cannot open the file'" in out
    assert f"{log}:3: OSError: cannot open the file /a/b\n    path = /a/b\n" in out
    assert main(["kb", "try", "cannot open the door", str(log)]) == 1
    assert "no match" in capsys.readouterr().err
    for bad in ("a|b", "abcdefgh("):
        assert main(["kb", "try", bad, str(log)]) == 2
    assert main(["kb", "try", "long enough", str(tmp_path / "none.log")]) == 2


def test_matrix(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kb", "matrix", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["examples"]
    assert [(e["rule"], e["kind"], e["fires"]) for e in told] == [
        ("MTP0001", "bad", ["MTP0001"]),
        ("MTP0001", "ok", []),
    ]
    assert main(["kb", "matrix", str(folder / "rules.yaml")]) == 0
    assert "MTP0001  bad  MTP0001" in capsys.readouterr().out


def test_try_tells_cost_neighbours_and_healthy_logs(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    healthy = folder.parent / "tests" / "healthy"
    healthy.mkdir(parents=True)
    (healthy / "fine.log").write_text(
        "INFO cannot open the window\nThe server is fired up and ready to roll!\n"
    )
    log = tmp_path / "x.log"
    log.write_text("$ python -m sglang.launch_server --model-path M --api-key sk-abcdefgh12345678\n" + LOG)
    assert main(["kb", "try", "cannot open the (?P<what>\\w+)", str(log), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    (match,) = told["logs"][0]["matches"]
    assert (match["line"], match["captures"], match["rules"]) == (3, {"what": "file"}, ["MTP0001"])
    assert told["healthy"]["logs"] == 1
    assert [m["where"] for m in told["healthy"]["matches"]] == ["fine.log:1"]
    assert {e["where"] for e in told["examples"]} >= {"MTP0001 bad"}
    assert 0 <= told["cost_s"] < 1
    assert main(["kb", "try", "cannot open the (?P<what>\\w+)", str(log)]) == 0
    out = capsys.readouterr().out
    assert "MTP0001 fires here too: A rule for tests" in out
    assert "healthy logs: 1 match in 1" in out
    assert main(["kb", "try", r"(x+x+)+y cannot open the", str(log)]) == 1
    assert "too slow for a rule" in capsys.readouterr().out
    assert main(["kb", "try", r"\w*", str(log), "--literal", "cannot open"]) == 2


def test_matrix_names_what_stands_out(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A second rule that fires on the first one's example, undeclared."""
    again = rule_text(GOOD, "MTP0077").replace("A rule", "Another rule")
    (folder / "more.yaml").write_text("rules:\n" + again)
    assert main(["kb", "matrix", "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    first = next(e for e in told["examples"] if (e["rule"], e["kind"]) == ("MTP0001", "bad"))
    assert (first["undeclared"], first["alone"], first["wrong"]) == (["MTP0077"], False, False)
    assert told["fires_elsewhere"] == {"MTP0001": 1, "MTP0077": 1} and told["only_own"] == []
    assert main(["kb", "matrix", "--summary"]) == 1
    said = capsys.readouterr()
    assert "!MTP0077" in said.out and "undeclared: 2, wrong on their own: 0" in said.err
    assert main(["kb", "matrix", "--csv"]) == 1
    rows = capsys.readouterr().out.splitlines()
    assert rows[0] == "rule,kind,example,fires,undeclared,alone,wrong" and len(rows) == 5
    assert main(["kb", "matrix", "nowhere.yaml"]) == 2


def test_explain(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "mtp0001"]) == 0
    out = capsys.readouterr().out
    for text in (
        "MTP0001  A rule for tests",
        "Something is wrong.",
        "set --tp-size 1",
        "[safe]",
        "why: there is one",
        "https://example.org/issue",
        "OSError: cannot open the file /a",
        "releases  all",
    ):
        assert text in out
    assert main(["explain", "42"]) == 0
    assert "before launch if --tp-size is more than the number of GPUs (fatal)" in capsys.readouterr().out


def test_explain_names_the_nearest_ids(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "MTP0041"]) == 2
    assert "nearest: MTP0042, MTP0001" in capsys.readouterr().err


def test_every_rule_of_the_own_knowledge_can_be_explained(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from mtpdoctor.kb.load import load_knowledge
    from mtpdoctor.report.rule_text import explain

    monkeypatch.setenv("MTPDOCTOR_CACHE", str(tmp_path))
    for rule in load_knowledge().rules:
        lines = explain(rule, 80)
        assert lines[0].startswith(rule.id)
        assert all("\n" not in line for line in lines)
