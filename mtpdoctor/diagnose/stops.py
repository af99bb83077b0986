"""What is known of a log that just stops: neither failed nor ready. Pure.

No root cause is claimed. It may simply still be running; if it does not go on, the knowledge of hangs
(``kb/hangs.py``) tells what usually holds its stage up, and what of that the log speaks for.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from mtpdoctor.case import Case
from mtpdoctor.diagnose.stop_signs import gpus_by, since_when, typed_lines, waited
from mtpdoctor.diagnose.types import Clue, Late, Stop, StopCause
from mtpdoctor.facts import UNKNOWN
from mtpdoctor.kb.hangs import Hangs, Likely, Scene
from mtpdoctor.log.clock import between, seconds_of
from mtpdoctor.log.ranks import RankMarks, local_ranks, plain
from mtpdoctor.log.stacks import interrupted, is_stack, stacks_in
from mtpdoctor.log.stages import SERVER_ARGS, mark_of
from mtpdoctor.log.types import Attempt, Line, LogReading, Stage
from mtpdoctor.patterns import lazy

WHOLE_LINES = 5000  # of a longer log only the marks and the end are read
END_LINES = 400
SCENE_LINES = 60  # last lines that causes are looked for in
FEW_LINES = 3  # at least, where the stage has fewer
OFTEN = 20  # a line that came so often already tells of no progress
_MET = lazy(r"Init (?:torch distributed|parallel) ends")
_NUMBER = lazy(r"\d+")
_DONE = lazy(r"\b(?:end|ends|finished|done)\b", re.I)
_BAR = lazy(r"(?<![\d.])(\d{1,6})/(\d{1,6})(?: \[|\s*$|\s*[,)])")
_UNITS = (
    (lazy(r"(?:checkpoint shards|loading shards):", re.I), "shards"),
    (lazy(r"Capturing (?:batches|num tokens)|Compiling num tokens"), "graphs"),
    (lazy(r"Fetching \d+ files"), "files"),
    (lazy(r"DeepGEMM warmup"), "DeepGEMM shapes"),
)
# An answer to somebody's request of the API; health checks and information are answered before all is ready.
_ANSWER = lazy(
    r'"POST /(?:v1/(?:chat/completions|completions|embeddings|responses|rerank|score|messages)|generate|encode|classify)\S* HTTP/[\d.]+" 200'
)
_PRINTED = lazy(
    r"^\s*(?:\^C|Traceback \(most recent|File \"|KeyboardInterrupt|kill_process_tree called|Process \S+:$)"
)


def stop_of(reading: LogReading, attempt: Attempt, case: Case, hangs: Hangs) -> Stop:
    """The stop of an attempt that is neither failed nor ready. ``case``: its facts, with what the host is known to be."""
    lines = _lines(reading, attempt)
    ended = attempt.shutdown
    typed = typed_lines([x for x in lines if ended is None or x.key > ended.key])
    of_people = {x.key for x in typed}
    before_end = [x for x in _before(lines, ended) if x.key not in of_people]
    dumped = stacks_in(lines)
    stacks = (*dumped, *interrupted(e.traceback for e in attempt.events if e.traceback is not None))
    if stacks:  # a dump is no sign of life, and its words are no lines of the launch
        before_end = [x for x in before_end if not is_stack(x)]
    stage = attempt.stage
    last = _last_sign(before_end, hangs)
    until, silent = _silence(last, before_end, lines)
    by_people = waited(last, before_end, typed)
    if by_people is not None and (silent is None or by_people.seconds > silent):
        until, silent = by_people.line, by_people.seconds
    marks = _by_stage(attempt)
    entered = marks.get(stage)
    earlier = [s for s in marks if s.order < stage.order]
    before = max(earlier, key=lambda s: s.order, default=None)
    late, ranks = _late(before_end, case, stage)
    answers = next((x for x in reversed(lines) if _ANSWER.search(x.text)), None)
    quiet_s = hangs.quiet_s.get(stage, 180.0)
    overdue = silent is not None and silent > quiet_s
    # Who dumps stacks looks for what holds it up, whatever ended it then.
    told = answers is None and stage is not Stage.ARGPARSE and (ended is None or overdue or bool(dumped))
    scene = Scene(
        lines=_telling(before_end, entered, attempt, hangs),
        stacks=stacks or None,
        gpu=gpus_by(typed),
        behind=tuple(x.rank for x in late),
        ranks=max(ranks, _number(case, "tp_size") or 0) or None,
        nodes=_number(case, "nnodes"),
        facts=case.facts,
        typed=tuple(typed),
    )
    return Stop(
        stage=stage.value,
        last=last,
        progress=_progress(before_end, stage),
        entered=entered,
        before=before.value if before is not None else None,
        before_s=between(marks[before], entered) if before is not None else None,
        stage_s=between(entered, last),
        quiet_s=quiet_s,
        quiet_why=hangs.quiet_why.get(stage, ""),
        silent_s=silent,
        silent_until=until,
        late=late,
        ranks=ranks,
        ended=ended,
        answers=answers,
        causes=tuple(_cause(one, attempt) for one in hangs.likely(stage, scene)) if told else (),
    )


def _cause(one: Likely, attempt: Attempt) -> StopCause:
    cause = one.cause
    shown = {o.name: o.line for o in reversed(attempt.observations)}
    clues = tuple(Clue(c.text, c.line or (shown.get(c.fact) if c.fact else None)) for c in one.clues)
    return StopCause(cause.id, cause.title, clues, cause.tell, cause.do, cause.refs, one.open)


# -- the lines -------------------------------------------------------------------------------------------


def _lines(reading: LogReading, attempt: Attempt) -> list[Line]:
    """The attempt's lines, file by file; of a long one its marks and its end."""
    out: dict[tuple[int, int, int], Line] = {m.line.key: m.line for m in attempt.marks}
    size = sum(span.last - span.first + 1 for span in attempt.spans)
    for span in attempt.spans:
        first = span.first if size <= WHOLE_LINES else max(span.first, span.last - END_LINES)
        out |= {x.key: x for x in reading.hits.window(span.file, first, span.last)}
    return [out[key] for key in sorted(out)]


