"""Rules held against the sources: in which releases can their message occur?"""

from __future__ import annotations

import pytest

from mtpdoctor.sglang.claims import check_ranges, range_text
from mtpdoctor.sglang.quoted_code import Quote, asked
from mtpdoctor.sglang.source import open_source
from mtpdoctor.sglang.standing import StandingText, find_standing
from mtpdoctor.sglang.verify import (
    PatternText,
    RuleText,
    build_index,
    load_verified,
    verified_releases,
    verify,
    write_verified,
)
from tests.sglang.trees import ARGPARSE, FIELDS, write_tree


def rule(regex: str, literal: str, releases: str = "*", example: str = "", **more) -> RuleText:
    traceback = more.pop("traceback", False)
    pattern = PatternText(regex, literal, traceback, more.pop("runs", ()))
    return RuleText("MTP1", more.pop("source", "sglang"), releases, (pattern,), (example,), **more)


FOUND = (
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
)


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trees")
    sources = {
        "1.0.0": open_source(write_tree(folder / "old", ARGPARSE)),
        "1.1.0": open_source(write_tree(folder / "new", FIELDS)),
    }
    return build_index(sources, FOUND)


@pytest.mark.parametrize("one", FOUND)
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


def releases_of(one: RuleText, tmp_path, *texts: str, path: str = "sglang/srt/cache.py") -> list[str]:
    """Of releases 1.0, 1.1, ... with one source file each, those in which the rule is found."""
    sources = {}
    for number, text in enumerate(texts):
        file = tmp_path / str(number) / path
        file.parent.mkdir(parents=True)
        (tmp_path / str(number) / "sglang/srt/server_args.py").touch()
        file.write_text(text)
        sources[f"1.{number}"] = open_source(tmp_path / str(number))
    return verify([one], build_index(sources, [one]))["MTP1"]


@pytest.mark.parametrize(
    ("pattern", "quotes", "message"),
    [
        (
            r'cache\.py", line \d+, in free\n[\s\S]*assert slot >= 0[\s\S]*AssertionError',
            (Quote(r"cache\.py", "free", "assert slot >= 0"),),
            "",
        ),
        (r"in (?:free|alloc)[\s\S]*Error", (Quote("", "(?:free|alloc)"),), ""),
        (r"(?:pool\.py|in free)[\s\S]*view\.py[\s\S]*Error", (Quote(r"view\.py"),), ""),
        (r"pool\.py[\s\S]*ValueError: no slot", (Quote(r"pool\.py"),), "ValueError: no slot"),
        (
            r"pool\.py[\s\S]*view\.py[\s\S]*x\.size == 1",
            (Quote(r"pool\.py"), Quote(r"view\.py", "", r"x\.size == 1")),
            "",
        ),
        (r"ValueError: no slot", (), "ValueError: no slot"),
    ],
)
def test_code_that_a_traceback_pattern_names(pattern, quotes, message):
    found = asked(pattern)
    assert found.quotes == quotes and found.message == message


def test_a_quoted_line_counts_in_its_own_function_and_file(tmp_path):
    line = r'cache\.py", line \d+, in free\n[\s\S]*assert slot >= 0[\s\S]*AssertionError'
    one = rule(line, "assert slot >= 0", traceback=True)
    here = "class Cache:\n    def free(self, slot):\n        assert slot >= 0\n"
    other = "class Cache:\n    def free(self, slot):\n        pass\n\n    def take(self, slot):\n        assert slot >= 0\n"
    assert releases_of(one, tmp_path, here, other, here.replace(">=", ">")) == ["1.0"]
    assert releases_of(one, tmp_path / "x", here, path="sglang/srt/pool.py") == []


def test_the_message_of_a_traceback_counts_where_it_is_sglangs(tmp_path):
    own = rule(r"in free[\s\S]*ValueError: no slot is left", "in free", traceback=True)
    assert releases_of(
        own,
        tmp_path / "own",
        'def free():\n    raise ValueError("no slot is left")\n',
        'def free():\n    raise ValueError("nothing left")\n',
    ) == ["1.0"]
    pythons = rule(r"in free[\s\S]*ZeroDivisionError: division by zero", "in free", traceback=True)
    assert releases_of(pythons, tmp_path / "python", "def free():\n    1 / 0\n") == ["1.0"]


def test_a_value_may_stand_at_the_end_of_the_literal(tmp_path):
    one = rule(r"accept len: 1\.00\b", "accept len: 1.00")
    text = 'def log(n):\n    out = []\n    out.append(f"accept len: {n:.2f}, rate: 1")\n'
    assert releases_of(one, tmp_path, text, text.replace(": {", " {")) == ["1.0"]


def test_a_text_outside_of_statements_needs_the_rest_of_its_message_nearby(tmp_path):
    runs = ((("does not support",),), (("Alpha",), ("Beta",)))
    one = rule(r"(?:Alpha|Beta) does not support", " does not support", runs=runs)
    said = 'WHY = {1: "Beta does not "\n       "support this"}\n'
    other = 'WHY = {1: "Gamma does not support this"}\n'
    comment = "x = 1  # Alpha does not support this\n"
    assert releases_of(one, tmp_path, said, other, comment) == ["1.0"]


def test_a_statement_that_wraps_anothers_message_is_not_its_origin(tmp_path):
    example = "RuntimeError: Failed to load adapter a: adapters may not add tokens"
    one = rule(r"adapters may not add tokens", "adapters may not add tokens", example=example)
    wraps = 'def f(a, e):\n    raise RuntimeError(f"Failed to load adapter {a}: {e}")\n'
    says = 'def f():\n    raise ValueError("adapters may not add tokens")\n'
    assert releases_of(one, tmp_path, wraps, says) == ["1.1"]
    outer = rule(r"Failed to load adapter \w+: .*may not", "Failed to load adapter", example=example)
    assert releases_of(outer, tmp_path / "outer", wraps, says) == ["1.0"]


