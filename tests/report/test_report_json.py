"""``diagnose --json``: the published schema holds, nothing unsafe or secret is in it."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

import jsonschema
import pytest
import reports
from hypothesis import given
from hypothesis import strategies as st

from mtpdoctor.report.json import to_json

SCHEMA = json.loads(files("mtpdoctor.report").joinpath("diagnose.schema.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


@pytest.mark.parametrize("name", reports.ALL)
def test_documents_keep_to_the_schema(name: str) -> None:
    document = json.loads(json.dumps(to_json(reports.ALL[name])))
    VALIDATOR.validate(document)


def test_the_schema_is_a_schema_and_refuses_what_is_none() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    document = to_json(reports.FAILED)
    for change in ({"outcome": "dead"}, {"stage": None}, {"schema": 2}, {"command": "a\x1b[0m"}):
        assert not VALIDATOR.is_valid({**document, **change})


def test_fields_of_the_contract() -> None:
    document = to_json(reports.RANKS)
    diagnosis = document["diagnoses"][0]
    assert document["schema"] == 1 and document["outcome"] == "failed" and document["stage"] == "dist_init"
    assert diagnosis["root"] == {
        "file": "server.log",
        "line": 210,
        "text": "[2026-11-29 13:45:08 TP5] torch.AcceleratorError: CUDA error: invalid device ordinal",
        "rank": "TP5",
    }
    assert [c["line"] for c in diagnosis["consequences"]] == [215, 216, 217, 230, 231]
    assert diagnosis["fixes"][0]["edits"] == [{"op": "set", "name": "--tp-size", "value": "4"}]
    finding = to_json(reports.READY_FINDINGS)["findings"][1]
    assert (finding["rule"], finding["line"]) == ("MTP0204", 12)


def _texts(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [t for v in value.values() for t in _texts(v)]
    if isinstance(value, list):
        return [t for v in value for t in _texts(v)]
    return [value] if isinstance(value, str) else []


@given(st.text(max_size=80), st.sampled_from(["\x1b[2J", "\u202e", "\x9b31m", "\x00", "\r", "\ud800", ""]))
def test_no_log_text_is_unsafe_in_json(text: str, nasty: str) -> None:
    for report in (reports.hostile(text + nasty + text, 3), reports.hostile_stop(text + nasty + text, 3)):
        document = to_json(report)
        document["sglang_version"] = None
        VALIDATOR.validate(document)
        json.dumps(document, ensure_ascii=False).encode("utf-8")
        assert not any("\x1b" in t or "\u202e" in t for t in _texts(document))


def test_a_stop_shows_no_secret() -> None:
    from dataclasses import replace

    key = "my-very-own-key-42"
    told = reports.line(3, f"server_args=ServerArgs(api_key='{key}', tokenizer_path='/m') and {key} again")
    cause = replace(reports.STOP.causes[0], clues=(reports.Clue(f"it wrote {told.text}", told),))
    report = replace(reports.UNFINISHED, stop=replace(reports.STOP, last=told, causes=(cause,)))
    assert key not in json.dumps(to_json(report))
    document = to_json(report)["stop"]
    assert document["overdue"] is True and document["late"][1] == {"rank": "TP3", "stage": None, "last": None}


def test_secrets_are_masked_wherever_they_stand() -> None:
    from dataclasses import replace

    from mtpdoctor.launch.types import Edit, EditOp

    key = "my-very-own-key-42"
    root = reports.line(3, f"server_args=ServerArgs(api_key='{key}', tokenizer_path='/m')")
    fix = replace(
        reports.EXTRA_BUFFER, edits=(Edit(EditOp.SET, "--api-key", key),), why=key, run=(f"echo {key}",)
    )
    diagnosis = replace(reports.NO_BUFFER, root=root, fixes=(fix,), evidence=(root,))
    report = replace(reports.FAILED, diagnoses=(diagnosis,), notes=(key,))
    document = to_json(report)
    assert key not in json.dumps(document)
    assert document["diagnoses"][0]["fixes"][0]["edits"][0] == {
        "op": "set",
        "name": "--api-key",
        "value": "<hidden>",
    }
    assert "tokenizer_path='/m'" in document["diagnoses"][0]["root"]["text"]
