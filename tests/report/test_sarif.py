"""SARIF: held against the published schema, and used as tools use it."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hostile import TOKEN, hostile_log
from hypothesis import given
from hypothesis import strategies as st
from reports import ALL, FAILED
from triages import NO_BUFFER, UNKNOWN, triage

from mtpdoctor.cli.main import main
from mtpdoctor.kb.load import load_knowledge
from mtpdoctor.report.sarif import report_to_sarif
from mtpdoctor.report.sarif_fix import replacements
from mtpdoctor.report.sarif_parts import FINGERPRINT, uri_of
from mtpdoctor.report.sarif_triage import triage_to_sarif
from mtpdoctor.text import safe
from mtpdoctor.triage.examine import examine
from mtpdoctor.triage.types import LaunchFiles

ROOT = Path(__file__).parent.parent.parent
SAMPLES = ROOT / "sample_logs"
SCHEMA = ROOT / "tests" / "data" / "sarif" / "sarif-2.1.0.schema.json"
COMPOSE = """\
# the launch  (kept)
services:
  other:
    image: postgres
    environment: {POSTGRES_PASSWORD: "pa55-word-of-mine"}
  sglang:
    image: lmsysorg/sglang:v0.5.13.post1
    environment:
      - HF_TOKEN=TOKEN
    command: >
      python -m sglang.launch_server --model-path /models/Qwen3.5-tiny
      --speculative-algorithm NEXTN --mamba-scheduler-strategy no_buffer --port 31020