KNOWN = ["1.0", "1.1", "1.2", "1.3", "1.4"]


def claims(found: list[list[str]], releases: str = "*", **more) -> list[tuple[str, str]]:
    """(level, message) of what is wrong with a rule whose text is found in these spans."""
    one = rule("a message of its own", "a message", releases, **more)
    table = {"releases": KNOWN, "rules": {"MTP1": {"key": one.key, "spans": found}}}
    return [(p.level, p.message) for p in check_ranges([one], table)]


@pytest.mark.parametrize(
    ("found", "more", "said"),
    [
        ([["1.0", "1.4"]], {}, []),
        ([["1.0", "1.1"], ["1.3", "1.4"]], {}, [("error", "does not occur in 1.2:")]),
        ([["1.0", "1.1"], ["1.3", "1.4"]], {"unseen": ("==1.2",)}, []),
        ([["1.0", "1.0"], ["1.3", "1.4"]], {"unseen": ("==1.2",)}, [("error", "does not occur in 1.1:")]),
        (
            [["1.0", "1.4"]],
            {"unseen": ("==1.2",)},
            [("error", "`unseen` names 1.2, whose source has the text")],
        ),
        ([], {}, [("warning", "occurs in none of 1.0 to 1.4: look at the pattern")]),
        ([], {"unseen": ("*",)}, []),
        ([["1.0", "1.4"]], {"releases": "<1.3"}, [("warning", "also occurs in 1.3 to 1.4")]),
        ([["1.0", "1.4"]], {"releases": "<1.3", "elsewhere": (">=1.3",)}, []),
        (
            [["1.0", "1.4"]],
            {"releases": "<1.3", "elsewhere": ("==1.4",)},
            [("warning", "also occurs in 1.3:")],
        ),
        (
            [["1.0", "1.3"]],
            {"releases": "<1.3", "elsewhere": (">=1.3",)},
            [("error", "`elsewhere` names 1.4, whose source does not have the text")],
        ),
        (
            [["1.0", "1.4"]],
            {"releases": "<1.4", "elsewhere": (">=1.3",)},
            [("error", "claims 1.3 and says in `elsewhere`")],
        ),
        (
            [["1.0", "1.2"]],
            {"releases": "<1.3", "unseen": ("==1.4",)},
            [("error", "`unseen` names 1.4, which the rule does not claim")],
        ),
        ([], {"source": "torch", "unseen": ("==1.4",)}, [("error", "`unseen` is for messages of SGLang")]),
    ],
)
def test_a_claim_and_its_reasons(found, more, said):
    told = claims(found, **more)
    assert [level for level, _ in told] == [level for level, _ in said]
    assert all(part in message for (_, message), (_, part) in zip(told, said, strict=True)), told


def told_of(still: StandingText, folder, *sources: str, releases: str = "*") -> list[tuple[str, str]]:
    """(level, message) of what is said of ``unfixed`` where releases 1.0, 1.1, ... have these texts in srt/pool.py."""
    trees = {}
    for number, text in enumerate(sources):
        base = folder / f"of{number}"
        (base / "sglang/srt").mkdir(parents=True)
        (base / "sglang/srt/server_args.py").touch()
        (base / "sglang/srt/pool.py").write_text(text)
        trees[f"1.{number}"] = open_source(base)
    one = rule("worded by python", "worded by", releases, source="python", unfixed=(still,))
    before = check_ranges([one], load_verified(folder))
    assert [p.stale for p in before] == [True]
    for release, tree in trees.items():  # one after another: what is known of the others stays
        write_verified(folder, [one], {}, [release], find_standing([still], {release: tree}))
    return [(p.level, p.message) for p in check_ranges([one], load_verified(folder))]


FAILS, MENDED = "assert slot >= 0\n", "if slot < 0: wait_for_a_slot()\n"


@pytest.mark.parametrize(
    ("still", "sources", "more", "said"),
    [
        (("1.2", "assert slot >= 0"), (FAILS, FAILS, FAILS), {}, None),
        (("1.2", "assert slot >= 0"), (FAILS, MENDED, MENDED), {}, ("error", "is not so in 1.1 to 1.2")),
        (
            ("1.2", "assert slot >= 0"),
            (FAILS, FAILS, MENDED),
            {"releases": "<1.2"},
            ("error", "is not so in 1.2"),
        ),
        (("1.1", "assert slot >= 0"), (FAILS, FAILS, FAILS), {}, ("warning", "`through: 1.2`")),
        (("1.1", "assert slot >= 0"), (FAILS, FAILS, MENDED), {}, ("warning", "is so no longer in 1.2")),
        (("1.2", "assert slot >= 0", "1.1"), (MENDED, FAILS, FAILS), {}, None),
        (("1.2", "wait_for_a_slot", "", True), (FAILS, FAILS, FAILS), {}, None),
        (("1.2", "wait_for_a_slot", "", True), (FAILS, FAILS, MENDED), {}, ("error", "is not so in 1.2")),
    ],
)
def test_that_no_release_mends_it_is_held_against_the_sources(still, sources, more, said, tmp_path):
    through, text, *rest = still
    told = told_of(
        StandingText(through, ("srt/pool.py", "srt/older.py"), text, *rest), tmp_path, *sources, **more
    )
    assert [level for level, _ in told] == ([said[0]] if said else []), told
    assert not said or said[1] in told[0][1]
