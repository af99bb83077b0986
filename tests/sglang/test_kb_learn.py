"""`kb learn` and `kb verify` as a person runs them."""

from __future__ import annotations

import argparse
import json

import pytest

from mtpdoctor.cli.kb_learn import add_learn_arguments, add_verify_arguments, run_learn, run_verify
from mtpdoctor.errors import UserError
from tests.sglang.trees import ARGPARSE, FIELDS, write_tree, write_wheel


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("MTPDOCTOR_CACHE", str(tmp_path / "cache"))


def parsed(add, *words):
    parser = argparse.ArgumentParser()
    add(parser)
    return parser.parse_args([str(word) for word in words])


def test_learning_prints_what_changed(tmp_path, capsys):
    old = write_wheel(tmp_path / "sglang-1.0.0-py3-none-any.whl", ARGPARSE)
    new = write_tree(tmp_path / "new", FIELDS)
    folder = tmp_path / "facts"
    assert run_learn(parsed(add_learn_arguments, old, new, "--folder", folder)) == 0
    out = capsys.readouterr().out
    assert "against 1.0.0:" in out
    assert "renamed   --backend -> --attn-backend" in out
    assert "default   --mem: 0.9 -> 0.8" in out
    assert "removed   --old-gone" in out
    assert "default   $SGLANG_ENABLE_SPEC_V2: False -> True" in out
    assert any(line.split()[:1] == ["rule"] and "chunked_prefill_size" in line for line in out.splitlines())
    written = {path.name for path in folder.iterdir()}
    assert written == {
        "flags.json",
        "env.json",
        "pins.json",
        "options.json",
        "frames.json.gz",
        "history.json.gz",
        "lines.json.gz",
        "changes.json.gz",
        "members.json.gz",
        "gates.json.gz",
        "sites.json.gz",
        "symbols.json.gz",
        "dangling.json",
        "optional.json",
        "verified.json",
        "architectures.json",
    }
    verified = json.loads((folder / "verified.json").read_text())
    assert verified["releases"] == ["1.0.0", "1.1.0"]


def test_learning_again_changes_nothing(tmp_path, capsys):
    tree = write_tree(tmp_path / "old", ARGPARSE)
    folder = tmp_path / "facts"
    run_learn(parsed(add_learn_arguments, tree, "--folder", folder))
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    run_learn(parsed(add_learn_arguments, tree, "--folder", folder))
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_nothing_to_learn_says_so(tmp_path):
    with pytest.raises(UserError, match="nothing to learn"):
        run_learn(parsed(add_learn_arguments))
    with pytest.raises(UserError, match="no SGLang source"):
        run_learn(parsed(add_learn_arguments, tmp_path))
    with pytest.raises(UserError, match="no SGLang"):
        run_learn(parsed(add_learn_arguments, "--installed", "--folder", tmp_path))


def test_verifying_reports_claims_that_do_not_hold(tmp_path, capsys):
    """Against sources that have none of the rules' messages no rule is contradicted."""
    tree = write_tree(tmp_path / "old", FIELDS)
    assert run_verify(parsed(add_verify_arguments, tree, "--folder", tmp_path / "facts")) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[-1].startswith("0 of ")
