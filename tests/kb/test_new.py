"""``mtpdoctor kb new``: a rule drafted from a log."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mtpdoctor.cli.main import main
from mtpdoctor.kb.load import load_knowledge, read_rules
from mtpdoctor.kb.types import Rule, Span
from mtpdoctor.kb.yaml_source import Problem

DATA = Path(__file__).parent.parent / "data"
SERVER = "/home/alice/env/lib/python3.12/site-packages/sglang/srt"
UNKNOWN = f"""\
$ python -m sglang.launch_server --model-path /home/alice/models/Secret-7B --tp 4 --frobnicate-depth 7 --api-key sk-1234567890abcdef1234
[2026-05-01 10:00:00] server 10.1.2.3 starts
[2026-05-01 10:00:05 TP0] Load weight begin. avail mem=78.00 GB
[2026-05-01 10:00:09 TP0] Scheduler hit an exception: Traceback (most recent call last):
  File "{SERVER}/managers/scheduler.py", line 3012, in run_scheduler_process
    scheduler = Scheduler(
  File "{SERVER}/model_executor/frobnicator.py", line 12, in load
    raise ValueError(
ValueError: The frobnicator depth 7 exceeds the 4 gadgets of /home/alice/models/Secret-7B

[2026-05-01 10:00:09] Received sigquit from a child process. It usually means the child failed.
"""
SOURCE = """\
def load(server_args, gadgets):
    if server_args.tp_size > 2:
        raise ValueError(
            f"The frobnicator depth {server_args.depth} exceeds the {gadgets} gadgets of {server_args.model_path}"
        )
"""


def read(path: Path) -> Rule:
    problems: list[Problem] = []
    (rule,) = read_rules([path], problems)
    assert problems == []
    return rule


def lint_says(*paths: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    main(["kb", "lint", *map(str, paths)])
    lines = capsys.readouterr().out.splitlines()
    return [line.split(": ", 2)[2] for line in lines if "not verified against" not in line]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "server.log"
    path.write_text(UNKNOWN)
    return path


def source(tmp_path: Path, release: str, text: str = SOURCE) -> None:
    srt = tmp_path / "sources" / release / "sglang" / "srt"
    (srt / "model_executor").mkdir(parents=True)
    (srt / "server_args.py").write_text("class ServerArgs:\n    tp_size: int = 1\n")
    (srt / "model_executor" / "frobnicator.py").write_text(text)
    (srt.parent / "version.py").write_text(f'__version__ = "{release}"\n')


def test_a_draft_is_facts_and_marked_places(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "rules" / "frob.yaml"
    assert main(["kb", "new", str(log), "--out", str(out)]) == 0
    capsys.readouterr()
    text = out.read_text()
    for private in ("alice", "Secret", "10.1.2.3", "sk-1234"):
        assert private not in text
    rule = read(out)
    assert rule.stage.value == "weights" and rule.source == "sglang"
    assert rule.id not in {r.id for r in load_knowledge().rules}
    assert re.search(
        rule.match[0].regex, "ValueError: The frobnicator depth 12 exceeds the 9 gadgets of /other"
    )
    assert not rule.match[0].literal.startswith("ValueError: '")
    said = lint_says(out, capsys=capsys)
    assert {line.split(":")[0] for line in said} <= {
        "title",
        "cause",
        "remedy 0",
        "examples.ok (line 36)",
    } | {line.split(":")[0] for line in said if line.startswith("examples.ok")}
    assert said and all("still to be written" in line for line in said)


def test_filled_in_it_is_a_rule_that_fires(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "frob.yaml"
    assert main(["kb", "new", str(log), "--out", str(out)]) == 0
    out.write_text(re.sub(r"FILL IN: ", "It is known: ", out.read_text()))
    capsys.readouterr()
    assert lint_says(out, capsys=capsys) == []


def test_releases_and_guards_are_read_off_the_sources(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source(tmp_path, "0.5.8", SOURCE.replace("frobnicator depth", "depth"))
    for release in ("0.5.9", "0.5.10.post1", "0.5.16"):
        source(tmp_path, release)
    source(tmp_path, "0.5.20", "x = 1\n")
    assert main(["kb", "new", str(log), "--source", str(tmp_path / "sources")]) == 0
    text = capsys.readouterr().out
    assert "releases: '>=0.5.9,<=0.5.16'" in text
    assert "of 5 at hand (0.5.8 to 0.5.20) 3 have the message" in text
    assert "sglang/srt/model_executor/frobnicator.py:3" in text
    assert "reads --tp-size" in text or "reads --tensor-parallel-size" in text
    assert "# edits: [set --t" in text


def test_a_line_of_ones_own(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kb", "new", str(log), "--line", "2"]) == 0
    assert "server (?P<server>" in capsys.readouterr().out
    assert main(["kb", "new", str(log), "--line", "5"]) == 0  # inside a traceback: its exception
    assert "The frobnicator depth" in capsys.readouterr().out
    assert main(["kb", "new", str(log), "--line", "400"]) == 2
    assert "line 400 is not in the log or is empty" in capsys.readouterr().err


def test_a_message_that_says_nothing_is_known_by_its_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "server.log"
    bare = UNKNOWN.replace("    raise ValueError(\n", "    assert depth % gadgets == 0\n")
    log.write_text(re.sub("ValueError: The.*", "AssertionError", bare))
    out = tmp_path / "bare.yaml"
    assert main(["kb", "new", str(log), "--out", str(out)]) == 0
    rule = read(out)
    assert rule.match[0].span is Span.TRACEBACK and "assert depth % gadgets == 0" in rule.match[0].regex
    capsys.readouterr()
    assert all("still to be written" in line for line in lint_says(out, capsys=capsys))


def test_drafts_of_recorded_launches_hold(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    drafts = []
    for name in ("eagle3_nodraft", "tp2_heads", "dp_attention_odd", "lora_bad_adapter", "nccl_ifname"):
        (log,) = DATA.glob(f"*/{name}.log")
        drafts.append(tmp_path / f"{name}.yaml")
        number = f"MTP{9000 + len(drafts)}"
        assert main(["kb", "new", str(log), "--out", str(drafts[-1]), "--id", number]) == 0
        assert "fires on this line already" in capsys.readouterr().err
    said = lint_says(*drafts, capsys=capsys)
    assert said and all("still to be written" in line for line in said)


def test_clear_errors(log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "there.yaml").write_text("rules: []\n")
    assert main(["kb", "new", str(log), "--out", str(tmp_path / "there.yaml")]) == 2
    assert "is there already" in capsys.readouterr().err
    assert main(["kb", "new", str(log), "--source", str(tmp_path / "nowhere")]) == 2
    assert "no SGLang source in" in capsys.readouterr().err
    assert main(["kb", "new", str(log), "--id", "rule 7"]) == 2
    healthy = tmp_path / "ready.log"
    healthy.write_text("[2026-05-01 10:00:00] The server is fired up and ready to roll!\n")
    assert main(["kb", "new", str(healthy)]) == 2
    assert "--line N" in capsys.readouterr().err
