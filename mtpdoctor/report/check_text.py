"""The answer of ``check`` for people: the verdict in one line, then each problem, then what is lost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from mtpdoctor.diagnose.check import CheckReport, Problem
from mtpdoctor.kb.fact_names import fact_words
from mtpdoctor.release import release_or_none
from mtpdoctor.report.check_json import as_report
from mtpdoctor.report.command import wrapped
from mtpdoctor.report.rows import and_
from mtpdoctor.report.style import MIN_WIDTH
from mtpdoctor.report.text import SHORT, STAGES, Page
from mtpdoctor.sglang.arguments import default_arguments
from mtpdoctor.text import cut

_FROM = {
    "rules": "by the rules; SGLang itself was not asked (--ask-sglang)",
    "sglang": "by SGLang's own argument checks, and the rules for what comes after them",
}
_GIVE = (
    ("release", "the SGLang release", "--sglang RELEASE"),
    ("host.", "the host's GPUs", "--gpu 4xsm90@80, or --host FILE"),
    ("model.", "the model's config", "--model DIR"),
)


def render_check(report: CheckReport, *, width: int = 80, color: bool = False, verbose: bool = False) -> str:
    """The report as text that ends in a line feed; widths as in ``report.text.render``."""
    return "\n".join(_CheckPage(report, max(width, MIN_WIDTH), color, verbose).rows()) + "\n"


class _CheckPage(Page):
    def __init__(self, check: CheckReport, width: int, color: bool, verbose: bool) -> None:
        super().__init__(as_report(check), width, color, verbose)
        self.check = check
        self.decisive = [p for p in check.problems if p.decisive]
        self.open = [p for p in check.problems if p.severity == "fatal" and not p.certain]
        self.losses = [p for p in check.problems if p.severity != "fatal" and p.certain]

    def rows(self) -> Iterator[str]:
        yield from self.verdict()
        for number, problem in enumerate(self.decisive if self.verbose else self.decisive[:SHORT], 1):
            yield ""
            yield from self.problem(problem, number)
        if len(self.decisive) > SHORT and not self.verbose:
            yield ""
            yield self.style("dim", f"and {len(self.decisive) - SHORT} more that stop it (--verbose)")
        yield from self.fixed()
        yield from self.unknown()
        yield from self.silent(self.losses)
        if self.verbose:
            yield from self.warnings()
            yield from self.resolved()
        yield from self.notes()

    def verdict(self) -> Iterator[str]:
        check = self.check
        how = _FROM[check.source]
        if check.verdict == "reject":
            stage = self.report.stage if self.decisive else "server_args"
            text = f"it would stop at {stage} ({STAGES.get(stage, stage)}); {how}."
            yield from self.titled(f"WOULD NOT START{self.release()}", "red", text)
        elif check.verdict == "accept":
            lost = len([p for p in self.losses if p.severity == "degrades"])
            rest = f", but {lost} thing{'s are' if lost > 1 else ' is'} silently lost" if lost else ""
            yield from self.titled(
                f"WOULD START{self.release()}", "green", f"nothing fatal is foreseen{rest}; {how}."
            )
        else:
            yield from self.titled(f"NOT DECIDED{self.release()}", "yellow", f"{self.missing()}; {how}.")

    def problem(self, problem: Problem, number: int) -> Iterator[str]:
        name = self.clean.line(problem.rule) if problem.rule else "No rule"
        head = name if len(self.decisive) == 1 else f"{number}. {name}"
        at = f" (at {problem.stage})" if len(self.decisive) > 1 else ""
        yield from self.titled(head, "bold", self.sentence(problem.title) + at)
        if problem.said and problem.source == "sglang":
            yield from self.titled("  SGLang says", "bold", self.sentence(problem.said), indent="  ")
        yield from self.titled("  Why", "bold", self.sentence(problem.cause), indent="  ")
        if self.verbose:
            for url in problem.references:
                yield from self.titled("  See", "bold", self.clean.line(url), indent="  ")
        yield from self.fixes(problem.fixes)

    def fixed(self) -> Iterator[str]:
        """The command with every safe fix, where no single fix above is that command already."""
        fixed = self.check.fixed
        if fixed is None:
            if self.decisive and any(p.fixes for p in self.decisive) and len(self.decisive) > 1:
                yield ""
                yield from self.prose("No set of safe fixes makes it start: choose by hand.", indent="")
            return
        shown = self.decisive if self.verbose else self.decisive[:SHORT]
        if any(f.command == fixed.line for p in shown for f in p.fixes[:SHORT]):
            return
        yield ""
        yield self.style("bold", "With every safe fix")
        yield ""
        yield from wrapped(self.clean.text(fixed.line), self.width)

    def missing(self) -> str:
        """Which facts are not known, in words."""
        names = [n for p in self.open for n in p.unknown]
        if self.check.sglang_version is None:
            names.append("release")
        kinds = [what for key, what, _ in _GIVE if any(n == key or n.startswith(key) for n in names)]
        others = [n for n in names if not any(n == key or n.startswith(key) for key, _, _ in _GIVE)]
        if not kinds:
            kinds = [fact_words(n) for n in dict.fromkeys(others)][:SHORT]
        if not kinds:
            return "SGLang gave no answer"
        return f"it depends on {and_(kinds)}, not known here"

    def unknown(self) -> Iterator[str]:
        if not self.open and self.check.sglang_version is not None:
            return
        names = {n for p in self.open for n in p.unknown}
        if self.check.sglang_version is None:
            names.add("release")
        give = [how for key, _, how in _GIVE if any(n == key or n.startswith(key) for n in names)]
        yield ""
        if give:
            yield from self.titled("Give", "bold", "; ".join(give))
        if not self.open or self.check.sglang_version is None:
            return
        yield self.style("bold", "It may stop here")
        shown = self.open if self.verbose else self.open[:SHORT]
        for problem in shown:
            facts = and_([fact_words(n) for n in problem.unknown][:4])
            text = (
                f"{problem.rule}: {self.sentence(problem.title)} (at {problem.stage}; it depends on {facts})"
            )
            yield from self.item("-", text)
        if len(self.open) > len(shown):
            yield self.style("dim", f"  and {len(self.open) - len(shown)} more (--verbose)")

    def silent(self, losses: Sequence[Problem]) -> Iterator[str]:
        shown = [p for p in losses if p.severity == "degrades" or self.verbose]
        if not shown:
            return
        yield ""
        yield self.style("bold", "Works, but not as wanted")
        for problem in shown:
            yield from self.item("-", f"{problem.rule}: {self.sentence(problem.title)}")
            yield from self.prose(self.sentence(problem.cause), indent="    ")
            for fix in problem.fixes if self.verbose else problem.fixes[:1]:
                yield from self.prose(f"{self.sentence(fix.title)} ({fix.safety})", indent="    ")
                yield from self.changes(fix)

    def warnings(self) -> Iterator[str]:
        if self.check.warnings:
            yield ""
            yield self.style("bold", "SGLang warns")
            for warning in self.check.warnings:
                yield from self.item("-", self.sentence(warning))

    def resolved(self) -> Iterator[str]:
        """What would be in force and was typed, or is not what the release has by default."""
        defaults = default_arguments(release_or_none(self.check.sglang_version or ""))
        rows = [
            (name, self.shown(self.check.typed.get(name)), self.shown(value))
            for name, value in sorted(self.check.resolved.items())
            if name in self.check.typed or str(value) != str(defaults.get(name))
        ]
        if not rows:
            return
        yield ""
        yield self.style("bold", "In force, as far as it is known")
        wide = max(len(name) for name, _, _ in rows)
        for name, typed, value in rows:
            changed = typed and typed != value
            text = f"{value}  (typed: {typed})" if changed else value
            row = cut(f"  {name:<{wide}}  {text}", self.width)[0]
            yield self.style("yellow", row) if changed else row

    def shown(self, value: Any) -> str:
        return "" if value is None else self.clean.line(str(value))

    def notes(self) -> Iterator[str]:
        if self.check.notes:
            yield ""
        for note in self.check.notes:
            yield from self.titled("Note", "bold", self.clean.text(note))
        rule = next((p.rule for p in (*self.decisive, *self.losses) if p.rule), None)
        if rule:
            more = "" if self.verbose else "; --verbose shows all fixes and the resolved arguments"
            yield ""
            yield from self.titled("More", "bold", f"mtpdoctor explain {self.clean.line(rule)}{more}")
