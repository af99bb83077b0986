"""Words that say up to which release a failure is not mended: they need what shows it (``unfixed``)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mtpdoctor.kb.types import Rule
from mtpdoctor.release import release_or_none

_RELEASE = r"(?P<release>\d+\.\d+\.\d+(?:\.post\d+)?)"
_SAID = (
    re.compile(
        rf"(?i)\b(?:no|every|all|later|sglang) releases?\b[^.;:]{{0,60}}?\b(?:up to|until|to) {_RELEASE}"
    ),
    re.compile(rf"(?i)^releases up to {_RELEASE}|\. releases up to {_RELEASE.replace('release', 'later')}"),
    re.compile(
        rf"(?i)\bstands so up to {_RELEASE}|\bnot (?:lifted|mended) up to {_RELEASE.replace('release', 'later')}"
    ),
    re.compile(rf"(?i)\bstill (?:stands )?in {_RELEASE}"),
)
_FRAMES = re.compile(r"sglang|srt/|models/|layers/|loader|_backend\\\.py")


def unshown(rule: Rule) -> Iterator[str]:
    """One sentence for each release up to which a rule on SGLang's own code says that nothing mends it, without
    ``unfixed`` for that release. Where a later release is named, that one is held against the sources elsewhere."""
    if rule.source != "sglang" and not any(_FRAMES.search(p.regex) for p in rule.match):
        return
    texts = [rule.title, rule.cause, *(h.cause for h in rule.here), rule.misleading or ""]
    texts += [t for r in rule.remedies for t in (r.title, r.why, r.risk or "")]
    shown = {u.through for u in rule.unfixed}
    named = {n for t in (*texts, rule.releases.text) for n in re.findall(r"\d+\.\d+\.\d+(?:\.post\d+)?", t)}
    for said in dict.fromkeys(_said(" ".join(texts))):
        if said not in shown and not any(_after(name, said) for name in named):
            yield f"says that nothing up to {said} mends it: show it in `unfixed` (through: {said}), or do not say it"


def _said(text: str) -> Iterator[str]:
    for pattern in _SAID:
        for hit in pattern.finditer(text):
            yield next(group for group in hit.groups() if group)


def _after(name: str, release: str) -> bool:
    one, other = release_or_none(name), release_or_none(release)
    return one is not None and other is not None and one > other
