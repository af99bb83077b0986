"""Flags of a release, abbreviations as argparse takes them, and spellings across releases."""

from __future__ import annotations

import argparse

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtpdoctor.launch.types import Edit, EditOp
from mtpdoctor.release import parse_release as R
from mtpdoctor.sglang.flags import flag_table, known_flag, translate
from mtpdoctor.sglang.options import parse_edit, same_option, translate_edit
from mtpdoctor.sglang.releases import known_releases

TABLES = {r: flag_table(R(r)) for r in ("0.4.6", "0.5.9", "0.5.13.post1", "0.5.16", "0.5.23")}


@pytest.mark.parametrize("release", list(TABLES))
def test_tensor_parallel_in_every_spelling(release):
    for name in ("--tp", "--tp-size", "--tensor-parallel-size", "--tensor-parallel", "--tp-size=4"):
        spec = TABLES[release].resolve(name)
        assert spec is not None and spec.dest == "tp_size" and spec.type == "int"


def test_choices_and_defaults_are_those_of_the_release():
    strategy = TABLES["0.5.13.post1"]["--mamba-scheduler-strategy"]
    assert strategy.choices == ("auto", "no_buffer", "extra_buffer", "extra_buffer_lazy")
    assert strategy.default == "auto"
    assert "extra_buffer_lazy" not in TABLES["0.5.9"]["--mamba-scheduler-strategy"].choices
    assert TABLES["0.5.9"]["--speculative-algorithm"].choices
    assert TABLES["0.5.13.post1"]["--speculative-algorithm"].choices is None
    assert TABLES["0.5.23"]["--mem-fraction-static"].default is None


def test_deprecated_alias_sets_the_new_field():
    old = TABLES["0.5.16"]["--mamba-scheduler-strategy"]
    assert old.deprecated and old.replacement == "--mamba-radix-cache-strategy"
    assert old.dest == "mamba_radix_cache_strategy"
    assert old.releases == (("0.5.7", "0.5.19"),)
    assert TABLES["0.5.16"].by_dest("mamba_radix_cache_strategy").name == "--mamba-radix-cache-strategy"


@given(st.data())
def test_abbreviations_are_those_of_argparse(data):
    """resolve() agrees with argparse on every beginning of every flag."""
    table = TABLES[data.draw(st.sampled_from(list(TABLES)))]
    spec = data.draw(st.sampled_from(table.specs))
    option = data.draw(st.sampled_from(spec.spellings))
    word = option[: data.draw(st.integers(3, len(option)))]
    parser = _parser(table)
    matches = (
        {a.dest for a, *_ in parser._get_option_tuples(word)} if word not in table else {table[word].name}
    )
    resolved = table.resolve(word)
    assert (resolved.name if resolved else None) == (next(iter(matches)) if len(matches) == 1 else None)


_PARSERS: dict[int, argparse.ArgumentParser] = {}


def _parser(table):
    if id(table) not in _PARSERS:
        parser = argparse.ArgumentParser(add_help=False)
        for spec in table.specs:
            parser.add_argument(*spec.spellings, dest=spec.name)
        _PARSERS[id(table)] = parser
    return _PARSERS[id(table)]


def test_union_knows_every_flag_ever():
    assert (
        known_flag("--mamba-scheduler-strategy") and known_flag("--nsa-prefill") and known_flag("--tp-size=4")
    )
    assert not known_flag("--max-model-len")
    union = flag_table(None)
    assert {s.name for r in known_releases() for s in flag_table(r).specs} == {s.name for s in union.specs}
    assert union.resolve("--tp").dest == "tp_size"


