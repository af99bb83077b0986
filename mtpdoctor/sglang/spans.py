"""Sets of releases, written as the first and last release of each unbroken run."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from mtpdoctor.sglang.store import release_order


def spans_of(present: Collection[str], releases: Sequence[str]) -> list[list[str]]:
    """First and last release of each unbroken run of ``present`` among ``releases``."""
    spans: list[list[str]] = []
    previous = None
    for release in releases:
        if release in present:
            if previous in present:
                spans[-1][1] = release
            else:
                spans.append([release, release])
        previous = release
    return spans


def within(spans: Iterable[Sequence[str]], releases: Iterable[str]) -> frozenset[str]:
    """Those of ``releases`` that lie in one of the spans."""
    ordered = [(r, release_order(r)) for r in releases]
    bounds = [(release_order(first), release_order(last)) for first, last in spans]
    return frozenset(r for r, at in ordered if any(low <= at <= high for low, high in bounds))
