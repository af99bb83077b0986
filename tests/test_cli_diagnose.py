"""`mtpdoctor diagnose` as a process: exit codes, one clear line for bad input, nothing but JSON with --json."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import os
import subprocess
import sys
from pathlib import Path

import pytest
import zstandard

LOGS = Path(__file__).parent / "data" / "real_logs"
FAILED = LOGS / "spec_no_buffer_with_radix.log"


def doctor(
    *arguments: str, stdin: bytes = b"", env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "mtpdoctor", *arguments],
        input=stdin,
        capture_output=True,
        env={**os.environ, "COLUMNS": "80", **(env or {})},
        timeout=120,
    )


def test_a_known_failure() -> None:
    done = doctor("diagnose", str(FAILED))
    text = done.stdout.decode()
    assert done.returncode == 1
    assert done.stderr == b""
    assert "--mamba-scheduler-strategy extra_buffer" in text
    assert ":25" in text
    assert "\x1b" not in text
    assert max(len(line) for line in text.splitlines() if not line.startswith("python")) <= 80


def test_a_healthy_launch() -> None:
    done = doctor("diagnose", str(LOGS / "ready_dense.log"), "--json")
    report = json.loads(done.stdout)
    assert done.returncode == 0
    assert report["outcome"] == "ready"
    assert report["diagnoses"] == []


def test_an_unknown_failure(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text(
        "[2026-11-29 13:46:12 TP1] Init torch distributed begin.\n"
        "[2026-11-29 13:46:42 TP1] Scheduler hit an exception: Traceback (most recent call last):\n"
        '  File "/opt/sglang/srt/managers/scheduler.py", line 4046, in run_scheduler_process\n'
        "    scheduler = Scheduler(\n"
        '  File "/opt/sglang/srt/widgets.py", line 7, in turn\n'
        "    raise WidgetError(size)\n"
        "sglang.srt.widgets.WidgetError: widget 7 does not turn\n\n"
        "[2026-11-29 13:46:42] Received sigquit from a child process. It usually means the child failed.\n"
    )
    done = doctor("diagnose", str(log), "--json")
    report = json.loads(done.stdout)
    assert done.returncode == 3
    first = report["diagnoses"][0]
    assert first["rule"] is None
    assert first["root"]["line"] == 7
    assert first["root"]["rank"] == "TP1"
    assert [(f["safety"], f["edits"]) for f in first["fixes"]] == [("manual", [])]  # of its kind: upgrade
    assert [c["line"] for c in first["consequences"]] == [9]


@pytest.mark.parametrize(
    ("suffix", "pack"),
    [
        (".gz", gzip.compress),
        (".bz2", bz2.compress),
        (".xz", lzma.compress),
        (".zst", lambda data: zstandard.ZstdCompressor().compress(data)),
    ],
)
def test_packed_logs(tmp_path: Path, suffix: str, pack) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / f"server.log{suffix}"
    path.write_bytes(pack(FAILED.read_bytes()))
    report = json.loads(doctor("diagnose", str(path), "--json").stdout)
    assert report["diagnoses"][0]["root"]["line"] == 25


def test_standard_input() -> None:
    done = doctor("diagnose", "-", "--json", stdin=FAILED.read_bytes())
    assert done.returncode == 1
    assert json.loads(done.stdout)["diagnoses"][0]["root"]["line"] == 25


def test_half_a_gzip_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    packed = gzip.compress(FAILED.read_bytes() + b"x\n" * 1000)
    path = tmp_path / "server.log.gz"
    path.write_bytes(packed[: len(packed) - 12])
    done = doctor("diagnose", str(path), "--json")
    report = json.loads(done.stdout)
    assert report["diagnoses"][0]["root"]["line"] == 25
    assert any("gzip" in note for note in report["notes"])


@pytest.mark.parametrize(
    ("content", "name", "code", "words"),
    [
        (None, "missing.log", 2, "missing.log"),
        (b"", "empty.log", 2, ""),
        (b"\x7fELF\x02\x01\x01" + bytes(range(256)) * 20, "server.log", 2, "ELF"),
        (b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 20, "server.log", 2, "PNG"),
    ],
)
def test_bad_input_gets_one_clear_line(
    tmp_path: Path, content: bytes | None, name: str, code: int, words: str
) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    done = doctor("diagnose", str(path))
    assert done.returncode == code
    assert b"Traceback" not in done.stderr + done.stdout
    said = done.stderr.decode() or done.stdout.decode()
    assert words in said
    assert len(done.stderr.decode().splitlines()) <= 1


def test_a_folder_is_no_log(tmp_path: Path) -> None:
    done = doctor("diagnose", str(tmp_path))
    assert done.returncode == 2
    assert len(done.stderr.decode().splitlines()) == 1


def test_text_that_is_no_log(tmp_path: Path) -> None:
    path = tmp_path / "poem.txt"
    path.write_text("The fog comes\non little cat feet.\n" * 20)
    done = doctor("diagnose", str(path), "--json")
    report = json.loads(done.stdout)
    assert report["diagnoses"] == []
    assert done.returncode == 2
    assert any("SGLang" in note for note in report["notes"])
    plain = doctor("diagnose", str(path))
    assert plain.returncode == 2
    assert "no sign of SGLang" in plain.stderr.decode()
    assert len(plain.stderr.decode().splitlines()) == 1


def test_a_huge_line(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    path.write_bytes(b"x" * 5_000_000 + b"\n" + FAILED.read_bytes())
    report = json.loads(doctor("diagnose", str(path), "--json").stdout)
    assert report["diagnoses"][0]["root"]["line"] == 26


def test_a_secret_in_the_command_is_masked() -> None:
    log = FAILED.read_bytes().replace(b"--port 31020", b"--api-key sk-supersecretvalue123 --port 31020")
    for flags in (["--json"], [], ["--verbose"]):
        done = doctor("diagnose", "-", *flags, stdin=log)
        assert b"supersecret" not in done.stdout + done.stderr


def test_the_command_given_goes_before_the_one_in_the_log() -> None:
    done = doctor(
        "diagnose",
        str(FAILED),
        "--json",
        "--sglang",
        "0.5.13.post1",
        "--command",
        "sglang serve --model-path /m/Q --speculative-algorithm NEXTN --tp 4",
    )
    report = json.loads(done.stdout)
    fix = report["diagnoses"][0]["fixes"][0]
    assert fix["command"].startswith("sglang serve --model-path /m/Q")
    assert "--mamba-scheduler-strategy extra_buffer" in fix["command"]
    assert fix["verified"] in ("rules", "sglang")
    assert report["sglang_version"] == "0.5.13.post1"


def test_usage_errors() -> None:
    for arguments in (
        ["diagnose"],
        ["diagnose", "x", "--gpu", "many"],
        ["frobnicate"],
        ["diagnose", "x", "--sglang", "new"],
    ):
        done = doctor(*arguments)
        assert done.returncode == 2, arguments
        assert b"Traceback" not in done.stderr


def test_the_reader_may_go_away() -> None:
    done = subprocess.run(
        f"{sys.executable} -m mtpdoctor kb list | head -1", shell=True, capture_output=True, timeout=60
    )
    assert b"Traceback" not in done.stderr
