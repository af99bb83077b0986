"""What the formats to pass on (Markdown, HTML, SARIF) show of a report, cleaned: they differ in mark-up only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from mtpdoctor.diagnose.types import Diagnosis, Finding, Fix, Report
from mtpdoctor.launch.types import Edit
from mtpdoctor.log.types import Line
from mtpdoctor.release import release_or_none
from mtpdoctor.report.command import diff, wrapped
from mtpdoctor.report.evidence import mark_spans, shorten
from mtpdoctor.report.fold import labels, line_numbers, ranks_note
from mtpdoctor.report.stop_words import StopWords
from mtpdoctor.report.style import DEFAULT_WIDTH
from mtpdoctor.report.text import PROOF, Page

LINE = 1500  # characters of one log line; the decisive words stay
COMMAND_WIDTH = 96  # columns a command is wrapped at
UNKNOWN_RULE = "Cause not known"


@dataclass(frozen=True, slots=True)
class Row:
    """One log line as evidence. ``marks``: where the decisive words stand in ``text``."""

    place: str
    number: int
    text: str
    root: bool
    marks: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Headline:
    """``tone``: failed | ready | unfinished | empty."""

    tone: str
    word: str  # FAILED
    text: str  # of the stage, or what is known


class View:
    """The parts of one report as plain, safe, masked text."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self.page = Page(report, DEFAULT_WIDTH, False, True)
        self.clean = self.page.clean
        self.files = self.page.files

    @property
    def first(self) -> Diagnosis | None:
        """The root cause of a failed launch."""
        return self.report.diagnoses[0] if self.report.outcome == "failed" and self.report.diagnoses else None

    @cached_property
    def stop(self) -> StopWords | None:
        """What is said of a log that just stops."""
        stop = self.report.stop
        if stop is None:
            return None
        return StopWords(stop, self.clean, self.files, self.stage, self.report.ended)

    @property
    def release(self) -> str | None:
        shown = self.report.sglang_version or self.report.release_range
        return self.clean.line(shown) if shown else None

    @property
    def stage(self) -> str:
        return self.page.stage()

    def title(self) -> str:
        """One line to find the report again by."""
        named = f"SGLang {self.release}" if self.release else "SGLang"
        if self.first is not None:
            return f"{named} does not start: {self.sentence(self.first.title)}"
        if self.report.stop is not None and self.report.stop.answers is not None:
            return f"{named} answers requests"
        if self.report.ended is not None and self.report.ended.sure:
            was = "was ready and " if self.report.outcome == "ready" else ""
            return f"{named} {was}{'was stopped' if self.report.ended.sign else 'has ended'}"
        says = {
            "ready": "starts",
            "unfinished": "neither fails nor gets ready",
            "empty": "no launch in the log",
        }
        return f"{named} {says.get(self.report.outcome, 'does not start')}"

    def headline(self) -> Headline:
        outcome = self.report.outcome
        if outcome == "ready" and self.report.ended is not None:
            word = "STOPPED" if self.report.ended.sign else "ENDED"
            return Headline("ready", word, self.page.came_to_its_end())
        if outcome == "ready":
            n = len(self.report.findings)
            rest = f"{n} thing{'s do' if n > 1 else ' does'} not work as wanted" if n else "nothing is wrong"
            return Headline("ready", "READY", f"the server came up; {rest}")
        if outcome == "empty":
            return Headline("empty", "NOTHING TO DIAGNOSE", "no launch of SGLang is seen in the log")
        if self.stop is not None:
            return Headline("unfinished", self.stop.word, self.stop.headline())
        if outcome == "unfinished":
            text = f"the log ends {self.stage}, with neither an error nor a ready server"
            return Headline("unfinished", "UNFINISHED", text)
        return Headline("failed", "FAILED", self.stage)

    # -- one diagnosis -------------------------------------------------------------------------
    def rule(self, diagnosis: Diagnosis) -> str:
        return self.page.rule_of(diagnosis)

    def ranks(self, diagnosis: Diagnosis) -> str:
        return ranks_note([self.clean.line(r) for r in diagnosis.ranks])

    def evidence(self, diagnosis: Diagnosis, most: int) -> tuple[list[Row], int]:
        """The root line and at most ``most`` others, in order; and how many are left out."""
        root = diagnosis.root
        others = {x.key: x for x in (*diagnosis.chain, *diagnosis.evidence) if x.key != root.key}
        shown = list(others.values())[:most]
        rows = [self.row(x, diagnosis) for x in sorted([root, *shown], key=lambda x: x.key)]
        return rows, len(others) - len(shown)

    def row(self, line: Line, diagnosis: Diagnosis | None = None) -> Row:
        is_root = diagnosis is not None and line.key == diagnosis.root.key
        marks = [self.clean.line(m) for m in diagnosis.marks] if diagnosis and is_root else []
        return self._row(line, is_root, marks)

    def finding(self, finding: Finding) -> Row:
        return self._row(finding.line, False, [self.clean.line(m) for m in finding.marks])

    def line(self, line: Line) -> Row:
        """A line that is no root cause."""
        return self._row(line, False, ())

    def _row(self, line: Line, is_root: bool, marks: Sequence[str]) -> Row:
        text = " ".join(self.clean.line(line.body or line.text).split())
        text = shorten(text, marks, LINE)
        spans: list[tuple[int, int]] = []
        for a, b in sorted(mark_spans(text, marks)):
            if not spans or a >= spans[-1][1]:
                spans.append((a, b))
        return Row(self.page.place(line), line.number, text, is_root, tuple(spans))

    def consequences(self, diagnosis: Diagnosis) -> str | None:
        """In one line: how many, of which kinds, where."""
        lines = diagnosis.consequences
        if not lines:
            return None
        names = labels(self.clean.line(x.body or x.text) for x in lines)
        n = len(lines)
        follows = "1 line follows" if n == 1 else f"{n} lines follow"
        return f"{follows} from it ({names}): {line_numbers(lines, self.files)}"

    def traceback(self, diagnosis: Diagnosis, most: int) -> list[str]:
        """The log's lines of the traceback that ends in the root line; the first ones give way."""
        if diagnosis.raised is None:
            return []
        lines = [self.clean.text(x.body or x.text)[:LINE] for x in diagnosis.raised.lines]
        if len(lines) > most:
            return [f"... {len(lines) - most} lines before", *lines[-most:]]
        return lines if len(lines) > 1 else []

    # -- fixes ---------------------------------------------------------------------------------
    def changes(self, fix: Fix) -> list[tuple[str, str]]:
        """("-" | "+", flag and value) of a fix whose command does not stand in a file."""
        edits = [Edit(e.op, self.clean.line(e.name), self.clean.value(e)) for e in fix.edits]
        before, after = self.clean.maybe(self.report.command), self.clean.maybe(fix.command)
        return diff(before, after, edits)

    def command(self, text: str | None) -> str | None:
        """A command to paste, masked, wrapped with backslashes."""
        return "\n".join(wrapped(self.clean.text(text), COMMAND_WIDTH)) if text else None

    def proof(self, fix: Fix) -> str:
        return PROOF.get(fix.verified, fix.verified)

    # -- the rest ------------------------------------------------------------------------------
    def facts(self, most: int = 150) -> list[tuple[str, str]]:
        """What is known of the launch; arguments only where they are not the release's defaults."""
        from mtpdoctor.sglang.arguments import default_arguments

        known = self.report.facts or {}
        defaults = default_arguments(release_or_none(self.report.sglang_version or ""))
        out: list[tuple[str, str]] = []
        for name, value in known.items():
            kind, _, dest = name.partition(".")
            if value is None or kind == "flag":
                continue
            if kind == "arg" and (not value or value == defaults.get(dest)):  # off, or as it comes
                continue
            text = self.clean.line(f"{name}={value!r}" if not isinstance(value, str) else f"{name}={value}")
            shown = text.removeprefix(f"{name}=")
            out.append((self.clean.line(name), shown if len(shown) <= 300 else shown[:300] + " ..."))
        return out[:most]

    def memory(self) -> str | None:
        """The table of the memory sum, where the cause is one of memory."""
        if self.report.memory is None:
            return None
        from mtpdoctor.report.memory_text import memory_rows
        from mtpdoctor.report.style import Style

        return "\n".join(memory_rows(self.report.memory, width=COMMAND_WIDTH, style=Style(False)))

    def notes(self) -> list[str]:
        notes = [self.sentence(n) for n in self.report.notes]
        if self.report.attempts > 1:
            notes.append(f"The log holds {self.report.attempts} launches; this is about the last one.")
        return notes

    def sentence(self, text: str) -> str:
        return self.page.sentence(text)
