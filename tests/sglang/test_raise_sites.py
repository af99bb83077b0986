"""Finding the statement behind a message or a frame, and what follows from its conditions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtpdoctor.launch.types import Edit, EditOp
from mtpdoctor.release import parse_release as R
from mtpdoctor.sglang.flags import flag_table
from mtpdoctor.sglang.guards import candidate_edits, config_read, flags_read, guard_words
from mtpdoctor.sglang.raise_sites import find_site, index_sites, scan, site_at
from mtpdoctor.sglang.source import open_source
from mtpdoctor.sglang.templates import braces, join, pattern, percent, show
from tests.sglang.trees import ARGPARSE, write_tree

TABLE = flag_table(R("0.5.9"))
FILE = "sglang/srt/server_args.py"


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    return open_source(write_tree(tmp_path_factory.mktemp("tree"), ARGPARSE))


@pytest.fixture(scope="module")
def index(tree):
    return index_sites(tree)


def only(code: str):
    sites = list(scan("f.py", code))
    assert len(sites) == 1
    return sites[0]


@pytest.mark.parametrize(
    ("code", "template"),
    [
        ('raise ValueError("plain")', "plain"),
        ('raise ValueError(f"a {x} b {y!r:>4}")', "a {} b {}"),
        ('raise ValueError("a %s of %d%%" % (x, y))', "a {} of {}%"),
        ('raise ValueError("a {} of {{}} {n:.2f}".format(x, n=y))', "a {} of {} {}"),
        ('raise ValueError("one " "two " f"{x}")', "one two {}"),
        ('raise ValueError("one " + str(x) + " two")', "one {} two"),
        ('raise ValueError(f"{x=}")', "x={}"),
        ('assert x, "must " + "hold"', "must hold"),
        ("assert x", ""),
        ("raise NotImplementedError", ""),
        ('raise HTTPException(status_code=400, detail="bad")', "bad"),
        ('logger.warning("n %d of %s", a, b)', "n {} of {}"),
        ('raise ValueError(", ".join(["a", x]))', "a, {}"),
    ],
)
def test_templates(code, template):
    assert only(code).template == template


@pytest.mark.parametrize(
    ("code", "templates"),
    [
        ('def f():\n    msg = f"a {x}"\n    raise ValueError(msg)', {"a {}"}),
        ('def f():\n    msg = "a"\n    if x:\n        msg = "b"\n    raise ValueError(msg)', {"a", "b"}),
        ('def f():\n    msg = "a"\n    msg += " b"\n    raise ValueError(msg)', {"a b"}),
        ('def f():\n    e = ValueError("a")\n    raise e', {"a"}),
        ('M = "a {}"\ndef f():\n    raise ValueError(M.format(x))', {"a {}"}),
        (
            'def died(r):\n    return RuntimeError(f"rank {r} died")\ndef f():\n    raise died(3)',
            {"rank {} died"},
        ),
        ('def f():\n    raise ValueError("a" if x else "b")', {"a", "b"}),
    ],
)
def test_messages_through_variables_and_helpers(code, templates):
    assert {site.template for site in scan("f.py", code)} == templates


def test_message_with_variables_is_found(index):
    found = find_site(index, "ValueError: Spec with fa3 needs care: add --disable-radix-cache or one GPU")
    assert (found[0].file, found[0].function, found[0].kind) == (
        FILE,
        "ServerArgs.check_server_args",
        "raise",
    )
    assert found[0].exception == "ValueError"
    assert find_site(index, "ValueError: mem 1.5 is over 1.0")[0].template == "mem {} is over {}"
    assert find_site(index, "[2026-11-29 13:47:51 TP0] Topk 3 of triton is odd.")[0].kind == "log"


def test_a_cut_message_is_found_by_its_beginning(index):
    assert find_site(index, "ValueError: Spec with fa3 needs care: add --dis")[0].function.endswith(
        "check_server_args"
    )


def test_another_exception_type_is_not_taken_for_it(index):
    assert find_site(index, "KeyError: mem 'a long text' is over 'another text'") == []
    assert find_site(index, "ValueError: nothing like it") == []


def test_messageless_assert_is_found_by_its_frame(tree):
    line = next(
        n for n, text in enumerate(ARGPARSE[FILE].splitlines(), 1) if "assert self.page_size > 0" in text
    )
    site = site_at(tree, f"/opt/venv/lib/python3.12/site-packages/{FILE}", line, "check_server_args")
    assert site is not None and site.template == "" and site.exception == "AssertionError"
    assert guard_words(site, TABLE) == ("--page-size is at most 0",)
    assert site_at(tree, "/elsewhere/torch/x.py", line, "check_server_args") is None


def test_guards_in_the_users_words(index):
    site = find_site(index, "AssertionError: chunked_prefill_size must be divisible by page_size")[0]
    assert guard_words(site, TABLE) == (
        "--chunked-prefill-size is given and --chunked-prefill-size is greater than 0",
        "--chunked-prefill-size is not divisible by --page-size",
    )
    assert {f.dest for f in flags_read(site, TABLE)} == {"chunked_prefill_size", "page_size"}


def test_one_line_helpers_are_written_out(index):
    site = find_site(index, "ValueError: Spec with fa3 needs care: add --disable-radix-cache")[0]
    assert guard_words(site, TABLE)[0] == "--speculative-eagle-topk is given and --disable-radix-cache is off"


def test_candidate_edits_make_a_guard_false(index):
    site = find_site(index, "AssertionError: chunked_prefill_size must be divisible by page_size")[0]
    candidates = candidate_edits(site, {"chunked_prefill_size": 1000, "page_size": 64}, TABLE)
    assert candidates[0].edits == (Edit(EditOp.SET, "--chunked-prefill-size", "960"),)
    assert "--chunked-prefill-size is not divisible by --page-size" in candidates[0].why
    values = [int(c.edits[0].value or 0) for c in candidates if c.edits[0].name == "--page-size"]
    assert values and all(1000 % v == 0 for v in values)
    for typed in (0, -64):  # nothing divides by it
        candidates = candidate_edits(site, {"chunked_prefill_size": 1000, "page_size": typed}, TABLE)
        assert (Edit(EditOp.SET, "--page-size", "1"),) in [c.edits for c in candidates]
    site = find_site(index, "ValueError: Spec with fa3 needs care: add --disable-radix-cache")[0]
    assert (Edit(EditOp.ADD, "--disable-radix-cache"),) in [c.edits for c in candidate_edits(site, {}, TABLE)]


@pytest.mark.parametrize(
    ("guard", "edits"),
    [
        ('self.attention_backend not in ["triton", "fa3"]', ["set --attention-backend triton"]),
        ("self.page_size != 1", ["set --page-size 1"]),
        ("self.speculative_eagle_topk > 1", ["set --speculative-eagle-topk 1"]),
        ("self.mem_fraction_static >= 0.95", ["set --mem-fraction-static 0.94"]),
        ("self.disable_radix_cache", ["remove --disable-radix-cache"]),
        ("self.model_path == 'x'", []),
        ("is_hip()", []),
    ],
)
def test_candidates_by_kind_of_guard(guard, edits):
    site = next(scan("f.py", f"def f(self):\n    if {guard}:\n        raise ValueError('no')"))
    found = candidate_edits(site, {}, TABLE)
    assert [str(e) for e in found[0].edits] == edits if edits else not found


def test_model_facts_read_by_a_guard():
    code = "def f(self):\n    if self.hf_config.num_attention_heads % self.tp_size != 0:\n        raise ValueError('h')"
    site = next(scan("f.py", code))
    assert config_read(site) == ("num_attention_heads",)
    assert guard_words(site, TABLE) == (
        "the model's num_attention_heads is not divisible by --tensor-parallel-size",
    )


@given(st.text(max_size=300))
def test_any_text_is_scanned(code):
    list(scan("f.py", code))


PIECES = st.lists(st.text("ab %{}.\n", max_size=6), min_size=1, max_size=4).map(tuple)


@given(PIECES, st.lists(st.text("xyz 1", max_size=4), min_size=3, max_size=3))
def test_a_filled_template_is_matched(pieces, fills):
    text = pieces[0] + "".join(fill + piece for fill, piece in zip(fills, pieces[1:], strict=False))
    assert pattern(pieces).match(text)


@given(st.text("ab %{}", max_size=12))
def test_format_strings_never_fail(text):
    assert show(percent(text)) is not None and show(braces(text)) is not None


@given(PIECES, PIECES)
def test_joining_keeps_the_literals(left, right):
    assert "".join(join(left, right)) == "".join(left) + "".join(right)


def test_a_nul_byte_in_a_source_is_no_error() -> None:
    assert list(scan("x.py", "raise ValueError('a')\x00")) == []