def _before(lines: Sequence[Line], ended: Line | None) -> list[Line]:
    """The lines up to the end that a person made, without the traceback that it printed."""
    if ended is None:
        return list(lines)
    return [x for x in lines if x.key < ended.key and not (_PRINTED.match(x.body) or x.text[:1].isspace())]


def _last_sign(lines: Sequence[Line], hangs: Hangs) -> Line | None:
    """The last line that is a sign of life; of several files the one that was written last, where that is told."""
    last: dict[int, Line] = {}
    often: Counter[str] = Counter()
    for line in lines:
        text = line.text
        if not text.strip() or hangs.chatter.search(text):
            continue
        form = _NUMBER.sub("#", line.body)[:200]
        often[form] += 1
        if often[form] <= OFTEN or _BAR.search(line.body):
            last[line.file] = line
    if not last:
        return None
    times = {file: seconds_of(line.time) for file, line in last.items()}
    if any(time is None for time in times.values()):
        return last[max(last)]
    return last[max(last, key=lambda file: (times[file] or 0.0, file))]


def _silence(
    last: Line | None, before: Sequence[Line], lines: Sequence[Line]
) -> tuple[Line | None, float | None]:
    """The last line of the log that tells how long it has been since the last sign of life, and how long."""
    if last is None:
        return None, None
    timed = last if last.time else None
    if timed is None:  # a bar: what it says to have passed counts from the line before it
        own = [x for x in before if x.file == last.file and x.key < last.key and x.time]
        timed = own[-1] if own else last
        passed = (since_when(last, before)[0] or 0.0) - (seconds_of(timed.time) or 0.0)
    else:
        passed = 0.0
    for line in reversed(lines):
        if line.key <= last.key:
            break
        seconds = between(timed, line)
        if seconds and seconds > passed:
            return line, seconds - passed
    return None, None


