"""The table of docs/seed-command.md is what the real releases said, and the flag tables agree with them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from mtpdoctor.release import parse_release as R
from mtpdoctor.sglang.flags import flag_table

ROOT = Path(__file__).resolve().parents[2]
CASES = json.loads((ROOT / "tests/data/seed_command_verdicts.json").read_text())["cases"]
ROW = re.compile(r"^\| (0\.5\S+) \| 4×(SM\d+) \| `([^`]+)` \| (\w+) \|", re.M)


def test_every_command_of_the_page_was_accepted_by_its_release():
    rows = ROW.findall((ROOT / "docs/seed-command.md").read_text())
    assert len(rows) == 18
    recorded = {
        (c["release"], c["host"][2:]): (
            " ".join([*(f"{k}={v}" for k, v in c["env"].items())]),
            c["argv"],
            c["verdict"],
        )
        for c in CASES
        if c["case"] == "right"
    }
    for release, host, command, verdict in rows:
        env, argv, said = recorded[release, host]
        assert command == f"{env} python -m sglang.launch_server {' '.join(argv)}".strip()
        assert verdict == said == "accept"


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c['release']}-{c['host']}-{c['case']}")
def test_flag_tables_agree_with_the_real_parser_on_these_commands(case):
    table = flag_table(R(case["release"]))
    unknown = [word for word in case["argv"] if word.startswith("--") and table.resolve(word) is None]
    refused_by_parser = "error: unrecognized arguments" in (case["error"] or "")
    assert bool(unknown) == refused_by_parser
