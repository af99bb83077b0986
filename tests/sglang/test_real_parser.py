"""What was learned statically equals the flags of SGLang's real parser, recorded from running it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from mtpdoctor.paths import releases_folder
from mtpdoctor.sglang.learn import load_releases
from mtpdoctor.sglang.learn_flags import LearnedFlag, learn_flags
from mtpdoctor.sglang.source import open_source

DATA = Path(__file__).parent.parent / "data"
RELEASES = ["0.5.9", "0.5.10.post1", "0.5.13.post1", "0.5.16", "0.5.20", "0.5.23"]


def recorded(release: str) -> dict[str, dict[str, object]]:
    flags = json.loads((DATA / f"real_parser_{release}.json").read_text())["flags"]
    out = {}
    for name, row in flags.items():
        full = {"dest": name[2:].replace("-", "_"), "arity": "one", "required": False, "default": None, **row}
        full.setdefault("aliases", [])
        full.setdefault("choices", None)
        kind = {"loads": "json"}.get(full.pop("type", None) or "", full.get("type")) or row.get("type")
        full["type"] = kind or ("bool" if full["arity"] == "switch" else "str")
        out[name] = full
    return out


def as_parsed(flag: LearnedFlag) -> dict[str, object]:
    return {
        "dest": flag.parser_dest or flag.dest,
        "aliases": sorted(flag.aliases),
        "arity": flag.arity,
        "type": flag.type,
        "choices": sorted(map(str, flag.choices)) if flag.choices else None,
        "default": flag.default,
        "required": flag.required,
    }


@pytest.fixture(scope="module")
def known():
    return load_releases(releases_folder())


@pytest.mark.parametrize("release", RELEASES)
def test_learned_flags_equal_the_real_parser(known, release):
    learned = {name: as_parsed(flag) for name, flag in known[release].flags.items()}
    assert learned == recorded(release)


@pytest.mark.parametrize("release", RELEASES)
def test_wheel_at_hand_still_reads_the_same(release):
    """MTPDOCTOR_SGLANG_SOURCES names a folder of wheels or unpacked releases, where there is one."""
    folder = Path(os.environ.get("MTPDOCTOR_SGLANG_SOURCES") or "/nonexistent")
    found = [*folder.glob(f"sglang-{release}-*.whl"), *folder.glob(release)]
    if not found:
        pytest.skip("no wheel of this release at hand")
    learned = learn_flags(open_source(found[0])).flags
    assert {name: as_parsed(flag) for name, flag in learned.items()} == recorded(release)
