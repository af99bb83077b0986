"""Nothing private is left, nothing that rules need is taken, and what was put in its place is stable."""

from __future__ import annotations

import json
import re
from functools import lru_cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from planted import EMAILS, HOSTS, IPS4, IPS6, KEPT, PEM_BODY, USERS, planted

from mtpdoctor.anonymise.redactor import Redactor
from mtpdoctor.anonymise.tokens import PLACEHOLDER
from mtpdoctor.bundle.build import vocabulary
from mtpdoctor.kb import load
from mtpdoctor.kb.load import Knowledge


@lru_cache(maxsize=1)
def load_knowledge() -> Knowledge:
    return load.load_knowledge()


@lru_cache(maxsize=1)
def keep() -> frozenset[str]:
    return vocabulary(load_knowledge())


def redacted(*texts: str, **options: object) -> tuple[list[str], Redactor]:
    redactor = Redactor(keep=keep(), **options)  # type: ignore[arg-type]
    for text in texts:
        redactor.learn(text)
    return [redactor.redact(text, "log") for text in texts], redactor


def test_of_300_planted_values_none_is_left() -> None:
    items = planted()
    assert sum(len(values) for _, values in items) >= 300
    text = "\n".join(line for line, _ in items)
    (out,), _ = redacted(text)
    assert out.count("\n") == text.count("\n")
    left = [
        (v, line)
        for (_, values), line in zip(items, out.split("\n"), strict=True)
        for v in values
        if v in line
    ]
    assert left == []


def test_each_planted_value_is_found_where_it_stands_alone() -> None:
    left = []
    for line, values in planted():
        if line.startswith("-----") or line in PEM_BODY:  # a block is told by its first line
            continue
        (out,), _ = redacted(line)
        left += [(v, out) for v in values if v in out]
    assert left == []


@pytest.mark.parametrize("line", KEPT)
def test_what_rules_need_stays(line: str) -> None:
    assert redacted(line)[0] == [line]


def test_what_rules_need_stays_beside_planted_values() -> None:
    text = "\n".join([*KEPT, *(line for line, _ in planted())])
    (out,), _ = redacted(text)
    assert out.split("\n")[: len(KEPT)] == list(KEPT)


def test_the_real_logs_lose_no_word_of_their_errors() -> None:
    """The words of every rule's literals are there as often as before."""
    from pathlib import Path

    literals = [x for x in load_knowledge().literals if len(x) > 12 and "/" not in x]
    for path in sorted((Path(__file__).parents[1] / "data" / "public_reports").glob("*.log"))[::4]:
        text = path.read_text(encoding="utf-8", errors="replace")
        (out,), _ = redacted(text)
        assert [x for x in literals if text.count(x) != out.count(x)] == [], path.name


def test_a_value_is_the_same_placeholder_in_every_text() -> None:
    log = "--dist-init-addr node7.dc1.acme.internal:5000\nnode7 is gone\nNODE7.DC1.ACME.INTERNAL is back\nnode7.dc1: up"
    other = "x: node7\ny: node8.dc1.acme.internal\n"
    (a, b), redactor = redacted(log, other)
    assert set(PLACEHOLDER.findall(a)) == {"redacted-host-1"}  # short name, domain name, in any case
    assert PLACEHOLDER.findall(b) == ["redacted-host-1", "redacted-host-2"]
    host = next(r for r in redactor.redactions() if r.placeholder == "redacted-host-1")
    assert (host.kind, host.count, host.first) == ("host", 5, "log:1")


def test_a_folder_and_the_files_in_it_stay_together() -> None:
    (out,), _ = redacted(
        "--model-path /data/acme/run7\nNo such file: '/data/acme/run7/config.json'\n/data/acme/run7/part-x.safetensors"
    )
    first, second, third = out.split("\n")
    folder = first.removeprefix("--model-path ")
    assert re.fullmatch(r"/data/redacted-path-\d/redacted-path-\d", folder)
    assert second == f"No such file: '{folder}/config.json'"
    assert re.fullmatch(rf"{folder}/redacted-path-3\.safetensors", third)


