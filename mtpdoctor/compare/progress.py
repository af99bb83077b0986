"""Stages reached and their times; warnings and errors that only one of two launches printed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timezone

from mtpdoctor.compare.launch import Launch
from mtpdoctor.compare.types import Difference, StageTimes
from mtpdoctor.log.types import Line, Stage
from mtpdoctor.patterns import lazy
from mtpdoctor.text import one_line

_TIME = lazy(r"(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,6}))?")
_CLOCK = lazy(r"(\d\d):(\d\d):(\d\d)")
_LEVEL = lazy(
    r"\b(?:WARN(?:ING)?|ERROR|CRITICAL|FATAL)\b|\b\w*(?:Warning|Error|Exception): |^[EW]\d{4} |\bwarn\b:|\berror: |^\w*Error\b",
    re.M,
)
_BATCH = ("Decode batch", "Prefill batch", "INFO:     ")
_NORMAL = (
    (lazy(r"0x[0-9a-fA-F]+"), "0x#"),
    (lazy(r"(?<![\w.])(?:/[\w.@+-]+)+"), "/path"),
    (lazy(r"\d+(?:[.:,]\d+)*"), "#"),
    (lazy(r"\s+"), " "),
)
_MOST = 40  # messages of one side


def stage_times(good: Launch, bad: Launch) -> tuple[StageTimes, ...]:
    """The stages that either launch reached, in the order of a launch."""
    sides = [_starts(launch) for launch in (good, bad)]
    reached = [launch.attempt.stage for launch in (good, bad)]
    out = []
    for stage in Stage:
        seen = [stage in side or stage.order <= at.order for side, at in zip(sides, reached, strict=True)]
        if any(stage in side for side in sides):
            out.append(StageTimes(stage.value, sides[0].get(stage), sides[1].get(stage), seen[0], seen[1]))
    return tuple(out)


def _starts(launch: Launch) -> dict[Stage, float | None]:
    """Seconds from the first time of the launch to the first line of each stage; None where lines have no time."""
    first: float | None = None
    out: dict[Stage, float | None] = {}
    for mark in launch.attempt.marks:
        at = seconds(mark.line)
        if at is not None and first is None:
            first = at
        if mark.stage not in out or (out[mark.stage] is None and at is not None):
            if any(s.order > mark.stage.order for s in out):
                continue  # the draft model loads again when graphs are captured
            out[mark.stage] = round(at - first, 3) if at is not None and first is not None else None
    return out


def seconds(line: Line) -> float | None:
    """The time of a line as seconds since the epoch (or since midnight, where it has no date)."""
    text = line.time or line.text[:40]
    m = _TIME.search(text)
    if m:
        year, month, day, hour, minute, second = map(int, m.groups()[:6])
        try:
            at = datetime(year, month, day, hour, minute, second, tzinfo=timezone.utc)
        except ValueError:
            return None
        return at.timestamp() + float(f"0.{m[7]}" if m[7] else 0)
    m = _CLOCK.search(line.time or "")
    return int(m[1]) * 3600 + int(m[2]) * 60 + int(m[3]) if m else None


def stage_differences(times: tuple[StageTimes, ...]) -> Iterator[Difference]:
    """A stage that only one launch reached, and one that took much longer in the bad launch."""
    for i, stage in enumerate(times):
        if stage.good_reached and not stage.bad_reached:
            yield Difference("stages", stage.stage, "reached", None, "removed", 15)
            return  # those behind it go without saying
        after = times[i + 1] if i + 1 < len(times) else None
        if after is None or None in (stage.good, stage.bad, after.good, after.bad):
            continue
        a, b = after.good - stage.good, after.bad - stage.bad  # type: ignore[operator]
        if b > 30 and b > 3 * max(a, 1.0):
            yield Difference(
                "stages",
                f"{stage.stage} took",
                f"{a:.0f} s",
                f"{b:.0f} s",
                "changed",
                35,
                "much longer than in the good launch",
            )


def message_differences(good: Launch, bad: Launch) -> Iterator[Difference]:
    sides = [_messages(launch) for launch in (good, bad)]
    diagnosis = bad.report.diagnoses[0] if bad.report.diagnoses else None
    known = (
        {diagnosis.root.key, *(x.key for x in diagnosis.chain), *(x.key for x in diagnosis.consequences)}
        if diagnosis
        else set()
    )
    root = diagnosis.root.key if diagnosis else None
    for key, line in list(sides[1].items()):
        if key in sides[0] or line.key in known or _inside(line, bad):
            continue
        before = root is None or line.key < root
        yield Difference(
            "messages",
            one_line(line.body)[:300],
            None,
            line.number,
            "added",
            22 if before else 8,
            None,
            where=("", _where(bad, line)),
        )
    for key, line in sides[0].items():
        if key not in sides[1] and not _inside(line, good):
            yield Difference(
                "messages",
                one_line(line.body)[:300],
                line.number,
                None,
                "removed",
                4,
                None,
                where=(_where(good, line), ""),
            )


def _inside(line: Line, launch: Launch) -> bool:
    """Part of a traceback: what it ends in is an event of its own."""
    return any(
        e.traceback is not None
        and e.line.file == line.file
        and e.traceback.lines
        and line.key in {x.key for x in e.traceback.lines}
        for e in launch.attempt.events
    )


def _where(launch: Launch, line: Line) -> str:
    return f"{launch.reading.files[line.file].name}:{line.number}"


def _messages(launch: Launch) -> dict[str, Line]:
    out: dict[str, Line] = {}
    for line in launch.lines():
        if line.body.startswith(_BATCH) or not _LEVEL.search(line.body) or "server_args=" in line.body:
            continue
        out.setdefault(normal(line.body), line)
        if len(out) >= _MOST:
            break
    return out


def normal(text: str) -> str:
    """A message without what differs from launch to launch: numbers, addresses, paths."""
    text = text[:600]
    for pattern, instead in _NORMAL:
        text = pattern.sub(instead, text)
    return text.strip()
