"""What the formats to pass on show of a triage, cleaned: they differ in mark-up only."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mtpdoctor.redact import mask_secrets
from mtpdoctor.report.command import wrapped
from mtpdoctor.report.view import COMMAND_WIDTH
from mtpdoctor.text import safe
from mtpdoctor.triage.types import Group, Member, Triage

STATUS = {"new": "new", "known": "known", "back": "came back"}


def shown(text: str) -> str:
    """Safe and masked. Members are masked when they are made; a triage may come from elsewhere too."""
    return mask_secrets(safe(text))


def title(triage: Triage) -> str:
    failed, groups = triage.failed, len(triage.groups)
    if not failed:
        return f"{count(triage.launches, 'launch', 'launches')}: none failed"
    return f"{failed:,} of {count(triage.launches, 'launch', 'launches')} failed, of {count(groups, 'cause')}"


def count(number: int, one: str, many: str | None = None) -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def summary(triage: Triage) -> list[tuple[str, str]]:
    """The numbers that stand above the groups."""
    rows = [
        ("Launches", f"{triage.launches:,}"),
        ("Failed", f"{triage.failed:,}"),
        ("Ready", f"{len(triage.ready):,}"),
        ("Unfinished", f"{len(triage.unfinished):,}"),
    ]
    if triage.unreadable:
        rows.append(("Unreadable", f"{len(triage.unreadable):,}"))
    if triage.interrupted:
        rows.append(("Not looked at (ended by hand)", f"{triage.interrupted:,}"))
    if any(group.status for group in triage.groups):
        for status, word in STATUS.items():
            rows.append((f"Causes {word}", f"{sum(g.status == status for g in triage.groups):,}"))
        rows.append(("Causes gone", f"{len(triage.gone):,}"))
    return rows


def rule(group: Group) -> str:
    return shown(group.fingerprint.rule) if group.fingerprint.rule else "no rule"


def parts(group: Group) -> str:
    """What tells the group from others of its rule."""
    known = [p for p in group.fingerprint.parts if p != group.fingerprint.rule]
    return ", ".join(map(shown, known))


def several(values: Sequence[str], most: int = 4) -> str:
    """ "a, b and 3 more"."""
    names = [shown(v) for v in values]
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def seen(group: Group) -> str:
    first, last = moment(group.first_seen), moment(group.last_seen)
    if not first or not last or first == last:
        return first or last
    return f"{first} to {last.removeprefix(first[:11])}"


def moment(time: str | None) -> str:
    """An ISO time to the minute, which is what people compare."""
    text = shown(time or "")
    return text[:16].replace("T", " ") if text[:4].isdigit() and text[10:11] in ("T", " ") else text


def member_facts(member: Member) -> list[tuple[str, str]]:
    """What is known of a launch, where it is known."""
    facts = (
        ("Release", member.release),
        ("GPU", member.gpu),
        ("Model", member.model),
        ("Started", moment(member.started)),
        ("Ended", moment(member.ended)),
    )
    return [(name, shown(value)) for name, value in facts if value]


def command(member: Member) -> str | None:
    """The fixed command, wrapped to be pasted."""
    return "\n".join(wrapped(shown(member.command), COMMAND_WIDTH)) if member.command else None


def place(member: Member) -> str:
    """Where the root cause stands, and which rank or node it struck first."""
    root = member.root
    if root is None:
        return ""
    who = ", ".join(shown(x) for x in (root.node, root.rank) if x)
    return f"{shown(root.file)}:{root.line}" + (f" ({who})" if who else "")


def web_links(member: Member) -> list[str]:
    return [u for u in map(shown, member.references) if u.startswith("https://")]


def by_command(members: Iterable[Member]) -> list[tuple[str | None, list[Member]]]:
    """Members whose fixed command is the same, together, in order of the first of them."""
    out: dict[str | None, list[Member]] = {}
    for member in members:
        out.setdefault(command(member), []).append(member)
    return list(out.items())
