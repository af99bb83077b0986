"""The triage for people, in a terminal: the numbers, then each cause with its launches and what to type."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mtpdoctor.report import triage_view as view
from mtpdoctor.report.command import wrapped
from mtpdoctor.report.rows import Rows
from mtpdoctor.triage.types import Group, Member, Triage

COMMANDS = 3  # fixed commands of a group shown without --verbose
NAMES = 6  # launches named
CAUSES = 40  # groups shown in full without --verbose
_SAFETY = {"safe": "green", "risky": "magenta", "manual": "yellow"}
_STATUS = {"new": "red", "back": "yellow", "known": "dim"}


def render_triage(triage: Triage, *, width: int = 80, color: bool = False, verbose: bool = False) -> str:
    """The triage as text that ends in a line feed. No row is wider than ``width`` columns, but for commands to
    paste."""
    return "\n".join(_Page(triage, Rows(width, color, plain=not color), verbose).rows()) + "\n"


class _Page:
    def __init__(self, triage: Triage, rows: Rows, verbose: bool) -> None:
        self.triage = triage
        self.out = rows
        self.style = rows.style
        self.verbose = verbose

    def rows(self) -> Iterator[str]:
        triage = self.triage
        yield from self._headline()
        for number, group in enumerate(triage.groups, 1):
            yield ""
            yield from self._heading(group, number)
            if self.verbose or number <= CAUSES:
                yield from self._group(group)
        yield from self._others()

    # -- the numbers -----------------------------------------------------------------------------
    def _headline(self) -> Iterator[str]:
        triage, out = self.triage, self.out
        rest = [
            f"{len(members):,} {word}"
            for members, word in (
                (triage.ready, "ready"),
                (triage.unfinished, "unfinished"),
                (triage.unreadable, "unreadable"),
            )
            if members
        ]
        title = view.title(triage) + (f"; {', '.join(rest)}" if rest else "")
        yield from out.prose(title, indent="", style="bold")
        if triage.interrupted:
            yield from out.prose(
                f"Ended by hand: {view.count(triage.interrupted, 'launch', 'launches')} not looked at.",
                indent="",
                style="yellow",
            )
        if any(g.status for g in triage.groups):
            told = [
                f"{n} {word}"
                for status, word in view.STATUS.items()
                if (n := sum(g.status == status for g in triage.groups))
            ]
            if triage.gone:
                told.append(f"{len(triage.gone)} gone")
            yield from out.prose(f"Against the baseline: {', '.join(told)}", indent="")

    # -- one cause -------------------------------------------------------------------------------
    def _heading(self, group: Group, number: int) -> Iterator[str]:
        rule = group.fingerprint.rule or "Cause not known"
        status = f"  [{view.STATUS[group.status]}]" if group.status in view.STATUS else ""
        text = f"{number}. {len(group.members):,} {self.out.times} {rule}: {group.title}{status}"
        style = "bold" if group.status is None else _STATUS[group.status]
        yield from self.out.prose(text, indent="", style=style)

    def _group(self, group: Group) -> Iterator[str]:
        out, example = self.out, group.example
        facts = [view.seen(group)]
        facts += [f"SGLang {view.several(group.releases)}"] if group.releases else []
        facts += [view.several(group.gpus)] if group.gpus else []
        facts += [view.several(group.models)] if group.models else []
        yield from out.prose(
            f" {out.dot} ".join(f for f in facts if f) or "nothing known of when and where", style="dim"
        )
        if example.root is not None:
            yield self.style("cyan", "  " + out.fit(view.place(example), out.width - 2))
            yield from self._line(example.root.line, example.root.text, mark=True)
            for line in example.evidence:
                yield from self._line(line.line, line.text)
        parts = view.parts(group)
        if parts and group.fingerprint.rule:
            yield from out.prose(f"Same by: {parts}", style="dim")
        if group.cause:
            yield from out.prose(f"Why: {group.cause}")
        yield from self._fixes(group)
        if self.verbose:
            for url in view.web_links(example):
                yield from out.prose(f"See: {url}")
        if example.next_steps and example.remedy is None:
            for step in example.next_steps if self.verbose else example.next_steps[:2]:
                yield from out.item("-", step)

    def _line(self, number: int, text: str, mark: bool = False) -> Iterator[str]:
        lead = f"  {'>' if mark else ' '} {number:>6} | "
        text = self.out.fit(text, self.out.width - len(lead))
        yield (self.style("dim", lead) if not mark else lead) + (self.style("red", text) if mark else text)

    def _fixes(self, group: Group) -> Iterator[str]:
        """What to type for each launch; launches that are told the same, together."""
        told: dict[tuple[object, ...], list[Member]] = {}
        for member in group.members:
            told.setdefault((member.remedy, member.command, member.run), []).append(member)
        fixes = sorted(told.values(), key=lambda members: -len(members))
        if len(fixes) == 1 and group.example.remedy is None:
            yield from self._launches("Launches", group.members)
            return
        shown = fixes if self.verbose else fixes[:COMMANDS]
        for members in shown:
            yield from self._fix(members)
        left = fixes[len(shown) :]
        if left:
            count = sum(map(len, left))
            yield from self.out.prose(
                f"and {view.count(len(left), 'other command')} for {view.count(count, 'launch', 'launches')}"
                " (--verbose)",
                style="dim",
            )

    def _fix(self, members: list[Member]) -> Iterator[str]:
        first = members[0]
        if first.remedy is None:
            yield from self._launches("No fix for", members)
            return
        safety = self.style(_SAFETY.get(first.safety or "", "bold"), first.safety or "")
        title = self.out.fit(first.remedy, self.out.width - len(f"  Fix ({first.safety}): "))
        yield f"  {self.style('bold', 'Fix')} ({safety}): {title}"
        yield from self._launches("for", members)
        if first.command is not None:
            yield from wrapped(view.shown(first.command), self.out.width)
        for run in first.run:
            lines = wrapped(view.shown(run), self.out.width - 4)
            yield from (f"  {'$' if i == 0 else ' '} {line}" for i, line in enumerate(lines))

    def _launches(self, lead: str, members: tuple[Member, ...] | list[Member]) -> Iterator[str]:
        yield from self.out.prose(f"{lead}: {self._names(members)}", indent="    " if lead == "for" else "  ")

    def _names(self, members: tuple[Member, ...] | list[Member], most: int = NAMES) -> str:
        most = len(members) if self.verbose else most
        names = []
        for member in members[:most]:
            notes = []
            if member.attempts > 1:
                notes.append(f"the last of {member.attempts} launches in it")
            if member.root is not None and member.root.node and len(members) > 1:
                notes.append(f"{member.root.node} first")
            names.append(view.shown(member.launch.name) + (f" ({'; '.join(notes)})" if notes else ""))
        more = len(members) - most
        return ", ".join(names) + (f" and {more:,} more" if more > 0 else "")

    def _unfinished(self, members: Sequence[Member]) -> Iterator[str]:
        """Each with where it stands."""
        shown = members if self.verbose else members[:NAMES]
        for member in shown:
            where = view.shown(member.stop or f"ends at {member.stage or '?'}")
            yield from self.out.item("-", f"{view.shown(member.launch.name)}: {where}")
        if len(shown) < len(members):
            yield self.style("dim", f"  and {len(members) - len(shown):,} more (--verbose)")

    # -- the rest --------------------------------------------------------------------------------
    def _others(self) -> Iterator[str]:
        triage, out = self.triage, self.out
        silently = [m for m in triage.ready if m.findings]
        for title, members in (
            ("Unfinished", triage.unfinished),
            ("Ready", triage.ready if self.verbose else ()),
        ):
            if members:
                yield ""
                yield self.style("bold", title)
                if title == "Unfinished":
                    yield from self._unfinished(members)
                else:
                    yield from out.prose(self._names(members))
        if silently:
            yield ""
            yield self.style("bold", "Ready, but not as wanted")
            by_rule: dict[str, list[Member]] = {}
            for member in silently:
                for rule in member.findings:
                    by_rule.setdefault(rule, []).append(member)
            for rule, some in sorted(by_rule.items(), key=lambda pair: (-len(pair[1]), pair[0])):
                yield from out.item("-", f"{len(some):,} {out.times} {rule}: {self._names(some, 2)}")
        if triage.unreadable:
            yield ""
            yield self.style("bold", "Unreadable")
            shown = triage.unreadable if self.verbose else triage.unreadable[:NAMES]
            for member in shown:
                yield from out.item("-", f"{view.shown(member.launch.name)}: {member.error or 'not read'}")
            if len(shown) < len(triage.unreadable):
                yield self.style("dim", f"  and {len(triage.unreadable) - len(shown):,} more (--verbose)")
        if triage.gone:
            yield ""
            yield self.style("bold", "Gone since the baseline")
            for gone in triage.gone if self.verbose else triage.gone[:NAMES]:
                rule = gone.fingerprint.rule or "not known"
                yield from out.item("-", f"{rule}: {gone.title} (was {gone.count:,} {out.times})")
        if triage.skipped:
            yield ""
            what = ", ".join(f"{count:,} {name}" for name, count in triage.skipped)
            yield from out.prose(f"Left out, not logs of a launch: {what}", indent="", style="dim")
        for note in triage.notes:
            yield from out.prose(f"Note: {note}", indent="")
