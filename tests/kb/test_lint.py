"""Lint finds what is wrong with rules that can be read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mtpdoctor.errors import UserError
from mtpdoctor.facts import Source, make_facts
from mtpdoctor.kb.lint import Hooks, lint, main, report

from .rules import rule_text, write

REMEDY = """
remedies:
- title: Use fewer GPUs
  edits: [set --tp-size 1]
  safety: safe
  why: there is one
"""
MATCH = r"""
match: ['cannot open the (?:file|folder) (?P<path>\S+)']
refs: [https://example.org/issue]
"""
EXAMPLES = """
examples:
  bad:
  - log: 'OSError: cannot open the file /a'
    root: cannot open the file
    fix: set --tp-size 1
  ok:
  - log: the file is open
"""
GOOD = MATCH + REMEDY + EXAMPLES


def messages(folder: Path, *rules: str, healthy: list[Path] | None = None, **more: object) -> list[str]:
    write(folder / "knowledge", *rules)
    found = lint(folder / "knowledge", healthy=healthy or [], **more)  # type: ignore[arg-type]
    return [p.message for p in found if p.level == "error"]


def test_a_good_rule_is_clean(tmp_path: Path) -> None:
    assert messages(tmp_path, rule_text(GOOD)) == []


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("https://example.org/issue", "issue 12", "is no URL"),
        ("refs:", "families: [no-such-family]\nrefs:", "unknown family"),
        ("refs:", "releases: '==0.5.9,==0.5.13'\nrefs:", "no release known"),
        ("refs:", "releases: '>=0.5.13,<0.5.10'\nrefs:", "no release known"),
        (
            "refs:",
            "elsewhere: [{releases: '==0.5.9,==0.5.13', why: a}]\nrefs:",
            "elsewhere: no release known",
        ),
        ("set --tp-size 1]", "set --tp-size 1]\n  releases: '<0.4.6'", "remedy 0: no release known"),
        ("refs:", "explains: [MTP9999]\nrefs:", "there is no rule MTP9999"),
        ("refs:", "explains: [MTP0001]\nrefs:", "explains itself"),
        ("--tp-size", "--tp-sice", "no release has the flag --tp-sice"),
        ("refs:", "when: {flag.tp_sice: 4}\nrefs:", "no release has the argument tp_sice"),
        (r"(?P<path>\S+)", r"(?P<path>(?:a+)+(?:a+)+(?:a+)+(?:a+)+)$", "is slow on"),
        ("cannot open the file /a", "cannot open the fire /a", "the rule does not fire: the literal"),
        ("cannot open the file /a", "nothing", "the rule does not fire: none of its literals"),
        ("root: cannot open", "root: could not open", "which does not hold 'could not open"),
        ("fix: set --tp-size 1", "fix: set --tp-size 2", "the first fix is"),
        ("the file is open", "cannot open the folder at all", "ok example: the rule fires"),
        ("  ok:\n  - log: the file is open\n", "", "examples.ok is missing"),
        (EXAMPLES, "", "examples.bad is missing"),
        (REMEDY + EXAMPLES, EXAMPLES.replace("    fix: set --tp-size 1\n", ""), "a cause without remedies"),
        (
            "there is one",
            "no release up to 0.5.22 opens it",
            "nothing up to 0.5.22 mends it: show it in `unfixed`",
        ),
        ("  safety: safe", "  run: [\"cat <<'E'\\n1\\nE\"]\n  safety: safe", "spans lines"),
        ("fix: set --tp-size 1", "also: [MTP0009]", "also: there is no rule MTP0009"),
    ],
)
def test_a_flaw_is_found(old: str, new: str, message: str, tmp_path: Path) -> None:
    assert old in GOOD
    found = messages(tmp_path, rule_text(GOOD.replace(old, new)))
    assert any(message in m for m in found), found


def test_a_title_has_an_end(tmp_path: Path) -> None:
    long = rule_text(GOOD).replace("A rule for tests", "A rule for tests " * 8)
    assert any("at most 90" in m for m in messages(tmp_path, long))


def test_another_cause_may_not_fire_unless_declared(tmp_path: Path) -> None:
    wide = rule_text(GOOD.replace(r"cannot open the (?:file|folder) (?P<path>\S+)", "cannot open"), "MTP0002")
    rule = rule_text(GOOD)
    assert any("MTP0002 (A rule for tests) fires too" in m for m in messages(tmp_path, rule, wide))
    declared = GOOD.replace("root: cannot", "also: [MTP0002]\n    root: cannot")
    assert not any("MTP0002" in m for m in messages(tmp_path, rule_text(declared), wide))
    for free in ("role: noise", "role: consequence", "role: cause\n  generic: true"):
        assert not any("MTP0002 (" in m for m in messages(tmp_path, rule, wide.replace("role: cause", free)))


def test_no_cause_fires_on_a_healthy_log(tmp_path: Path) -> None:
    healthy = tmp_path / "healthy.log"
    healthy.write_text(
        "start\ncannot open the file /x, going on\nThe server is fired up and ready to roll!\n"
    )
    found = messages(tmp_path, rule_text(GOOD), healthy=[healthy])
    assert any(re.search(r"fires on a healthy log, healthy\.log:2", m) for m in found)
    noise = rule_text(GOOD).replace("role: cause", "role: noise")
    assert messages(tmp_path, noise, healthy=[healthy]) == []


def test_a_literal_is_rare_in_healthy_logs(tmp_path: Path) -> None:
    healthy = tmp_path / "healthy.log"
    healthy.write_text("cannot open it\n" * 30)
    rule = rule_text(
        GOOD.replace("cannot open the (?:", "cannot open (?:the file|").replace("(?P<path>", "(?P<p>")
    )
    found = messages(tmp_path, rule, healthy=[healthy])
    assert any("'cannot open' is on 30 lines of healthy healthy.log" in m for m in found), found


def test_command_examples_go_through_the_layer_above(tmp_path: Path) -> None:
    command = """
  command:
  - before: python -m sglang.launch_server --model-path M --tp-size 2
    after: python -m sglang.launch_server --model-path M --tp-size 1
    release: 0.5.13
"""
    rule = rule_text(GOOD + command.strip("\n"))
    assert messages(tmp_path, rule) == []  # a note
    assert any(m.startswith("1 command examples not checked") for m in messages(tmp_path, rule, ci=True))
    asked = []

    def apply(rule: object, index: int, before: str, release: str | None, gpu: str | None) -> str:
        asked.append((index, release, gpu))
        return before.replace("--tp-size 2", "--tp-size 1")

    assert messages(tmp_path, rule, hooks=Hooks(apply_remedy=apply)) == []
    assert asked == [(0, "0.5.13", None)]
    wrong = Hooks(apply_remedy=lambda *_: "python")
    assert any("comes out as 'python'" in m for m in messages(tmp_path, rule, hooks=wrong))
    none = Hooks(apply_remedy=lambda *_: None)

    def refuse(*_: object) -> str:
        raise UserError("no launch command in it")

    unread = Hooks(apply_remedy=refuse)
    assert any("no launch command" in m for m in messages(tmp_path, rule, hooks=unread))
    assert any("does not apply" in m for m in messages(tmp_path, rule, hooks=none))


def test_facts_of_examples_may_come_from_above(tmp_path: Path) -> None:
    rule = rule_text(GOOD.replace("refs:", "when: {host.platform: rocm}\nrefs:"))
    assert messages(tmp_path, rule) == []  # unknown: it speaks
    cuda = Hooks(facts_of=lambda *_: make_facts({"host.platform": "cuda"}, Source.USER))
    assert any("its `when` is false" in m for m in messages(tmp_path, rule, hooks=cuda))
    gpu = rule.replace("root: cannot", "gpu: 4xsm120@95\n      root: cannot")
    assert any("its `when` is false" in m for m in messages(tmp_path, gpu))


def test_only_the_files_asked_for_are_told_of(tmp_path: Path) -> None:
    folder = tmp_path / "knowledge"
    one = write(folder, rule_text(GOOD.replace("https://example.org/issue", "one")), name="one.yaml")
    write(folder, rule_text(GOOD.replace("https://example.org/issue", "two"), "MTP0002"), name="two.yaml")
    result = report(folder, [one], healthy=[])
    assert {p.file for p in result.problems} == {"knowledge/one.yaml"}
    assert result.rules == 1
    assert any("MTP0002" in p.message for p in result.problems)  # held against the others all the same


def test_the_command_line_of_the_module(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "knowledge", rule_text(GOOD))
    assert main(["--folder", str(tmp_path / "knowledge")]) == 0
    path.write_text(path.read_text().replace("https://example.org/issue", "no url"))
    assert main(["--folder", str(tmp_path / "knowledge"), str(path)]) == 1
    said = capsys.readouterr()
    assert said.out == "knowledge/rules.yaml:2: MTP0001: refs: 'no url' is no URL\n"
    assert said.err.splitlines()[-1] == "1 rules, 2 examples, 0 healthy logs: 1 problem"


@pytest.mark.parametrize(
    ("edit", "releases", "message"),
    [
        ("set --linear-attn-verify-backend triton", ">=0.5.16", "there is no such flag in 0.5.16"),
        ("set --linear-attn-verify-backend triton", ">=0.5.17", ""),
        ("add --linear-attn-verify-backend", ">=0.5.17", "needs a value"),
        ("set --disable-radix-cache yes", ">=0.5.17", "takes no value"),
        ("set --attention-backend trtllm_mla", "*", "does not take trtllm_mla in 0.4.6 to 0.4.10"),
        ("set --attention-backend trtllm_mla", ">=0.4.10.post1", ""),
        ("set --attention-backend {path}", "*", ""),
        ("set --mamba-scheduler-strategy extra_buffer", ">=0.5.10", ""),  # called otherwise in newer releases
    ],
)
def test_an_edit_is_possible_in_every_release_of_its_remedy(
    edit: str, releases: str, message: str, tmp_path: Path
) -> None:
    body = GOOD.replace("set --tp-size 1]", f"'{edit}']\n  releases: '{releases}'")
    body = body.replace("    fix: set --tp-size 1\n", "")
    found = [m for m in messages(tmp_path, rule_text(body)) if "narrow its `releases`" in m]
    assert len(found) == bool(message) and all(message in m for m in found), found


def test_a_narrow_rule_needs_no_narrow_remedies(tmp_path: Path) -> None:
    body = GOOD.replace("set --tp-size 1", "set --linear-attn-verify-backend triton")
    assert messages(tmp_path, rule_text(body))
    assert messages(tmp_path, rule_text("releases: '>=0.5.17'\n" + body)) == []
