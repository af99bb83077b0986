"""What every text of a member passes before it leaves the examination: safe to show, secrets masked."""

from __future__ import annotations

from collections.abc import Iterable

from mtpdoctor.diagnose.types import Report
from mtpdoctor.redact import mask_secrets, mask_values, secret_values
from mtpdoctor.text import one_line, safe

MAX_TEXT = 1200  # characters of a line that is kept
MAX_COMMAND = 16_000


class Masker:
    """For the texts of one launch: a key that its command names is masked wherever else it stands."""

    def __init__(self, report: Report | None = None) -> None:
        self._values = secret_values(_places(report)) if report is not None else frozenset()

    def text(self, text: str, most: int = MAX_TEXT) -> str:
        return _cut(mask_values(mask_secrets(safe(text)), self._values), most)

    def line(self, text: str, most: int = MAX_TEXT) -> str:
        return _cut(mask_values(mask_secrets(one_line(text)), self._values), most)

    def command(self, text: str | None) -> str | None:
        """A command is never cut: half of one must not be pasted. None where it is too long."""
        if text is None:
            return None
        text = mask_values(mask_secrets(safe(text)), self._values)
        return text if len(text) <= MAX_COMMAND else None


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 3].rstrip()}..."


def _places(report: Report) -> Iterable[str]:
    if report.command:
        yield safe(report.command)
    for diagnosis in report.diagnoses:
        for line in (diagnosis.root, *diagnosis.evidence, *diagnosis.chain):
            yield safe(line.text)
        for fix in diagnosis.fixes:
            if fix.command:
                yield safe(fix.command)
