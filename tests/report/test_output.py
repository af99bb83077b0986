"""``--format``, ``--json`` and ``--out``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mtpdoctor.cli.main import main

SAMPLES = Path(__file__).parent.parent.parent / "sample_logs"
LOG = str(SAMPLES / "port_in_use.log")


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("r.md", "## SGLang"),
        ("r.html", "<!DOCTYPE html>"),
        ("r.sarif", "{"),
        ("r.SARIF.json", "{"),
        ("r.txt", "FAILED"),
        ("r", "FAILED"),
    ],
)
def test_the_suffix_chooses_the_format(
    name: str, start: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / name
    assert main(["diagnose", LOG, "--out", str(out)]) == 1
    assert out.read_text(encoding="utf-8").startswith(start)
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == f"wrote {out}\n"
    assert [p.name for p in tmp_path.iterdir()] == [name]


def test_the_format_goes_before_the_suffix(tmp_path: Path) -> None:
    out = tmp_path / "r.html"
    assert main(["diagnose", LOG, "--out", str(out), "--format", "sarif"]) == 1
    assert json.loads(out.read_text())["version"] == "2.1.0"


def test_json_stays_and_contradictions_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diagnose", LOG, "--json"]) == 1
    plain = capsys.readouterr().out
    assert main(["diagnose", LOG, "--format", "json"]) == 1
    assert capsys.readouterr().out == plain
    assert main(["diagnose", LOG, "--json", "--format", "html"]) == 2
    assert "exclude each other" in capsys.readouterr().err


def test_a_log_is_never_written_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "server.log"
    log.write_bytes(Path(LOG).read_bytes())
    (tmp_path / "link.txt").symlink_to(log)
    assert main(["diagnose", str(log), "--out", str(tmp_path / "link.txt")]) == 2
    assert "one of the files to read" in capsys.readouterr().err
    assert log.read_bytes() == Path(LOG).read_bytes()


def test_what_cannot_be_written_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diagnose", LOG, "--out", str(tmp_path / "no" / "r.html")]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and "cannot write" in error


@pytest.mark.parametrize("form", ["markdown", "html"])
def test_nothing_to_report_is_an_error_for_people(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    empty = tmp_path / "e.log"
    empty.write_text("")
    assert main(["diagnose", str(empty), "--format", form]) == 2
    assert "nothing in it" in capsys.readouterr().err
    assert main(["diagnose", str(empty), "--format", "sarif"]) == 2
    assert json.loads(capsys.readouterr().out)["runs"][0]["results"] == []
