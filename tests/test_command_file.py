"""A fix goes back into the file the launch is written in: as a diff, and onto disk after a yes."""

from __future__ import annotations

import json
from pathlib import Path

from test_cli_diagnose import FAILED, doctor

COMPOSE = """\
# our MTP server
services:
  sglang:
    image: lmsysorg/sglang:v0.5.13.post1
    environment:
      - HF_TOKEN=hf_abcdefghijklmnopqrstuvwxyz012345
    command: >
      python3 -m sglang.launch_server
      --model-path /models/Qwen3.5-tiny
      --speculative-algorithm NEXTN   # not a comment here
"""


def compose(folder: Path) -> Path:
    path = folder / "docker-compose.yaml"
    path.write_text(COMPOSE.replace("   # not a comment here", ""))
    return path


def test_the_diff_is_of_the_file_and_can_be_applied(tmp_path: Path) -> None:
    path = compose(tmp_path)
    report = json.loads(doctor("diagnose", str(FAILED), "--json", "--command-file", str(path)).stdout)
    fix = report["diagnoses"][0]["fixes"][0]
    added = [line for line in fix["diff"].splitlines() if line.startswith("+ ")]
    assert added == ["+      --mamba-scheduler-strategy extra_buffer"]
    assert not [line for line in fix["diff"].splitlines() if line.startswith("- ")]
    assert fix["verified"] in ("rules", "sglang")
    assert report["sglang_version"] == "0.5.13.post1"  # by the image's tag
    assert "abcdefghij" not in json.dumps(report)


def test_write_needs_a_yes(tmp_path: Path) -> None:
    path = compose(tmp_path)
    before = path.read_bytes()
    done = doctor("diagnose", str(FAILED), "--command-file", str(path), "--write")
    assert done.returncode == 2
    assert path.read_bytes() == before
    assert b"yes" in done.stderr


def test_write_keeps_a_backup_and_the_secret(tmp_path: Path) -> None:
    path = compose(tmp_path)
    before = path.read_text()
    done = doctor("diagnose", str(FAILED), "--command-file", str(path), "--write", "--yes")
    assert done.returncode == 1, done.stderr
    after = path.read_text()
    assert "--mamba-scheduler-strategy extra_buffer" in after
    assert "hf_abcdefghijklmnopqrstuvwxyz012345" in after
    assert (tmp_path / "docker-compose.yaml.bak").read_text() == before


def test_write_refuses_what_is_not_there(tmp_path: Path) -> None:
    path = compose(tmp_path)
    assert doctor("diagnose", str(FAILED), "--write").returncode == 2
    done = doctor("diagnose", str(FAILED), "--command-file", str(path), "--write", "--yes", "--fix", "99")
    assert done.returncode == 2
    assert not list(tmp_path.glob("*.bak*"))


def test_a_file_that_changed_meanwhile_is_left_alone(tmp_path: Path) -> None:
    import pytest

    from mtpdoctor.cli.writing import write_fixed
    from mtpdoctor.errors import UserError

    path = compose(tmp_path)
    with pytest.raises(UserError, match="changed meanwhile"):
        write_fixed(str(path), path.read_text() + "#", "new", diff="", yes=True)
    assert "our MTP server" in path.read_text()


def test_a_broken_launch_file_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "docker-compose.yaml"
    path.write_text("services:\n  a: [1, 2\n  b: {x\n")
    done = doctor("diagnose", str(FAILED), "--command-file", str(path))
    assert done.returncode == 2
    assert b".yaml:3:4: not valid YAML" in done.stderr
    assert b"Traceback" not in done.stderr
