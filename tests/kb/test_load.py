"""The knowledge is found, compiled once, and read back as it was."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mtpdoctor.errors import UserError
from mtpdoctor.kb import cache
from mtpdoctor.kb.checkpoints import Checkpoints
from mtpdoctor.kb.codec import rule_in, rule_out
from mtpdoctor.kb.load import KnowledgeError, knowledge_files, knowledge_folder, load_knowledge
from mtpdoctor.kb.resolution import Resolution

from .rules import rule_text, write
from .test_parse import GOOD

OTHER = rule_text("match: ['other words']", "MTP0002")


@pytest.fixture(autouse=True)
def cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("MTPDOCTOR_CACHE", str(folder))
    monkeypatch.delenv("MTPDOCTOR_KNOWLEDGE", raising=False)
    return folder


def compiled(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.bin"))


def test_the_own_knowledge_loads_and_has_literals_for_every_rule() -> None:
    known = load_knowledge()
    assert len(known.rules) == len(known.by_id) == len(known) > 40
    for rule in known.rules:
        assert {p.literal for p in (*rule.match, *rule.requires, *rule.unless)} <= set(known.literals)
    foreseeing = {r.id: r.scope for r in known.rules if r.predicts}
    assert {p.rule_id for p in known.predictions()} == {
        i for i, scope in foreseeing.items() if scope == "launch"
    }
    assert {r.id for r in known.about_hosts()} == {i for i, scope in foreseeing.items() if scope == "host"}
    assert list(known.by_id) == sorted(known.by_id)


def test_the_compiled_form_gives_the_same_rules(cache_folder: Path) -> None:
    fresh = load_knowledge(use_cache=False)
    assert compiled(cache_folder) == []
    first, second = load_knowledge(), load_knowledge()
    assert len(compiled(cache_folder)) == 1
    assert first.rules == second.rules == fresh.rules
    assert (first.heads, first.literals) == (second.heads, second.literals)


def test_rules_survive_json(tmp_path: Path) -> None:
    write(tmp_path / "k", rule_text(GOOD), OTHER)
    for rule in load_knowledge(tmp_path / "k", use_cache=False).rules:
        assert rule_in(rule_out(rule)) == rule


def test_the_cache_is_read_not_the_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "k", OTHER)
    load_knowledge(tmp_path / "k")
    monkeypatch.setattr("mtpdoctor.kb.load.read_rules", lambda *_: pytest.fail("compiled again"))
    assert load_knowledge(tmp_path / "k").by_id["MTP0002"].title == "A rule for tests"


def test_a_change_of_any_file_is_seen(tmp_path: Path) -> None:
    path = write(tmp_path / "k", OTHER)
    load_knowledge(tmp_path / "k")
    path.write_text(path.read_text().replace("A rule for", "A mule for"))
    assert load_knowledge(tmp_path / "k").by_id["MTP0002"].title == "A mule for tests"
    write(tmp_path / "k", rule_text("match: ['long enough']"), name="new.yaml")
    assert list(load_knowledge(tmp_path / "k").by_id) == ["MTP0001", "MTP0002"]


@pytest.mark.parametrize("damage", ["empty", "cut", "flip", "text", "other"])
def test_a_damaged_cache_is_made_anew(damage: str, tmp_path: Path, cache_folder: Path) -> None:
    write(tmp_path / "k", OTHER)
    load_knowledge(tmp_path / "k")
    path = compiled(cache_folder)[0]
    data = path.read_bytes()
    path.write_bytes(
        {
            "empty": b"",
            "cut": data[: len(data) * 2 // 3],
            "flip": data[:-20] + bytes([data[-20] ^ 1]) + data[-19:],
            "text": b"not json\n",
            "other": b'{"key": 1}\n',
        }[damage]
    )
    assert load_knowledge(tmp_path / "k").by_id["MTP0002"].match[0].literal == "other words"
    assert path.read_bytes() == data


def test_no_cache_folder_is_no_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "k", OTHER)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MTPDOCTOR_CACHE", str(tmp_path / "file"))
    assert list(load_knowledge(tmp_path / "k").by_id) == ["MTP0002"]
    assert cache.write(tmp_path / "file" / "x.bin", "key", [], Resolution(), Checkpoints()) is False


def test_a_folder_of_ones_own_is_added(tmp_path: Path) -> None:
    write(tmp_path / "k", OTHER)
    write(tmp_path / "mine", rule_text("match: ['long enough']"))
    assert list(load_knowledge(tmp_path / "k", extra=tmp_path / "mine").by_id) == ["MTP0001", "MTP0002"]
    write(tmp_path / "mine", OTHER)
    with pytest.raises(KnowledgeError, match="MTP0002 is taken"):
        load_knowledge(tmp_path / "k", extra=tmp_path / "mine")


def test_the_folder_may_be_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "k", OTHER)
    monkeypatch.setenv("MTPDOCTOR_KNOWLEDGE", str(tmp_path / "k"))
    assert knowledge_folder() == tmp_path / "k"
    assert list(load_knowledge().by_id) == ["MTP0002"]
    monkeypatch.setenv("MTPDOCTOR_KNOWLEDGE", str(tmp_path / "none"))
    with pytest.raises(UserError, match="is no folder"):
        load_knowledge()
    with pytest.raises(UserError, match="no folder of knowledge"):
        load_knowledge(tmp_path / "none")


def test_files_are_found_in_stable_order(tmp_path: Path) -> None:
    for name in ("b/x.yaml", "a.yml", "b/a.yaml", "notes.txt", ".hidden.yaml", "b/releases/r.yaml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("rules: []\n")
    found = [str(p.relative_to(tmp_path)) for p in knowledge_files(tmp_path)]
    assert found == [
        "a.yml",
        os.path.join("b", "a.yaml"),
        os.path.join("b", "releases", "r.yaml"),
        os.path.join("b", "x.yaml"),
    ]
