"""Two launches in, their differences out: likeliest reason first."""

from __future__ import annotations

from mtpdoctor.compare.arguments import argument_differences
from mtpdoctor.compare.launch import Launch
from mtpdoctor.compare.progress import message_differences, stage_differences, stage_times
from mtpdoctor.compare.relevance import Relevance
from mtpdoctor.compare.surroundings import surroundings
from mtpdoctor.compare.types import Comparison, Difference
from mtpdoctor.kb.knowledge import Knowledge

_AREAS = ("arguments", "environment", "release", "packages", "host", "model", "memory", "stages", "messages")


def compare(good: Launch, bad: Launch, knowledge: Knowledge) -> Comparison:
    """What differs between a launch that worked and one that did not."""
    relevance = Relevance(bad.report, knowledge)
    times = stage_times(good, bad)
    found = [
        *argument_differences(good.case, bad.case, relevance),
        *surroundings(good, bad, relevance),
        *stage_differences(times),
        *message_differences(good, bad),
    ]
    found.sort(key=_rank)
    return Comparison(good.side, bad.side, tuple(found), times, tuple(dict.fromkeys(_notes(good, bad))))


def _rank(difference: Difference) -> tuple[int, int, str]:
    return -difference.weight, _AREAS.index(difference.area), difference.name


def _notes(good: Launch, bad: Launch) -> list[str]:
    notes = []
    if good.report.outcome == "failed":
        notes.append(f"{good.side.name} failed too: {good.side.title}")
    elif good.report.outcome != "ready":
        notes.append(f"{good.side.name} does not show that its server got ready")
    if bad.report.outcome == "ready":
        notes.append(f"{bad.side.name} shows no failure: its server got ready")
    for launch in (good, bad):
        if launch.case.document is None or launch.case.reconstructed:
            notes.append(
                f"{launch.side.name} does not show its launch command; options are compared as SGLang printed them"
            )
        if launch.case.release is None:
            notes.append(f"{launch.side.name} does not tell the SGLang release")
        if len(launch.reading.attempts) > 1:
            notes.append(
                f"{launch.side.name} holds {len(launch.reading.attempts)} launches; the last one counts"
            )
    return notes
