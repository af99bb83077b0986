"""A fix that takes nodes away, as whatever starts the nodes has to have it: Slurm's directive, a manifest, the other shells. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mtpdoctor.diagnose.remedies import diff_of
from mtpdoctor.errors import UserError
from mtpdoctor.launch.document import LaunchDocument, read_launch
from mtpdoctor.launch.types import Form
from mtpdoctor.patterns import lazy
from mtpdoctor.records import replace

if TYPE_CHECKING:
    from mtpdoctor.case import Case
    from mtpdoctor.diagnose.types import Fix
    from mtpdoctor.log.types import Attempt

_SLURM = lazy(r"^(?:\d+: *)?(?:srun|slurmstepd|sbatch|salloc): |DUE TO TIME LIMIT")
_DIRECTIVE = lazy(r"^(#SBATCH[ \t](?:[^\n]*[ \t])?(?:-N[ \t=]*|--nodes(?:=|[ \t]+)))(\d+)(?![\d-])", re.M)


def with_fewer_nodes(fixes: Sequence[Fix], case: Case, attempt: Attempt) -> tuple[Fix, ...]:
    """The fixes; of those that leave fewer nodes, with the directive of a Slurm script changed or a line that says what else
    asks for the nodes."""
    before = _nodes(case.document) if case.document is not None else 1
    if case.document is None or before < 2:
        return tuple(fixes)
    slurm = any(_SLURM.search(event.line.text) for event in attempt.events) or "srun" in case.document.text
    out = []
    for fix in fixes:
        after = _nodes(fix.document) if fix.document is not None else before
        out.append(_told(fix, case.document, after, slurm=slurm) if after < before else fix)
    return tuple(out)


def _nodes(document: LaunchDocument) -> int:
    said = (document.command.value("nnodes") or ("",))[-1]
    return int(said) if said.isdecimal() and len(said) < 6 else 1


def _told(fix: Fix, old: LaunchDocument, nodes: int, *, slurm: bool) -> Fix:
    others = "and no server on the others" if nodes == 1 else "and no server on those left over"
    if old.form is Form.SBATCH and fix.document is not None:
        changed = _with_directive(fix.document, nodes)
        if changed is not None:
            fix = replace(fix, document=changed, diff=diff_of(old, changed))
            return _noted(
                fix, f"#SBATCH --nodes is {nodes} along with it; an srun in front takes -N {nodes} too"
            )
        return _noted(
            fix, f"the job needs {nodes} node{'s' * (nodes > 1)} only (#SBATCH --nodes, srun -N), {others}"
        )
    if slurm:
        return _noted(fix, f"in the job's script: #SBATCH --nodes={nodes}, srun -N {nodes}, {others}")
    if old.form is Form.KUBERNETES:
        return _noted(
            fix, f"the manifest that starts the nodes along with it (LeaderWorkerSet: size: {nodes})"
        )
    return _noted(fix, f"start it on {nodes} node{'s' * (nodes > 1)} only, {others}")


def _noted(fix: Fix, note: str) -> Fix:
    return replace(fix, notes=(*fix.notes, note))


def _with_directive(document: LaunchDocument, nodes: int) -> LaunchDocument | None:
    """None where no single directive tells the nodes, or several commands share them out."""
    found = list(_DIRECTIVE.finditer(document.text))
    if len(found) != 1 or len(document.commands) > 1 or int(found[0][2]) <= nodes:
        return None
    start, end = found[0].span(2)
    text = f"{document.text[:start]}{nodes}{document.text[end:]}"
    try:
        return read_launch(text, name=document.name, form=document.form, table=document.table)
    except UserError:
        return None
