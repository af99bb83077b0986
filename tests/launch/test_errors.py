"""Texts that cannot be read: the place, and what was found instead."""

from __future__ import annotations

import pytest

from mtpdoctor.errors import EXIT_USAGE, UserError
from mtpdoctor.launch.document import read_launch
from mtpdoctor.launch.types import Edit, EditOp

from .tables import TABLE

SERVER = "python -m sglang.launch_server --model-path m"


@pytest.mark.parametrize(
    ("text", "where", "what"),
    [
        (f"{SERVER} --served-model-name 'a", "f:1:67", "single quote"),
        (f'#!/bin/sh\n\n  {SERVER} "x\n', "f:3:49", "double quote"),
        (f"ARGS=(a b\n{SERVER}", "f:1:6", "parenthesis"),
        (f"X=$(date\n{SERVER}", "f:1:3", "substitution"),
        (f"X=${{Y\n{SERVER}", "f:1:3", "expansion"),
        (f"{SERVER} `x", "f:1:47", "backquote"),
        ("services:\n  a: [1, 2\n  b: c\n", "f:3:4", "YAML"),
        ("services:\n\ta: 1\n", "f:2:1", "YAML"),
        ("apiVersion: v1\nkind: Pod\nspec: *nothing\n", "f:3:7", "YAML"),
        ("[Service]\nExecStart=/bin/x 'a\n", "f:2:18", "quote"),
        ("a: 1\nb: \x07\n", "f:2:4", "YAML"),
        (
            "a0: &a0 [x]\n" + "".join(f"a{i}: &a{i} [{f'*a{i - 1},' * 9}]\n" for i in range(1, 9)),
            "f:7",
            "too large",
        ),
    ],
)
def test_the_place_is_named(text: str, where: str, what: str) -> None:
    with pytest.raises(UserError) as caught:
        read_launch(text, name="f", table=TABLE)
    assert str(caught.value).startswith(where + ":") and what in str(caught.value)
    assert caught.value.exit_code == EXIT_USAGE
    assert caught.value.hint


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", "empty"),
        ("# only a comment\n", "no command"),
        ("python -m vllm.entrypoints.openai.api_server --model m", "python"),
        ("vllm serve m && echo ok", "vllm"),
        ("pkill -f 'python -m sglang.launch_server'", "no"),
        ("docker compose up -d", "docker"),
        ("services:\n  web:\n    image: nginx\n", "web"),
        ("apiVersion: v1\nkind: Service\nmetadata: {name: x}\n", "Service"),
        ("[Unit]\nDescription=x\n[Service]\nExecStart=/usr/bin/vllm serve\n", "/usr/bin/vllm"),
        ("foo: 1\nbar: 2\n", "foo, bar"),
    ],
)
def test_what_was_found_instead_is_said(text: str, found: str) -> None:
    with pytest.raises(UserError, match="no SGLang server command") as caught:
        read_launch(text, name="f", table=TABLE)
    assert found in str(caught.value)


def test_container_edits_need_a_container() -> None:
    document = read_launch(SERVER, table=TABLE)
    with pytest.raises(UserError, match="needs a container"):
        document.apply([Edit(EditOp.SHM_SIZE, "", "16g")])


def test_kubernetes_needs_a_number_of_gpus() -> None:
    text = "kind: Pod\nspec:\n  containers:\n  - command: [sglang, serve, --model-path, m]\n"
    with pytest.raises(UserError, match="number of GPUs"):
        read_launch(text, table=TABLE).apply([Edit(EditOp.GPUS, "", "all")])


def test_nothing_is_run(tmp_path: object) -> None:
    text = f"X=$(touch {tmp_path}/a) {SERVER} `touch {tmp_path}/b` ; touch {tmp_path}/c"
    document = read_launch(text, table=TABLE).apply([Edit(EditOp.SET, "--tp", "$(touch c); `d`")])
    assert document.command.value("tp_size") == ("$(touch c); `d`",)
    assert "'$(touch c); `d`'" in document.text
    assert not list(tmp_path.iterdir())  # type: ignore[attr-defined]
