"""The facts of a release, as the other parts ask for them."""

from __future__ import annotations

import pytest

from mtpdoctor.errors import UserError
from mtpdoctor.paths import knowledge_folder
from mtpdoctor.release import parse_release as R
from mtpdoctor.sglang.releases import known_releases, nearest_release, release_facts
from mtpdoctor.sglang.store import read_table


def test_every_release_from_0_4_6_is_known():
    releases = known_releases()
    assert len(releases) >= 63
    assert str(releases[0]) == "0.4.6"
    assert list(releases) == sorted(releases)
    assert {R("0.4.10.post2"), R("0.5.10rc0"), R("0.5.13.post1"), R("0.5.23")} <= set(releases)


@pytest.mark.parametrize(
    ("release", "default"),
    [("0.5.4", None), ("0.5.10.post1", False), ("0.5.11", True), ("0.5.13.post1", True)],
)
def test_default_of_spec_v2_flips(release, default):
    assert release_facts(R(release)).env_default("SGLANG_ENABLE_SPEC_V2") is default


def test_removed_variable_that_still_warns_names_its_replacement():
    spec = release_facts(R("0.5.14")).env["SGLANG_ENABLE_SPEC_V2"]
    assert spec.deprecated and spec.replacement == "--disable-overlap-schedule"
    assert "SGLANG_ENABLE_SPEC_V2" not in release_facts(R("0.5.21")).env


@pytest.mark.parametrize("release", ["0.5.10.post1", "0.5.13.post1", "0.5.20"])
def test_renamed_variable_points_from_old_to_new(release):
    """The helper that warns swapped its parameters between these releases."""
    env = release_facts(R(release)).env
    assert env["SGLANG_GC_LOG"].replacement == "SGLANG_LOG_GC"
    assert not env["SGLANG_LOG_GC"].deprecated


@pytest.mark.parametrize(
    ("release", "torch", "kernel"),
    [
        ("0.4.6", "==2.6.0", ("sgl-kernel", "==0.0.9.post2")),
        ("0.5.9", "==2.9.1", ("sgl-kernel", "==0.3.21")),
        ("0.5.10.post1", "==2.9.1", ("sglang-kernel", "==0.4.1")),
        ("0.5.23", "==2.14.1", ("sglang-kernel", "==0.4.10")),
    ],
)
def test_pins(release, torch, kernel):
    pins = release_facts(R(release)).pins
    assert pins["torch"] == torch
    assert pins[kernel[0]] == kernel[1]
    assert ("sgl-kernel" in pins) != ("sglang-kernel" in pins)


def test_nearest_release_says_what_it_took():
    assert nearest_release(R("0.5.13")) == (R("0.5.13"), None)
    for asked, taken in [("0.5.14.dev3", "0.5.13.post1"), ("0.5.99", "0.5.23"), ("0.4.1", "0.4.6")]:
        near, note = nearest_release(R(asked))
        assert near == R(taken)
        assert asked in note and taken in note
    facts = release_facts(R("0.5.99"))
    assert not facts.exact and "0.5.23" in facts.note
    assert release_facts(None).known == known_releases()[-1]


def test_a_wrong_knowledge_folder_is_the_users_error(monkeypatch, tmp_path):
    monkeypatch.setenv("MTPDOCTOR_KNOWLEDGE", str(tmp_path / "missing"))
    with pytest.raises(UserError, match="MTPDOCTOR_KNOWLEDGE"):
        knowledge_folder()
    monkeypatch.setenv("MTPDOCTOR_KNOWLEDGE", str(tmp_path))
    with pytest.raises(UserError, match=r"flags\.json"):
        known_releases()
    (tmp_path / "releases").mkdir()
    (tmp_path / "releases" / "flags.json").write_text("{broken")
    with pytest.raises(UserError, match="damaged"):
        known_releases()


@pytest.mark.parametrize(
    "text", ["[1, 2]", '{"format": 1}', '{"format": 1, "groups": {}}', '{"format": 1, "groups": [1]}']
)
def test_a_table_of_another_form_is_one_clear_line(monkeypatch, tmp_path, text):
    (tmp_path / "releases").mkdir()
    (tmp_path / "releases" / "partners.json").write_text(text)
    with pytest.raises(UserError, match=r"partners\.json"):
        read_table(tmp_path / "releases" / "partners.json")
