"""What every text passes before it is shown: safe for a terminal, secrets masked."""

from __future__ import annotations

from collections.abc import Iterator

from mtpdoctor.diagnose.types import Diagnosis, Fix, Report
from mtpdoctor.launch.types import Edit, EditOp
from mtpdoctor.log.types import Line
from mtpdoctor.redact import mask_secrets, mask_values, secret_values
from mtpdoctor.text import one_line, safe


class Cleaner:
    """Cleans the texts of one report. A key named by the command is masked wherever else it stands."""

    def __init__(self, report: Report) -> None:
        self._values = secret_values(_secret_places(report))

    def text(self, text: str) -> str:
        """Safe and masked; line feeds and tabs stay."""
        return self._masked(safe(text))

    def line(self, text: str) -> str:
        """Safe and masked, on one line."""
        return self._masked(one_line(text))

    def maybe(self, text: str | None) -> str | None:
        return None if text is None else self.text(text)

    def value(self, edit: Edit) -> str | None:
        """The edit's value; masked when the flag or variable it belongs to is a secret one."""
        if edit.value is None:
            return None
        joint = "=" if edit.op is EditOp.ENV else " "
        prefix = f"{edit.name}{joint}"
        whole = self.text(prefix + edit.value)
        return whole.removeprefix(prefix) if whole.startswith(prefix) else self.text(edit.value)

    def _masked(self, text: str) -> str:
        return mask_values(mask_secrets(text), self._values)


def _secret_places(report: Report) -> Iterator[str]:
    if report.command:
        yield safe(report.command)
    for diagnosis in report.diagnoses:
        for line in _lines(diagnosis):
            yield safe(line.text)
        yield from _commands(diagnosis.fixes)
    for finding in report.findings:
        yield safe(finding.line.text)
        yield from _commands(finding.fixes)
    if report.stop is not None:
        for clue in (clue for cause in report.stop.causes for clue in cause.clues):
            if clue.line is not None:
                yield safe(clue.line.text)


def _lines(diagnosis: Diagnosis) -> Iterator[Line]:
    yield diagnosis.root
    yield from diagnosis.evidence
    yield from diagnosis.chain
    yield from diagnosis.consequences


def _commands(fixes: tuple[Fix, ...]) -> Iterator[str]:
    for fix in fixes:
        if fix.command:
            yield safe(fix.command)
