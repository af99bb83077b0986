"""A triage as SARIF 2.1.0: one result for every failed launch, with the fingerprint of its group."""

from __future__ import annotations

from typing import Any

from mtpdoctor.report.markdown_text import fenced, prose
from mtpdoctor.report.sarif_parts import FINGERPRINT, UNKNOWN_RULE, Run, descriptor, line_region
from mtpdoctor.report.triage_view import member_facts, shown, web_links
from mtpdoctor.triage.types import Group, Member, Triage

_STATES = {"new": "new", "back": "new", "known": "unchanged"}  # SARIF has no word for "was gone"


def triage_to_sarif(triage: Triage) -> dict[str, Any]:
    """The SARIF log as plain JSON values. Groups that a baseline marks have their ``baselineState``."""
    run = Run()
    for group in triage.groups:
        for member in group.members:
            run.results.append(_result(run, group, member))
    for member in (*triage.ready, *triage.unfinished):
        for path in member.launch.paths:
            run.artifact(shown(path))
        if member.stop is not None and member.launch.paths:
            text = f"{shown(member.launch.name)}: {shown(member.stop)}"
            run.notify("note", text, shown(member.launch.paths[0]))
    for member in triage.unreadable:
        name = shown(member.launch.paths[0]) if member.launch.paths else None
        run.notify("warning", shown(member.error or "could not be read"), name)
    for note in triage.notes:
        run.notify("note", shown(note))
    for what, count in triage.skipped:
        run.notify("note", f"left out: {shown(what)} ({count})")
    if triage.interrupted:
        run.notify("warning", f"ended by hand: {triage.interrupted} launches were not looked at")
    return run.document(
        {
            "launches": triage.launches,
            "failed": triage.failed,
            "ready": len(triage.ready),
            "unfinished": len(triage.unfinished),
            "unreadable": len(triage.unreadable),
            "interrupted": triage.interrupted,
            "gone": [
                {"fingerprint": g.fingerprint.key, "title": shown(g.title), "launches": g.count}
                for g in triage.gone
            ],
        }
    )


def _result(run: Run, group: Group, member: Member) -> dict[str, Any]:
    title, cause = shown(member.title or group.title), shown(member.cause or group.cause)
    rule = shown(group.fingerprint.rule) if group.fingerprint.rule else UNKNOWN_RULE
    about = descriptor(
        shown(group.title),
        shown(group.cause),
        help_markdown=prose(shown(group.cause)),
        references=web_links(group.example),
    )
    out: dict[str, Any] = {
        "ruleId": rule,
        "ruleIndex": run.rule(rule, about),
        "level": "error",
        "message": _message(f"{title}.", cause, member),
        "locations": [_location(run, member)],
        "partialFingerprints": {FINGERPRINT: group.fingerprint.key},
        "properties": _properties(group, member),
    }
    if member.confidence is not None:
        out["rank"] = round(member.confidence * 100, 1)
    related = [
        {"id": i, "physicalLocation": run.physical(shown(x.file), line_region(x.line, shown(x.text)))}
        for i, x in enumerate(member.evidence, 1)
        if member.root is None or (x.file, x.line) != (member.root.file, member.root.line)
    ]
    if related:
        out["relatedLocations"] = related
    if group.status in _STATES:
        out["baselineState"] = _STATES[group.status]
    return out


def _message(title: str, cause: str, member: Member) -> dict[str, str]:
    text = [title, cause]
    markdown = [prose(title), prose(cause)]
    if member.remedy:
        said = f"Fix ({member.safety}): {shown(member.remedy)}." if member.safety else shown(member.remedy)
        text.append(said)
        markdown.append(prose(said))
    if member.command:
        text.append(shown(member.command))
        markdown.append(fenced(shown(member.command), "bash"))
    return {"text": "\n\n".join(text), "markdown": "\n\n".join(markdown)}


def _location(run: Run, member: Member) -> dict[str, Any]:
    root = member.root
    if root is None:
        return {"physicalLocation": run.physical(shown(member.launch.paths[0]), None)}
    out: dict[str, Any] = {
        "physicalLocation": run.physical(shown(root.file), line_region(root.line, shown(root.text)))
    }
    places = [(root.node, "node"), (root.rank, "process")]
    logical = [{"name": shown(name), "kind": kind} for name, kind in places if name]
    if logical:
        out["logicalLocations"] = logical
    return out


def _properties(group: Group, member: Member) -> dict[str, Any]:
    out: dict[str, Any] = {
        "launch": shown(member.launch.name),
        "stage": member.stage,
        "group": [shown(p) for p in group.fingerprint.parts],
        "status": group.status,
        "also": [f.key for f in member.also],
        "remedy": shown(member.remedy) if member.remedy else None,
        "edits": [shown(e) for e in member.edits],
        "fixedCommand": shown(member.command) if member.command else None,
        "verified": member.verified,
        "findings": list(member.findings),
    }
    out |= {name.lower(): value for name, value in member_facts(member)}
    return {k: v for k, v in out.items() if v}
