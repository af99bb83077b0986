"""The last way out of a failure that a rule knows: a launch without the option of this command that the traceback ties to it.

A rule knows a kind of failure and offers what helps with its kind. Where the code that failed runs only with one option of this
very command (``gated``), or bears the name of what that option chooses (``namesakes``), giving that option up is a way round
whatever the reason is. It stands behind all that the rule says, is never safe, and there are two at most. Where the only fix so far
names no release and the error is one of programming, a release whose form of that code is another stands there too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from mtpdoctor.diagnose.components import options_of
from mtpdoctor.diagnose.element_types import typed_otherwise
from mtpdoctor.diagnose.gated import SURROUNDINGS, gated_by_frames
from mtpdoctor.diagnose.installs import sglang_asked
from mtpdoctor.diagnose.memory import asks_memory
from mtpdoctor.diagnose.namesakes import Namesake, namesakes
from mtpdoctor.diagnose.remedies import fix_of
from mtpdoctor.diagnose.suspects import KEPT, untouched, without_namesake
from mtpdoctor.diagnose.unknown import is_own, root_traceback
from mtpdoctor.diagnose.written import said_by
from mtpdoctor.kb.types import EditTemplate, Remedy, Safety
from mtpdoctor.log.types import EventKind
from mtpdoctor.records import replace

if TYPE_CHECKING:
    from mtpdoctor.case import Case
    from mtpdoctor.diagnose.causality import Cause
    from mtpdoctor.diagnose.types import Fix
    from mtpdoctor.kb.load import Knowledge
    from mtpdoctor.kb.types import Rule
    from mtpdoctor.launch.types import FlagUse
    from mtpdoctor.log.types import Frame

_CROWDED = 5  # fixes behind which nobody looks for one more
_PARSER = ("unknown-flag", "ambiguous-flag", "bad-choice")  # what was typed is refused before any code runs
# What the server is, without which it would be another one.
_ESSENTIAL = frozenset(("dllm_algorithm", "disaggregation_mode", "is_embedding", "model_impl", "grpc_mode"))
# Options whose value names code, and values that half of the code is named after: these count only in a part of SGLang on which
# the option bears.
_NAMES_CODE = ("_backend", "_algorithm", "load_format")
_EVERYWHERE = frozenset(("flashinfer", "triton", "torch", "ascend", "aiter", "cutlass", "pytorch", "auto"))
_LEAST = 4  # letters of such a value


def with_tied(
    fixes: tuple[Fix, ...], cause: Cause, case: Case, knowledge: Knowledge, frames: Sequence[Frame] = ()
) -> tuple[Fix, ...]:
    """``fixes`` of a rule that knows the failure, and behind them what this launch can do without. ``frames``: of the code, where
    no traceback tells it."""
    rule = cause.match.rule if cause.match is not None else None
    event, traceback = cause.failure.event, root_traceback(cause)
    if rule is None or event is None or event.kind not in (EventKind.TRACEBACK, EventKind.NATIVE):
        return fixes
    kind = traceback.type.rsplit(".", 1)[-1] if traceback is not None else ""
    if kind in SURROUNDINGS or "OutOfMemory" in kind or _is_apart(rule):
        return fixes
    other = typed_otherwise(cause, case, knowledge)
    if other is not None and not _touches(fixes, other):
        fixes = (*fixes, other)
    draft = _without_draft(fixes, cause, case, knowledge)
    if draft is not None:
        fixes = (*fixes, draft)
    if len(fixes) < _CROWDED and case.document is not None:
        frames = traceback.frames if traceback is not None else frames
        fixes = (*fixes, *_ways_round(fixes, frames, case, knowledge))
    return (*fixes, *_another_release(fixes, cause, case)) if len(fixes) < 2 else fixes


def _is_apart(rule: Rule) -> bool:
    """Is it of memory, which everything takes a part of, or of words that the parser refuses?"""
    return asks_memory(rule) or any(remedy.generate in _PARSER for remedy in rule.remedies)


def _ways_round(
    fixes: Sequence[Fix], frames: Sequence[Frame], case: Case, knowledge: Knowledge
) -> Iterator[Fix]:
    open_ = untouched(fixes, case)
    specs = {use.dest: spec for use, spec in open_}
    done: set[str] = set()
    for fix in gated_by_frames(frames, case, knowledge).asked:
        dests = {dest for dest, spec in specs.items() if any(e.name == spec.name for e in fix.edits)}
        if dests and dests.isdisjoint(KEPT | _ESSENTIAL) and not _told(fixes, fix):
            done |= dests
            yield fix
            break
    uses = [use for use, _ in open_ if use.dest not in KEPT | _ESSENTIAL and not _is_needed(use, case)]
    strong = [name for name in namesakes(uses, frames) if name.use.dest not in done and _is_strong(name)]
    if strong:
        alike = [
            name for name in strong if name.words == strong[0].words
        ]  # prefill and decode by one backend
        remedy = without_namesake(alike[0], specs[alike[0].use.dest])
        remedy = replace(
            remedy,
            title=f"Try without {' and '.join(specs[name.use.dest].name for name in alike)}",
            edits=tuple(EditTemplate("remove", specs[name.use.dest].name) for name in alike),
        )
        made = fix_of(remedy, case, knowledge)
        if made is not None and not _told(fixes, made):
            yield made


def _is_needed(use: FlagUse, case: Case) -> bool:
    """Can the checkpoint be read by that loader only?"""
    if use.dest != "load_format":
        return False
    path = str(case.facts.look("arg.model_path") or "")
    return (
        "://" in path
        or path.endswith(".gguf")
        or use.values[:1] in (("bitsandbytes",), ("gguf",), ("mistral",))
    )


def _without_draft(fixes: Sequence[Fix], cause: Cause, case: Case, knowledge: Knowledge) -> Fix | None:
    """Without speculation, where the failure names the folder of the draft and no fix does without it."""
    draft, model = (
        case.facts.look(f"flag.{name}") for name in ("speculative_draft_model_path", "model_path")
    )
    if not isinstance(draft, str) or len(draft) < _LEAST or draft == model or case.document is None:
        return None
    said = said_by(root_traceback(cause), cause.root)
    if not re.search(rf"(?<![\w.-]){re.escape(draft.rstrip('/'))}(?![\w-])", said):
        return None
    remedy = Remedy(
        title="Serve without speculation: what fails is the draft model",
        safety=Safety.RISKY,
        why=f"the message names {draft}, which the command gives as the draft; the model itself needs none",
        edits=(EditTemplate("remove", "--speculative-algorithm"),),
        risk="answers come slower",
    )
    made = fix_of(remedy, case, knowledge)
    return None if made is None or _touches(fixes, made) else made


def _touches(fixes: Sequence[Fix], new: Fix) -> bool:
    """Does one of the fixes edit one of the options already?"""
    names = {edit.name for edit in new.edits}
    return any(edit.name in names for fix in fixes for edit in fix.edits) or _told(fixes, new)


def _told(fixes: Sequence[Fix], new: Fix) -> bool:
    """Does a fix that no edit can be made of speak of the option?"""
    names = {edit.name for edit in new.edits}
    return any(name in f"{fix.title} {' '.join(fix.run)}" for fix in fixes for name in names)


def _is_strong(name: Namesake) -> bool:
    """Is it the whole of what the option asks for that the code is named after?"""
    dest, words = name.use.dest, name.words
    if dest.startswith("enable_") and words == dest.removeprefix("enable_"):
        return True
    if not dest.endswith(_NAMES_CODE) or not name.use.values:
        return False
    if words != name.use.values[0].lower().replace("-", "_") or len(words) < _LEAST:
        return False
    return words not in _EVERYWHERE or (is_own(name.frame.path) and dest in set(options_of([name.frame])))


def _another_release(fixes: Sequence[Fix], cause: Cause, case: Case) -> tuple[Fix, ...]:
    """An upgrade, where nothing names a release, SGLang's own code is in error, and a later one has another form of it."""
    if any(next(sglang_asked(fix.run), None) or "SGLang" in fix.title for fix in fixes):
        return ()
    from mtpdoctor.diagnose.later import INTERNAL, outlook_of  # reads tables that most failures do not need
    from mtpdoctor.diagnose.upgrading import later_fixes

    traceback = root_traceback(cause)
    if traceback is None or not traceback.frames or not is_own(traceback.frames[-1].path):
        return ()
    if traceback.type.rsplit(".", 1)[-1] not in INTERNAL - {"ImportError", "ModuleNotFoundError"}:
        return ()
    outlook = outlook_of(traceback, cause.root.body, case)
    if outlook is None or outlook.differs is None or not (outlook.concerned or outlook.here):
        return ()
    return tuple(fix for fix in later_fixes(outlook, case) if fix.title.startswith("Upgrade"))
