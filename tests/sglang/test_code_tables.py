"""The tables of SGLang's functions and messages, learned by ``kb learn`` from small sources."""

from __future__ import annotations

import argparse
import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from mtpdoctor.cli.kb_learn import add_learn_arguments, run_learn
from mtpdoctor.errors import UserError
from mtpdoctor.release import parse_release
from mtpdoctor.sglang.changes import concerns, guarded_from, setters_changed
from mtpdoctor.sglang.frames import read_frames
from mtpdoctor.sglang.history import FunctionHistory, history_of, keyword_since
from mtpdoctor.sglang.lines import gone_from
from mtpdoctor.sglang.members import arguments_of, assigned_elsewhere, attribute_of, is_open
from mtpdoctor.sglang.packed import open_packed
from mtpdoctor.sglang.site_table import sites_in, sites_saying
from mtpdoctor.sglang.symbols import read_symbols
from tests.sglang.trees import ARGPARSE, write_tree

WORKER = """\
import os
class Worker:
    def start(self, server_args, model_config):
        {comment}
        size = server_args.page_size
        if size > {least} and not os.environ.get("SGLANG_WIDE"):
            raise ValueError(f"Workers cannot turn pages of {{size}}.")
        assert model_config.hf_config.num_heads % server_args.tp_size == 0
        if self.lost:
            {last}

    def stop(self):
        return {stop}
{more}
"""
FIRST = {
    "comment": '"""Starts."""',
    "least": 1,
    "last": 'raise RuntimeError("The worker is lost for good.")',
    "stop": 1,
    "more": "",
}
TREES = {
    "1.0.0": FIRST,
    "1.0.1": FIRST | {"comment": "# another comment"},
    "1.0.2": FIRST | {"least": 8, "stop": 2},
    "1.0.3": FIRST
    | {"least": 8, "stop": 2, "last": "pass", "more": "\n    def pause(self):\n        pass\n"},
}
PATH = "sglang/srt/worker.py"
POOL = """\
class Base:
    shared = 1

class Pool(Base):
    def __init__(self, size{argument}):
        self.size_swa = {size}
        {attribute}

def build(config, pool):
    layers = config.layers
    {guard}
        fill(pool, layers)
    return pool
"""
OLD_POOL = {"argument": ", device", "size": "size / 2", "attribute": "pass", "guard": "if pool:"}
NEW_POOL = {
    "argument": ", device=None",
    "size": "int(size / 2)",
    "attribute": "self.window = 4",
    "guard": "if pool and layers is not None:",
}
REQUEST = "from dataclasses import dataclass\n@dataclass\nclass GenerateReqInput:\n    text: str\n    {field}: int = 0\n"


def source(base: Path, release: str) -> Path:
    files = {
        name.replace("1.0.0", release): text.replace("1.0.0", release) for name, text in ARGPARSE.items()
    }
    files[PATH] = WORKER.format(**TREES[release])
    files["sglang/srt/managers/io_struct.py"] = REQUEST.format(field="old" if release < "1.0.2" else "new")
    files["sglang/srt/pool.py"] = POOL.format(**(OLD_POOL if release < "1.0.2" else NEW_POOL))
    if release == "1.0.0":
        files["sglang/srt/gone.py"] = "def early():\n    return 1\n"
    return write_tree(base / release, files)


def learn(folder: Path, *sources: Path) -> None:
    parser = argparse.ArgumentParser()
    add_learn_arguments(parser)
    run_learn(parser.parse_args([*map(str, sources), "--folder", str(folder)]))


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("code")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MTPDOCTOR_CACHE", str(base / "cache"))
        learn(base / "facts", *(source(base, release) for release in TREES))
    return base / "facts"


def history(facts: Path, function: str, file: str = PATH) -> FunctionHistory:
    found = history_of(facts, f"/opt/site-packages/{file}", function)
    assert found is not None
    return found


def texts(releases: object) -> list[str]:
    return [str(r) for r in releases]  # type: ignore[attr-defined]


