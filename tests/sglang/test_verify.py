"""Rules held against the sources: in which releases can their message occur?"""

from __future__ import annotations

import pytest

from mtpdoctor.sglang.source import open_source
from mtpdoctor.sglang.verify import (
    PatternText,
    RuleText,
    build_index,
    check_ranges,
    load_verified,
    range_text,
    verified_releases,
    verify,
    write_verified,
)
from tests.sglang.trees import ARGPARSE, FIELDS, write_tree


def rule(regex: str, literal: str, releases: str = "*", example: str = "", **more) -> RuleText:
    traceback = more.pop("traceback", False)
    return RuleText(
        "MTP1", more.pop("source", "sglang"), releases, (PatternText(regex, literal, traceback),), (example,)
    )


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trees")
    sources = {
        "1.0.0": open_source(write_tree(folder / "old", ARGPARSE)),
        "1.1.0": open_source(write_tree(folder / "new", FIELDS)),
    }
    return build_index(sources, ["assert self.page_size > 0", "def check_server_args("])


@pytest.mark.parametrize(
    "one",
    [
        rule(r"chunked_prefill_size must be divisible by page_size", "must be divisible by page_size"),
        rule(r"mem (?P<m>[\d.]+) is over [\d.]+", " is over "),
        rule(
            r"Spec with (?P<b>fa\d) needs care",
            "needs care",
            example="ValueError: Spec with fa3 needs care: add --disable-radix-cache",
        ),
        rule(r"Topk \d+ of (?P<b>\w+) is odd", " is odd"),
        rule(r"Spec with fa3\b", "Spec with fa3"),
        rule(r"in check_server_args[\s\S]*Error", "in check_server_args", traceback=True),
        rule(r"assert self\.page_size > 0[\s\S]*AssertionError", "assert self.page_size > 0", traceback=True),
    ],
)
def test_message_is_found_where_it_occurs(index, one):
    assert verify([one], index) == {"MTP1": ["1.0.0"]}


def test_cached_messages_give_the_same_index(index, tmp_path):
    tree = open_source(write_tree(tmp_path / "old", ARGPARSE))
    cache = tmp_path / "cache" / "messages.json.gz"
    fresh = build_index({"1.0.0": tree}, cache=cache)
    assert build_index({"1.0.0": tree}, cache=cache).messages == fresh.messages
    cache.write_bytes(b"damaged")
    assert build_index({"1.0.0": tree}, cache=cache).messages == fresh.messages


def test_message_that_no_source_has(index):
    assert verify([rule("never said by anyone", "never said")], index) == {"MTP1": []}
    assert verify([rule("x" * 8, "x" * 8, source="torch")], index) == {}


def test_claims_are_held_against_the_result(index, tmp_path):
    good = rule("must be divisible by page_size", "must be divisible", "<1.1.0")
    write_verified(tmp_path, [good], verify([good], index), index.releases)
    verified = load_verified(tmp_path)
    assert verified_releases(verified, "MTP1") == {"1.0.0"}
    assert check_ranges([good], verified) == []

    too_wide = rule("must be divisible by page_size", "must be divisible", "*")
    (problem,) = check_ranges([too_wide], verified)
    assert problem.level == "error" and "1.1.0" in problem.message and "'<=1.0.0'" in problem.message

    narrow = rule("must be divisible by page_size", "must be divisible", ">=1.1.0")
    assert check_ranges([narrow], verified)[0].level == "error"

    changed = rule("must be divisible by the page_size", "must be divisible", "*")
    assert check_ranges([changed], verified)[0].level == "warning"
    assert check_ranges([rule("x" * 8, "x" * 8, source="torch")], verified) == []


def test_searching_one_release_keeps_what_is_known_of_the_others(index, tmp_path):
    one = rule("must be divisible by page_size", "must be divisible")
    write_verified(tmp_path, [one], {"MTP1": ["1.0.0"]}, ["1.0.0"])
    write_verified(tmp_path, [one], {"MTP1": ["1.1.0"]}, ["1.1.0"])
    assert verified_releases(load_verified(tmp_path), "MTP1") == {"1.0.0", "1.1.0"}
    other = rule("must be divisible by page_siz", "must be divisible")
    write_verified(tmp_path, [other], {"MTP1": ["1.1.0"]}, ["1.1.0"])
    assert verified_releases(load_verified(tmp_path), "MTP1") == {"1.1.0"}


def test_range_text():
    releases = ["1.0", "1.1", "1.2", "1.3"]
    assert range_text(releases, releases) == "*"
    assert range_text(["1.1", "1.2"], releases) == ">=1.1,<=1.2"
    assert range_text(["1.2", "1.3"], releases) == ">=1.2"
    assert range_text(["1.0"], releases) == "<=1.0"
