"""Help with refused flags and values."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtpdoctor.launch.types import EditOp
from mtpdoctor.paths import releases_folder
from mtpdoctor.release import parse_release as R
from mtpdoctor.sglang.flags import flag_table
from mtpdoctor.sglang.help import HelpKind, explain_choice, explain_unknown
from mtpdoctor.sglang.releases import known_releases
from mtpdoctor.sglang.store import read_table


@pytest.mark.parametrize(
    ("name", "release", "value", "kind", "edits"),
    [
        (
            "--mamba-scheduler-strategy",
            "0.5.23",
            "extra_buffer",
            HelpKind.RENAMED,
            ["remove --mamba-scheduler-strategy", "set --mamba-radix-cache-strategy extra_buffer"],
        ),
        (
            "--mamba-radix-cache-strategy",
            "0.5.13.post1",
            None,
            HelpKind.RENAMED,
            ["remove --mamba-radix-cache-strategy", "set --mamba-scheduler-strategy {value}"],
        ),
        (
            "--speculative-alogrithm",
            "0.5.13",
            None,
            HelpKind.NEAREST,
            ["remove --speculative-alogrithm", "set --speculative-algorithm {value}"],
        ),
        (
            "--mamba-scheduler-stategy",
            "0.5.23",
            None,
            HelpKind.RENAMED,
            ["remove --mamba-scheduler-stategy", "set --mamba-radix-cache-strategy {value}"],
        ),
        ("--tp_size", "0.5.9", "4", HelpKind.DASHES, ["remove --tp_size", "set --tp-size {value}"]),
        ("-tp-size", "0.5.9", None, HelpKind.DASHES, ["remove -tp-size", "set --tp-size {value}"]),
        (
            "--enable_mixed_chunk",
            "0.5.9",
            None,
            HelpKind.DASHES,
            ["remove --enable_mixed_chunk", "add --enable-mixed-chunk"],
        ),
        (
            "--attn-dp-size",
            "0.5.9",
            "4",
            HelpKind.REPLACED,
            ["remove --attn-dp-size", "set --dp-size 4", "add --enable-dp-attention"],
        ),
        (
            "--disable-piecewise-cuda-graph",
            "0.5.23",
            None,
            HelpKind.REPLACED,
            ["remove --disable-piecewise-cuda-graph", "set --cuda-graph-backend-prefill disabled"],
        ),
        (
            "--enable-expert-distribution-metrics",
            "0.5.18",
            None,
            HelpKind.REPLACED,
            ["remove --enable-expert-distribution-metrics", "set --expert-balancedness-report-mode both"],
        ),
        (
            "--enable-mtp",
            "0.5.23",
            None,
            HelpKind.FOREIGN,
            ["remove --enable-mtp", "set --speculative-algorithm NEXTN"],
        ),
        (
            "--max-model-len",
            "0.5.9",
            "8192",
            HelpKind.FOREIGN,
            ["remove --max-model-len", "set --context-length {value}"],
        ),
        (
            "--enforce-eager",
            "0.5.9",
            None,
            HelpKind.FOREIGN,
            ["remove --enforce-eager", "add --disable-cuda-graph"],
        ),
        ("--tool-parser-plugin", "0.5.9", None, HelpKind.FOREIGN, ["remove --tool-parser-plugin"]),
    ],
)
def test_unknown_flag(name, release, value, kind, edits):
    helped = explain_unknown(name, R(release), value)
    assert helped.kind is kind
    assert [str(e) for e in helped.edits] == edits


def test_a_flag_of_a_later_release_says_when_it_came():
    helped = explain_unknown("--mamba-radix-cache-strategy", R("0.5.6"))
    assert helped.kind is HelpKind.ADDED_LATER and "0.5.14" in helped.text and not helped.sure
    helped = explain_unknown("--enable-double-sparsity", R("0.5.13"))
    assert "removed in 0.5.11" in helped.text


def test_abbreviations():
    helped = explain_unknown("--speculative", R("0.5.9"))
    assert helped.kind is HelpKind.AMBIGUOUS and "--speculative-algorithm" in helped.suggestions
    assert explain_unknown("--tensor-parallel", R("0.5.9")).kind is HelpKind.KNOWN


def test_nothing_is_guessed_from_nothing():
    helped = explain_unknown("--xyzzy", R("0.5.9"))
    assert helped.kind is HelpKind.UNKNOWN and not helped.suggestions and not helped.sure


def test_foreign_table():
    foreign = read_table(releases_folder() / "options.json")["foreign"]
    union = flag_table(None)
    assert sum(row["of"] == "vllm" for row in foreign.values()) >= 40
    assert {"tgi", "tensorrt-llm"} <= {row["of"] for row in foreign.values()}
    for name, row in foreign.items():
        assert name not in union, f"{name} is a flag of SGLang itself"
        assert row["why"]
        for text in row["edits"]:
            target = text.split()[1]
            assert not target.startswith("--") or target in union, (name, text)


@given(st.sampled_from(sorted(flag_table(None))), st.sampled_from(known_releases()))
def test_edits_always_end_in_flags_the_release_has(name, release):
    """Whatever flag of whatever release is typed: the repair is one this release takes."""
    helped = explain_unknown(name, release)
    table = flag_table(release)
    taken = table.resolve(name)  # the beginning of one flag only is taken for it
    assert (helped.kind is HelpKind.KNOWN) == (taken is not None and taken.refused is None)
    for edit in helped.edits:
        if edit.op is EditOp.REMOVE:
            assert edit.name == name
        elif edit.op is not EditOp.ENV:
            spec = table[edit.name]
            assert spec.refused is None
            assert (edit.op is EditOp.ADD) == (spec.arity == "switch")


@given(st.text(max_size=40), st.sampled_from(known_releases()))
def test_any_text_is_answered(text, release):
    assert explain_unknown(f"--{text}", release).text
    assert explain_choice("--attention-backend", text, release).text


@pytest.mark.parametrize(
    ("flag", "value", "release", "kind", "edits"),
    [
        ("--attention-backend", "FLASH_ATTN", "0.5.13", HelpKind.RENAMED, ["set --attention-backend fa3"]),
        (
            "--attention-backend",
            "flashinfre",
            "0.5.13",
            HelpKind.CHOICE,
            ["set --attention-backend flashinfer"],
        ),
        ("--attention-backend", "zzz", "0.5.13", HelpKind.CHOICE, ["remove --attention-backend"]),
        ("--attention-backend", "triton", "0.5.13", HelpKind.KNOWN, []),
        (
            "--speculative-algorithm",
            "nextn",
            "0.5.9",
            HelpKind.RENAMED,
            ["set --speculative-algorithm NEXTN"],
        ),
        ("--speculative-algorithm", "mtp", "0.5.23", HelpKind.RENAMED, ["set --speculative-algorithm NEXTN"]),
        ("--kv-cache-dtype", "fp8", "0.5.9", HelpKind.RENAMED, ["set --kv-cache-dtype fp8_e4m3"]),
    ],
)
def test_choice(flag, value, release, kind, edits):
    helped = explain_choice(flag, value, R(release))
    assert helped.kind is kind
    assert [str(e) for e in helped.edits] == edits


def test_choice_of_another_release_says_which():
    helped = explain_choice("--attention-backend", "fa4", R("0.5.2"))
    assert "0.5.3" in helped.text and "choices of SGLang 0.5.2" in helped.text
    helped = explain_choice("--mamba-scheduler-strategy", "extra_buffer_lazy", R("0.5.10"))
    assert "0.5.13" in helped.text and [str(e) for e in helped.edits] == [
        "set --mamba-scheduler-strategy extra_buffer"
    ]
    assert not helped.sure


def test_choice_of_an_unknown_flag_explains_the_flag():
    assert explain_choice("--mamba-scheduler-strategy", "auto", R("0.5.23")).kind is HelpKind.RENAMED