def _telling(lines: Sequence[Line], entered: Line | None, attempt: Attempt, hangs: Hangs) -> tuple[Line, ...]:
    """The lines that causes are looked for in: those of the stage, and some before it; without what is said over and
    over, and without the arguments, which name everything."""
    command = attempt.command.key if attempt.command is not None else None
    kept = [x for x in lines if SERVER_ARGS not in x.body and x.key != command]
    kept = [x for x in kept[-END_LINES * 10 :] if x.text.strip() and not hangs.chatter.search(x.text)]
    since = [x for x in kept[-SCENE_LINES:] if entered is None or x.key >= entered.key]
    return tuple(since if len(since) >= FEW_LINES else kept[-FEW_LINES:])


def _by_stage(attempt: Attempt) -> dict[Stage, Line]:
    """The first line of each stage."""
    out: dict[Stage, Line] = {}
    for mark in attempt.marks:
        known = out.get(mark.stage)
        if known is None or mark.line.key < known.key:
            out[mark.stage] = mark.line
    return out


def _progress(lines: Sequence[Line], stage: Stage) -> str | None:
    """How much of the stage is done, by its last bar."""
    for line in reversed(lines[-SCENE_LINES:]):
        if line.rank is not None and _DONE.search(line.body) and mark_of(line) is not None:
            return None
        unit = next((name for pattern, name in _UNITS if pattern.search(line.body)), None)
        if unit is None or (unit == "shards" and stage is not Stage.WEIGHTS):
            continue
        m: re.Match[str] | None = None
        for m in _BAR.finditer(line.body):  # noqa: B007  the last one
            pass
        if m is not None:
            return f"{m[1]} of {m[2]} {unit}" if int(m[1]) < int(m[2]) else None
    return None


_ONE = ("nnodes", "tp_size", "pp_size")  # numbers that are 1 unless an option says otherwise


# -- ranks -----------------------------------------------------------------------------------------------


def _late(lines: Sequence[Line], case: Case, stage: Stage) -> tuple[tuple[Late, ...], int]:
    """Ranks that are behind, and how many ranks there are."""
    marks = RankMarks()
    last: dict[str, Line] = {}
    met = stage.order > Stage.DIST_INIT.order
    for line in lines:
        met = met or _MET.search(line.body) is not None
        if line.rank is None:
            continue
        last[plain(line.rank)] = line
        marks.heard(line.rank, Stage.TOKENIZER)
        reached = mark_of(line)
        if reached is not None:
            marks.mark(line, reached)
    # Once the ranks have met none can be missing: one that has written nothing was left out of the log.
    behind = marks.behind(None if met else _local(len({x.file for x in lines}), case))
    late = tuple(
        Late(name, marks.stages[name].value if name in marks.stages else None, last.get(name))
        for name in behind
    )
    return late, len(set(marks.stages) | set(behind)) or (_number(case, "tp_size") or 0)


def _local(files: int, case: Case) -> range | None:
    """The TP ranks that must have written in this log; None where that is not known, or where a rank's or a node's
    own file may be missing."""
    if files > 1:
        return None
    tp, nodes = _number(case, "tp_size"), _number(case, "nnodes")
    return local_ranks(tp, nodes, _number(case, "node_rank"), _number(case, "pp_size"))


def _number(case: Case, name: str) -> int | None:
    value = case.facts.look(f"arg.{name}")
    if value is UNKNOWN and case.facts.look(f"flag.{name}") is None and name in _ONE:
        return 1  # not typed, and so in every release
    if value is UNKNOWN or isinstance(value, bool):
        return None
    return int(value) if isinstance(value, int) or (isinstance(value, str) and value.isdecimal()) else None
