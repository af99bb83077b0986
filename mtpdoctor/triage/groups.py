"""Members, as they come, into groups; nothing is kept twice, so that thousands of them stay small. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from mtpdoctor.triage.types import Fingerprint, Group, Member, Triage


class Groups:
    """Takes members in any order; the result does not depend on it."""

    def __init__(self) -> None:
        self._failed: dict[str, list[Member]] = {}
        self._best: dict[str, Member] = {}
        self._rest: dict[str, list[Member]] = {"ready": [], "unfinished": [], "unreadable": []}
        self._texts: dict[str, str] = {}
        self._bytes = 0
        self.foreign = 0  # files met in folders that have nothing to do with SGLang

    def add(self, member: Member) -> None:
        member = self._shared(member)
        self._bytes += member.bytes
        if member.outcome == "foreign":
            if not member.launch.given:
                self.foreign += 1
                return
            member = replace(member, outcome="unreadable")
        if member.outcome != "failed" or member.fingerprint is None:
            kind = member.outcome if member.outcome in self._rest else "unreadable"
            self._rest[kind].append(member)
            return
        key = member.fingerprint.key
        best = self._best.get(key)
        if best is None or _shows_better(member, best):
            self._best[key] = member
        # only the example shows evidence; the others would hold most of the memory for it
        self._failed.setdefault(key, []).append(replace(member, evidence=(), next_steps=()))

    @property
    def causes(self) -> int:
        """How many groups there are so far."""
        return len(self._failed)

    def _shared(self, member: Member) -> Member:
        """The member with texts that others have too held once."""

        def one(text: str | None) -> str | None:
            return text if text is None else self._texts.setdefault(text, text)

        return replace(
            member,
            title=one(member.title),
            cause=one(member.cause),
            remedy=one(member.remedy),
            model=one(member.model),
            release=one(member.release),
            gpu=one(member.gpu),
            edits=tuple(self._texts.setdefault(e, e) for e in member.edits),
            run=tuple(self._texts.setdefault(r, r) for r in member.run),
            references=tuple(self._texts.setdefault(r, r) for r in member.references),
        )

    def triage(
        self,
        *,
        interrupted: int = 0,
        notes: Iterable[str] = (),
        skipped: Iterable[tuple[str, int]] = (),
    ) -> Triage:
        """All that came so far."""
        groups = [self._group(key) for key in self._failed]
        groups.sort(key=lambda g: (-len(g.members), g.fingerprint.rule or "~", g.title, g.fingerprint.key))
        left_out = list(skipped)
        if self.foreign:
            left_out.append(("without a sign of SGLang", self.foreign))
        return Triage(
            groups=tuple(groups),
            ready=_by_name(self._rest["ready"]),
            unfinished=_by_name(self._rest["unfinished"]),
            unreadable=_by_name(self._rest["unreadable"]),
            bytes=self._bytes,
            interrupted=interrupted,
            notes=tuple(notes),
            skipped=tuple(sorted(left_out, key=lambda pair: (-pair[1], pair[0]))),
        )

    def _group(self, key: str) -> Group:
        members = _by_name(self._failed[key])
        example = self._best[key]
        assert example.fingerprint is not None
        seen = [t for m in members for t in (m.ended or m.started,) if t]
        return Group(
            fingerprint=_least(m.fingerprint for m in members if m.fingerprint is not None),
            title=example.title or "",
            cause=example.cause or "",
            members=members,
            example=example,
            first_seen=min((m.started or m.ended for m in members if m.started or m.ended), default=None),  # type: ignore[type-var]
            last_seen=max(seen, default=None),
            releases=_named(m.release for m in members),
            gpus=_named(m.gpu for m in members),
            models=_named(m.model for m in members),
        )


def _shows_better(a: Member, b: Member) -> bool:
    """Most certain, then most known of it, then the shortest log; the name decides in the end."""

    def rank(m: Member) -> tuple[float, int, int, int, str]:
        known = sum(x is not None for x in (m.release, m.gpu, m.model, m.started, m.command))
        return (-(m.confidence or 0.0), -known, -len(m.evidence), m.bytes, m.launch.name)

    return rank(a) < rank(b)


def _by_name(members: Iterable[Member]) -> tuple[Member, ...]:
    return tuple(sorted(members, key=lambda m: (m.launch.name, m.launch.paths)))


def _named(values: Iterable[str | None]) -> tuple[str, ...]:
    return tuple(sorted({v for v in values if v}))


def _least(prints: Iterable[Fingerprint]) -> Fingerprint:
    return min(prints, key=lambda f: f.parts)
