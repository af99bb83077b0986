"""A triage in GitHub's Markdown: the table of causes, then each cause with its proof and its launches folded."""

from __future__ import annotations

from collections.abc import Iterator

from mtpdoctor import __version__
from mtpdoctor.report import triage_view as view
from mtpdoctor.report.markdown_fit import MOST, fit
from mtpdoctor.report.markdown_text import cell, code, fenced, folded, prose
from mtpdoctor.report.triage_view import shown
from mtpdoctor.triage.types import Group, Member, Triage

GROUPS = 60  # rows of the table
MEMBERS = 40  # of one group
COMMANDS = 5  # different fixed commands of one group
_LONGEST_COMMAND = 8_000


def render_triage_markdown(triage: Triage) -> str:
    """The triage as Markdown of at most ``markdown_fit.MOST`` characters that ends in a line feed.

    The table comes whole before the details of any group; what does not fit is left out, and said so.
    """
    needed = [f"## {prose(view.title(triage))}", _summary(triage)]
    if triage.groups:
        needed.append(_table(triage))
    wanted: list[str] = []
    for number, group in enumerate(triage.groups, 1):
        wanted.append("\n\n".join(_group(group, number)))
    wanted += _others(triage)
    return fit(needed, wanted, f"<sub>mtpdoctor {__version__}</sub>", MOST)


def _summary(triage: Triage) -> str:
    return "\n".join(f"- {name}: **{value}**" for name, value in view.summary(triage))


def _table(triage: Triage) -> str:
    marked = any(group.status for group in triage.groups)
    names = ["", "launches", "cause", "rule", "releases", "seen", *(["status"] if marked else [])]
    rows = [f"| {' | '.join(names)} |", "|" + " --- |" * len(names)]
    for number, group in enumerate(triage.groups[:GROUPS], 1):
        parts = view.parts(group)[:120]
        cells = [
            str(number),
            str(len(group.members)),
            prose(shown(group.title)[:240]) + (f" ({code(parts)})" if parts else ""),
            code(view.rule(group)),
            code(view.several(group.releases)),
            code(view.seen(group)),
        ]
        if marked:
            cells.append(view.STATUS.get(group.status or "", ""))
        rows.append(f"| {' | '.join(cell(c) for c in cells)} |")
    if len(triage.groups) > GROUPS:
        rows += ["", f"and {len(triage.groups) - GROUPS} more causes"]
    return "\n".join(rows)


def _group(group: Group, number: int) -> Iterator[str]:
    example = group.example
    status = f" ({view.STATUS[group.status]})" if group.status in view.STATUS else ""
    yield f"### {number}. {prose(shown(group.title)[:400])}{status}"
    facts = [
        view.count(len(group.members), "launch", "launches"),
        f"rule {code(view.rule(group))}",
        f"fingerprint {code(group.fingerprint.key)}",
    ]
    for name, values in (("GPU", group.gpus), ("model", group.models)):
        if values:
            facts.append(f"{name} {code(view.several(values))}")
    yield ", ".join(facts)
    yield prose(shown(group.cause)[:3000])
    if example.root is not None:
        lines = [f"{view.place(example)[:300]}"]
        lines += [f"   {x.line} | {shown(x.text)[:600]}" for x in example.evidence[:4] if x != example.root]
        lines.append(f"-> {example.root.line} | {shown(example.root.text)[:1200]}")
        yield fenced("\n".join(lines))
    if example.remedy:
        safety = f" ({example.safety})" if example.safety else ""
        yield f"**Fix{prose(safety)}:** {prose(shown(example.remedy)[:600])}"
    for run in example.run[:5]:
        yield fenced(shown(run)[:2000], "bash")
    for step in example.next_steps[:4]:
        yield f"- {prose(shown(step)[:600])}"
    yield folded(view.count(len(group.members), "launch", "launches").capitalize(), _members(group))


def _members(group: Group) -> Iterator[str]:
    rows = []
    for member in group.members[:MEMBERS]:
        facts = ", ".join(f"{name.lower()} {code(value[:120])}" for name, value in view.member_facts(member))
        rows.append(f"- {code(shown(member.launch.name)[:200])}{f': {facts}' if facts else ''}")
    if len(group.members) > MEMBERS:
        rows.append(f"- and {len(group.members) - MEMBERS} more")
    yield "\n".join(rows)
    commands = [(c, of) for c, of in view.by_command(group.members) if c]
    for command, members in commands[:COMMANDS]:
        yield f"Fixed command for {_names(members)}:"
        if len(command) <= _LONGEST_COMMAND:
            yield fenced(command, "bash")
        else:
            yield f"(too long to stand here: {len(command)} characters)"
    if len(commands) > COMMANDS:
        yield f"and {len(commands) - COMMANDS} more fixed commands"


def _names(members: list[Member]) -> str:
    names = ", ".join(code(shown(m.launch.name)[:120]) for m in members[:5])
    return names + (f" and {len(members) - 5} more" if len(members) > 5 else "")


def _where(member: Member) -> str:
    return shown(member.stop or f"ends at {member.stage or '?'}")[:400]


def _others(triage: Triage) -> Iterator[str]:
    if triage.gone:
        rows = [f"- {prose(shown(g.title)[:300])} ({code(g.fingerprint.key)})" for g in triage.gone[:MEMBERS]]
        yield folded("Causes of the baseline that are gone", ["\n".join(rows)])
    if triage.unfinished:
        rows = [
            f"- {code(shown(m.launch.name)[:200])}: {prose(_where(m))}" for m in triage.unfinished[:MEMBERS]
        ]
        yield folded(f"Unfinished: {len(triage.unfinished)}", ["\n".join(rows)])
    if triage.unreadable:
        rows = [
            f"- {code(shown(m.launch.name)[:200])}: {prose(shown(m.error or m.outcome)[:300])}"
            for m in triage.unreadable[:MEMBERS]
        ]
        yield folded(f"Unreadable: {len(triage.unreadable)}", ["\n".join(rows)])
    if triage.ready:
        names = "\n".join(f"- {code(shown(m.launch.name)[:200])}" for m in triage.ready[:MEMBERS])
        yield folded(f"Ready: {len(triage.ready)}", [names])
    notes = [prose(shown(n)[:600]) for n in triage.notes]
    notes += [f"left out: {prose(shown(what)[:300])} ({number})" for what, number in triage.skipped]
    if notes:
        yield folded("Notes", ["\n".join(f"- {n}" for n in notes[:MEMBERS])])