""".replace("TOKEN", TOKEN, 1)


@cache
def validator() -> jsonschema.Draft7Validator:
    return jsonschema.Draft7Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))


def valid(document: dict[str, Any]) -> dict[str, Any]:
    """The run of a document that keeps the schema, and what the standard says beside it."""
    document = json.loads(json.dumps(document))
    assert [f"{e.json_path}: {e.message[:200]}" for e in validator().iter_errors(document)] == []
    (run,) = document["runs"]
    rules = run["tool"]["driver"]["rules"]
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    for place in _artifact_locations(run):
        assert run["artifacts"][place["index"]]["location"]["uri"] == place["uri"]
    assert len({r["id"] for r in rules}) == len(rules)
    return dict(run)


def _artifact_locations(value: Any) -> list[dict[str, Any]]:
    if isinstance(value, list):
        return [x for item in value for x in _artifact_locations(item)]
    if isinstance(value, dict):
        own = [value] if "uri" in value and "index" in value else []
        return own + [x for item in value.values() for x in _artifact_locations(item)]
    return []


def apply(before: str, changes: list[dict[str, Any]]) -> str:
    """What a tool makes of a file: replacements one after the other, columns in characters."""
    starts = [0]
    for line in before.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    out, at = [], 0
    for change in changes:
        region = change["deletedRegion"]
        a = starts[region["startLine"] - 1] + region["startColumn"] - 1
        b = starts[region["endLine"] - 1] + region["endColumn"] - 1
        assert at <= a <= b
        out += [before[at:a], change.get("insertedContent", {}).get("text", "")]
        at = b
    return "".join([*out, before[at:]])


def diagnosed(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    main(["diagnose", *arguments, "--format", "sarif"])
    return valid(json.loads(capsys.readouterr().out))


TEXTS = st.lists(st.text("ab -\t\r\né😀'\"", max_size=12), max_size=8).map("\n".join)


@given(TEXTS, TEXTS)
def test_replacements_turn_one_text_into_the_other(before: str, after: str) -> None:
    found = replacements(before, after, lambda text: True)
    assert found is not None
    assert apply(before, found) == after
    assert (found == []) == (before == after)


@pytest.mark.parametrize("name", sorted(ALL))
def test_every_kind_of_report_keeps_the_schema(name: str) -> None:
    run = valid(report_to_sarif(ALL[name], load_knowledge().by_id))
    expected = len(ALL[name].findings) + (len(ALL[name].diagnoses) if ALL[name].outcome == "failed" else 0)
    assert len(run["results"]) == expected
    said = "\n".join(n["message"]["text"] for n in run["invocations"][0]["toolExecutionNotifications"])
    stop = ALL[name].stop
    assert all(cause.title in said for cause in (stop.causes if stop else ()))
    assert ("STOPPED" in said, "UNFINISHED" in said) == (name == "stopped", stop is not None)


@pytest.mark.parametrize("log", sorted(SAMPLES.glob("*.log")), ids=lambda p: p.stem)
def test_real_logs_keep_it_and_point_at_the_line(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = diagnosed(capsys, str(log))
    lines = log.read_bytes().decode("utf-8", "replace").split("\n")
    for result in run["results"]:
        region = result["locations"][0]["physicalLocation"]["region"]
        words = region["snippet"]["text"].split(" ... ")[0].split()[:6]
        there = safe(lines[region["startLine"] - 1])
        assert all(word in there for word in words)
        assert result["level"] == ("error" if "rootCause" in result["properties"] else "warning")
        about = run["tool"]["driver"]["rules"][result["ruleIndex"]]
        assert about["help"]["text"] and about["help"]["markdown"]


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_a_fix_is_a_replacement_in_the_launch_file(
    ends: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    compose = tmp_path / "docker compose.yaml"
    compose.write_bytes(COMPOSE.replace("\n", ends).encode())
    log = str(SAMPLES / "spec_no_buffer_with_radix.log")
    run = diagnosed(capsys, log, "--command-file", str(compose))
    first = run["results"][0]
    before = COMPOSE.replace("\n", ends)
    (change,) = first["fixes"][0]["artifactChanges"]
    assert change["artifactLocation"]["uri"] == compose.as_uri()
    fixed = apply(before, change["replacements"])
    assert fixed == before.replace("strategy no_buffer", "strategy extra_buffer")
    related = [x["physicalLocation"] for x in first["relatedLocations"]]
    assert [
        x["region"]["startLine"] for x in related if x["artifactLocation"]["uri"] == compose.as_uri()
    ] == [12]
    whole = json.dumps(run)
    assert TOKEN not in whole
    assert "pa55-word-of-mine" not in whole


def test_a_replacement_that_would_show_a_secret_is_left_out() -> None:
    assert replacements("a", "a secret", lambda text: "secret" not in text) is None


def test_a_fingerprint_is_the_failures_not_the_logs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = SAMPLES / "spec_no_buffer_with_radix.log"
    text = log.read_text(encoding="utf-8").replace("31020", "40404").replace("/models/", "/mnt/else/")
    other = tmp_path / "other.log"
    other.write_text(
        "\n".join(f"sglang-1  | {line}" for line in ["", "", *text.split("\n")]), encoding="utf-8"
    )
    keys = [diagnosed(capsys, str(p))["results"][0]["partialFingerprints"][FINGERPRINT] for p in (log, other)]
    member = examine(LaunchFiles("x", (str(log),), "one file"), load_knowledge())
    assert member.fingerprint is not None
    assert keys == [member.fingerprint.key] * 2


def test_a_hostile_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = diagnosed(capsys, str(hostile_log(tmp_path)))
    whole = json.dumps(run, ensure_ascii=False)
    assert TOKEN not in whole
    assert not set(whole) & set("\x1b\u202e\u202c\x07")
    first = run["results"][0]
    assert first["ruleId"] == "unknown-failure"
    assert "server%20%3Cb%3E.log" in first["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert "<script>" not in re.sub("`[^`]*`", "", first["message"]["markdown"])


@pytest.mark.parametrize(
    ("name", "uri"),
    [
        ("logs/a b.log", "logs/a%20b.log"),
        ("/var/log/ü#1.log", "file:///var/log/%C3%BC%231.log"),
        ("c:x?.log", "c%3Ax%3F.log"),
        ("s3://bucket/a b.log", "s3://bucket/a%20b.log"),
        ("heap.tar.gz!a/server.log", "heap.tar.gz%21a/server.log"),
    ],
)
def test_a_files_name_as_a_uri(name: str, uri: str) -> None:
    assert uri_of(name) == uri


def test_a_triage_is_one_result_a_launch() -> None:
    run = valid(triage_to_sarif(triage()))
    results = run["results"]
    assert [r["partialFingerprints"][FINGERPRINT] for r in results] == [
        NO_BUFFER.key,
        NO_BUFFER.key,
        UNKNOWN.key,
    ]
    assert [r["baselineState"] for r in results] == ["unchanged", "unchanged", "new"]
    places = [r["locations"][0]["physicalLocation"] for r in results]
    assert [p["artifactLocation"]["uri"] for p in places] == [
        "customer-a/node0/server.log",
        "customer-b/run7/server.log",
        "customer-c/first/server.log",
    ]
    assert [p["region"]["startLine"] for p in places] == [25, 31, 7]
    assert "extra_buffer" in results[0]["message"]["text"]
    notes = [n["message"]["text"] for n in run["invocations"][0]["toolExecutionNotifications"]]
    assert "permission denied" in notes
    assert run["properties"]["launches"] == 6
    assert run["properties"]["gone"][0]["fingerprint"] == "fedcba9876543210"


def test_without_a_launch_file_the_fixed_command_is_told() -> None:
    (result,) = valid(report_to_sarif(FAILED, load_knowledge().by_id))["results"]
    assert "fixes" not in result
    assert result["properties"]["remedies"][0]["command"] == FAILED.diagnoses[0].fixes[0].command
