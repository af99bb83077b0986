"""Whatever lies in an environment's folders is read or passed over; nothing there raises."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet
from packaging.version import Version
from trees import installed, library, venv

from mtpdoctor.host.derived import runs_on
from mtpdoctor.host.elf import read_library
from mtpdoctor.host.proxy import LOCAL, caught_by_proxy
from mtpdoctor.host.python import python_environments
from mtpdoctor.host.requirements import python_fits, requirement_facts, unmet
from mtpdoctor.host.types import PythonEnvironment

some = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
sms = st.lists(st.lists(st.integers(10, 130), min_size=1, max_size=6), min_size=1, max_size=8)


@some
@given(st.lists(st.from_regex(r"lib[a-z]{1,9}\.so\.[0-9]", fullmatch=True), max_size=5), sms)
def test_a_library_says_what_was_put_in(tmp_path: Path, needed: list[str], groups: list[list[int]]) -> None:
    got = read_library(library(tmp_path / "l.so", needed, groups))
    assert got is not None
    assert got.needed == tuple(needed)
    assert got.sms == tuple(sorted({sm for group in groups for sm in group}))


@some
@given(sms, st.data())
def test_a_damaged_library_raises_nothing(
    tmp_path: Path, groups: list[list[int]], data: st.DataObject
) -> None:
    path = library(tmp_path / "l.so", ["libcudart.so.13"], groups)
    raw = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 6))):
        raw[data.draw(st.integers(4, len(raw) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(bytes(raw[: data.draw(st.integers(0, len(raw)))]))
    got = read_library(path)
    assert got is None or all(10 <= sm < 1000 for sm in got.sms)


@some
@given(st.binary(max_size=300), st.binary(max_size=300), st.binary(max_size=300))
def test_rubbish_in_an_environment_raises_nothing(
    tmp_path: Path, one: bytes, two: bytes, three: bytes
) -> None:
    site = venv(tmp_path / "v")
    info = installed(site, "sglang", "0.5.9")
    (info / "METADATA").write_bytes(one)
    (info / "direct_url.json").write_bytes(two)
    (site / "a.pth").write_bytes(three)
    (site / "__editable__.sglang.pth").write_text("import __editable___sglang_finder; x()\n")
    (site / "__editable___sglang_finder.py").write_bytes(one)
    (tmp_path / "v" / "pyvenv.cfg").write_bytes(b"home = /x\n" + two)
    (tmp_path / "sglang").write_bytes(b"#!" + three)
    environ = {"VIRTUAL_ENV": str(tmp_path / "v"), "PATH": str(tmp_path)}
    found = python_environments(
        None, environ, cwd=tmp_path / "none", home=tmp_path / "none", running=None, root=tmp_path / "none"
    )
    assert found[0].packages["sglang"] == "0.5.9"


versions = st.builds("{}.{}.{}".format, st.integers(0, 3), st.integers(0, 12), st.integers(0, 3))
operators = st.sampled_from(["==", "!=", ">=", "<=", "<", ">", "~="])


@some
@given(versions, st.lists(st.tuples(operators, versions), max_size=3))
def test_unmet_is_what_packaging_calls_unmet(have: str, clauses: list[tuple[str, str]]) -> None:
    specifier = ",".join(op + v for op, v in clauses)
    found = list(unmet({"a": specifier}, {"a": have}))
    assert bool(found) == (not SpecifierSet(specifier).contains(Version(have), prereleases=True))
    for one in found:
        assert one.how in ("older", "newer", "other")


@pytest.mark.parametrize(
    ("specifier", "have", "how"),
    [
        ("==0.4.3", "0.4.2", "older"),
        ("==0.4.3", "0.4.7+cu130", "newer"),
        ("<1.0,>=0.34", "1.3.0", "newer"),
        ("<1.0,>=0.34", "0.30", "older"),
        ("!=1.0", "1.0", "other"),
        ("==2.9.*", "2.8.0", "older"),
        ("", None, "missing"),
    ],
)
def test_how_a_version_misses(specifier: str, have: str | None, how: str) -> None:
    (found,) = unmet({"a": specifier}, {"a": have} if have else {})
    assert found.how == how and found.fix == "a" + specifier


def test_a_local_version_meets_its_pin_and_odd_versions_are_left_alone() -> None:
    assert list(unmet({"torch": "==2.9.1"}, {"torch": "2.9.1+cu130"})) == []
    assert list(unmet({"a": "==1"}, {"a": "not a version"})) == []
    assert list(unmet({"a": "nonsense"}, {"a": "1"})) == []


def test_what_is_met_is_known_to_be_met() -> None:
    python = PythonEnvironment(
        "p", "3.12", "x", {"sglang": "0.5.9", "torch": "2.9.1"}, requires={"sglang": {"torch": "==2.9.1"}}
    )
    facts = requirement_facts(python)
    assert facts["host.unmet.sglang"] is None and facts["host.missing.sglang"] is None
    assert "host.unmet.transformers" not in facts


@pytest.mark.parametrize(
    ("requires", "version", "fits"),
    [
        (">=3.11", "3.10.4", False),
        (">=3.11", "3.11", True),
        (None, "3.11", None),
        (">=3.11", None, None),
        ("?", "3.11", None),
    ],
)
def test_whether_the_interpreter_is_admitted(
    requires: str | None, version: str | None, fits: bool | None
) -> None:
    assert python_fits(PythonEnvironment("p", version, "x", requires_python=requires)) is fits


@pytest.mark.parametrize(
    ("sm", "compiled", "runs"),
    [(86, (80, 90), True), (89, (80, 90), True), (75, (80, 90), False), (90, (80, 89), False), (103, (100,), True),
     (100, (103,), False), (121, (120,), True), (110, (100, 120), False)],
)  # fmt: skip
def test_code_runs_within_a_major_number(sm: int, compiled: tuple[int, ...], runs: bool) -> None:
    assert runs_on(sm, compiled) is runs


@pytest.mark.parametrize(
    ("env", "caught"),
    [
        ({}, []),
        ({"https_proxy": "http://p:1"}, []),
        ({"http_proxy": "http://p:1"}, list(LOCAL)),
        ({"HTTP_PROXY": "http://p:1", "no_proxy": "localhost, 127.0.0.1"}, ["0.0.0.0"]),
        ({"all_proxy": "socks5://p:1", "NO_PROXY": "*"}, []),
        ({"http_proxy": "http://p:1", "no_proxy": "127.0.0.0/8,::1"}, ["localhost", "0.0.0.0"]),
        ({"http_proxy": "http://p:1", "no_proxy": "10.0.0.0/8,bad/net,.local"}, list(LOCAL)),
        ({"http_proxy": "", "no_proxy": ""}, []),
    ],
)
def test_what_a_proxy_catches(env: dict[str, str], caught: list[str]) -> None:
    assert caught_by_proxy(env) == caught
