"""The report as one HTML file to pass on: evidence to unfold, commands to copy, no network."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mtpdoctor.diagnose.types import Diagnosis, Finding, Fix, Report
from mtpdoctor.redact import MASK
from mtpdoctor.report.html_page import diff_lines, document, fold, link, rows_of, section, to_copy, top
from mtpdoctor.report.html_tags import Html, join, tag
from mtpdoctor.report.stop_words import CauseWords, StopWords
from mtpdoctor.report.view import UNKNOWN_RULE, Row, View

EVIDENCE = 30  # lines beside the root line
TRACEBACK = 400
CONSEQUENCES = 500


def render_html(report: Report) -> str:
    """The report as a whole HTML page that ends in a line feed. All text of the log is text in it."""
    page = _Page(View(report))
    return document(page.view.title(), *page.parts())


class _Page:
    def __init__(self, view: View) -> None:
        self.view = view
        self.report = view.report

    def parts(self) -> Iterator[Html]:
        view, report = self.view, self.report
        yield top(tag("h1", view.title()), self.state())
        first = view.first
        if first is not None:
            yield section("Root cause", *self.diagnosis(first))
            if memory := view.memory():
                yield section("Memory of each GPU", tag("pre", tag("code", memory), tabindex="0"))
            if first.fixes:
                yield section("What to type", *self.fixes(first.fixes))
            if first.next_steps:
                steps = [tag("li", view.sentence(s)) for s in first.next_steps]
                yield section("Look next", tag("ol", *steps))
        if view.stop is not None:
            yield section("Where it stands", *self.stopped(view.stop))
            if causes := view.stop.causes():
                yield section(
                    view.stop.heading(), *(self.stop_cause(c, i == 0) for i, c in enumerate(causes))
                )
        if report.diagnoses[1:] and first is not None:
            yield section("Also failing, apart from this", *map(self.other, report.diagnoses[1:]))
        if report.findings:
            yield section("Works, but not as wanted", *map(self.finding, report.findings))
        yield section("More", *self.more())

    def state(self) -> Html:
        view, head = self.view, self.view.headline()
        release = f"SGLang {view.release}" if view.release else "SGLang release not known"
        logs = [tag("span", ", " if i else "", tag("code", name)) for i, name in enumerate(view.files[:50])]
        return join(
            [
                tag("p", tag("span", head.word, class_=f"state {head.tone}"), f" {head.text}. {release}."),
                tag("p", "Log: ", *logs, class_="quiet") if logs else None,
            ]
        )

    def more(self) -> Iterator[Html]:
        view, first = self.view, self.view.first
        if first is not None and first.consequences:
            lines = first.consequences
            rows = [view.row(x) for x in lines[:CONSEQUENCES]]
            n = len(lines)
            yield fold(
                f"What follows from it: {n} line{'s' if n > 1 else ''}",
                tag("p", view.consequences(first)),
                log_lines(rows, n - len(rows)),
            )
        if first is not None and (traceback := view.traceback(first, TRACEBACK)):
            yield fold("Traceback", tag("pre", tag("code", "\n".join(traceback)), dir="ltr", tabindex="0"))
        if command := view.command(self.report.command):
            yield fold("The command as it was", to_copy(command, "the command as it was"))
        if facts := view.facts(1000):
            yield fold("What is known of the launch", rows_of(facts, "Facts of the launch"))
        if notes := view.notes():
            yield fold("Notes", tag("ul", *(tag("li", n) for n in notes)), open_=len(notes) <= 3)
        if first is not None and first.rule:
            yield tag(
                "p", "More on the rule: ", tag("code", f"mtpdoctor explain {view.clean.line(first.rule)}")
            )

    # -- a log that just stops -----------------------------------------------------------------
    def stopped(self, stop: StopWords) -> Iterator[Html]:
        yield tag("p", stop.first())
        if stop.stop.last is not None:
            yield log_lines([self.view.line(stop.stop.last)])
        if facts := stop.facts():
            yield tag("ul", *(tag("li", tag("b", f"{head}: "), f"{text}.") for head, text in facts))
        if end := stop.end():
            yield tag("p", end, class_="quiet")

    def stop_cause(self, cause: CauseWords, open_: bool) -> Html:
        rows = [self.view.line(line) for line in dict.fromkeys(cause.lines)]
        parts: list[Html] = []
        if cause.seen:
            parts.append(tag("p", tag("b", "Seen: "), f"{cause.seen}."))
        if rows:
            parts.append(log_lines(rows))
        parts.append(tag("p", tag("b", "Look: "), f"{cause.tell}."))
        parts.append(tag("p", tag("b", "Then: "), f"{cause.do}."))
        if cause.open:
            parts.append(tag("p", tag("b", "Would decide: "), f"{cause.open}.", class_="quiet"))
        links = [found for url in cause.references if (found := link(url))]
        if links:
            parts.append(tag("p", "See ", *(join([", " if i else "", x]) for i, x in enumerate(links))))
        return fold(join([f"{cause.title} ", tag("code", cause.id)]), *parts, open_=open_)

    # -- parts ---------------------------------------------------------------------------------
    def diagnosis(self, diagnosis: Diagnosis) -> Iterator[Html]:
        view = self.view
        name = UNKNOWN_RULE if diagnosis.rule is None else view.rule(diagnosis)
        yield tag("p", tag("b", f"{name}: "), view.sentence(diagnosis.title))
        rows, more = view.evidence(diagnosis, EVIDENCE)
        yield log_lines(rows, more, view.ranks(diagnosis))
        yield tag("p", view.sentence(diagnosis.cause))
        if diagnosis.misleading:
            yield tag("p", tag("b", "Not the cause: "), view.sentence(diagnosis.misleading))
        links = [found for url in diagnosis.references if (found := link(view.clean.line(url)))]
        if links:
            yield tag("p", "See ", *(join([", " if i else "", x]) for i, x in enumerate(links)))

    def other(self, diagnosis: Diagnosis) -> Html:
        head = f"{self.view.rule(diagnosis)}: {self.view.sentence(diagnosis.title)}"
        return fold(head, *self.diagnosis(diagnosis), *self.fixes(diagnosis.fixes))

    def finding(self, finding: Finding) -> Html:
        view = self.view
        return fold(
            f"{view.clean.line(finding.rule)}: {view.sentence(finding.title)}",
            log_lines([view.finding(finding)]),
            tag("p", view.sentence(finding.cause)),
            *self.fixes(finding.fixes),
        )

    def fixes(self, fixes: Sequence[Fix]) -> Iterator[Html]:
        """The first one, and the first with a command where that is another, are open."""
        best = next((f for f in fixes if f.command or f.diff), None)
        for number, fix in enumerate(fixes, 1):
            name = "Fix" if len(fixes) == 1 else f"Fix {number}"
            safety = tag("span", fix.safety, class_=f"state {fix.safety}")
            head = join([f"{name} ", safety, f" {self.view.sentence(fix.title)}"])
            yield fold(head, *self.fix(fix, name), open_=fix is fixes[0] or fix is best)

    def fix(self, fix: Fix, name: str) -> Iterator[Html]:
        view = self.view
        if fix.why:
            yield tag("p", view.sentence(fix.why))
        if fix.risk:
            yield tag("p", tag("b", "Risk: ", class_="risky"), view.sentence(fix.risk))
        command = view.command(fix.command) if not fix.diff else None
        if fix.diff:
            lines = [(line[:1], line) for line in view.clean.text(fix.diff).split("\n")]
            yield diff_lines([("", x) if x.startswith(("---", "+++")) else (sign, x) for sign, x in lines])
        elif changes := view.changes(fix):
            yield diff_lines([(sign, f"{sign} {unit}") for sign, unit in changes])
        if command:
            yield to_copy(command, f"the command of {name}")
        if MASK in (command or fix.diff or ""):
            yield tag("p", "A secret is hidden here: put your own in place of ", tag("code", MASK), ".")
        if command or fix.diff:
            yield tag("p", tag("b", "Proof: "), view.proof(fix), class_="quiet")
        for run in fix.run:
            if typed := view.command(run):
                yield to_copy(typed, f"a command of {name}")
        if fix.notes:
            yield tag("ul", *(tag("li", view.sentence(n)) for n in fix.notes))


def log_lines(rows: Sequence[Row], more: int = 0, ranks: str = "") -> Html:
    """Lines of logs as a table, with their numbers, the decisive words marked, the root line told apart."""
    out: list[Html] = []
    place = None
    for row in rows:
        if row.place != place:
            place = row.place
            root = next((r for r in rows if r.place == place and r.root), None)
            ranked = f" ({ranks})" if ranks and root else ""
            name = f"{place}:{(root or row).number}{ranked}"
            out.append(tag("tr", tag("td", name, class_="place mono", colspan="2")))
        at, text = 0, []
        for a, b in row.marks:
            text += [row.text[at:a], tag("mark", row.text[a:b])]
            at = b
        hint = tag("span", "root cause: ", class_="quietly") if row.root else None
        cells = tag("td", f"{row.number}"), tag("td", hint, *text, row.text[at:], class_="mono", dir="ltr")
        out.append(tag("tr", *cells, class_="root" if row.root else None))
    if more > 0:
        out.append(tag("tr", tag("td"), tag("td", f"and {more} more", class_="quiet")))
    return tag("div", tag("table", tag("tbody", *out), class_="evidence"), class_="wide")
