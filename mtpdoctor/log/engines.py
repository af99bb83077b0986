"""Finding many literals in one pass: three engines behind one interface, identical results.

hyperscan is the fastest but costs tens of milliseconds to import and compile; ahocorasick_rs is
ready in about two; pure Python works everywhere. Which one serves is a matter of how much there is
to read (``make_engine(..., size=...)``), of what can be imported, and of ``MTPDOCTOR_ENGINE``.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Protocol

from mtpdoctor.errors import UserError

ENGINES = ("hyperscan", "ahocorasick", "python")
_UNDER_WAY = 4  # chunks handed to the second thread
HYPERSCAN_FROM = 24 << 20  # bytes of input from which hyperscan's start-up pays
PYTHON_BELOW = 12 << 10  # bytes of input below which bytes.find needs less than an import
_asked_for: set[int] = set()  # hashes of the literals that a small log was searched for


class Engine(Protocol):
    """``name`` is one of ENGINES. ``find`` gives every occurrence of every literal in ``chunk``,
    overlapping ones too, as (literal index, start offset), ordered by (start, index)."""

    name: str

    def find(self, chunk: bytes) -> list[tuple[int, int]]: ...


def _by_start(hit: tuple[int, int]) -> tuple[int, int]:
    return (hit[1], hit[0])


class PythonEngine:
    name = "python"

    def __init__(self, literals: Sequence[bytes]) -> None:
        self._literals = tuple(literals)

    def find(self, chunk: bytes) -> list[tuple[int, int]]:
        hits = []
        for i, literal in enumerate(self._literals):
            at = chunk.find(literal)
            while at >= 0:
                hits.append((i, at))
                at = chunk.find(literal, at + 1)
        hits.sort(key=_by_start)
        return hits


@lru_cache(maxsize=4)
def _automaton(literals: tuple[bytes, ...]) -> Any:
    """Made in ten milliseconds, and never changed: small logs read one after the other share it."""
    import ahocorasick_rs

    return ahocorasick_rs.BytesAhoCorasick(list(literals))


class AhoCorasickEngine:
    name = "ahocorasick"

    def __init__(self, literals: Sequence[bytes]) -> None:
        self._automaton = _automaton(tuple(literals)) if literals else None

    def find(self, chunk: bytes) -> list[tuple[int, int]]:
        if self._automaton is None:
            return []
        found = self._automaton.find_matches_as_indexes(chunk, overlapping=True)
        hits = [(i, start) for i, start, _ in found]
        hits.sort(key=_by_start)
        return hits


class HyperscanEngine:
    name = "hyperscan"

    def __init__(self, literals: Sequence[bytes]) -> None:
        import hyperscan

        if any(b"\0" in literal for literal in literals):
            raise ValueError("the binding takes literals as C strings")
        self._lengths = [len(literal) for literal in literals]
        self._database: Any = None
        if literals:
            self._database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
            self._database.compile(
                expressions=list(literals),
                ids=list(range(len(literals))),
                elements=len(literals),
                flags=0,
                literal=True,
            )

    def find(self, chunk: bytes) -> list[tuple[int, int]]:
        if self._database is None or not chunk:
            return []
        lengths = self._lengths
        hits: list[tuple[int, int]] = []
        append = hits.append

        # hyperscan gives ends only (start offsets would need a slower mode); the length is known
        def on_match(i: int, _start: int, end: int, _flags: int, _context: object) -> None:
            append((i, end - lengths[i]))

        self._database.scan(chunk, match_event_handler=on_match)
        hits.sort(key=_by_start)
        return hits


_CLASSES: dict[str, Any] = {
    "hyperscan": HyperscanEngine,
    "ahocorasick": AhoCorasickEngine,
    "python": PythonEngine,
}


def _first_asked(literals: tuple[bytes, ...]) -> bool:
    """True the first time: whoever reads a second log with the same literals is likely to read many,
    for which one automaton serves."""
    key = hash(literals)
    seen = key in _asked_for
    _asked_for.add(key)
    return not seen


def make_engine(literals: Sequence[bytes], prefer: str | None = None, *, size: int | None = None) -> Engine:
    """An engine over distinct, non-empty literals.

    ``prefer`` (else the variable MTPDOCTOR_ENGINE) names one of ENGINES; ``size`` is how many bytes
    there are to read in all. An engine that cannot be imported or does not run on this CPU gives
    way to the next, without a word. Raises UserError when the name is not known, ValueError for an
    empty literal.
    """
    if not all(literals):
        raise ValueError("an empty literal occurs everywhere")
    wanted = prefer or os.environ.get("MTPDOCTOR_ENGINE") or None
    if wanted is not None and wanted not in _CLASSES:
        raise UserError(
            f"no search engine {wanted!r}", hint=f"MTPDOCTOR_ENGINE is one of {', '.join(ENGINES)}"
        )
    if wanted is None:
        if size is None or size >= HYPERSCAN_FROM:
            wanted = "hyperscan"
        else:
            wanted = "python" if size < PYTHON_BELOW and _first_asked(tuple(literals)) else "ahocorasick"
    for name in ENGINES[ENGINES.index(wanted) :]:
        try:
            engine: Engine = _CLASSES[name](literals)
            return engine
        except Exception:  # not installed, wrong CPU, or refused to compile: the next finds the same
            continue
    return PythonEngine(literals)


class Search:
    """Runs engines over chunks, in order. ``ahead``: in a second thread, while the caller goes on
    (hyperscan lets go of the interpreter lock), a few chunks behind."""

    def __init__(self, ahead: bool) -> None:
        self._ahead = ahead and cpus() > 1
        self._under_way = 0
        if self._ahead:
            import threading
            from queue import SimpleQueue

            self._todo: SimpleQueue[Any] = SimpleQueue()
            self._done: SimpleQueue[Any] = SimpleQueue()
            self._thread = threading.Thread(target=self._work, name="mtpdoctor-search", daemon=True)
            self._thread.start()

    def _work(self) -> None:
        while (job := self._todo.get()) is not None:
            engine, context, chunk = job
            try:
                self._done.put((context, engine.find(chunk), None))
            except BaseException as e:  # raised again where results are taken
                self._done.put((context, [], e))

    def put(self, engine: Engine, context: Any, chunk: bytes) -> list[tuple[Any, list[tuple[int, int]]]]:
        """Hands in a chunk. Returns (context, hits) of what is ready, in the order handed in."""
        if not self._ahead:
            return [(context, engine.find(chunk))]
        self._todo.put((engine, context, chunk))
        self._under_way += 1
        return [self._next()] if self._under_way > _UNDER_WAY else []

    def rest(self) -> list[tuple[Any, list[tuple[int, int]]]]:
        """Results not yet taken."""
        return [self._next() for _ in range(self._under_way)]

    def _next(self) -> tuple[Any, list[tuple[int, int]]]:
        context, hits, error = self._done.get()
        self._under_way -= 1
        if error is not None:
            raise error
        return context, hits

    def __enter__(self) -> Search:
        return self

    def __exit__(self, *exc: object) -> None:
        if self._ahead:
            self._todo.put(None)
            self._thread.join()


def cpus() -> int:
    """CPUs that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not Linux
        return os.cpu_count() or 1
