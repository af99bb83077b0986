"""The report as SARIF 2.1.0: for code scanning, editors and everything else that reads results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mtpdoctor.diagnose.types import Diagnosis, Finding, Fix, Report
from mtpdoctor.launch.document import LaunchDocument
from mtpdoctor.redact import mask_values, secret_values
from mtpdoctor.report.markdown_text import fenced, prose
from mtpdoctor.report.sarif_fix import replacements
from mtpdoctor.report.sarif_parts import FINGERPRINT, UNKNOWN_RULE, Run, descriptor, line_region, uri_of
from mtpdoctor.report.view import Row, View
from mtpdoctor.triage.fingerprint import fingerprint_of, make

if TYPE_CHECKING:
    from mtpdoctor.kb.types import Rule

RELATED = 50  # lines of consequences
FRAMES = 100


def report_to_sarif(
    report: Report, rules: Mapping[str, Rule], launch_file: LaunchDocument | None = None
) -> dict[str, Any]:
    """The SARIF log as plain JSON values, every text safe and with secrets masked.

    ``rules``: the knowledge the diagnosis was made with (``Knowledge.by_id``), for fingerprints that are those
    of ``triage``. ``launch_file``: the file of ``--command-file``; the fixes are replacements in it.
    """
    made = _Report(View(report), rules, launch_file)
    for number, diagnosis in enumerate(report.diagnoses if report.outcome == "failed" else ()):
        made.diagnosis(diagnosis, is_first=number == 0)
    for finding in report.findings:
        made.finding(finding)
    made.end()
    for note in made.view.notes():
        made.run.notify("note", note)
    properties = {
        "outcome": report.outcome,
        "stage": report.stage,
        "release": made.view.release,
        "command": made.view.command(report.command),
    }
    for name in made.view.files:
        made.run.artifact(name)
    return made.run.document({k: v for k, v in properties.items() if v is not None})


class _Report:
    def __init__(self, view: View, rules: Mapping[str, Rule], launch_file: LaunchDocument | None) -> None:
        self.view = view
        self.rules = rules
        self.launch_file = launch_file
        self.run = Run()

    def diagnosis(self, diagnosis: Diagnosis, *, is_first: bool) -> None:
        view, run = self.view, self.run
        title, cause = view.sentence(diagnosis.title), view.sentence(diagnosis.cause)
        rows, _ = view.evidence(diagnosis, RELATED)
        root = next(row for row in rows if row.root)
        others = [self.location(row, "evidence") for row in rows if not row.root]
        follows = [self.location(view.row(x), "follows from it") for x in diagnosis.consequences[:RELATED]]
        rule = self.rules.get(diagnosis.rule) if diagnosis.rule else None
        references = [view.clean.line(r) for r in diagnosis.references]
        result = self.result(
            diagnosis.rule,
            "error",
            (title, cause, diagnosis.misleading),
            references,
            diagnosis.fixes,
            [*others, *follows],
        )
        ranks = [view.clean.line(r) for r in diagnosis.ranks]
        location: dict[str, Any] = {
            "physicalLocation": run.physical(root.place, line_region(root.number, root.text))
        }
        if ranks:
            location["logicalLocations"] = [{"name": rank, "kind": "process"} for rank in ranks]
        result["locations"] = [location]
        result["rank"] = round(diagnosis.confidence * 100, 1)
        result["partialFingerprints"] = {FINGERPRINT: fingerprint_of(diagnosis, rule).key}
        if stack := self.stack(diagnosis):
            result["stacks"] = [stack]
        result["properties"] |= {"rootCause": is_first, "confidence": diagnosis.confidence}
        if diagnosis.next_steps:
            result["properties"]["nextSteps"] = [view.sentence(s) for s in diagnosis.next_steps]
        run.results.append(result)

    def finding(self, finding: Finding) -> None:
        view = self.view
        row = view.finding(finding)
        texts = (view.sentence(finding.title), view.sentence(finding.cause), None)
        result = self.result(finding.rule, "warning", texts, (), finding.fixes, [])
        physical = self.run.physical(row.place, line_region(row.number, row.text))
        result["locations"] = [{"physicalLocation": physical}]
        result["partialFingerprints"] = {FINGERPRINT: make(finding.rule, (finding.rule,)).key}
        self.run.results.append(result)

    def end(self) -> None:
        """Where a log just stops, or what ended a launch that had not failed: no result of a rule, but something a
        reader must see; with what may hold it up."""
        view, report = self.view, self.view.report
        line = report.ended.line if report.ended is not None else report.stop.last if report.stop else None
        if report.ended is None and report.stop is None:
            return
        head = view.headline()
        texts = [f"{head.word}: {head.text}."]
        if view.stop is not None:
            texts.append(view.stop.first())
            for cause in view.stop.causes():
                seen = f" Seen: {cause.seen}." if cause.seen else ""
                texts.append(f"{cause.title} ({cause.id}).{seen} Look: {cause.tell}. Then: {cause.do}.")
        row = view.line(line) if line is not None else None
        region = line_region(row.number, row.text) if row is not None else None
        self.run.notify("note", "\n\n".join(texts), row.place if row is not None else None, region)

    def result(
        self,
        rule: str | None,
        level: str,
        texts: tuple[str, str, str | None],
        references: Sequence[str],
        fixes: Sequence[Fix],
        related: list[dict[str, Any]],
    ) -> dict[str, Any]:
        """What diagnoses and findings have in common."""
        view = self.view
        title, cause, misleading = texts
        parts = [f"{title}.", cause]
        if misleading:
            parts.append(f"Not the cause: {view.sentence(misleading)}")
        help_markdown = "\n\n".join(map(prose, parts))
        rule_id = view.clean.line(rule) if rule else UNKNOWN_RULE
        described = descriptor(title, cause, help_markdown=help_markdown, references=references, level=level)
        changes = [change for fix in fixes if (change := self.change(fix)) is not None]
        if self.launch_file is not None:
            related = [*related, self.launch_location(changes)]
        out: dict[str, Any] = {
            "ruleId": rule_id,
            "ruleIndex": self.run.rule(rule_id, described),
            "level": level,
            "message": self.message(parts, fixes),
        }
        if related:
            out["relatedLocations"] = [{"id": i, **x} for i, x in enumerate(related, 1)]
        if changes:
            out["fixes"] = changes
        out["properties"] = {"remedies": [self.remedy(fix) for fix in fixes]}
        return out

    def message(self, parts: Sequence[str], fixes: Sequence[Fix]) -> dict[str, str]:
        text, markdown = list(parts), [prose(p) for p in parts]
        best = next((f for f in fixes if f.command or f.diff), fixes[0] if fixes else None)
        if best is not None:
            said = f"Fix ({best.safety}): {self.view.sentence(best.title)}."
            text.append(said)
            markdown.append(prose(said))
            if (command := self.view.command(best.command)) and not best.diff:
                text.append(command)
                markdown.append(fenced(command, "bash"))
        return {"text": "\n\n".join(text), "markdown": "\n\n".join(markdown)}

    def location(self, row: Row, says: str) -> dict[str, Any]:
        physical = self.run.physical(row.place, line_region(row.number, row.text))
        return {"physicalLocation": physical, "message": {"text": says}}

    def stack(self, diagnosis: Diagnosis) -> dict[str, Any] | None:
        """The frames of the traceback that ends in the root line, innermost first."""
        if diagnosis.raised is None or not diagnosis.raised.frames:
            return None
        return {
            "message": {"text": "the traceback in the log"},
            "frames": [*self._frames(diagnosis)],
        }

    def _frames(self, diagnosis: Diagnosis) -> Iterator[dict[str, Any]]:
        assert diagnosis.raised is not None
        line = self.view.clean.line
        for frame in reversed(diagnosis.raised.frames[-FRAMES:]):
            physical = {
                "artifactLocation": {"uri": uri_of(line(frame.path))},
                "region": {"startLine": max(frame.lineno, 1)},
            }
            function = [{"name": line(frame.function) or "?", "kind": "function"}]
            yield {"location": {"physicalLocation": physical, "logicalLocations": function}}

    # -- fixes ---------------------------------------------------------------------------------
    def change(self, fix: Fix) -> dict[str, Any] | None:
        """The fix as replacements in the launch file; None where it changes nothing there, or where what it
        writes holds a secret."""
        if self.launch_file is None or fix.document is None:
            return None
        after, clean = fix.document.text, self.view.clean
        secrets = secret_values([after])

        def is_public(text: str) -> bool:
            return mask_values(clean.text(text), secrets) == text

        found = replacements(self.launch_file.text, after, is_public)
        if not found:
            return None
        where = self.run.artifact(self.view.clean.line(self.launch_file.name))
        change = {"artifactLocation": where, "replacements": found}
        return {
            "description": {"text": f"{self.view.sentence(fix.title)} ({fix.safety})"},
            "artifactChanges": [change],
            "properties": {"safety": fix.safety, "verified": fix.verified},
        }

    def launch_location(self, changes: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """Where the command stands: the place that the first fix changes, else the file."""
        assert self.launch_file is not None
        region = None
        if changes:
            region = changes[0]["artifactChanges"][0]["replacements"][0]["deletedRegion"]
        physical = self.run.physical(self.view.clean.line(self.launch_file.name), region)
        return {"physicalLocation": physical, "message": {"text": "the launch command"}}

    def remedy(self, fix: Fix) -> dict[str, Any]:
        view = self.view
        out = {
            "title": view.sentence(fix.title),
            "safety": fix.safety,
            "risk": view.sentence(fix.risk) if fix.risk else None,
            "command": view.clean.maybe(fix.command),
            "verified": fix.verified,
            "run": [view.clean.text(r) for r in fix.run],
        }
        return {k: v for k, v in out.items() if v}
