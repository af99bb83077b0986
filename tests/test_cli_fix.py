"""`mtpdoctor fix`: a launch command, or the file it stands in, repaired without a log."""

from __future__ import annotations

import json
from pathlib import Path

from test_cli_diagnose import doctor

MODEL = str(Path(__file__).parent / "data" / "models" / "Qwen3.5-122B-A10B" / "config.json")
HOST = ["--gpu", "4xsm120@95", "--model", MODEL]
SEED = (
    "SGLANG_ENABLE_SPEC_V2=1 python -m sglang.launch_server --model-path /m/Qwen3.5-122B-A10B "
    "--speculative-algorithm NEXTN --mamba-scheduler-strategy extra_buffer --tp 4 --attention-backend triton"
)


def test_a_command_that_needs_nothing() -> None:
    done = doctor("fix", "--sglang", "0.5.13.post1", *HOST, "--", *SEED.split())
    assert done.returncode == 0, done.stdout
    assert b"Nothing" in done.stdout


def test_the_seed_command_on_a_release_that_renamed_its_flag() -> None:
    done = doctor("fix", "--json", "--sglang", "0.5.23", *HOST, "--", *SEED.split())
    answer = json.loads(done.stdout)
    assert done.returncode == 0, answer
    assert "--mamba-radix-cache-strategy extra_buffer" in answer["command"]
    assert "--mamba-scheduler-strategy" not in answer["command"]
    assert answer["left"] == []


def test_what_no_safe_fix_takes_away_is_named() -> None:
    done = doctor(
        "fix", "--json", "--sglang", "0.5.13.post1", *HOST, "--", *SEED.replace("--tp 4", "--tp 3").split()
    )
    answer = json.loads(done.stdout)
    assert done.returncode == 1
    assert answer["command"] is None
    assert len(answer["left"]) == 1


def test_a_file_is_given_back_as_a_diff_and_written_after_a_yes(tmp_path: Path) -> None:
    path = tmp_path / "serve.sh"
    path.write_text(f"#!/bin/bash\nset -e\n# MTP\n{SEED} \\\n  --port 30000 2>&1 | tee log\n")
    arguments = ["fix", "--sglang", "0.5.23", *HOST, "--command-file", str(path)]
    done = doctor(*arguments)
    assert done.returncode == 0
    assert b"--mamba-radix-cache-strategy extra_buffer" in done.stdout
    assert b"+++ b/" in done.stdout
    refused = doctor(*arguments, "--write")
    assert refused.returncode == 2
    assert "--mamba-scheduler-strategy" in path.read_text()
    written = doctor(*arguments, "--write", "--yes")
    assert written.returncode == 0, written.stderr
    assert "--mamba-radix-cache-strategy extra_buffer" in path.read_text()
    assert path.read_text().startswith("#!/bin/bash\nset -e\n# MTP\n")
    assert (tmp_path / "serve.sh.bak").exists()


def test_bad_usage() -> None:
    assert doctor("fix").returncode == 2
    assert doctor("fix", "--write", "--", "sglang", "serve").returncode == 2
    done = doctor("fix", "--", "python", "train.py")
    assert done.returncode == 2
    assert b"Traceback" not in done.stderr
