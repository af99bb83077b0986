"""What the log itself shows of the machine, held against a diagnosis: the lines that confirm it, and what is there already.

A command that installs what the log shows to be installed changes nothing in the Python that was looked at; where a module is
missing all the same, the server runs in another one.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from mtpdoctor.diagnose.types import Diagnosis, Fix
from mtpdoctor.kb.conditions import fact_names
from mtpdoctor.patterns import lazy
from mtpdoctor.records import replace
from mtpdoctor.sglang.packages import package_of

if TYPE_CHECKING:
    from mtpdoctor.diagnose.causality import Cause
    from mtpdoctor.kb.types import Match
    from mtpdoctor.log.types import Attempt, Line, Observation

_MOST = 3  # confirming lines
_OBVIOUS = frozenset(("host.platform", "host.container"))
_ABSENT = lazy(r"ModuleNotFoundError: No module named '(\w+)'\s*$|\bpython[\d.]*: No module named (\w+)\s*$")
_INSTALL = lazy(r"\bpip3? install\s+(.+?)\s*(?:#.*)?$")
_ANEW = lazy(
    r"--force-reinstall|--upgrade|\s-U\b|--pre\b|--index-url|--extra-index-url|git\+|://|\s-e\s|\.whl|\$\("
)
_WORD = re.compile(r"^([A-Za-z][\w.-]*)(?:\[[\w,-]*\])?((?:[<>=!~]=?[\w.*+!]+,?)*)$")
_DONE = ("Successfully installed ", "+ ", "~ ")  # said of an installation, not of a list
_INTERPRETER = lazy(r"^(/.*?)/lib/python3\.\d+/site-packages/")


def as_shown(diagnosis: Diagnosis, cause: Cause, attempt: Attempt) -> Diagnosis:
    """The diagnosis with the lines that confirm it, without fixes whose whole effect the log shows to be there."""
    seen = {one.name: one for one in attempt.observations}
    if cause.match is not None and (lines := _confirming(cause.match, diagnosis, seen)):
        diagnosis = replace(diagnosis, evidence=(*diagnosis.evidence, *lines))
    if not diagnosis.fixes or not any(name.startswith("host.package.") for name in seen):
        return diagnosis
    there = {
        name[13:]: one
        for name, one in seen.items()
        if name.startswith("host.package.")
        and isinstance(one.value, str)
        and _was_there(one.line, diagnosis.root)
    }
    knows_more = cause.match is not None and not any(
        r.generate == "module" for r in cause.match.rule.remedies
    )
    return _with_installed(diagnosis, there, "" if knows_more else _module(diagnosis))


def _was_there(line: Line, root: Line) -> bool:
    """When the launch failed: what was installed behind the failure was the person's next step."""
    return line.key < root.key or not line.body.lstrip().startswith(_DONE)


def _confirming(match: Match, diagnosis: Diagnosis, seen: Mapping[str, Observation]) -> tuple[Line, ...]:
    """Lines of what the rule's condition and that of the first fix ask of the machine."""
    asked = list(fact_names(match.rule.when))
    first = diagnosis.fixes[0].title if diagnosis.fixes else ""
    asked += [
        name
        for remedy in match.rule.remedies
        if first and first.startswith(remedy.title.partition("{")[0])
        for name in fact_names(remedy.when)
    ]
    known = {diagnosis.root.key, *(line.key for line in diagnosis.evidence)}
    lines = {
        seen[name].line.key: seen[name].line
        for name in asked
        if name in seen and name.startswith(("host.", "model.weights")) and name not in _OBVIOUS
    }
    return tuple(line for key, line in lines.items() if key not in known)[:_MOST]


def _module(diagnosis: Diagnosis) -> str:
    absent = _ABSENT.search(diagnosis.root.body)
    return (absent[1] or absent[2]) if absent is not None else ""


def _with_installed(diagnosis: Diagnosis, there: Mapping[str, Observation], module: str) -> Diagnosis:
    names = (*package_of(module).distributions, module.replace("_", "-").lower()) if module else ()
    brings = next((name for name in names if name in there), None)
    keep: list[Fix] = []
    idle: list[Fix] = []
    for fix in diagnosis.fixes:
        asked = list(_asked(fix))
        installed = [name for name, spec in asked if name in there and _meets(str(there[name].value), spec)]
        (idle if asked and len(installed) == len(asked) and not fix.edits else keep).append(fix)
    if brings is None:
        if not idle:
            return diagnosis
        notes = tuple(replace(f, notes=(*f.notes, _said(_asked(f), there))) for f in idle)
        return replace(diagnosis, fixes=(*keep, *notes))
    shown = there[brings]
    told = f"The log shows {brings} {shown.value} to be installed (line {shown.line.number}): in another Python than the server's, or its files are damaged."
    return replace(
        diagnosis,
        cause=f"{diagnosis.cause} {told}",
        evidence=(*diagnosis.evidence, shown.line),
        fixes=(_same_python(brings, str(shown.value), diagnosis), *keep),
    )


def _said(asked: Iterator[tuple[str, str]], there: Mapping[str, Observation]) -> str:
    have = ", ".join(f"{name} {there[name].value} (line {there[name].line.number})" for name, _ in asked)
    return f"the log shows it installed already: {have}; it helps where that was another Python than the server's"


def _asked(fix: Fix) -> Iterator[tuple[str, str]]:
    """Distributions, and the versions wanted, that the fix's commands install; nothing where they do it anew, or more."""
    for line in fix.run:
        found = _INSTALL.search(line)
        if found is None:
            continue
        if _ANEW.search(line):
            yield "", ""
            continue
        for word in found[1].replace('"', " ").replace("'", " ").split():
            m = _WORD.match(word)
            yield (m[1].lower().replace("_", "-").replace(".", "-"), m[2]) if m else ("", "")


def _meets(have: str, spec: str) -> bool:
    from mtpdoctor.diagnose.drift.found import meets

    return not spec or meets(have, spec)


def _same_python(name: str, version: str, diagnosis: Diagnosis) -> Fix:
    python = shlex.quote(_interpreter(diagnosis) or "python3")
    plain = version.partition("+")[0]
    return Fix(
        title=f"Install {name} {plain} into the Python that runs the server ({python}), or start the server with the one that has it",
        safety="manual",
        why="the package is there and the server does not see it: another environment, pip of another Python, or damaged files",
        risk=None,
        edits=(),
        run=(
            f"{python} -c 'import sys; print(sys.executable, sys.path)'",
            f"{python} -m pip install --force-reinstall --no-deps {name}=={plain}",
        ),
        command=None,
        verified="none",
    )


def _interpreter(diagnosis: Diagnosis) -> str | None:
    """The Python of the environment whose files the traceback names; a system's has its packages elsewhere."""
    frames: Sequence[object] = diagnosis.raised.frames if diagnosis.raised is not None else ()
    for frame in frames:
        found = _INTERPRETER.match(getattr(frame, "path", ""))
        if found is not None and not found[1].endswith("/.local") and found[1] not in ("/usr", "/usr/local"):
            return f"{found[1]}/bin/python"
    return None
