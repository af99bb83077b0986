"""The long form of one cause of launches that stand still, for people."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from mtpdoctor.report.style import Style
from mtpdoctor.text import safe

if TYPE_CHECKING:
    from mtpdoctor.kb.hangs import HangCause, Test


def explain_hang(cause: HangCause, width: int = 80, *, color: bool = False) -> list[str]:
    """The cause as lines of text at most ``width`` wide (addresses are kept whole)."""
    style = Style(color)
    lines = [style("bold", line) for line in _wrap(f"{cause.id}  {cause.title}", width, len(cause.id) + 2)]
    lines += [
        "",
        "what      may hold a launch up that neither fails nor gets ready; never a root cause by itself",
        *_wrap(f"stages    {', '.join(stage.value for stage in cause.stages)}", width, 10),
        f"releases  {'all' if str(cause.releases) == '*' else cause.releases}",
    ]
    if cause.must:
        lines += _wrap(
            f"fits      unless it is known otherwise: {'; '.join(map(_words, cause.must))}", width, 10
        )
    if cause.seen:
        lines += ["", style("bold", "What speaks for it")]
        for test in cause.seen:
            lines += _wrap(f"  - {_words(test)}", width, 4)
    if cause.against:
        lines += ["", style("bold", "What rules it out")]
        for test in cause.against:
            lines += _wrap(f"  - {_words(test)}", width, 4)
    lines += ["", style("bold", "Look"), *_wrap(f"  {cause.tell}.", width, 2)]
    lines += ["", style("bold", "Then"), *_wrap(f"  {cause.do}.", width, 2)]
    if cause.refs:
        lines += ["", style("bold", "References"), *(f"  {url}" for url in cause.refs)]
    return lines


_WORDS = {
    "stack": "a Python stack with {}",
    "line": "a line like {}",
    "last": "a last line like {}",
    "typed": "what somebody looked at: {}",
    "found": "on the host: {}",
    "state": "a process in {}",
    "cpu": "processors {}",
    "gpu": "GPUs {}",
    "io": "the disk {}",
    "ranks": "ranks {}",
}


def _words(test: Test) -> str:
    if test.name == "launch":
        from mtpdoctor.kb.conditions import describe

        return f"in the launch {describe(test.value)}"
    if test.name in ("several", "nodes"):
        what = "rank" if test.name == "several" else "node"
        return f"more than one {what}" if test.value else f"one {what}"
    if test.name == "local":
        return "several ranks on a node" if test.value else "one rank on each node"
    if test.name == "compiler":
        return "compilers run" if test.value else "no compiler runs"
    shown = test.value if isinstance(test.value, str) else test.value.pattern
    return _WORDS[test.name].format(safe(shown))


def _wrap(text: str, width: int, indent: int) -> list[str]:
    return textwrap.wrap(text, width, subsequent_indent=" " * indent, break_on_hyphens=False)
