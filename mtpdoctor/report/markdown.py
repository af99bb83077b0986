"""The report in GitHub's Markdown, to paste into an issue: the cause, the proof, what to type; the rest folded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mtpdoctor import __version__
from mtpdoctor.diagnose.types import Diagnosis, Fix, Report
from mtpdoctor.redact import MASK
from mtpdoctor.report.markdown_fit import MOST, fit
from mtpdoctor.report.markdown_text import code, fenced, folded, prose
from mtpdoctor.report.stop_words import StopWords
from mtpdoctor.report.view import UNKNOWN_RULE, Row, View

EVIDENCE = 12  # lines beside the root line
TRACEBACK = 60
CONSEQUENCES = 40
_LONGEST_COMMAND = 12_000  # characters; a cut command must not be pasted


def render_markdown(report: Report) -> str:
    """The report as Markdown of at most ``markdown_fit.MOST`` characters that ends in a line feed.

    What would be too long is left out whole, the least needed first, and said so.
    """
    page = _Page(View(report))
    return fit([*page.needed()], [*page.wanted()], page.end(), MOST)


class _Page:
    def __init__(self, view: View) -> None:
        self.view = view
        self.report = view.report

    def needed(self) -> Iterator[str]:
        """What the reader must see first, in order."""
        view, head = self.view, self.view.headline()
        yield f"## {prose(view.title()[:400])}"
        where = f"**{head.word.capitalize()}**: {prose(head.text)}."
        release = f"SGLang {code(view.release)}" if view.release else "SGLang release not known"
        logs = ", ".join(code(f[:200]) for f in view.files[:8]) + (" ..." if len(view.files) > 8 else "")
        yield f"{where} {release}.{f' Log: {logs}' if logs else ''}"
        if view.first is not None:
            yield from self.diagnosis(view.first)
            yield from self.fixes(view.first.fixes)
            if view.first.next_steps:
                yield "### Look next"
                yield "\n".join(
                    f"{i}. {prose(view.sentence(s)[:1500])}"
                    for i, s in enumerate(view.first.next_steps[:10], 1)
                )

        if view.stop is not None:
            yield from self.stop(view.stop)

    def stop(self, stop: StopWords) -> Iterator[str]:
        """A log that just stops."""
        yield prose(stop.first())
        if stop.stop.last is not None:
            yield _rows([self.view.line(stop.stop.last)])
        if facts := stop.facts():
            yield "\n".join(f"- **{prose(head)}**: {prose(text[:1500])}." for head, text in facts)
        causes = stop.causes()
        if causes:
            yield f"### {prose(stop.heading())}"
        for number, cause in enumerate(causes, 1):
            parts = [f"{number}. **{prose(cause.title)}** ({code(cause.id)})"]
            parts += [f"   - seen: {prose(cause.seen[:1500])}"] if cause.seen else []
            parts += [f"   - look: {prose(cause.tell)}", f"   - then: {prose(cause.do)}"]
            parts += [f"   - would decide: {prose(cause.open)}"] if cause.open else []
            parts += [f"   - <{url}>" for url in cause.references if _is_web(url)]
            yield "\n".join(parts)
        if end := stop.end():
            yield prose(end)

    def wanted(self) -> Iterator[str]:
        """What may be left out, the most wanted first."""
        view, report = self.view, self.report
        if view.first is not None:
            yield from self.other_fixes(view.first.fixes)
        if memory := view.memory():
            yield folded("Memory of each GPU", [fenced(memory)])
        for finding in report.findings:
            head = f"**{prose(finding.rule)}**: {prose(view.sentence(finding.title))}"
            blocks = [head, _rows([view.finding(finding)]), prose(view.sentence(finding.cause))]
            blocks += [block for fix in finding.fixes[:1] for block in self.fix(fix, "Fix")]
            yield folded(f"Works, but not as wanted: {finding.rule}", blocks)
        for other in report.diagnoses[1:] if view.first is not None else ():
            title = f"**{prose(view.sentence(other.title)[:600])}**"
            blocks = [title, *self.diagnosis(other), *self.fixes(other.fixes)]
            yield folded(f"Also failing, apart from this: {view.rule(other)}", blocks)
        if view.first is not None:
            if traceback := view.traceback(view.first, TRACEBACK):
                yield folded("Traceback", [fenced("\n".join(traceback))])
            if view.first.consequences:
                yield self.consequences(view.first)
        if command := view.command(report.command):
            yield folded("The command as it was", [fenced(command, "bash")])
        if notes := view.notes():
            yield folded("Notes", ["\n".join(f"- {prose(n[:1500])}" for n in notes[:40])])
        if facts := view.facts():
            yield folded("What is known of the launch", [fenced("\n".join(f"{k} = {v}" for k, v in facts))])
        if view.first is not None and view.first.references:
            yield "\n".join(
                f"- <{url}>" for url in map(view.clean.line, view.first.references) if _is_web(url)
            )

    def end(self) -> str:
        first = self.view.first
        rule = first.rule if first else None
        more = f"; more on the rule: {code(f'mtpdoctor explain {rule}')}" if rule else ""
        return f"<sub>mtpdoctor {__version__}{more}</sub>"

    # -- parts ---------------------------------------------------------------------------------
    def diagnosis(self, diagnosis: Diagnosis) -> Iterator[str]:
        view = self.view
        name = UNKNOWN_RULE if diagnosis.rule is None else f"Root cause ({prose(view.rule(diagnosis))})"
        yield f"**{name}:** {prose(view.sentence(diagnosis.cause)[:4000])}"
        rows, more = view.evidence(diagnosis, EVIDENCE)
        yield _rows(rows, more, view.ranks(diagnosis))
        if diagnosis.misleading:
            yield f"**Not the cause:** {prose(view.sentence(diagnosis.misleading)[:2000])}"

    def fixes(self, fixes: Sequence[Fix]) -> Iterator[str]:
        """The first one, and the first with a command where that is another."""
        best = _best(fixes)
        for number, fix in enumerate(fixes, 1):
            if fix is fixes[0] or fix is best:
                name = "Fix" if len(fixes) == 1 else f"Fix {number}"
                yield from self.fix(fix, name)

    def other_fixes(self, fixes: Sequence[Fix]) -> Iterator[str]:
        best = _best(fixes)
        for number, fix in enumerate(fixes, 1):
            if fix is not fixes[0] and fix is not best:
                yield folded(f"Fix {number} ({fix.safety})", self.fix(fix, f"Fix {number}"))

    def fix(self, fix: Fix, name: str) -> Iterator[str]:
        view = self.view
        yield f"**{name} ({prose(fix.safety)}):** {prose(view.sentence(fix.title)[:600])}"
        if fix.why:
            yield prose(view.sentence(fix.why)[:2000])
        if fix.risk:
            yield f"**Risk:** {prose(view.sentence(fix.risk)[:2000])}"
        body, language = self.body(fix)
        if body and len(body) <= _LONGEST_COMMAND:
            yield fenced(body, language)
        elif body:
            yield f"(too long to stand here: {len(body)} characters; mtpdoctor diagnose shows it)"
        if body and MASK in body:
            yield f"A secret is hidden here: put your own in place of {code(MASK)}."
        if fix.command or fix.diff:
            yield f"Proof: {prose(view.proof(fix))}"
        if fix.run:
            yield fenced("\n".join(filter(None, map(view.command, fix.run[:20])))[:_LONGEST_COMMAND], "bash")
        for note in fix.notes[:10]:
            yield f"- {prose(view.sentence(note)[:1000])}"

    def body(self, fix: Fix) -> tuple[str, str]:
        if fix.diff:
            return self.view.clean.text(fix.diff), "diff"
        if command := self.view.command(fix.command):
            return command, "bash"
        return "\n".join(f"{sign} {unit}" for sign, unit in self.view.changes(fix)), "diff"

    def consequences(self, diagnosis: Diagnosis) -> str:
        view = self.view
        lines = diagnosis.consequences
        rows = [view.row(x) for x in lines[:CONSEQUENCES]]
        return folded(
            f"What follows from it: {len(lines)} line{'s' if len(lines) > 1 else ''}",
            [prose(view.consequences(diagnosis) or ""), _rows(rows, len(lines) - len(rows))],
        )


def _rows(rows: Sequence[Row], more: int = 0, ranks: str = "") -> str:
    """Log lines as one block: the place where it changes, numbers, an arrow at the root line."""
    gutter = max(len(str(row.number)) for row in rows)
    out: list[str] = []
    place = None
    for row in rows:
        if row.place != place:
            place = row.place
            root = next((r for r in rows if r.place == place and r.root), None)
            ranked = f"  ({ranks})" if ranks and root else ""
            out.append(f"{place[:300]}:{(root or row).number}{ranked}")
        out.append(f"{'->' if row.root else '  '} {row.number:>{gutter}} | {row.text}")
    if more > 0:
        out.append(f"   {'':>{gutter}} | and {more} more")
    return fenced("\n".join(out))


def _best(fixes: Sequence[Fix]) -> Fix | None:
    return next((f for f in fixes if f.command or f.diff), None)


def _is_web(url: str) -> bool:
    return url.startswith("https://") and not any(c in url for c in " <>\"'`\\")