def test_comments_and_docstrings_are_no_change(facts: Path) -> None:
    start = history(facts, "start")
    first = parse_release("1.0.0")
    assert str(start.until(first)) == "1.0.1"
    assert texts(start.later(first)) == ["1.0.2", "1.0.3"]
    assert start.before(first) is None


def test_what_came_and_went(facts: Path) -> None:
    assert str(history(facts, "stop").before(parse_release("1.0.3"))) == "1.0.1"
    assert history(facts, "stop").later(parse_release("1.0.3")) == ()
    pause = history(facts, "pause")
    assert str(pause.since(parse_release("1.0.3"))) == "1.0.3"
    assert pause.before(parse_release("1.0.3")) is None, "it is new, so nothing is to go back to"
    assert pause.since(parse_release("1.0.2")) is None
    early = history(facts, "early", "sglang/srt/gone.py")
    assert str(early.gone(parse_release("1.0.0"))) == "1.0.1"
    assert history_of(facts, "/x/sglang/srt/none.py", "start") is None


def test_a_message_finds_its_statement_and_what_decides_it(facts: Path) -> None:
    found = sites_saying(facts, "Workers cannot turn pages of 64.", "ValueError")
    assert {site.function for site in found} == {"Worker.start"}
    by_guard = {site.guards: [i for i in range(4) if i in site.held()] for site in found}
    narrow = ("page_size > 1 and not (envs.SGLANG_WIDE.get())",)
    wide = ("page_size > 8 and not (envs.SGLANG_WIDE.get())",)
    assert by_guard == {narrow: [0, 1], wide: [2, 3]}
    (lost,) = sites_saying(facts, "The worker is lost for good.", "RuntimeError")
    assert [lost.stands_in(parse_release(r)) for r in TREES] == [True, True, True, False]
    assert sites_saying(facts, "Workers of another kind cannot turn anything.", "ValueError") == ()


def test_a_bare_assertion_is_kept_for_what_it_asks(facts: Path) -> None:
    bare = [site for site in sites_in(facts, f"/x/{PATH}", "start") if site.pieces == ("",)]
    assert {site.guards[-1] for site in bare} == {"!config.num_heads % tp_size == 0"}


def test_keywords_of_requests(facts: Path) -> None:
    found = keyword_since(facts, "GenerateReqInput.__init__", "new")
    assert found is not None and [texts(span) for span in found] == [["1.0.2", "1.0.3"]]
    assert keyword_since(facts, "GenerateReqInput.__init__", "never") == ()
    assert keyword_since(facts, "Nobody.__init__", "new") is None


