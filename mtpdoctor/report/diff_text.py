"""What differs between two launches, for people: the likeliest reason first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from mtpdoctor.compare.types import Comparison, Difference, Side
from mtpdoctor.redact import mask_secrets
from mtpdoctor.report.diff_json import plain
from mtpdoctor.report.style import MIN_WIDTH, Style
from mtpdoctor.text import one_line, wrap

_AREAS = {
    "arguments": "Server arguments",
    "environment": "Environment",
    "release": "Release",
    "packages": "Packages",
    "host": "Host",
    "model": "Model",
    "memory": "Memory, as printed",
    "stages": "Stages",
    "messages": "Warnings and errors only in one",
}
_LIKELY = 80  # from here on the root cause speaks of it
_SHOWN = 12  # of an area, without --verbose


def render_diff(found: Comparison, *, width: int = 80, color: bool = False, verbose: bool = False) -> str:
    """The page of ``mtpdoctor diff``; ends in a line feed."""
    page = _Page(max(width, MIN_WIDTH), Style(color), verbose)
    return "\n".join(page.rows(found)) + "\n"


class _Page:
    def __init__(self, width: int, style: Style, verbose: bool) -> None:
        self.width, self.style, self.verbose = width, style, verbose

    def rows(self, found: Comparison) -> Iterator[str]:
        yield from self._side("good", found.good)
        yield from self._side("bad", found.bad)
        if found.bad.root is not None:
            line, text = found.bad.root
            yield from self._wrapped(f"line {line}: {_clean(text)}", "      ")
        likely = [d for d in found.differences if d.weight >= _LIKELY]
        yield ""
        if likely:
            yield self.style(
                "bold", "Likeliest reason" if len(likely) == 1 else "Likeliest reasons, the first first"
            )
            for i, difference in enumerate(likely, 1):
                yield from self._likely(i, difference)
        elif found.matters:
            yield "None of the differences is one that the failure is known to depend on; the likelier ones stand first."
        else:
            yield "No difference that matters was found."
        yield from self._areas([d for d in found.differences if d.weight < _LIKELY])
        yield from self._stages(found)
        for note in found.notes:
            yield ""
            yield from self._wrapped(f"Note: {_clean(note)}", "  ", first="")

    def _side(self, name: str, side: Side) -> Iterator[str]:
        release = f", SGLang {side.release}" if side.release else ""
        what = f"{side.outcome} at {side.stage}" if side.outcome != "ready" else "ready"
        yield f"{self.style('bold', f'{name:<5}')} {_clean(side.name)} ({what}{release})"
        if side.title:
            yield from self._wrapped(f"{side.rule or 'no rule knows it'}: {_clean(side.title)}", "      ")

    def _likely(self, number: int, difference: Difference) -> Iterator[str]:
        yield f"  {number}. " + self._change(difference)
        told = [t for t in (difference.why, difference.note) if t]
        if told:
            yield from self._wrapped("; ".join(told), "     ")

    def _change(self, difference: Difference) -> str:
        name = _clean(difference.name)
        if difference.area == "messages":
            return name
        good, bad = (_value(difference.name, v) for v in (difference.good, difference.bad))
        if difference.area == "arguments":
            good, bad = (_typed(difference.name, v) for v in (difference.good, difference.bad))
            return f"{name}: good {self.style('green', good)}, bad {self.style('red', bad)}"
        return f"{name}: good {self.style('green', good)}, bad {self.style('red', bad)}"

    def _areas(self, differences: Sequence[Difference]) -> Iterator[str]:
        shown = [d for d in differences if (self.verbose or d.matters) and not _in_table(d)]
        for area, title in _AREAS.items():
            own = [d for d in shown if d.area == area]
            if not own:
                continue
            yield ""
            yield self.style("bold", title)
            most = len(own) if self.verbose else _SHOWN
            for difference in own[:most]:
                yield from self._row(difference)
            if len(own) > most:
                yield f"  ... {len(own) - most} more: --verbose"
        hidden = len(differences) - len(shown) - sum(map(_in_table, differences))
        if hidden:
            yield ""
            yield f"{hidden} more that hardly matter{'s' * (hidden == 1)}: --verbose"

    def _row(self, difference: Difference) -> Iterator[str]:
        if difference.area == "messages":
            sign, where = (
                ("+", difference.where[1]) if difference.kind == "added" else ("-", difference.where[0])
            )
            yield from self._wrapped(
                f"{_clean(difference.name)}  ({_clean(where)})", "    ", first=f"  {sign} "
            )
            return
        yield from self._wrapped(self._change(difference), "      ", first="  ")
        if difference.note:
            yield from self._wrapped(f"({difference.note})", "      ")

    def _stages(self, found: Comparison) -> Iterator[str]:
        if not found.stages:
            return
        yield ""
        yield self.style("bold", "Stages, seconds from the first line with a time")
        yield f"  {'':<14}{'good':>9}{'bad':>9}"
        for s in found.stages:
            good, bad = _at(s.good, s.good_reached), _at(s.bad, s.bad_reached)
            yield f"  {s.stage:<14}{good:>9}{bad:>9}"

    def _wrapped(self, text: str, indent: str, first: str | None = None) -> Iterator[str]:
        start = indent if first is None else first
        if "\x1b" in text:  # styled: its width is not that of its characters
            yield start + text
            return
        for i, row in enumerate(wrap(text, self.width - len(indent))):
            yield (start if i == 0 else indent) + row


def _in_table(difference: Difference) -> bool:
    """The table of stages shows it."""
    return difference.area == "stages" and difference.bad is None


def _at(seconds: float | None, reached: bool) -> str:
    if seconds is not None:
        return f"{seconds:.0f}"
    return "yes" if reached else "-"


def _clean(text: str | None) -> str:
    return mask_secrets(one_line(text or ""))


def _value(name: str, value: Any) -> str:
    if value is None:
        return "(not there)"
    shown = plain(name, value)
    return one_line(", ".join(map(str, shown)) if isinstance(shown, list) else str(shown))


def _typed(name: str, value: Any) -> str:
    if value is None:
        return "(not set)"
    if isinstance(value, bool):
        return "on" if value else "off"
    return _value(name, value)
