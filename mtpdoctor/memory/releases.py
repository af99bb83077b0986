"""Short names for comparisons of releases."""

from __future__ import annotations

from mtpdoctor.release import Release, ReleaseRange


def of(release: Release, text: str) -> bool:
    """Does the range (``>=0.5.3,<0.5.14``) hold the release?"""
    return release in ReleaseRange.parse(text)