def test_public_names_of_models_stay_unless_asked_otherwise() -> None:
    line = "--model-path Qwen/Qwen3-8B --speculative-draft-model-path /data/Qwen3-8B-EAGLE3"
    assert redacted(line)[0] == [line]
    (hidden,), _ = redacted(line, hide_models=True)
    assert "Qwen" not in hidden and len(hidden.split()) == 4


def test_a_private_key_goes_line_by_line_in_any_transport() -> None:
    body = "\n".join(f"web-1  | {line}" for line in PEM_BODY)
    text = f"web-1  | -----BEGIN RSA PRIVATE KEY-----\n{body}\nweb-1  | -----END RSA PRIVATE KEY-----\nweb-1  | ready"
    (out,), _ = redacted(text)
    assert out.split("\n") == ["web-1  | redacted-secret-1"] * 5 + ["web-1  | ready"]


def test_a_secret_whose_flag_stands_on_the_line_before() -> None:
    text = "python -m sglang.launch_server \\\n  --api-key \\\n  hunter2hunter2 \\\n  --tp 2\nsent hunter2hunter2"
    (out,), _ = redacted(text)
    assert "hunter2" not in out and out.count("\n") == 4


def test_fields_of_a_json_document_say_what_they_hold() -> None:
    redactor = Redactor(keep=keep())
    out = redactor.value(
        {"user": "bob", "api_key": "x y", "pad_token": "<pad>", "n": 3, "l": ["/data/q1/acme"]}, "host.json"
    )
    assert out == {
        "user": "redacted-user-1",
        "api_key": "redacted-secret-1",
        "pad_token": "<pad>",
        "n": 3,
        "l": ["/data/redacted-path-1/redacted-path-2"],
    }
    assert {r.first for r in redactor.redactions()} == {"host.json"}


_VALUES = st.sampled_from([*IPS4, *IPS6, *EMAILS, *HOSTS, *USERS])
_LINES = st.lists(
    st.one_of(
        st.sampled_from([line for line, _ in planted()]),
        st.sampled_from(KEPT),
        st.text(alphabet=st.characters(exclude_characters="\n", exclude_categories=("Cs",)), max_size=60),
        st.builds(
            "{} {} {}".format,
            st.text(alphabet="ab:[]'\"=/. ", max_size=6),
            _VALUES,
            st.text(alphabet="ab:[]'\"=/. ", max_size=6),
        ),
    ),
    max_size=12,
)


@settings(max_examples=60, deadline=None)
@given(_LINES)
def test_lines_stay_lines_and_a_second_pass_changes_nothing(lines: list[str]) -> None:
    text = "\n".join(lines)
    (out,), redactor = redacted(text)
    assert out.count("\n") == text.count("\n")
    assert redactor.redact(out, "again") == out


@settings(max_examples=60, deadline=None)
@given(
    st.ip_addresses(v=4).filter(
        lambda a: not (a.is_loopback or a.is_unspecified or a.is_multicast) and 0 < int(a) >> 24 < 255
    ),
    st.sampled_from(
        ("tcp://{}:20003 failed", "peer {}:5000 closed", "ip={} gone", "connect to {}", "addr='{}'")
    ),
)
def test_any_address_of_a_machine_is_found(address: object, form: str) -> None:
    (out,), _ = redacted(form.format(address))
    assert str(address) not in out or str(address) == "169.254.169.254"


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(0, 40), min_size=4, max_size=4).map(lambda parts: ".".join(map(str, parts))),
    st.sampled_from(
        (
            "sglang=={}",
            "version {}",
            "libcublas.so.{}",
            "nvidia-cudnn-cu12-{}",
            "CUDA {}",
            "driver version: {}",
            ">={}",
            "v{}",
        )
    ),
)
def test_no_version_is_taken_for_an_address(version: str, form: str) -> None:
    line = form.format(version)
    assert redacted(line)[0] == [line]


def test_the_list_of_redactions_holds_no_value() -> None:
    text = "\n".join(line for line, _ in planted())
    _, redactor = redacted(text)
    listed = json.dumps([(r.kind, r.placeholder, r.count, r.first) for r in redactor.redactions()])
    assert not [v for _, values in planted() for v in values if v in listed]
