"""The table of other makers' packages: one row a module, read typed; what its commands install is spelled as pip takes it."""

from __future__ import annotations

import re
import shlex

import pytest

from mtpdoctor.paths import releases_folder
from mtpdoctor.release import parse_release
from mtpdoctor.sglang.flags import flag_table
from mtpdoctor.sglang.packages import TABLE, companions, module_named, moving, package_of
from mtpdoctor.sglang.releases import known_releases, release_facts
from mtpdoctor.sglang.store import read_table

ROWS = read_table(releases_folder() / TABLE)["modules"]
PLATFORMS = {"cuda", "rocm", "npu", "xpu", "cpu", "musa"}
FIELDS = {"dist", "only", "plugin", "missing", "origin", "ways"}
PLACEHOLDER = re.compile(r"\{(?:release|kernel|pin:[\w.-]+)\}")


@pytest.mark.parametrize("module", ROWS)
def test_a_row(module: str) -> None:
    assert set(ROWS[module]) <= FIELDS
    package = package_of(module)
    assert package.known and package.distributions and set(package.only) <= PLATFORMS
    for run in (package.missing, package.origin):
        for line in run.run if run is not None else ():
            shlex.split(line, comments=True)
            assert not re.search(r"[{}]", PLACEHOLDER.sub("", line))
    for way in package.ways:
        settings = [way.env, way.leave_out, way.choose, way.choose_if]
        assert sum(s is not None for s in settings) == 1 and way.title and way.risk
        dest = way.leave_out or (way.choose or way.choose_if or ("",))[0]
        assert not dest or any(flag_table(r).by_dest(dest) for r in known_releases())


def test_a_name_is_found_however_it_is_written() -> None:
    assert [module_named(n) for n in ("Mooncake", "pillow", "PIL", "flash-attn", "flashinfer-python")] == [
        "mooncake", "PIL", "PIL", "flash_attn", "flashinfer",
    ]  # fmt: skip
    assert module_named("the") is None
    stranger = package_of("some_module")
    assert (stranger.known, stranger.distributions) == (False, ("some-module",))


def test_what_holds_for_some_releases_only() -> None:
    missing = package_of("deep_ep").missing
    assert missing is not None and missing.until is not None
    assert missing.holds(parse_release("0.5.10")) and missing.holds(None)
    assert not missing.holds(known_releases()[-1])


def test_sets_of_packages_are_pinned_by_some_release() -> None:
    pinned = {name for release in known_releases() for name in release_facts(release).pins}
    assert set(moving()) <= pinned
    assert "torchvision" in companions("torch") and companions("requests") == ()
