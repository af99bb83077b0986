"""One launch in, one member out: the unit of work, the same for every engine. Pure apart from reading."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mtpdoctor.diagnose.engine import diagnose
from mtpdoctor.diagnose.types import Diagnosis, Fix, Report
from mtpdoctor.errors import UserError
from mtpdoctor.kb.knowledge import Knowledge
from mtpdoctor.log.reading import read_sources
from mtpdoctor.log.types import Line, LogReading
from mtpdoctor.triage.clock import first_time
from mtpdoctor.triage.fingerprint import fingerprint_of
from mtpdoctor.triage.masking import Masker
from mtpdoctor.triage.nodes import NodeReport, first_to_fail
from mtpdoctor.triage.opening import Limits, Opened, Places, open_log
from mtpdoctor.triage.types import LaunchFiles, Member, Root

EVIDENCE = 4  # lines of the example
_EDGE = 40  # lines in which a time is looked for
_LIMITS = Limits()


def examine(
    launch: LaunchFiles, knowledge: Knowledge, *, places: Places | None = None, limits: Limits = _LIMITS
) -> Member:
    """What became of a launch. Never raises for its content: what cannot be read is ``unreadable``."""
    opened: list[Opened] = []
    try:
        for paths in launch.logs:
            opened.append(open_log(paths, limits, places))
        return _examined(launch, opened, knowledge)
    except UserError as error:
        return unreadable(launch, str(error))
    except MemoryError:
        return unreadable(launch, "there was not enough memory to read it")
    except Exception as error:  # one log that trips the doctor must not end the other thousands
        where = _innermost(error)
        return unreadable(launch, f"the doctor failed on it: {type(error).__name__}: {error} ({where})")
    finally:
        for one in opened:
            one.source.close()


def unreadable(launch: LaunchFiles, why: str) -> Member:
    return Member(launch=launch, outcome="unreadable", error=Masker().line(why))


def _innermost(error: BaseException) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    code = trace.tb_frame.f_code if trace is not None else None
    return f"{code.co_name}:{trace.tb_lineno}" if code is not None and trace is not None else "?"


def _examined(launch: LaunchFiles, opened: Sequence[Opened], knowledge: Knowledge) -> Member:
    reading = read_sources([o.source for o in opened], knowledge.literals)
    report = diagnose(reading, knowledge, brief=True)
    if report.outcome == "empty":
        return unreadable(launch, "nothing in it")
    if not reading.is_sglang and report.outcome == "unfinished":
        return replace(unreadable(launch, "no sign of SGLang in it"), outcome="foreign")
    node, diagnosis, files = _root_of(launch, opened, reading, report, knowledge)
    started, ended = _times(reading)
    facts = report.facts or {}
    member = Member(
        launch=launch,
        outcome=report.outcome,
        stage=report.stage,
        release=report.sglang_version or report.release_range,
        gpu=_gpu(facts),
        model=_model(facts),
        started=started,
        ended=ended,
        findings=tuple(dict.fromkeys(f.rule for f in report.findings)),
        attempts=max(report.attempts, 1),
        bytes=sum(o.source.size for o in opened),
        stop=_stop(report),
    )
    if report.outcome != "failed" or diagnosis is None:
        return member
    return _failed(member, report, diagnosis, node, files, knowledge)


def _failed(
    member: Member,
    report: Report,
    diagnosis: Diagnosis,
    node: str | None,
    files: Sequence[Opened],
    knowledge: Knowledge,
) -> Member:
    masker = Masker(report)
    rules = knowledge.by_id

    def root(line: Line, rank: str | None = None, on: str | None = None) -> Root:
        file, number = files[line.file].place(line.number)
        return Root(masker.line(file), number, masker.line(line.body or line.text), rank, on)

    def fingerprint(d: Diagnosis) -> Any:
        told = fingerprint_of(d, rules[d.rule] if d.rule is not None else None, report.facts)
        return replace(told, parts=tuple(map(masker.line, told.parts)))

    rank = diagnosis.root.rank or (diagnosis.ranks[0] if diagnosis.ranks else None)
    fix = best_fix(diagnosis.fixes)
    evidence = {x.key: x for x in (*diagnosis.evidence, *diagnosis.chain) if x.key != diagnosis.root.key}
    others = (d for d in report.diagnoses if d.root.key != diagnosis.root.key or d.rule != diagnosis.rule)
    first = fingerprint(diagnosis)
    return replace(
        member,
        fingerprint=first,
        title=masker.line(diagnosis.title),
        cause=masker.text(diagnosis.cause),
        confidence=diagnosis.confidence,
        root=root(diagnosis.root, masker.line(rank) if rank else None, node),
        evidence=tuple(root(x) for x in list(evidence.values())[:EVIDENCE]),
        also=tuple(f for f in map(fingerprint, others) if f.key != first.key),
        remedy=masker.line(fix.title) if fix else None,
        safety=fix.safety if fix else None,
        verified=fix.verified if fix else None,
        edits=tuple(masker.line(str(e)) for e in fix.edits) if fix else (),
        command=masker.command(fix.command) if fix else None,
        run=tuple(masker.text(r) for r in fix.run) if fix else (),
        next_steps=tuple(masker.line(s) for s in diagnosis.next_steps),
        references=diagnosis.references,
    )


def best_fix(fixes: Sequence[Fix]) -> Fix | None:
    """The first safe one with a command to paste, else the first with a command, else the first."""
    for wanted in (
        [f for f in fixes if f.command and f.safety == "safe"],
        [f for f in fixes if f.command],
        list(fixes),
    ):
        if wanted:
            return wanted[0]
    return None


def _stop(report: Report) -> str | None:
    """Where an unfinished launch stands, in one line."""
    if report.stop is None:
        return None
    from mtpdoctor.diagnose.stop_line import stop_line

    return Masker(report).line(stop_line(report.stop))


# -- several nodes ---------------------------------------------------------------------------------


def _root_of(
    launch: LaunchFiles, opened: Sequence[Opened], reading: LogReading, report: Report, knowledge: Knowledge
) -> tuple[str | None, Diagnosis | None, Sequence[Opened]]:
    """The root cause, the node it struck, and the files that its lines are counted in."""
    first = report.diagnoses[0] if report.diagnoses else None
    if not launch.nodes or first is None:
        return None, first, opened
    by_node: dict[str, list[int]] = {}
    for number, node in enumerate(launch.nodes):
        by_node.setdefault(node, []).append(number)
    reports, files = [], {}
    for node, numbers in by_node.items():
        files[node] = [opened[n] for n in numbers]
        alone = read_sources([o.source for o in files[node]], knowledge.literals)
        reports.append(NodeReport(node, diagnose(alone, knowledge, brief=True)))
    found = first_to_fail(reports, knowledge.by_id)
    if found is None:
        return launch.nodes[first.root.file] or None, first, opened
    for diagnosis in report.diagnoses:  # told with what all nodes say: it may know more of the launch
        same = diagnosis.rule == found.report.diagnoses[0].rule
        if same and launch.nodes[diagnosis.root.file] == found.node:
            return found.node, diagnosis, opened
    return found.node, found.report.diagnoses[0], files[found.node]


# -- facts of the launch ---------------------------------------------------------------------------


def _times(reading: LogReading) -> tuple[str | None, str | None]:
    """First and last time of the last attempt, over all its files."""
    attempt = reading.attempt
    if attempt is None:
        return None, None
    starts, ends = [], []
    for span in attempt.spans:
        head = reading.hits.window(span.file, span.first, min(span.first + _EDGE, span.last))
        start = first_time(head)
        if start is None and attempt.marks:
            start = first_time(m.line for m in attempt.marks if m.line.file == span.file)
        tail = reading.hits.window(span.file, max(span.last - _EDGE, span.first), span.last)
        end = first_time(reversed(tail)) or first_time(
            e.line for e in reversed(attempt.events) if e.line.file == span.file
        )
        starts += [start] if start else []
        ends += [end] if end else []
    return min(starts, default=None), max(ends, default=min(starts, default=None))


def _gpu(facts: Mapping[str, Any]) -> str | None:
    """ "4xsm120" as ``--gpu`` takes it; the name where the log shows that alone."""
    sm, name = facts.get("host.gpu.sm"), facts.get("host.gpu.name")
    if sm is None and name is None:
        return None
    kind = f"sm{sm}" if sm is not None else Masker().line(str(name))
    count = facts.get("host.gpu.count")
    if count is None:
        sizes = [facts.get(f"arg.{n}") for n in ("tp_size", "pp_size")]
        known = [int(str(s)) for s in sizes if str(s).isdigit()]
        count = known[0] * (known[1] if len(known) > 1 else 1) if known else None
    return f"{count}x{kind}" if count else kind


def _model(facts: Mapping[str, Any]) -> str | None:
    """The model's name: the last part of its path, which says nothing of where it lies."""
    path = facts.get("arg.model_path") or facts.get("arg.served_model_name")
    if not isinstance(path, str) or not path.strip("/"):
        return None
    return Masker().line(path.rstrip("/").rpartition("/")[2])
