"""Damaged files: read, or refused with the place; never a crash, never a wrong edit."""

from __future__ import annotations

import random
import re

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mtpdoctor.errors import UserError
from mtpdoctor.launch.document import LaunchDocument, read_launch
from mtpdoctor.launch.types import Edit, EditOp

from .corpus import corpus, name_of, text_of
from .tables import TABLE

FILES = corpus()
_BITS = [
    "'",
    '"',
    "\\",
    "\n",
    "$",
    "${",
    "$(",
    ")",
    "}",
    "[",
    "]",
    "{",
    ":",
    "- ",
    "#",
    "|",
    "&a ",
    "*a",
    "<<: ",
    "\t",
    "`",
]
_EDITS = [
    Edit(EditOp.SET, "--tp", "64"),
    Edit(EditOp.SET, "--chat-template", 'it\'s "a" $b: #c'),
    Edit(EditOp.ADD, "--enable-metrics"),
    Edit(EditOp.REMOVE, "--trust-remote-code"),
    Edit(EditOp.ENV, "A", "b c"),
    Edit(EditOp.UNSET, "NCCL_DEBUG"),
    Edit(EditOp.SHM_SIZE, "", "1g"),
    Edit(EditOp.GPUS, "", "2"),
    Edit(EditOp.IMAGE_TAG, "", "v9"),
    Edit(EditOp.IPC, "", "host"),
]


def _damage(text: str, seed: int) -> str:
    rng = random.Random(seed)
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(text) + 1)
        kind = rng.randrange(4)
        if kind == 0:
            text = text[:at] + rng.choice(_BITS) + text[at:]
        elif kind == 1:
            text = text[:at] + text[at + rng.randint(1, 20) :]
        elif kind == 2:
            text = text[:at]
        else:
            lines = text.split("\n")
            rng.shuffle(lines) if rng.random() < 0.2 else lines.insert(
                rng.randrange(len(lines)), rng.choice(lines)
            )
            text = "\n".join(lines)
    return text


def _try(document: LaunchDocument, edit: Edit) -> LaunchDocument | None:
    try:
        return document.apply([edit])
    except UserError:
        return None


@settings(max_examples=250, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.sampled_from(FILES), st.integers(0, 10**9))
def test_damaged_files_are_read_or_refused(path: object, seed: int) -> None:
    text = _damage(text_of(path), seed)  # type: ignore[arg-type]
    try:
        document = read_launch(text, name=name_of(path), table=TABLE)  # type: ignore[arg-type]
    except UserError as error:
        assert re.match(r"[\w./-]+(:\d+:\d+)?: ", str(error)), str(error)
        return
    assert document.apply(()).text == text
    for edit in _EDITS:
        edited = _try(document, edit)
        if edited is None:
            continue
        if edit.op is EditOp.SET:
            assert edited.command.value(TABLE.resolve(edit.name).dest) == (edit.value,)  # type: ignore[union-attr]
        if edit.op is EditOp.ENV:
            assert edited.command.env["A"] == edit.value
        assert edited.apply([edit]).text == edited.text


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=60))
def test_any_text_is_refused_in_words(text: str) -> None:
    for name in ("command", "x.yaml", "x.service", "docker-compose.yml", "x.sbatch"):
        try:
            read_launch(text, name=name, table=TABLE)
        except UserError as error:
            assert str(error).startswith(name)
