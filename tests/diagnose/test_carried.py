"""The option whose value a failure names, through the report of a diagnosis."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtpdoctor.diagnose.engine import diagnose
from mtpdoctor.diagnose.kinds.value import as_json
from mtpdoctor.kb.load import load_knowledge
from mtpdoctor.log.reading import reading_from_text
from mtpdoctor.report.json import to_json

COMMAND = "$ python -m sglang.launch_server --model-path /models/m "


def diagnose_text(text: str) -> dict[str, Any]:
    knowledge = load_knowledge()
    return to_json(diagnose(reading_from_text(text, knowledge.literals), knowledge))


def fixes(options: str, failure: str, env: str = "") -> list[dict[str, Any]]:
    report = diagnose_text(f"{COMMAND.replace('$ ', '$ ' + env)}{options}\n{failure}\n")
    return report["diagnoses"][0]["fixes"]


def titles(options: str, failure: str, env: str = "") -> list[str]:
    return [f["title"] for f in fixes(options, failure, env)]


TRACE = 'Traceback (most recent call last):\n  File "/x/sglang/srt/managers/scheduler.py", line 9, in f\n    g()\n'
HF = "huggingface_hub.errors.HFValidationError: Repo id must use alphanumeric chars: '/data'."


@pytest.mark.parametrize(
    ("options", "failure", "named"),
    [
        ("--speculative-token-map /data/map.pt", TRACE + HF, "--speculative-token-map"),
        ("--custom-weight-loader hooks.mine:load", TRACE + "ModuleNotFoundError: No module named 'hooks'", "--custom-weight-loader"),
        ("--speculative-token-map /data/map.pt", TRACE + "FileNotFoundError: [Errno 2] No such file or directory: '/data/map.pt'", "--speculative-token-map"),
        ("--download-dir /cache/hub", TRACE + "PermissionError: [Errno 13] Permission denied: '/cache/hub'", "--download-dir"),
    ],
)  # fmt: skip
def test_the_option_that_carries_the_name_comes_first(options: str, failure: str, named: str) -> None:
    first = titles(options, failure)[0]
    assert first.startswith(f"Correct {named}: the failure names ")


def test_a_variable_carries_a_name_too() -> None:
    failure = TRACE + "ModuleNotFoundError: No module named 'my'"
    found = fixes("", failure, env="SGLANG_EXTERNAL_MODEL_PACKAGE=my.models ")
    assert found[0]["title"].startswith("Correct SGLANG_EXTERNAL_MODEL_PACKAGE: ")
    assert found[1]["edits"] == [{"op": "unset", "name": "SGLANG_EXTERNAL_MODEL_PACKAGE", "value": None}]


def test_a_package_of_one_feature_is_installed_or_the_feature_left_out() -> None:
    found = titles("--enable-flexkv", TRACE + "ModuleNotFoundError: No module named 'flexkv'")
    assert found[0].startswith("Install flexkv") and found[1] == "Leave --enable-flexkv out"


@pytest.mark.parametrize(
    ("options", "failure"),
    [
        # the model's own path, a word that stands everywhere, a number
        ("", TRACE + "OSError: /models/m does not appear to have a file named tokenizer.json"),
        ("--dtype auto", TRACE + "ValueError: auto is not what it was"),
        ("--max-running-requests 256", TRACE + "RuntimeError: shape 256 is not 512"),
        ("--download-dir /cache/hub", TRACE + "FileNotFoundError: [Errno 2] No such file or directory: '/cache/hub2'"),
        # the next launch's command, behind the message; the name of a backend whose package is not there
        ("--download-dir /cache/hub", TRACE + "ValueError: no\ncommand=sglang serve --model-path /models/m --download-dir /cache/hub"),
        ("--disaggregation-transfer-backend mooncake", TRACE + "ImportError: Please install mooncake to run"),
    ],
)  # fmt: skip
def test_nothing_is_said_of_options_that_the_failure_does_not_name(options: str, failure: str) -> None:
    assert not [t for t in titles(options, failure) if t.startswith("Correct --")]


def test_json_that_the_shell_has_eaten_is_written_anew() -> None:
    failure = "launch_server.py: error: argument --preferred-sampling-params: invalid loads value: '{temperature: 0, stop: [a]}'"
    first = fixes("--preferred-sampling-params '{temperature: 0, stop: [a]}'", failure)[0]
    assert [e["value"] for e in first["edits"]] == ['{"temperature": 0, "stop": ["a"]}']
    assert '\'{"temperature": 0, "stop": ["a"]}\'' in first["command"]


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ('{"enable_thinking": true}}', '{"enable_thinking": true}'),  # as ${NAME:-{...}} leaves it
        ('{"a": {"b": [1, 2]}', '{"a": {"b": [1, 2]}}'),  # one too few
        ('{"a": "x}"', '{"a": "x}"}'),  # a brace within a text is none
    ],
)
def test_braces_that_do_not_match_are_mended(given: str, meant: str) -> None:
    failure = f"launch_server.py: error: argument --preferred-sampling-params: invalid loads value: '{given}'"
    first = fixes(f"--preferred-sampling-params '{given}'", failure)[0]
    assert [e["value"] for e in first["edits"]] == [meant]


def test_json_that_nobody_can_guess_is_for_a_person() -> None:
    failure = "launch_server.py: error: argument --preferred-sampling-params: invalid loads value: '{a b'"
    first = fixes("--preferred-sampling-params '{a b'", failure)[0]
    assert first["title"] == "Correct the JSON of --preferred-sampling-params" and first["edits"] == []


def test_numbers_with_commas_become_numbers_in_a_row() -> None:
    failure = "sglang serve: error: argument --cuda-graph-bs: invalid int value: '1,2,4'"
    first = fixes("--cuda-graph-bs 1,2,4", failure)[0]
    assert first["safety"] == "safe" and "--cuda-graph-bs 1 2 4" in first["command"]


def test_what_a_config_file_holds_is_changed_there() -> None:
    failure = "sglang serve: error: unrecognized arguments: --mem-fraction-statik 0.5"
    report = diagnose_text(f"$ sglang serve --config /etc/s.yaml\n{failure}\n")
    first = report["diagnoses"][0]["fixes"][0]
    assert first["safety"] == "manual" and first["command"] is None
    assert any(note.startswith("change it in /etc/s.yaml") for note in first["notes"])


def test_an_exception_told_as_a_warning_is_no_failure() -> None:
    head = "[rank0]:W1130 03:23:01.282000 13636 torch/_higher_order_ops/wrap.py:1026] [3/0] "
    lines = [
        "Traceback (most recent call last):",
        '  File "/x/torch/a.py", line 1, in f',
        "    raise RuntimeError(",
        "RuntimeError: an op",
    ]
    report = diagnose_text(
        "[2026-11-30 03:22:44] Capture cuda graph begin.\n" + "\n".join(head + x for x in lines) + "\n"
    )
    assert report["outcome"] == "unfinished" and report["diagnoses"] == []


JSON = st.recursive(
    st.booleans() | st.integers(-9, 99) | st.text("abcdefgh", min_size=1, max_size=6),
    lambda inner: st.lists(inner, min_size=1, max_size=3) | st.dictionaries(st.text("abcxyz", min_size=1, max_size=5), inner, min_size=1, max_size=3),
    max_leaves=6,
).filter(lambda v: isinstance(v, (dict, list)))  # fmt: skip


@given(JSON)
def test_what_is_json_already_keeps_its_meaning(value: Any) -> None:
    """The JSON is read as YAML and written again; for a value that is JSON already nothing may change."""
    assert json.loads(as_json(json.dumps(value)) or "0") == value


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("{rope_scaling:null}", {"rope_scaling": None}), ("{'a':{b:null,c:1}}", {"a": {"b": None, "c": 1}}), ("{a b}", None), ("{a: , b: null}", None)],
)  # fmt: skip
def test_a_null_that_was_typed_is_kept_and_a_name_without_value_is_not_made_one(
    typed: str, meant: Any
) -> None:
    written = as_json(typed)
    assert (None if written is None else json.loads(written)) == meant


@pytest.mark.parametrize(
    "shown",
    [
        "NCCL_NET=IB",
        "export NCCL_NET=IB",
        "[u@h ~]$ export GLOO_SOCKET_IFNAME=eth0 NCCL_NET=IB",
        "node1:7:7 [0] NCCL INFO NCCL_NET set by environment to IB.",
        "    environment:\n      - NCCL_NET=IB",
        '    environment:\n      - "NCCL_NET=IB"',
        "    environment:\n      NCCL_NET: IB   # the fabric",
        '    env:\n    - name: NCCL_NET\n      value: "IB"',
        "env: [{name: HF_HOME, value: /data}, {name: NCCL_NET, value: IB}]",
    ],
)
def test_a_variable_that_the_log_shows_is_known_and_taken_out_where_the_server_is_started(shown: str) -> None:
    failure = f"{TRACE}RuntimeError: NCCL error: invalid usage (run with NCCL_DEBUG=WARN for details)\n"
    report = diagnose_text(
        f"HF_TOKEN=hf_abcdefghijklmnop\n{shown}\n{COMMAND}--tp 2\n[2026-03-01 08:00:12 TP0] Scheduler hit an exception: {failure}"
    )
    found = report["diagnoses"][0]
    assert found["title"].startswith("NCCL_NET=IB names a network") and "hf_abc" not in json.dumps(report)
    assert found["fixes"][0]["command"] is None and "unset NCCL_NET where" in " ".join(
        found["fixes"][0]["notes"]
    )


@pytest.mark.parametrize(
    ("before", "behind"),
    [
        ("NCCL_NET=IB\nNCCL_NET=Socket", ""),  # of two hosts, or tried one after another
        ("export NCCL_NET=IB\nunset NCCL_NET", ""),
        ("      NCCL_NET: IB\n      - NCCL_NET=Socket", ""),  # of two services
        ("    - name: NCCL_NET\n      valueFrom: {fieldRef: x}\n      value: IB", ""),
        ("", "The documentation says:\nNCCL_NET=IB"),
    ],
)
def test_a_variable_with_two_values_or_shown_behind_the_failure_is_not_taken_for_the_launch(
    before: str, behind: str
) -> None:
    failure = f"{TRACE}RuntimeError: NCCL error: invalid usage (run with NCCL_DEBUG=WARN for details)\n"
    report = diagnose_text(
        f"{before}\n{COMMAND}--tp 2\n[2026-03-01 08:00:12 TP0] Scheduler hit an exception: {failure}\n{behind}\n"
    )
    assert report["diagnoses"][0]["rule"] == "MTP0539"


@pytest.mark.parametrize(
    ("options", "failure"),
    [
        ("--max-running-requests inf --page-size nan", "    assert self.page_size == 1\nAssertionError"),
        ("", f"    assert {'-' * 50000}self.page_size\nAssertionError"),
        (
            f"--json-model-override-args '{'[' * 9999}'",
            "json.decoder.JSONDecodeError: Expecting value: line 1",
        ),
        (
            "",
            f"ValueError: Weight output_partition_size = {'9' * 5000} is not divisible by weight quantization block_n = 128.",
        ),
    ],
    ids=["no-numbers", "deep-code", "deep-json", "long-number"],
)
def test_values_that_nobody_means_are_no_crash(options: str, failure: str) -> None:
    frame = "layers/quantization/fp8.py" if "block_n" in failure else "managers/scheduler.py"
    found = fixes(options, TRACE.replace("    g()\n", "").replace("managers/scheduler.py", frame) + failure)
    assert all(f["safety"] != "safe" for f in found)


@pytest.mark.parametrize("value", ["$(rm -rf x)", "`id`$HOME", '{"a": "$HOME"}'])
def test_what_was_literal_is_not_run_by_the_fixed_command(value: str) -> None:
    said = TRACE + "ValueError: please use `triton` instead for attention backend"
    fixed = [f["command"] or "" for f in fixes(f"--chat-template '{value}'", said)]
    assert f"--chat-template '{value}' --attention-backend triton" in fixed[0]
    frame = "multimodal_gen/runtime/layers/attention/backends/flash_attn.py"
    failure = TRACE.replace("srt/managers/scheduler.py", frame) + "RuntimeError: an attention backend fails"
    report = diagnose_text(f"$ sglang serve --model-path '{value}' --ulysses-degree 2\n{failure}\n")
    assert f"--model-path '{value}' ..." in report["diagnoses"][0]["fixes"][0]["run"][0]
