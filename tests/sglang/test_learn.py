"""Learning a release from its source, without importing it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtpdoctor.errors import UserError
from mtpdoctor.release import parse_release as R
from mtpdoctor.sglang.diff import affected_rules, diff_releases
from mtpdoctor.sglang.flags import flag_table
from mtpdoctor.sglang.learn import learn, learn_installed, load_releases, update
from mtpdoctor.sglang.releases import known_releases, release_facts
from mtpdoctor.sglang.source import find_source, open_source
from mtpdoctor.sglang.store import pack, unpack
from tests.sglang.trees import ARGPARSE, FIELDS, NAMESPACES, write_tree, write_wheel


@pytest.fixture
def old(tmp_path):
    return learn(write_tree(tmp_path / "old", ARGPARSE))


@pytest.fixture
def new(tmp_path):
    return learn(write_tree(tmp_path / "new", FIELDS))


def test_argparse_era(old):
    flags = old.flags
    assert old.release == "1.0.0" and old.era == "argparse"
    assert flags["--model-path"].aliases == ["--model"] and flags["--model-path"].required
    tp = flags["--tensor-parallel-size"]
    assert (tp.dest, tp.parser_dest, tp.default, tp.type) == ("tp_size", "tensor_parallel_size", 1, "int")
    assert flags["--backend"].choices == ["triton", "fa3", "added"]
    assert (flags["--bs"].arity, flags["--ratio"].arity, flags["--targets"].arity) == (
        "many",
        "optional",
        "many",
    )
    assert flags["--targets"].choices == ["q_proj", "k_proj", "all"]
    assert flags["--reasoning-parser"].choices == ["deepseek-r1", "qwen3"]
    assert flags["--overrides"].type == "json"
    assert flags["--timeout"].default == 300
    assert {"--log-a", "--log-b"} <= flags.keys()
    assert flags["--draft-backend"].choices == ["triton", "fa3"]
    assert flags["--old-gone"].deprecated and flags["--old-gone"].arity == "switch"
    assert flags["--old-moe"].replacement == "--backend=fa3"
    assert old.fields["tokens"] == 16


def test_fields_era(new):
    flags = new.flags
    assert new.era == "fields"
    assert flags["--model-path"].required and flags["--model-path"].aliases == ["--model"]
    assert flags["--tp-size"].dest == "tp_size"
    assert flags["--bs"].arity == "many" and flags["--bs"].type == "int"
    assert flags["--mode"].choices == ["a", "b"] and not flags["--mode"].required
    assert flags["--fast"].arity == "switch"
    assert flags["--lazy"].fallback == "x" and flags["--lazy"].default is None
    assert "--hidden" not in flags and "--plain" not in flags
    assert {"hidden", "plain"} <= new.fields.keys()
    old_spelling = flags["--backend"]
    assert old_spelling.dest == "attn_backend" and old_spelling.arity == "one" and old_spelling.deprecated
    assert flags["--no-fast"].arity == "switch" and flags["--no-fast"].const == "b"


def test_namespaces_era(tmp_path):
    release = learn(write_tree(tmp_path, NAMESPACES))
    assert release.era == "namespaces"
    assert release.flags["--attn-backend"].choices == ["triton", "fa4"]
    assert release.flags["--stops"].default == [] and release.flags["--stops"].arity == "many"
    assert "--rank" not in release.flags and "rank" not in release.fields
    assert release.flags["--attn-backend-default"].default is None


def test_environment(old, new):
    env = old.env
    assert env["SGLANG_ENABLE_SPEC_V2"].default is False and env["SGLANG_ENABLE_SPEC_V2"].type == "bool"
    assert env["SGLANG_TIMEOUT"].default == 300
    assert env["SGLANG_SKIP"].default is True and env["SGLANG_WORKERS"].default == "4"
    assert {"SGL_PLAIN", "SGLANG_SET", "MOONCAKE_MASTER"} <= env.keys()
    assert "SGLANG_TEST_ONLY" not in env
    assert (env["SGLANG_OLD"].deprecated, env["SGLANG_OLD"].replacement) == (True, "SGLANG_NEW")
    assert (env["SGLANG_GONE"].deprecated, env["SGLANG_GONE"].replacement) == (True, "--no-thing")
    assert old.sgl_prefix and not new.sgl_prefix
    assert new.env["SGLANG_FLAGGED"].replacement == "--new-flag"
    assert new.env["SGLANG_OLD"].replacement == "SGLANG_NEW"


def test_pins(old, new):
    assert old.pins == {
        "sgl-kernel": "==0.3.21",
        "torch": "==2.9.1",
        "torchvision": "",
        "transformers": "==4.57.1",
    }
    assert "sgl-kernel" not in new.pins and new.pins["sglang-kernel"] == "==0.4.1"


def test_wheel_folder_and_package_read_alike(tmp_path, old):
    wheel = learn(write_wheel(tmp_path / "sglang-1.0.0-py3-none-any.whl", ARGPARSE))
    inner = learn(tmp_path / "old" / "sglang")
    environment = tmp_path / "venv"
    write_tree(environment / "lib" / "python3.11" / "site-packages", ARGPARSE)
    assert wheel.flags == old.flags == inner.flags == learn(environment).flags
    assert wheel.env == old.env and wheel.pins == old.pins


def test_source_of_a_release_at_hand(tmp_path, monkeypatch):
    monkeypatch.setenv("MTPDOCTOR_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("MTPDOCTOR_SGLANG_SOURCES", raising=False)
    assert find_source("1.0.0") is None
    (tmp_path / "cache" / "wheels").mkdir(parents=True)
    write_wheel(tmp_path / "cache" / "wheels" / "sglang-1.0.0-py3-none-any.whl", ARGPARSE)
    assert learn(find_source("1.0.0")).release == "1.0.0"
    write_tree(tmp_path / "sources" / "1.1.0", FIELDS)
    monkeypatch.setenv("MTPDOCTOR_SGLANG_SOURCES", str(tmp_path / "sources"))
    assert learn(find_source("1.1.0")).era == "fields"
    assert find_source("9.9") is None


def test_what_is_no_source_says_so(tmp_path):
    with pytest.raises(UserError, match="no SGLang source"):
        open_source(tmp_path)
    (tmp_path / "x.whl").write_bytes(b"not a zip")
    with pytest.raises(UserError, match="cannot be read"):
        open_source(tmp_path / "x.whl")
    (tmp_path / "x.txt").write_text("")
    with pytest.raises(UserError, match="no wheel"):
        open_source(tmp_path / "x.txt")
    files = {k: v for k, v in ARGPARSE.items() if "METADATA" not in k}
    with pytest.raises(UserError, match="which release"):
        learn(write_tree(tmp_path / "nameless", files))
    assert learn(tmp_path / "nameless", "3.0").release == "3.0"
    broken = {**ARGPARSE, "sglang/srt/server_args.py": "def ServerArgs(:"}
    with pytest.raises(UserError, match="no ServerArgs"):
        learn(write_tree(tmp_path / "broken", broken))


def test_update_keeps_what_was_known_and_adds(tmp_path, old, new):
    folder = tmp_path / "releases"
    update(folder, [tmp_path / "old"])
    update(folder, [tmp_path / "new"])
    known = load_releases(folder)
    assert list(known) == ["1.0.0", "1.1.0"]
    for release in (old, new):
        stored = known[release.release]
        strip = lambda flags: {n: replace(f, help="") for n, f in flags.items()}  # noqa: E731
        assert strip(stored.flags) == strip(release.flags)
        assert stored.env == release.env and stored.pins == release.pins
    before = (folder / "flags.json").read_text()
    update(folder, [tmp_path / "new"])
    assert (folder / "flags.json").read_text() == before


def test_tables_hold_changes_not_copies(tmp_path, old, new):
    folder = tmp_path / "releases"
    update(folder, [tmp_path / "old", tmp_path / "new"])
    table = json.loads((folder / "flags.json").read_text())["flags"]
    assert len(table["--bs"]) == 1 and table["--bs"][0][:2] == ["1.0.0", None]
    assert [row[:2] for row in table["--mem"]] == [["1.0.0", "1.0.0"], ["1.1.0", None]]


def test_diff_names_what_changed_and_the_rules_it_concerns(old, new):
    diff = diff_releases(old, new)
    assert ("--backend", "--attn-backend") in diff.renamed
    assert "--config" in diff.added and "--old-gone" in diff.removed
    assert diff.defaults["--mem"] == (0.9, 0.8)
    assert diff.env_defaults["SGLANG_ENABLE_SPEC_V2"] == (False, True)
    assert diff.pins["sgl-kernel"] == ("==0.3.21", None)
    rules = [("MTP1", "set --backend fa3"), ("MTP2", "flag.mem: {gt: 1}"), ("MTP3", "set --tp-size 2")]
    assert affected_rules(diff, rules) == {"MTP1": ("--backend",), "MTP2": ("mem",)}
    assert any(line.startswith("renamed   --backend -> --attn-backend") for line in diff.lines())


def test_an_unknown_installed_release_is_learned_into_the_cache(tmp_path, monkeypatch):
    site = write_tree(tmp_path / "site", {**NAMESPACES})
    (site / "sglang-1.0.0.dist-info").rename(site / "sglang-1.2.0.dist-info")
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.setenv("MTPDOCTOR_CACHE", str(tmp_path / "cache"))
    known = [str(r) for r in known_releases()]
    release, folder = learn_installed(tmp_path / "cache", known)
    assert release == "1.2.0" and folder is not None
    facts = release_facts(R("1.2.0"))
    assert facts.exact and "learned from the installation" in facts.note
    table = flag_table(R("1.2.0"))
    assert table.resolve("--attn-backend").choices == ("triton", "fa4")
    assert "learned" in table.note
    assert learn_installed(tmp_path / "cache", [*known, "1.2.0"]) == ("1.2.0", None)


@given(
    st.lists(
        st.dictionaries(
            st.sampled_from("abc"), st.one_of(st.none(), st.booleans(), st.integers(0, 2), st.floats(0, 1))
        ),
        min_size=1,
        max_size=8,
    )
)
def test_packing_loses_nothing(tables):
    releases = [f"0.{i}" for i in range(len(tables))]
    packed = json.loads(json.dumps(pack(dict(zip(releases, tables, strict=True)), releases)))
    for index, table in enumerate(tables):
        found = unpack(packed, releases, index)
        assert {k: repr(v) for k, v in found.items()} == {k: repr(v) for k, v in table.items()}


def test_committed_options_are_compiled_from_the_committed_yaml(tmp_path):
    """renames.yaml and foreign_flags.yaml were not edited without compiling them."""
    import shutil

    from mtpdoctor.paths import releases_folder
    from mtpdoctor.sglang.learn import save_releases

    for name in ("renames.yaml", "foreign_flags.yaml"):
        shutil.copy(releases_folder() / name, tmp_path / name)
    save_releases(Path(tmp_path), load_releases(releases_folder()))
    for name in ("options.json", "flags.json", "env.json", "pins.json"):
        assert (tmp_path / name).read_bytes() == (releases_folder() / name).read_bytes(), name
