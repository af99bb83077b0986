"""What the Diagnosis region says, as rows of text. Pure: a report in, parts out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mtpdoctor.diagnose.check import CheckReport
from mtpdoctor.diagnose.types import Diagnosis, Finding, Report, Stop
from mtpdoctor.log.types import Line
from mtpdoctor.redact import mask_secrets
from mtpdoctor.report.fold import labels, line_numbers, ranks_note
from mtpdoctor.report.stop_words import StopWords
from mtpdoctor.report.style import DEFAULT_WIDTH
from mtpdoctor.report.text import Page as TextPage
from mtpdoctor.text import safe


@dataclass(frozen=True, slots=True)
class Said:
    """A paragraph. ``head`` is a word before it ("Why"); ``kind`` names its style; ``close``: without an empty
    row before it."""

    text: str
    head: str = ""
    kind: str = ""
    close: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """A log line that can be gone to. ``root``: the cause itself."""

    file: int
    number: int
    text: str
    marks: tuple[str, ...] = ()
    root: bool = False
    label: str = ""  # shown before the text: a file's name, "and 12 more"


@dataclass(frozen=True, slots=True)
class Choice:
    """Another cause that can be looked at."""

    index: int
    text: str
    chosen: bool


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule that can be read in Knowledge."""

    rule: str
    text: str


@dataclass(frozen=True, slots=True)
class Go:
    """Another region."""

    region: str
    text: str


Part = Said | Place | Choice | Rule | Go


def parts_of(report: Report, diagnosis: int = 0) -> Iterator[Part]:
    """Everything about one of the report's diagnoses; or about a launch that has none."""
    page = _Page(report)
    if report.outcome == "failed" and report.diagnoses:
        yield from page.failed(min(diagnosis, len(report.diagnoses) - 1))
    else:
        yield from page.without_diagnosis()
    yield from page.findings()
    yield from page.notes()


def parts_of_check(check: CheckReport | None, given: bool) -> Iterator[Part]:
    """Where there is no log: what is known of the command."""
    if check is None:
        yield Said("No log is open.", kind="title")
        if given:
            yield Said("The launch command is being checked.")
        else:
            yield Said("Open one, or give a launch command: mtpdoctor -- python -m sglang.launch_server ...")
            yield Go("start", "Look for logs")
        return
    words = {
        "accept": ("It would start", "success"),
        "reject": ("It would not start", "failed"),
        "unknown": ("Not decided", "warning"),
    }
    title, kind = words.get(check.verdict, (check.verdict, ""))
    release = f" (SGLang {check.sglang_version})" if check.sglang_version else ""
    yield Said(f"{title}{release}", kind=kind)
    yield Said("There is no log: this is what the launch command lets foresee.", kind="muted")
    for problem in check.problems:
        yield Said(problem.title, head=problem.rule or "", kind="title" if problem.decisive else "bold")
        yield Said(problem.cause)
        if problem.unknown:
            yield Said(", ".join(problem.unknown), head="Hangs on")
        if problem.rule:
            yield Rule(problem.rule, f"All about {problem.rule}")
    if check.problems:
        yield Go("fix", "Fix the command (4)")
    else:
        yield Go("launch", "Launch it and watch")
    for note in check.notes:
        yield Said(note, head="Note", kind="muted")


def parts_of_errors(errors: Sequence[str]) -> Iterator[Part]:
    """Where a log could not be diagnosed."""
    yield Said("The log could not be diagnosed.", kind="failed")
    for error in errors:
        yield Said(mask_secrets(safe(error)))
    yield Go("start", "Open another log (1)")
    yield Go("log", "Look into this one (3)")


