"""A release that the committed tables do not know, learned from its installation on the fly."""

from __future__ import annotations

from pathlib import Path

from mtpdoctor.errors import UserError
from mtpdoctor.paths import cache_folder
from mtpdoctor.release import release_or_none
from mtpdoctor.sglang.releases import facts_folder, known_releases


def learn_when_new(release: str, where: str | None) -> str | None:
    """Learn ``release`` into the user's cache when the tables lack it and its source stands in the folder
    ``where`` (a site-packages folder; None: this interpreter's). Takes some seconds, once.

    Returns what to tell the person: that it was learned, or which release serves instead; None when the
    release is known already.
    """
    named = release_or_none(release)
    if named is None or named in known_releases():
        return None
    _, _, note = facts_folder(named)
    if note is not None and "learned" in note:
        return note
    learned = _learn(release, where)
    if learned is not None:
        return learned
    return f"SGLang {release} is not among the known releases; {note}" if note else None


def _learn(release: str, where: str | None) -> str | None:
    from mtpdoctor.sglang.learn import learn_tree
    from mtpdoctor.sglang.source import installed_source, open_source, source_release

    try:
        tree = open_source(where) if where is not None and Path(where).is_dir() else installed_source()
        if tree is None or source_release(tree) != release:
            return None
        learn_tree(tree, release, cache_folder())
    except (UserError, OSError) as error:
        return f"SGLang {release} could not be learned: {error}"
    return (
        f"SGLang {release} is newer than the doctor's knowledge; its options were learned from {tree.origin}"
    )
