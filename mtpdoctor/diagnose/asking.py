"""Asking the installed SGLang about the commands of one launch, and what its answer means here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from mtpdoctor.case import Case
from mtpdoctor.diagnose.given import Given
from mtpdoctor.diagnose.types import Diagnosis, Fix, Report
from mtpdoctor.errors import UserError
from mtpdoctor.host.types import HostFacts
from mtpdoctor.kb.load import Knowledge
from mtpdoctor.launch.document import LaunchDocument
from mtpdoctor.launch.render import command_line
from mtpdoctor.launch.types import LaunchCommand
from mtpdoctor.release import release_or_none
from mtpdoctor.sglang.ask import ASSUMED_GIB, PretendedGpus, SglangVerdict, ask_many

MAX_ASKED_ALONE = 3  # fixes asked about on a real host, where every command costs an import


@dataclass(slots=True)
class Asker:
    """An SGLang to ask: the interpreter that imports it, the host to pretend (None: the real one), the
    model folder to read in place of the command's. Remembers what it was told."""

    python: str
    gpu: PretendedGpus | None = None
    model: str | None = None
    told: dict[str, SglangVerdict] = field(default_factory=dict)

    def ask(self, command: LaunchCommand) -> SglangVerdict:
        return self.ask_all([command])[0]

    def ask_all(self, commands: Sequence[LaunchCommand]) -> list[SglangVerdict]:
        keys = [command_line(c) for c in commands]
        new = {k: c for k, c in zip(keys, commands, strict=True) if k not in self.told}
        if new:
            verdicts = ask_many(self.python, list(new.values()), gpu=self.gpu, model=self.model)
            self.told.update(zip(new, verdicts, strict=True))
        return [self.told[k] for k in keys]


def pretended(host: HostFacts | None) -> tuple[PretendedGpus | None, tuple[str, ...]]:
    """The GPUs that SGLang is to believe in, and what was assumed; None for the host as it is.

    Raises UserError for a saved or pretended host that has no CUDA GPUs to stand in for.
    """
    if host is None or host.local:
        return None, ()
    if host.platform != "cuda" or not host.gpus or host.gpus[0].sm is None:
        raise UserError(
            f"SGLang can be asked only about CUDA hosts, and this one is {host.platform or 'not known'}",
            hint="leave --ask-sglang out, or give --gpu",
        )
    first = host.gpus[0]
    notes = []
    if first.memory_gib is None:
        notes.append(f"SGLang was asked with {ASSUMED_GIB:g} GiB per GPU: their memory is not known")
    gib = first.memory_gib or ASSUMED_GIB
    return PretendedGpus(len(host.gpus), first.sm or 0, gib, first.name or "NVIDIA GPU"), tuple(notes)


def as_log(verdict: SglangVerdict) -> str:
    """A rejection as the server's log would show it, so that rules can be held against it."""
    if verdict.stage == "argparse":
        return f"launch_server.py: error: {verdict.message}\n"
    site = verdict.site
    frame = f'  File "{site.file}", line {site.line}, in {site.function}\n' if site else ""
    code = next((e.rpartition(": ")[2] for e in verdict.explanation[:1]), "")
    code = f"    {code}\n" if frame and code else ""
    return f"Traceback (most recent call last):\n{frame}{code}{verdict.error}\n"


def diagnosis_of(text: str, case: Case, given: Given, knowledge: Knowledge) -> Diagnosis | None:
    """What the rules know of an error text that this launch would print."""
    from mtpdoctor.diagnose.engine import diagnose  # reads logs: slow to import, and seldom needed
    from mtpdoctor.log.reading import reading_from_text

    release = str(case.release) if case.release else given.release
    asked = replace(given, document=case.document, command_where=case.command_where, release=release)
    report = diagnose(reading_from_text(text, knowledge.literals), knowledge, asked)
    return report.diagnoses[0] if report.diagnoses else None


def confirmed(fixes: Iterable[Fix], asker: Asker) -> tuple[Fix, ...]:
    """The fixes with SGLang's own word on each: ``verified`` "sglang" where it accepts the command, a note
    and "none" where it does not."""
    out = list(fixes)
    asked = [i for i, fix in enumerate(out) if fix.document is not None]
    if asker.gpu is None:
        asked = asked[:MAX_ASKED_ALONE]
    verdicts = asker.ask_all([_document(out[i]).command for i in asked])
    for i, verdict in zip(asked, verdicts, strict=True):
        if verdict.verdict == "accept":
            out[i] = replace(out[i], verified="sglang")
        elif verdict.verdict == "reject":
            said = " ".join(verdict.error.split())[:200]
            note = f"SGLang {verdict.version} would still refuse it: {said}"
            out[i] = replace(out[i], verified="none", notes=(*out[i].notes, note))
    # what SGLang accepts goes first; safe before risky before manual stays as the rules have it
    return tuple(sorted(out, key=lambda f: f.document is not None and f.verified == "none"))


def confirm_report(report: Report, asker: Asker) -> Report:
    """A diagnosis with SGLang's own word on the fixes of its root cause; left as it is, with a note, where
    the SGLang that is asked is another release than the one that failed."""
    if not report.diagnoses or not any(f.document for f in report.diagnoses[0].fixes):
        return report
    first = report.diagnoses[0]
    tried = replace(first, fixes=confirmed(first.fixes, asker))
    asked = next((v.version for v in asker.told.values() if v.version), None)
    failed = report.sglang_version
    if asked and failed and release_or_none(asked) != release_or_none(failed):
        note = f"SGLang was not asked about the fixes: {asker.python} has {asked}, the failure is of {failed}"
        return replace(report, notes=(*report.notes, note))
    silent = [v.reason for v in asker.told.values() if v.verdict == "unknown" and v.reason]
    notes = tuple(f"SGLang could not be asked: {reason}" for reason in dict.fromkeys(silent))
    return replace(report, diagnoses=(tried, *report.diagnoses[1:]), notes=(*report.notes, *notes))


def _document(fix: Fix) -> LaunchDocument:
    assert fix.document is not None
    return fix.document
