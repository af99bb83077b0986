"""The engines find the same, whichever serves."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtpdoctor.errors import UserError
from mtpdoctor.log import engines
from mtpdoctor.log.engines import ENGINES, Search, make_engine

few_letters = st.binary(min_size=1, max_size=6).map(lambda b: bytes(97 + c % 3 for c in b))
anything = st.binary(min_size=1, max_size=12)


def naive(literals: list[bytes], chunk: bytes) -> list[tuple[int, int]]:
    hits = [(i, at) for i, x in enumerate(literals) for at in range(len(chunk)) if chunk.startswith(x, at)]
    return sorted(hits, key=lambda hit: (hit[1], hit[0]))


@pytest.mark.parametrize("name", ENGINES)
@given(
    st.lists(few_letters, unique=True, max_size=12),
    st.binary(max_size=200).map(lambda b: bytes(97 + c % 3 for c in b)),
)
def test_overlapping_occurrences_are_all_found(name: str, literals: list[bytes], chunk: bytes) -> None:
    engine = make_engine(literals, name)
    assert engine.name == name
    assert engine.find(chunk) == naive(literals, chunk)


@pytest.mark.parametrize("name", ENGINES)
@given(st.data(), st.lists(anything, unique=True, min_size=1, max_size=20))
def test_any_bytes_will_do(name: str, data: st.DataObject, literals: list[bytes]) -> None:
    pieces = data.draw(st.lists(st.one_of(anything, st.sampled_from(literals)), max_size=20))
    chunk = b"".join(pieces)
    assert make_engine(literals, name).find(chunk) == naive(literals, chunk)


@pytest.mark.parametrize("name", ENGINES)
def test_regex_characters_mean_themselves(name: str) -> None:
    literals = [b"a.c", b"(?i)x", b"[0-9]+", b"back\\slash", b"$^", b"a\tb", "ü€".encode()]
    chunk = b"abc a.c (?I)X (?i)x 7 [0-9]+ back\\slash $^ a\tb \xc3\xbc\xe2\x82\xac"
    assert {i for i, _ in make_engine(literals, name).find(chunk)} == set(range(len(literals)))
    assert make_engine(literals, name).find(b"") == []
    assert make_engine([], name).find(b"abc") == []


def test_the_engine_fits_the_size() -> None:
    assert make_engine([b"x"], size=100).name == "python"
    assert make_engine([b"x"], size=1 << 20).name == "ahocorasick"
    assert make_engine([b"x"], size=1 << 30).name == "hyperscan"


def test_an_engine_that_cannot_serve_gives_way(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: object) -> None:
        raise ImportError("no such module")

    monkeypatch.setitem(engines._CLASSES, "hyperscan", broken)
    assert make_engine([b"x"], size=1 << 30).name == "ahocorasick"
    monkeypatch.setitem(engines._CLASSES, "ahocorasick", broken)
    assert make_engine([b"x"], size=1 << 30).find(b"axa") == [(0, 1)]


def test_the_environment_chooses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MTPDOCTOR_ENGINE", "ahocorasick")
    assert make_engine([b"x"], size=10).name == "ahocorasick"
    assert make_engine([b"x"], "python").name == "python"
    monkeypatch.setenv("MTPDOCTOR_ENGINE", "grep")
    with pytest.raises(UserError, match="grep"):
        make_engine([b"x"])


def test_an_empty_literal_is_refused() -> None:
    with pytest.raises(ValueError, match="empty literal"):
        make_engine([b"x", b""])


@pytest.mark.parametrize("ahead", [True, False])
def test_a_search_gives_results_in_order_and_passes_errors_on(ahead: bool) -> None:
    engine = make_engine([b"x"], "python")
    with Search(ahead=ahead) as search:
        got = [done for n in range(10) for done in search.put(engine, n, b"x" * n)]
        got += search.rest()
    assert [(n, len(hits)) for n, hits in got] == [(n, n) for n in range(10)]

    class Broken:
        name = "python"

        def find(self, chunk: bytes) -> list[tuple[int, int]]:
            raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"), Search(ahead=ahead) as search:
        search.put(Broken(), None, b"x")
        search.rest()