def test_a_new_release_is_added_to_what_is_known(
    facts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MTPDOCTOR_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "facts"
    trees = [source(tmp_path, release) for release in TREES]
    learn(folder, *trees[:3])
    learn(folder, trees[3])  # nothing tells what changed since 1.0.2
    assert "not in the history of functions: SGLang 1.0.3" in capsys.readouterr().out
    assert history(folder, "start").since(parse_release("1.0.3")) is None
    learn(folder, *trees[2:])
    for table in ("history.json.gz", "sites.json.gz"):
        assert (folder / table).read_bytes() == (facts / table).read_bytes()


def test_a_line_that_a_later_release_lacks(facts: Path) -> None:
    def without(line: str, release: str, function: str = "start") -> str | None:
        gone = gone_from(facts, PATH, function, line, parse_release(release))
        return str(gone) if gone is not None else None

    assert without('raise RuntimeError("The worker is lost for good.")', "1.0.0") == "1.0.3"
    assert without('    raise RuntimeError("The worker is lost for good.")', "1.0.2") == "1.0.3", (
        "its indent is layout"
    )
    assert without('if size > 1 and not os.environ.get("SGLANG_WIDE"):', "1.0.1") == "1.0.2"
    assert without("return 1", "1.0.0", "stop") == "1.0.2"
    assert without("size = server_args.page_size", "1.0.0") is None, "it stands in every later release"
    assert without('raise RuntimeError("The worker is lost for good.")', "1.0.3") is None, (
        "not in that release"
    )
    assert without("return 1", "1.0.0", "early") is None


def test_lines_of_a_newer_release_are_added_to_those_known(
    facts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MTPDOCTOR_CACHE", str(tmp_path / "cache"))
    folder, trees = tmp_path / "facts", tmp_path / "trees"
    learn(folder, source(trees, "1.0.0"), source(trees, "1.0.1"), source(trees, "1.0.2"))
    learn(folder, source(trees, "1.0.2"), source(trees, "1.0.3"))
    for table in ("lines.json.gz", "changes.json.gz", "members.json.gz"):
        assert (folder / table).read_bytes() == (facts / table).read_bytes()


def test_what_a_class_has_and_a_function_takes(facts: Path) -> None:
    first, last = parse_release("1.0.0"), parse_release("1.0.3")

    def since(owner: str, attribute: str) -> str | None:
        known = attribute_of(facts, owner, attribute)
        assert known is not None
        return None if known[1].holds(first) else str(known[1].after(first))

    assert since("Pool", "window") == "1.0.2"
    assert since("Pool", "shared") is None, "its base has it"
    assert since("Pool", "nothing") == "None"
    assert attribute_of(facts, "Nobody", "window") is None
    assert not is_open(facts, "Pool", last) and is_open(facts, "Nobody", last)
    assert not assigned_elsewhere(facts, "window", last)
    known = arguments_of(facts, "Pool", "__init__")
    assert known is not None
    required = {n: taken.required for numbers, taken in known[0] for n in numbers}
    assert required == {0: ("size", "device"), 1: ("size", "device"), 2: ("size",), 3: ("size",)}


def test_changes_by_the_names_that_they_concern(facts: Path) -> None:
    path, first = "/x/sglang/srt/pool.py", parse_release("1.0.0")
    assert texts(guarded_from(facts, path, "build", "fill(pool, layers)", first)) == ["1.0.2"]
    assert guarded_from(facts, path, "build", "layers = config.layers", first) == ()
    assert texts(concerns(facts, path, "build", "layers", first)) == ["1.0.2"], "a check on it came"
    assert concerns(facts, path, "build", "config", first) == ()
    (change,) = setters_changed(facts, "size_swa", first)
    assert (change.file, change.function, str(change.release)) == ("sglang/srt/pool.py", "__init__", "1.0.2")
    assert setters_changed(facts, "size_swa", parse_release("1.0.2")) == ()


def _members(folder: Path, name: str) -> None:
    table = open_packed(folder / name)
    for member in table.names():
        table.text(member)


READING: dict[str, Callable[[Path], object]] = {
    "history.json.gz": lambda folder: _members(folder, "history.json.gz"),
    "lines.json.gz": lambda folder: _members(folder, "lines.json.gz"),
    "sites.json.gz": lambda folder: _members(folder, "sites.json.gz"),
    "changes.json.gz": lambda folder: _members(folder, "changes.json.gz"),
    "members.json.gz": lambda folder: _members(folder, "members.json.gz"),
    "gates.json.gz": lambda folder: _members(folder, "gates.json.gz"),
    "frames.json.gz": read_frames,
    "symbols.json.gz": read_symbols,
}


@pytest.mark.parametrize("name", READING)
@pytest.mark.parametrize("harm", ["cut", "rubbish", "empty", "format", "list"])
def test_a_damaged_table_is_said_in_one_line(name: str, harm: str, tmp_path: Path) -> None:
    own = Path(__file__).resolve().parents[2] / "knowledge" / "releases" / name
    whole = own.read_bytes()
    (tmp_path / name).write_bytes(
        {
            "cut": whole[: len(whole) // 2],
            "rubbish": b"\x00\x01rubbish" * 300,
            "empty": b"",
            "format": gzip.compress(b'{"format": 99, "x": 1}'),
            "list": gzip.compress(b"[1, 2]"),
        }[harm]
    )
    with pytest.raises(UserError, match="is damaged") as error:
        READING[name](tmp_path)
    assert str(tmp_path / name) in str(error.value)
