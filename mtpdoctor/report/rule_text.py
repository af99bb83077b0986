"""The long form of one rule, for people."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING

from mtpdoctor.report.style import Style
from mtpdoctor.text import safe

if TYPE_CHECKING:
    from mtpdoctor.kb.types import EditTemplate, Remedy, Rule

_EVIDENCE = {
    "confirmed": "confirmed by reports or by running it",
    "stated": "stated by SGLang's authors or sources",
    "symptom": "a symptom; the cause is advice",
}
SAFETY = {"safe": "green", "risky": "magenta", "manual": "yellow"}
_GENERATED = {
    "block": "Remedies are computed: the splits that give whole quantization blocks, by the sizes in the message.",
    "own-import": "Remedies are computed: the first later and the last earlier release whose files fit together, and the options that lead to the import.",
    "tensor-name": "Remedies are computed: what the name of the tensor tells, and the first later release whose loader treats it otherwise.",
    "optional-name": "Remedies are computed: what the missing name comes from, and the ways round it.",
    "link-target": "Remedies are computed: the folder that the links of a listing lead to.",
    "bare-flag": "Remedies are computed: an option that stands twice, once with its value.",
    "devices": "Remedies are computed: the devices that the message lists.",
    "backend-part": "Remedies are computed: the attention backends whose classes have the part in this release.",
    "callee": "Remedies are computed: the first later release whose caller and callee fit together, where both are SGLang's own.",
    "value": "Remedies are computed: the option's value written as JSON, or its numbers without commas.",
    "host-cache": "Remedies are computed: a --hicache-size that fits into the host's memory for all ranks of a node.",
    "native-library": "Remedies are computed: what brings the library - a build for this CUDA, pip's package, the system's.",
    "versions": "Remedies are computed: the packages that the failure lies in or between, in the versions that the release asks for.",
    "third-party": "Remedies are computed: the version that the release asks for where the log shows another; what keeps SGLang from using the package that failed.",
    "module": "Remedies are computed: the package that the module comes from, as the release in use asks for it.",
    "entry": "Remedies are computed: the typed options behind the right program.",
    "unknown-flag": "Remedies are computed: the nearest flags of the release in use.",
    "ambiguous-flag": "Remedies are computed: the flag that the old name became, else the candidates of the message.",
    "bad-choice": "Remedies are computed: the choices of the flag in the release in use.",
    "package": "Remedies are computed: the version of the package that the release in use asks for.",
    "backend": "Remedies are computed: the option that chooses the failing backend, and its other choices.",
    "said": "Remedies are computed: the options and variables that the message names.",
    "upgrade": "Remedies are computed: the first later release that differs in the failing place, and the newest.",
    "keyword": "Remedies are computed: the releases whose function takes the keyword, and what this one calls it.",
    "split": "Remedies are computed: other numbers of GPUs that a layer may be split over.",
    "architecture": "Remedies are computed: the first release that has the model's class, or why this one lacks it.",
    "model-type": "Remedies are computed: the first release whose transformers reads the model's config.",
    "symbol": "Remedies are computed: the releases whose module has the name, older or newer than the one in use.",
}


def explain(rule: Rule, width: int = 80, *, color: bool = False) -> list[str]:
    """The rule as lines of text at most ``width`` wide (commands and log lines are kept whole); without
    ``color`` there is no escape sequence in them."""
    from mtpdoctor.kb.conditions import describe
    from mtpdoctor.kb.types import ALWAYS

    style = Style(color)
    lines = [style("bold", line) for line in _wrap(f"{rule.id}  {rule.title}", width, indent=9)]
    generic = ", names only a symptom" if rule.generic else ""
    lines += [
        "",
        f"role      {rule.role.value}{generic}",
        f"stage     {rule.stage.value}",
        f"message   of {rule.source}",
        f"releases  {'all' if str(rule.releases) == '*' else rule.releases}",
        f"evidence  {_EVIDENCE[rule.evidence]} (confidence {rule.confidence:.2f})",
    ]
    for note in rule.elsewhere:
        lines += _wrap(f"not in    {note.releases}: {note.why}", width, indent=10)
    for note in rule.unseen:
        lines += _wrap(f"unseen    in the sources of {note.releases}: {note.why}", width, indent=10)
    for still in rule.unfixed:
        word = "without" if still.lacks else "with"
        where = ", ".join(still.files)
        lines += _wrap(f"unfixed   up to {still.through}: {where} {word} {still.text!r}", width, indent=10)
    if rule.when != ALWAYS:
        lines += _wrap(f"when      {describe(rule.when)}", width, indent=10)
    if rule.predicts is not None and rule.scope == "host":
        lines += _wrap(
            f"found     on a host if {describe(rule.predicts)} ({rule.severity})", width, indent=10
        )
        if rule.matters != ALWAYS:
            lines += _wrap(f"matters   to a launch if {describe(rule.matters)}", width, indent=10)
    elif rule.predicts is not None:
        lines += _wrap(
            f"foreseen  before launch if {describe(rule.predicts)} ({rule.severity})", width, indent=10
        )
    if rule.explains:
        lines += _wrap(f"explains  {', '.join(rule.explains)}", width, indent=10)
    lines += ["", style("bold", "Cause"), *_wrap(rule.cause, width, indent=2, first=2)]
    for one in rule.here:
        lines += _wrap(f"If {describe(one.when)}: {one.cause}", width, indent=4, first=2)
    if rule.misleading:
        lines += [
            "",
            style("bold", "What it is taken for"),
            *_wrap(rule.misleading, width, indent=2, first=2),
        ]
    if rule.match:
        lines += ["", style("bold", "Recognised by"), *(f"  {p.regex}" for p in rule.match)]
    if rule.remedies:
        lines += ["", style("bold", "Remedies, best first")]
        for number, remedy in enumerate(rule.remedies, 1):
            lines += _remedy(number, remedy, width, style)
    bad = rule.examples.get("bad") or ()
    if bad:
        lines += [
            "",
            style("bold", "Example"),
            *(f"  {safe(line)}" for line in bad[0]["log"].rstrip("\n").split("\n")[:30]),
        ]
    lines += _commands(rule, style)
    if rule.refs:
        lines += ["", style("bold", "References"), *(f"  {ref}" for ref in rule.refs)]
    return lines


def _commands(rule: Rule, style: Style) -> Iterator[str]:
    """A command before and after, where an example of the rule has one."""
    shown = next(iter(rule.examples.get("command") or ()), None)
    if shown is None or not shown.get("before") or not shown.get("after"):
        return
    yield ""
    yield style("bold", "A command, before and after")
    yield "  " + style("removed", "- " + safe(" ".join(shown["before"].split())))
    yield "  " + style("green", "+ " + safe(" ".join(shown["after"].split())))


def _remedy(number: int, remedy: Remedy, width: int, style: Style) -> Iterator[str]:
    from mtpdoctor.kb.conditions import describe
    from mtpdoctor.kb.types import ALWAYS

    lead = f"  {number}. "
    if remedy.generate:
        yield from _wrap(lead + _GENERATED[remedy.generate], width, indent=len(lead))
        return
    kind = SAFETY.get(remedy.safety.value, "bold")
    for line in _wrap(f"{lead}{remedy.title} [{remedy.safety.value}]", width, indent=len(lead)):
        yield style(kind, line)
    pad = " " * len(lead)
    for edit in remedy.edits:
        yield style("cyan", f"{pad}{edit_text(edit)}")
    if remedy.checkpoints is not None:
        kinds = ", ".join(remedy.checkpoints.formats) or "any format"
        which = "the original" if remedy.checkpoints.original else kinds
        yield style("cyan", f"{pad}names a published checkpoint of the model: {which}")
    for command in remedy.run:
        yield f"{pad}$ {command}"
    yield from _wrap(f"{pad}why: {remedy.why}", width, indent=len(lead) + 5)
    if remedy.risk:
        yield from _wrap(f"{pad}risk: {remedy.risk}", width, indent=len(lead) + 6)
    if remedy.when != ALWAYS:
        yield from _wrap(f"{pad}if: {describe(remedy.when)}", width, indent=len(lead) + 4)
    if str(remedy.releases) != "*":
        yield f"{pad}releases: {remedy.releases}"


def edit_text(edit: EditTemplate) -> str:
    """The edit as it is written in the knowledge."""
    if edit.op == "env":
        return f"env {edit.name}={edit.value}"
    return " ".join(part for part in (edit.op, edit.name, edit.value) if part)


def _wrap(text: str, width: int, indent: int, first: int = 0) -> list[str]:
    return textwrap.wrap(
        " ".join(text.split()) if first else text,
        width,
        initial_indent=" " * first,
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
