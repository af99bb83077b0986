"""The ``triage --json`` document. Its schema is triage.schema.json, its description docs/triage.md."""

from __future__ import annotations

from typing import Any

from mtpdoctor.report.triage_view import shown
from mtpdoctor.text import one_line
from mtpdoctor.triage.types import Fingerprint, Gone, Group, Member, Root, Triage

SCHEMA = 1


def triage_to_json(triage: Triage) -> dict[str, Any]:
    """The triage as plain JSON values, every text safe and with secrets masked."""
    return {
        "schema": SCHEMA,
        "kind": "triage",
        "launches": triage.launches,
        "failed": triage.failed,
        "interrupted": triage.interrupted,
        "bytes": triage.bytes,
        "groups": [_group(g) for g in triage.groups],
        "ready": [_member(m) for m in triage.ready],
        "unfinished": [_member(m) for m in triage.unfinished],
        "unreadable": [_member(m) for m in triage.unreadable],
        "gone": [_gone(g) for g in triage.gone],
        "skipped": {shown(what): count for what, count in triage.skipped},
        "notes": [shown(n) for n in triage.notes],
    }


def _print(fingerprint: Fingerprint) -> dict[str, Any]:
    return {
        "key": fingerprint.key,
        "rule": fingerprint.rule,
        "parts": [shown(one_line(p)) for p in fingerprint.parts],
    }


def _group(group: Group) -> dict[str, Any]:
    return {
        **_print(group.fingerprint),
        "title": shown(group.title),
        "cause": shown(group.cause),
        "count": len(group.members),
        "status": group.status,
        "first_seen": group.first_seen,
        "last_seen": group.last_seen,
        "releases": [shown(r) for r in group.releases],
        "gpus": [shown(g) for g in group.gpus],
        "models": [shown(m) for m in group.models],
        "example": _member(group.example) | {"evidence": [_root(e) for e in group.example.evidence]},
        "members": [_member(m) for m in group.members],
    }


def _gone(gone: Gone) -> dict[str, Any]:
    return {
        **_print(gone.fingerprint),
        "title": shown(gone.title),
        "count": gone.count,
        "last_seen": gone.last_seen and shown(gone.last_seen),
    }


def _root(root: Root) -> dict[str, Any]:
    return {
        "file": shown(root.file),
        "line": root.line,
        "text": shown(root.text),
        "rank": root.rank and shown(root.rank),
        "node": root.node and shown(root.node),
    }


def _member(member: Member) -> dict[str, Any]:
    launch = member.launch
    out: dict[str, Any] = {
        "name": shown(launch.name),
        "files": [shown(p) for p in launch.paths],
        "together": launch.why,
        "outcome": member.outcome,
        "stage": member.stage,
        "attempts": member.attempts,
        "release": member.release and shown(member.release),
        "gpu": member.gpu and shown(member.gpu),
        "model": member.model and shown(member.model),
        "started": member.started,
        "ended": member.ended,
        "findings": list(member.findings),
    }
    if member.stop is not None:
        out["stop"] = shown(member.stop)
    if member.error is not None:
        out["error"] = shown(member.error)
    if member.fingerprint is not None:
        out |= {
            "title": shown(member.title or ""),
            "confidence": member.confidence,
            "root": _root(member.root) if member.root else None,
            "also": [_print(f) for f in member.also],
            "fix": _fix(member),
        }
        if member.next_steps:
            out["next_steps"] = [shown(s) for s in member.next_steps]
    return out


def _fix(member: Member) -> dict[str, Any] | None:
    if member.remedy is None:
        return None
    return {
        "title": shown(member.remedy),
        "safety": member.safety,
        "verified": member.verified,
        "edits": [shown(e) for e in member.edits],
        "run": [shown(r) for r in member.run],
        "command": member.command and shown(member.command),
    }
