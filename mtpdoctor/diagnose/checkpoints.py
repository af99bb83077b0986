"""Another checkpoint of the model as a way out: only in number formats whose weights fit the GPUs of this launch. Pure.

By the number of parameters that the model's name tells, the GPUs that share the weights, and the memory that the log shows to
be free on each before loading. Where one of them is not known nothing is judged.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mtpdoctor.diagnose.splits import billions_of, number_of
from mtpdoctor.patterns import lazy
from mtpdoctor.records import replace

if TYPE_CHECKING:
    from mtpdoctor.case import Case
    from mtpdoctor.diagnose.types import Fix

_ADVICE = lazy(r"(?i)\b(?:use|take|serve|try)\b[^.;]*\b(?:checkpoint|quantized version)\b")
# Bytes for a parameter, scales and layers that stay wide included.
_FORMATS = (
    ("BF16", 2.0, lazy(r"(?i)\bbf16\b|\bfp16\b|\bunquantized\b|\boriginal checkpoint\b")),
    ("FP8", 1.06, lazy(r"(?i)\bfp8\b|\bint8\b|\bmxfp8\b")),
    ("4 bits", 0.6, lazy(r"(?i)\bawq\b|\bgptq\b|\bint4\b|\bnvfp4\b|\bmxfp4\b|\b4[ -]bits?\b")),
)
_USABLE = 0.95  # of the free memory: the rest is needed to run at all
_GIB = 1 << 30


def fitting_checkpoints(fixes: Sequence[Fix], case: Case) -> tuple[Fix, ...]:
    """The fixes without those whose formats all take more than there is, and with a note where one of several does."""
    if not any(_ADVICE.search(fix.title) for fix in fixes):
        return tuple(fixes)
    room = _room(case)
    if room is None:
        return tuple(fixes)
    billions, free, ranks = room
    out = []
    for fix in fixes:
        needs = _needs(fix, billions, ranks) if not fix.edits and _ADVICE.search(fix.title) else {}
        large = [name for name, need in needs.items() if need > free * _USABLE]
        if not large:
            out.append(fix)
        elif len(large) < len(needs) or len(fixes) == 1:
            said = ", ".join(f"{name} about {need:.0f} GiB" for name, need in needs.items())
            note = f"by the {billions:g} billion parameters of its name a GPU would hold {said}, and has {free:.0f} GiB free"
            out.append(replace(fix, notes=(*fix.notes, f"{note}; too large: {', '.join(large)}")))
    return tuple(out or fixes)


def _needs(fix: Fix, billions: float, ranks: int) -> dict[str, float]:
    """GiB of weights on a GPU for each format that the fix names."""
    return {
        name: billions * 1e9 * size / ranks / _GIB
        for name, size, words in _FORMATS
        if words.search(fix.title)
    }


def _room(case: Case) -> tuple[float, float, int] | None:
    """Billions of parameters, GiB free on a GPU, and GPUs that share the weights."""
    from mtpdoctor.diagnose.published import in_host_memory  # only where a checkpoint is advised

    if case.document is None or in_host_memory(case.facts):
        return None
    billions = billions_of(case)
    free = case.facts.look("log.avail_mem_before_load_gib")
    if not isinstance(free, (int, float)):
        free = case.facts.look("host.gpu.memory_gib")
    ranks, stages = (number_of(case.facts, f"arg.{name}") for name in ("tp_size", "pp_size"))
    if billions is None or isinstance(free, bool) or not isinstance(free, (int, float)) or free <= 0:
        return None
    return billions, float(free), (ranks or 1) * (stages or 1)