class _Page:
    def __init__(self, report: Report) -> None:
        self.report = report
        page = TextPage(
            report, DEFAULT_WIDTH, False, True
        )  # how the terminal's page says it, so says this one
        self.clean, self.files = page.clean, page.files
        self.stage, self.release, self.sentence = page.stage, page.release, page.sentence
        self.came_to_its_end = page.came_to_its_end

    # -- no diagnosis ----------------------------------------------------------------------------------
    def without_diagnosis(self) -> Iterator[Part]:
        report = self.report
        if report.outcome == "ready" and report.ended is not None:
            said = self.came_to_its_end()
            yield Said(f"{'Stopped' if report.ended.sign else 'Ended'}{self.release()}", kind="warning")
            yield Said(f"{said[:1].upper()}{said[1:]}.")
            yield self.place(report.ended.line)
        elif report.outcome == "ready":
            n = len(report.findings)
            rest = f", but {n} thing{'s do' if n > 1 else ' does'} not work as wanted." if n else "."
            yield Said(f"Ready{self.release()}", kind="success")
            yield Said(f"The server came up{rest}" + ("" if n else " Nothing is wrong in this log."))
        elif report.outcome == "empty":
            yield Said("Nothing to diagnose", kind="warning")
            yield Said(f"No launch of SGLang is seen in {', '.join(self.files) or 'the log'}.")
            yield Said("Was the server's output written to another file? Give the server's own log.")
            yield Go("start", "Look for other logs")
            yield Go("log", "Read the log")
        elif report.stop is not None:
            yield from self.stopped(report.stop)
        elif report.outcome == "unfinished":
            yield Said(f"Unfinished{self.release()}", kind="warning")
            yield Said(f"The log ends {self.stage()}, with neither an error nor a ready server.")
            yield Said(
                "It may still be starting, hang, have been killed from outside, or the log may be cut. If it is "
                "still running, read it again later (F5); if it is gone, give the whole log and what the shell, "
                "container or scheduler said at its end."
            )
            yield Go("log", "Read its end")
        else:
            yield Said(f"Failed{self.release()} {self.stage()}", kind="failed")

    def stopped(self, stop: Stop) -> Iterator[Part]:
        """A log that just stops."""
        words = StopWords(stop, self.clean, self.files, self.stage(), self.report.ended)
        headline = words.headline()
        yield Said(f"{words.word.capitalize()}{self.release()}", kind="warning")
        yield Said(f"{headline[:1].upper()}{headline[1:]}.")
        yield Said(words.first())
        if stop.last is not None:
            yield Said(f"{words.sign(stop.last)}.", head="Last sign of life")
            yield self.place(stop.last)
        for head, text in words.facts(sign=False):
            yield Said(f"{text}.", head=head)
        causes = words.causes()
        if causes:
            yield Said(words.heading(), kind="title")
        for number, cause in enumerate(causes, 1):
            yield Said(cause.title, head=str(number), kind="bold")
            if cause.seen:
                yield Said(f"{cause.seen}.", head="Seen", close=True)
            for line in dict.fromkeys(cause.lines):
                if stop.last is None or line.key != stop.last.key:
                    yield self.place(line)
            yield Said(f"{cause.tell}.", head="Look", close=True)
            yield Said(f"{cause.do}.", head="Then", close=True)
            if cause.open:
                yield Said(f"{cause.open}.", head="Would decide", kind="muted", close=True)
        if end := words.end():
            yield Said(end)
        if not stop.ended:
            yield Go("log", "Read its end; F5 reads it again")

    # -- one diagnosis ---------------------------------------------------------------------------------
    def failed(self, at: int) -> Iterator[Part]:
        diagnoses = self.report.diagnoses
        diagnosis = diagnoses[at]
        yield Said(f"Failed{self.release()} {self.stage()}", kind="failed")
        if len(diagnoses) > 1:
            for i, each in enumerate(diagnoses):
                yield Choice(i, self.choice(each), i == at)
        yield Said(
            self.sentence(diagnosis.title),
            head=diagnosis.rule or "Cause not known",
            kind="title",
        )
        if diagnosis.rule is not None:
            yield Said(self.sureness(diagnosis), kind="muted")
        yield from self.evidence(diagnosis)
        yield Said(self.clean.text(diagnosis.cause), head="Why" if diagnosis.rule else "")
        if diagnosis.misleading:
            yield Said(self.clean.text(diagnosis.misleading), head="Not the cause")
        if diagnosis.consequences:
            yield from self.consequences(diagnosis.consequences)
        for number, step in enumerate(diagnosis.next_steps, 1):
            yield Said(self.sentence(step), head="Look next" if number == 1 else "then")
        yield from self.fixes(diagnosis)
        for url in diagnosis.references:
            yield Said(self.clean.line(url), head="See", kind="muted")
        if diagnosis.rule is not None:
            yield Rule(diagnosis.rule, f"All about {diagnosis.rule}")

    def choice(self, diagnosis: Diagnosis) -> str:
        rule = diagnosis.rule or "cause not known"
        return f"{rule}  {self.sentence(diagnosis.title)} ({line_numbers([diagnosis.root], self.files)})"

    def sureness(self, diagnosis: Diagnosis) -> str:
        word = (
            "certain"
            if diagnosis.confidence >= 0.9
            else "likely"
            if diagnosis.confidence >= 0.55
            else "possible"
        )
        ranks = ranks_note([self.clean.line(r) for r in diagnosis.ranks])
        return f"{word}, {diagnosis.confidence:.0%}" + (f"  ·  rank {ranks}" if ranks else "")

    def evidence(self, diagnosis: Diagnosis) -> Iterator[Part]:
        root = diagnosis.root
        others = {x.key: x for x in (*diagnosis.chain, *diagnosis.evidence) if x.key != root.key}
        for line in sorted([root, *others.values()], key=lambda x: x.key):
            is_root = line.key == root.key
            yield self.place(line, diagnosis.marks if is_root else (), root=is_root)

    def place(self, line: Line, marks: Sequence[str] = (), *, root: bool = False) -> Place:
        label = self.files[line.file].rpartition("/")[2] if len(self.files) > 1 else ""
        return Place(
            line.file,
            line.number,
            self.clean.line(line.body or line.text),
            tuple(self.clean.line(m) for m in marks),
            root,
            label,
        )

    def consequences(self, lines: Sequence[Line]) -> Iterator[Part]:
        n = len(lines)
        names = labels(self.clean.line(x.body or x.text) for x in lines)
        follows = "1 line that follows" if n == 1 else f"{n} lines that follow"
        yield Said(f"{follows} from it: {names} ({line_numbers(lines, self.files)}).", head="Then")

    def fixes(self, diagnosis: Diagnosis) -> Iterator[Part]:
        for number, fix in enumerate(diagnosis.fixes, 1):
            head = "Fix" if len(diagnosis.fixes) == 1 else f"Fix {number}"
            yield Said(
                f"{self.sentence(fix.title)} ({fix.safety})", head=head, kind=fix.safety, close=number > 1
            )
        if any(fix.command for fix in diagnosis.fixes):
            yield Go("fix", "See the fixed command (4)")
        elif diagnosis.fixes:
            yield Go("fix", "See what to do (4)")

    # -- the rest --------------------------------------------------------------------------------------
    def findings(self) -> Iterator[Part]:
        if self.report.findings:
            yield Said("Works, but not as wanted", kind="title")
        for finding in self.report.findings:
            yield from self.finding(finding)

    def finding(self, finding: Finding) -> Iterator[Part]:
        yield Said(self.sentence(finding.title), head=finding.rule, kind="finding")
        yield self.place(finding.line, finding.marks)
        yield Said(self.clean.text(finding.cause), close=True)
        for fix in finding.fixes[:1]:
            yield Said(f"{self.sentence(fix.title)} ({fix.safety})", head="Fix", kind=fix.safety, close=True)
        yield Rule(finding.rule, f"All about {finding.rule}")

    def notes(self) -> Iterator[Part]:
        for note in self.report.notes:
            yield Said(self.clean.text(note), head="Note", kind="muted")
