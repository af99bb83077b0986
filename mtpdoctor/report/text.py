"""The report for people, in a terminal: the cause first, then the proof of it, then what to type."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mtpdoctor.diagnose.types import Diagnosis, Finding, Fix, Report
from mtpdoctor.launch.types import Edit
from mtpdoctor.log.types import Line
from mtpdoctor.redact import MASK
from mtpdoctor.report.clean import Cleaner
from mtpdoctor.report.command import diff, wrapped
from mtpdoctor.report.evidence import excerpt, shorten
from mtpdoctor.report.fold import labels, line_numbers, ranks_note
from mtpdoctor.report.style import MIN_WIDTH, Style
from mtpdoctor.text import width as columns_of
from mtpdoctor.text import wrap

STAGES = {
    "env": "before SGLang starts",
    "import": "importing SGLang",
    "argparse": "reading the command line",
    "server_args": "checking the server arguments",
    "config": "reading the model's config",
    "tokenizer": "loading the tokenizer",
    "dist_init": "setting up the GPUs and ranks",
    "weights": "loading the weights",
    "memory_pool": "sizing the memory pool",
    "graph_capture": "capturing CUDA graphs",
    "warmup": "warming up",
    "serving": "serving",
}
PROOF = {
    "none": "none.",
    "parsed": "its flags and values exist in this release.",
    "rules": "its flags and values exist in this release; nothing known stands in its way.",
    "sglang": "SGLang's own argument checks accept it.",
}
_SAFETY = {"safe": "green", "risky": "magenta", "manual": "yellow"}
PROSE_WIDTH = 100  # longer lines of prose are hard to read, however wide the terminal
ROOT_ROWS = 4
SHORT = 3  # evidence lines, fixes, further causes, findings shown without --verbose


def render(report: Report, *, width: int = 80, color: bool = False, verbose: bool = False) -> str:
    """The report as text that ends in a line feed.

    No row is wider than ``width`` columns (at least 40), but for commands to paste: those break only
    between words. Without ``color`` there is no escape sequence in it, whatever the log holds.
    """
    return "\n".join(Page(report, max(width, MIN_WIDTH), color, verbose).rows()) + "\n"


class Page:
    """The parts of a report page; ``check_text`` puts them together another way."""

    def __init__(self, report: Report, width: int, color: bool, verbose: bool) -> None:
        self.report = report
        self.width = width
        self.verbose = verbose
        self.style = Style(color)
        self.clean = Cleaner(report)
        self.files = [self.clean.line(name) for name in report.files]

    # -- the page ------------------------------------------------------------------------------
    def rows(self) -> Iterator[str]:
        report = self.report
        if report.outcome == "failed" and report.diagnoses:
            yield from self.failed(report.diagnoses)
        else:
            yield from self.headline()
        if report.findings:
            yield from self.findings(report.findings)
        yield from self.remarks()

    def headline(self) -> Iterator[str]:
        """Outcome, release and stage of a launch that has no diagnosis."""
        outcome = self.report.outcome
        if outcome == "ready" and self.report.ended is not None:
            word = "STOPPED" if self.report.ended.sign else "ENDED"
            yield from self.titled(f"{word}{self.release()}", "yellow", f"{self.came_to_its_end()}.")
        elif outcome == "ready":
            n = len(self.report.findings)
            rest = (
                f", but {n} thing{'s do' if n > 1 else ' does'} not work as wanted."
                if n
                else "; nothing is wrong."
            )
            yield from self.titled(f"READY{self.release()}", "green", "the server came up" + rest)
        elif outcome == "empty":
            name = ", ".join(self.files) or "the log"
            yield from self.titled("NOTHING TO DIAGNOSE", "yellow", f"no launch of SGLang is seen in {name}.")
        elif self.report.stop is not None:
            from mtpdoctor.report.stop_text import stop_rows

            yield from stop_rows(self, self.report.stop)
        elif outcome == "unfinished":
            text = f"the log ends {self.stage()}, with neither an error nor a ready server."
            yield from self.titled(f"UNFINISHED{self.release()}", "yellow", text)
            yield from self.prose(
                "It may still be starting, hang, have been killed from outside, or the log may be cut. If it "
                "is still running, look again later; if it is gone, give the whole log and what the shell, "
                "container or scheduler said at its end.",
                indent="",
            )
        else:
            yield from self.titled(f"FAILED{self.release()}", "red", f"{self.stage()}.")

    def came_to_its_end(self) -> str:
        """Of a server that was ready: what ended it, and whether it had worked as wanted."""
        from mtpdoctor.report.stop_words import ended_words  # few logs show their end

        assert self.report.ended is not None
        n = len(self.report.findings)
        rest = f"{n} thing{'s did' if n > 1 else ' did'} not work as wanted" if n else "nothing was wrong"
        return f"{ended_words(self.report.ended, self.files, self.stage())}; {rest}"

    def failed(self, diagnoses: Sequence[Diagnosis]) -> Iterator[str]:
        first = diagnoses[0]
        yield from self.titled(f"FAILED{self.release()}", "red", self.stage())
        yield from self.titled(self.rule_of(first), "bold", self.sentence(first.title))
        yield ""
        yield from self.evidence(first)
        yield ""
        yield from self.why(first)
        if self.report.memory is not None:
            from mtpdoctor.report.memory_text import memory_rows

            yield ""
            yield from memory_rows(self.report.memory, width=self.width, style=self.style)
        yield from self.fixes(first.fixes)
        if first.next_steps:
            yield from self.next_steps(first.next_steps)
        if len(diagnoses) > 1:
            yield from self.further(diagnoses[1:])

    def stage(self) -> str:
        words = STAGES.get(self.report.stage)
        return f"at {self.report.stage} ({words})" if words else f"at {self.clean.line(self.report.stage)}"

    def release(self) -> str:
        version = self.report.sglang_version
        shown = version or self.report.release_range
        return f" (SGLang {self.clean.line(shown)})" if shown else " (SGLang release not known)"

    # -- one diagnosis -------------------------------------------------------------------------
    def rule_of(self, diagnosis: Diagnosis) -> str:
        if diagnosis.rule is None:
            return "Cause not known" if diagnosis.title.endswith("no rule knows") else "No rule knows it"
        rule = self.clean.line(diagnosis.rule)
        if diagnosis.confidence >= 0.8:
            return rule
        word = "likely" if diagnosis.confidence >= 0.55 else "possible"
        return f"{rule} ({word}, {diagnosis.confidence:.0%})"

    def evidence(self, diagnosis: Diagnosis) -> Iterator[str]:
        root = diagnosis.root
        others = [x for x in (*diagnosis.chain, *diagnosis.evidence) if x.key != root.key]
        others = list({x.key: x for x in others}.values())
        shown = others if self.verbose else others[:SHORT]
        lines = sorted([root, *shown], key=lambda x: x.key)
        gutter = max(len(str(x.number)) for x in lines)
        file = None
        for line in lines:
            if line.file != file:
                file = line.file
                place = f"{self.place(line)}:{(root if root.file == file else line).number}"
                ranks = ranks_note([self.clean.line(r) for r in diagnosis.ranks]) if root.file == file else ""
                yield self.style("cyan", self.fitted("    " + place + (f"  ({ranks})" if ranks else "")))
            is_root = line.key == root.key
            yield from excerpt(
                line.number,
                self.clean.line(line.body or line.text),
                [self.clean.line(m) for m in diagnosis.marks] if is_root else (),
                gutter=gutter,
                columns=self.width,
                rows=ROOT_ROWS if is_root else 1,
                style=self.style,
                root=is_root,
            )
        if len(others) > len(shown):
            yield self.style("dim", f"    {'':>{gutter}} | and {len(others) - len(shown)} more (--verbose)")

    def why(self, diagnosis: Diagnosis) -> Iterator[str]:
        if diagnosis.rule is None:
            yield from self.prose(self.clean.text(diagnosis.cause), indent="")
        else:
            yield from self.titled("Why", "bold", self.clean.text(diagnosis.cause))
        if diagnosis.misleading:
            yield from self.titled("Not the cause", "bold", self.clean.text(diagnosis.misleading))
        if diagnosis.consequences:
            yield from self.consequences(diagnosis.consequences)
        if self.verbose:
            for url in diagnosis.references:
                yield from self.titled("See", "bold", self.clean.line(url))

    def consequences(self, lines: Sequence[Line]) -> Iterator[str]:
        n = len(lines)
        names = labels(self.clean.line(x.body or x.text) for x in lines)
        numbers = line_numbers(lines, self.files, most=10_000 if self.verbose else 6)
        follows = "1 line that follows" if n == 1 else f"{n} lines that follow"
        yield from self.titled("Then", "bold", f"{follows} from it ({names}): {numbers}")
        if self.verbose:
            gutter = max(len(str(x.number)) for x in lines)
            for x in lines:
                text = self.clean.line(x.body or x.text)
                yield from excerpt(
                    x.number, text, (), gutter=gutter, columns=self.width, rows=1, style=self.style
                )

    # -- fixes ---------------------------------------------------------------------------------
    def fixes(self, fixes: Sequence[Fix]) -> Iterator[str]:
        numbered = list(enumerate(fixes, 1))
        # A safe fix is never hidden behind others.
        shown = [(n, f) for n, f in numbered if self.verbose or n <= SHORT or f.safety == "safe"]
        best = next((f for _, f in shown if f.command), None)
        for number, fix in shown:
            yield ""
            name = "Fix" if len(fixes) == 1 else f"Fix {number}"
            yield from self.fix(fix, name, full=self.verbose or fix is best)
        if more := len(fixes) - len(shown):
            yield ""
            yield self.style("dim", f"{more} more fix{'es' if more > 1 else ''}: --verbose")

    def fix(self, fix: Fix, name: str, *, full: bool) -> Iterator[str]:
        safety = self.style(_SAFETY.get(fix.safety, "bold"), fix.safety)
        head = f"{name} ({fix.safety}): "
        rows = wrap(self.sentence(fix.title), self.prose_width() - columns_of(head))
        yield f"{self.style('bold', name)} ({safety}): {self.style('bold', rows[0])}"
        yield from (f"{' ' * 2}{self.style('bold', row)}" for row in self.rewrapped(rows, 2))
        if fix.why:
            yield from self.prose(self.clean.text(fix.why))
        if fix.risk:
            yield from self.titled("  Risk", "magenta", self.clean.text(fix.risk), indent="  ")
        if fix.diff and full:
            yield ""
            yield from self.file_diff(self.clean.text(fix.diff))
            yield ""
            yield from self.titled("Proof", "bold", PROOF.get(fix.verified, fix.verified), indent="  ")
        else:
            yield from self.changes(fix)
        command = self.clean.text(fix.command) if fix.command and not fix.diff else None
        if full and command:
            yield ""
            yield from wrapped(command, self.width)
            yield ""
            if MASK in command:
                yield from self.prose(f"A secret is hidden here: put your own in place of {MASK}.")
            yield from self.titled("Proof", "bold", PROOF.get(fix.verified, fix.verified), indent="  ")
        for run in fix.run:
            lines = wrapped(self.clean.text(run), self.width - 4)
            yield f"  {self.style('dim', '$')} {lines[0] if lines else ''}"
            yield from (f"    {line}" for line in lines[1:])
        for note in fix.notes:
            yield from self.titled("  Note", "bold", self.clean.text(note), indent="  ")

    def file_diff(self, diff: str) -> Iterator[str]:
        """A unified diff as it stands: it can be given to patch."""
        for line in diff.splitlines():
            header = line.startswith(("---", "+++"))
            kind = "bold" if header else {"+": "green", "-": "removed", "@": "cyan"}.get(line[:1])
            yield self.style(kind, line) if kind else line

    def changes(self, fix: Fix) -> Iterator[str]:
        edits = [Edit(e.op, self.clean.line(e.name), self.clean.value(e)) for e in fix.edits]
        for sign, unit in diff(self.clean.maybe(self.report.command), self.clean.maybe(fix.command), edits):
            row = shorten(" ".join(f"{sign} {unit}".split()), (), self.width - 4)
            yield "    " + self.style("green" if sign == "+" else "removed", row)

    # -- the rest ------------------------------------------------------------------------------
    def next_steps(self, steps: Sequence[str]) -> Iterator[str]:
        yield ""
        yield self.style("bold", "Look next")
        for number, step in enumerate(steps, 1):
            yield from self.item(f"{number}.", self.sentence(step))

    def further(self, diagnoses: Sequence[Diagnosis]) -> Iterator[str]:
        if self.verbose:
            for diagnosis in diagnoses:
                yield ""
                yield from self.titled(
                    f"Also: {self.rule_of(diagnosis)}", "bold", self.sentence(diagnosis.title)
                )
                yield from self.evidence(diagnosis)
                yield from self.why(diagnosis)
                yield from self.fixes(diagnosis.fixes)
            return
        yield ""
        yield self.style("bold", "Also failing, apart from this")
        for diagnosis in diagnoses[:SHORT]:
            where = line_numbers([diagnosis.root], self.files)
            yield from self.item(
                "-", f"{self.rule_of(diagnosis)}: {self.sentence(diagnosis.title)} ({where})"
            )
            if diagnosis.rule is None:
                text = self.clean.line(diagnosis.root.body or diagnosis.root.text)
                yield "    " + shorten(" ".join(text.split()), (), self.width - 4)
        if len(diagnoses) > SHORT:
            yield self.style("dim", f"  and {len(diagnoses) - SHORT} more (--verbose)")

    def findings(self, findings: Sequence[Finding]) -> Iterator[str]:
        if self.report.outcome == "failed" and not self.verbose:
            findings = findings[:SHORT]
        yield ""
        yield self.style("bold", "Works, but not as wanted")
        for finding in findings:
            rule, where = self.clean.line(finding.rule), line_numbers([finding.line], self.files)
            yield from self.item("-", f"{rule}: {self.sentence(finding.title)} ({where})")
            if self.report.outcome == "ready" or self.verbose:
                text = self.clean.line(finding.line.body or finding.line.text)
                marks = [self.clean.line(m) for m in finding.marks]
                yield "    " + self.style("dim", shorten(" ".join(text.split()), marks, self.width - 4))
                yield from self.prose(self.clean.text(finding.cause), indent="    ")
            for fix in finding.fixes if self.verbose else finding.fixes[:1]:
                yield from self.prose(f"{self.sentence(fix.title)} ({fix.safety})", indent="    ")
                yield from self.changes(fix)

    def remarks(self) -> Iterator[str]:
        report = self.report
        remarks = [self.clean.text(n) for n in report.notes]
        if report.attempts > 1:
            remarks.append(f"The log holds {report.attempts} launches; this is about the last one.")
        if remarks:
            yield ""
        for remark in remarks:
            yield from self.titled("Note", "bold", remark)
        first = report.diagnoses[0] if report.outcome == "failed" and report.diagnoses else None
        rule = first.rule if first else report.findings[0].rule if report.findings else None
        if rule:
            more = "" if self.verbose else "; --verbose shows all evidence and fixes"
            yield ""
            yield from self.titled("More", "bold", f"mtpdoctor explain {self.clean.line(rule)}{more}")

    # -- rows ----------------------------------------------------------------------------------
    def prose_width(self) -> int:
        return min(self.width, PROSE_WIDTH)

    def sentence(self, text: str) -> str:
        return " ".join(self.clean.text(text).split())

    def prose(self, text: str, indent: str = "  ") -> Iterator[str]:
        for row in wrap(text, self.prose_width() - len(indent)):
            yield (indent + row).rstrip()

    def titled(self, title: str, name: str, text: str, indent: str = "") -> Iterator[str]:
        """``Title: text`` with the title styled and further rows indented by two."""
        rows = wrap(f"{title.strip()}: {text}", self.prose_width() - len(indent) - 2)
        lead = title.strip() + ":"
        first = rows[0]
        styled = (
            self.style(name, lead) + first[len(lead) :] if first.startswith(lead) else self.style(name, first)
        )
        yield indent + styled
        yield from (f"{indent}  {row}".rstrip() for row in rows[1:])

    def item(self, bullet: str, text: str) -> Iterator[str]:
        lead = f"  {bullet} "
        for i, row in enumerate(wrap(text, self.prose_width() - len(lead))):
            yield (lead if i == 0 else " " * len(lead)) + row

    def rewrapped(self, rows: list[str], indent: int) -> list[str]:
        return wrap(" ".join(rows[1:]), self.prose_width() - indent) if len(rows) > 1 else []

    def place(self, line: Line) -> str:
        return self.files[line.file] if 0 <= line.file < len(self.files) else "log"

    def fitted(self, text: str) -> str:
        return text if columns_of(text) <= self.width else shorten(text, (), self.width)
