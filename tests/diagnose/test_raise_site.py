"""What SGLang's source, where it is at hand, adds to a failure that no rule knows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mtpdoctor.diagnose.engine import Given, diagnose
from mtpdoctor.kb.load import load_knowledge
from mtpdoctor.log.reading import reading_from_text
from mtpdoctor.report.json import to_json

SOURCE = """\
class ServerArgs:
    def _handle_widgets(self):
        if self.enable_mixed_chunk and self.page_size > 1:
            raise ValueError(f"Widgets do not turn with page size {self.page_size}.")
        assert self.tp_size % 2 == 0
"""
HEAD = (
    "$ python -m sglang.launch_server --model-path /m/Q --enable-mixed-chunk --page-size 16 --tp 3\n"
    "Traceback (most recent call last):\n"
    '  File "/x/sglang/launch_server.py", line 66, in <module>\n'
    "    server_args = prepare_server_args(sys.argv[1:])\n"
)


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "0.5.13.post1" / "sglang" / "srt"
    folder.mkdir(parents=True)
    (folder / "server_args.py").write_text(SOURCE)
    (folder.parent / "version.py").write_text('__version__ = "0.5.13.post1"\n')
    monkeypatch.setenv("MTPDOCTOR_SGLANG_SOURCES", str(tmp_path))


def report_of(log: str) -> dict:
    knowledge = load_knowledge()
    reading = reading_from_text(log, knowledge.literals)
    return json.loads(json.dumps(to_json(diagnose(reading, knowledge, Given(release="0.5.13.post1")))))


def test_the_guard_names_the_options_and_suggests_risky_edits(sources: None) -> None:
    report = report_of(
        HEAD + '  File "/x/sglang/srt/server_args.py", line 4, in _handle_widgets\n    raise ValueError(\n'
        "ValueError: Widgets do not turn with page size 16.\n"
    )
    first = report["diagnoses"][0]
    assert first["rule"] is None
    steps = " ".join(first["next_steps"])
    assert "sglang/srt/server_args.py:4" in steps
    assert "--page-size (here 16)" in steps
    edits = [[(e["op"], e["name"], e["value"]) for e in fix["edits"]] for fix in first["fixes"]]
    assert [("set", "--page-size", "1")] in edits or [("remove", "--enable-mixed-chunk", None)] in edits
    assert {fix["safety"] for fix in first["fixes"] if fix["edits"]} == {"risky"}
    for fix in (f for f in first["fixes"] if f["edits"]):
        assert fix["verified"] in ("parsed", "rules")
        assert fix["command"].startswith("python -m sglang.launch_server --model-path /m/Q")


def test_a_bare_assertion_is_found_by_its_frame(sources: None) -> None:
    """A rule names bare assertions of argument checks; what would satisfy one only its source tells."""
    report = report_of(
        HEAD + '  File "/x/sglang/srt/server_args.py", line 5, in _handle_widgets\n'
        "    assert self.tp_size % 2 == 0\nAssertionError\n"
    )
    first = report["diagnoses"][0]
    assert first["root"]["text"] == "AssertionError"
    guessed = [fix for fix in first["fixes"] if fix["edits"]]
    assert guessed and {fix["safety"] for fix in guessed} == {"risky"}
    without = [fix for fix in first["fixes"] if not fix["edits"]]
    assert {fix["safety"] for fix in without} <= {"manual"}


def test_without_a_source_nothing_is_guessed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MTPDOCTOR_SGLANG_SOURCES", str(tmp_path))
    report = report_of(
        HEAD + '  File "/x/sglang/srt/server_args.py", line 4, in _handle_widgets\n    raise ValueError(\n'
        "ValueError: Widgets do not turn with page size 16.\n"
    )
    fixes = report["diagnoses"][0]["fixes"]  # of the kind of the failure only
    assert not any(fix["title"].startswith("Change what the failing check looks at") for fix in fixes)
    assert "safe" not in {fix["safety"] for fix in fixes}


@pytest.mark.parametrize(
    ("condition", "typed", "asks", "edit"),
    [
        ("self.page_size == 64", "--page-size 128", "page_size must be 64", ("set", "--page-size", "64")),
        ("server_args.page_size % 48 == 0", "--page-size 128", "page_size must be divisible by 48", ("set", "--page-size", "96")),
        ("not get_schedule().enable_mixed_chunk", "--enable-mixed-chunk", "enable_mixed_chunk must be false", ("remove", "--enable-mixed-chunk", None)),
        ("self.page_size > 1", "--page-size 128", "page_size must be greater than 1", None),  # it is met: not this is what fails
        ("x.page_size.dtype in (torch.int8, torch.uint8)", "", "x.page_size.dtype must be torch.int8 or torch.uint8", None),
        ("len(self.warps) == torch.sum(page_size)", "", "len(self.warps) must be equal to torch.sum(page_size)", None),
    ],
)  # fmt: skip
def test_a_bare_assertion_is_read(
    condition: str, typed: str, asks: str, edit: tuple[str, str, str | None] | None
) -> None:
    first = report_of(
        f"$ python -m sglang.launch_server --model-path /m/Q {typed}\nTraceback (most recent call last):\n"
        f'  File "/x/sglang/srt/mem_cache/warp_pool.py", line 4, in __init__\n    assert {condition}\nAssertionError\n'
    )["diagnoses"][0]
    assert first["rule"] is None
    assert first["title"].endswith(asks), first["title"]
    assert ("SGLang refuses it when --" in first["cause"]) is (edit is not None)
    edits = [(e["op"], e["name"], e["value"]) for fix in first["fixes"][:1] for e in fix["edits"]]
    assert edits == ([edit] if edit else [])