@pytest.mark.parametrize(
    ("name", "release", "spelled"),
    [
        ("--mamba-scheduler-strategy", "0.5.13.post1", "--mamba-scheduler-strategy"),
        ("--mamba-scheduler-strategy", "0.5.16", "--mamba-radix-cache-strategy"),
        ("--mamba-scheduler-strategy", "0.5.23", "--mamba-radix-cache-strategy"),
        ("--mamba-radix-cache-strategy", "0.5.9", "--mamba-scheduler-strategy"),
        ("--mamba-radix-cache-strategy", "0.5.6", None),
        ("--nsa-prefill", "0.5.23", "--dsa-prefill-backend"),
        ("--dsa-prefill-backend", "0.5.3", "--nsa-prefill"),
        ("--cuda-graph-max-bs", "0.5.20", "--cuda-graph-max-bs-decode"),
        ("--cuda-graph-max-bs-decode", "0.5.9", "--cuda-graph-max-bs"),
        ("--stream-output", "0.5.20", "--incremental-streaming-output"),
        ("--impl", "0.5.9", "--model-impl"),
        ("--max-micro-batch-size", "0.5.9", "--pp-max-micro-batch-size"),
        ("--kt-amx-method", "0.5.9", "--kt-method"),
        ("--enable-dp-attention", "0.5.23", "--enable-dp-attention"),  # deprecated, but another shape
        ("--enable-ep-moe", "0.5.9", None),
        ("--tp-size", "0.5.9", "--tp-size"),
        ("--disable-cuda-graph", "0.5.23", "--disable-cuda-graph"),
    ],
)
def test_translate(name, release, spelled):
    translation = translate(name, R(release))
    assert translation.name == spelled
    if spelled != name:
        assert translation.reason


def test_translate_without_a_release_changes_nothing():
    assert translate("--anything", None).name == "--anything"


@given(st.sampled_from(sorted(flag_table(None))), st.sampled_from(known_releases()))
def test_a_translation_exists_in_the_release(name, release):
    table = flag_table(release)
    found = translate(name, release).name
    if name in table and table[name].refused is None:
        assert found is not None
    if found is not None:
        assert found in table and table[found].refused is None
        assert table[found].arity == flag_table(None)[name].arity or found == name or found in table
        # and once translated it stays
        assert translate(found, release).name == found


@pytest.mark.parametrize(
    ("edit", "release", "becomes"),
    [
        (
            "set --mamba-radix-cache-strategy extra_buffer",
            "0.5.10",
            ["set --mamba-scheduler-strategy extra_buffer"],
        ),
        ("add --disable-piecewise-cuda-graph", "0.5.23", ["set --cuda-graph-backend-prefill disabled"]),
        ("set --cuda-graph-backend-prefill disabled", "0.5.13", ["add --disable-piecewise-cuda-graph"]),
        ("set --cuda-graph-backend-decode disabled", "0.5.9", ["add --disable-cuda-graph"]),
        ("set --attn-dp-size 4", "0.5.16", ["set --dp-size 4", "add --enable-dp-attention"]),
        ("add --enable-ep-moe", "0.5.10", ["set --ep-size {arg.tp_size}"]),
        ("add --enable-deepep-moe", "0.5.10", ["set --moe-a2a-backend deepep"]),
        ("set --prefill-cp-mode in-seq-split", "0.5.23", ["set --cp-strategy zigzag"]),
        ("add --enable-beta-spec", "0.5.9", ["env SGLANG_ENABLE_SPEC_V2=1"]),
        ("add --enable-beta-spec", "0.5.16", []),
        ("set --optimistic-prefill-retries 3", "0.5.16", ["set --optimistic-prefill-attempts 3"]),
        ("remove --mamba-scheduler-strategy", "0.5.6", []),
        ("set --mamba-radix-cache-strategy extra_buffer", "0.5.6", None),
        ("env A=1", "0.5.6", ["env A=1"]),
    ],
)
def test_edits_follow_a_change_of_shape(edit, release, becomes):
    edits, reason = translate_edit(parse_edit(edit), R(release))
    assert (None if edits is None else [str(e) for e in edits]) == becomes
    if becomes != [edit]:
        assert reason


def test_parse_edit():
    assert parse_edit("set --a b c") == Edit(EditOp.SET, "--a", "b c")
    assert parse_edit("env A=b=c") == Edit(EditOp.ENV, "A", "b=c")
    assert parse_edit("remove --a") == Edit(EditOp.REMOVE, "--a")


def test_old_and_new_fields_are_one_option():
    assert set(same_option("mamba_scheduler_strategy")) == {
        "mamba_scheduler_strategy",
        "mamba_radix_cache_strategy",
    }
    assert same_option("dsa_prefill_backend") == ("dsa_prefill_backend", "nsa_prefill_backend", "nsa_prefill")
    assert same_option("no_such_field") == ("no_such_field",)


def test_fields_of_one_release_are_never_one_option():
    for release in known_releases():
        dests = {s.dest for s in flag_table(release).specs}
        for dest in dests:
            assert len(dests.intersection(same_option(dest))) == 1, (release, dest)
