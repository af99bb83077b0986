"""Weights that a fix would load, held against the GPUs of this launch: other checkpoints, and another split of the same. Pure.

By the number of parameters that the model's name tells, the GPUs that share the weights, and the memory of each
(``published.room_of``). Where one of them is not known nothing is judged.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mtpdoctor.diagnose.splits import billions_of
from mtpdoctor.facts import UNKNOWN
from mtpdoctor.kb.types import Safety
from mtpdoctor.launch.types import EditOp
from mtpdoctor.patterns import lazy
from mtpdoctor.records import replace

if TYPE_CHECKING:
    from mtpdoctor.case import Case
    from mtpdoctor.diagnose.types import Fix

_ADVICE = lazy(r"(?i)\b(?:use|take|serve|try)\b[^.;]*\b(?:checkpoint|quantized version)\b")
# Bytes for a parameter, scales included.
_FORMATS = (
    ("BF16", 2.0, lazy(r"(?i)\bbf16\b|\bfp16\b|\bunquantized\b|\boriginal checkpoint\b")),
    ("FP8", 1.06, lazy(r"(?i)\bfp8\b|\bint8\b|\bmxfp8\b")),
    ("4 bits", 0.6, lazy(r"(?i)\bawq\b|\bgptq\b|\bint4\b|\bnvfp4\b|\bmxfp4\b|\b4[ -]bits?\b")),
)
_TP = frozenset(("--tp-size", "--tp", "--tensor-parallel-size"))
_WEIGHTS = frozenset(("--model-path", "--model", "--quantization", "--cpu-offload-gb"))
_FEW_BITS = lazy(
    r"(?i)awq|gptq|int4|fp4|w4|4-?bit|gguf|q[2-6]-|bnb|bitsandbytes|gpt-oss|kimi-k|deepseek-v4|quark|compressed|modelopt|auto-?round|marlin|mixed|torchao|hqq|int[23]|\dbpw"
)
_USABLE = 0.95  # of the free memory: the rest is needed to run at all
_GIB = 1 << 30


def fitting_weights(fixes: Sequence[Fix], case: Case) -> tuple[Fix, ...]:
    """The fixes with what is known of the room for the weights that each of them leads to."""
    return fitting_checkpoints(fitting_splits(fixes, case), case)


def fitting_splits(fixes: Sequence[Fix], case: Case) -> tuple[Fix, ...]:
    """The fixes; those whose number of GPUs surely holds too large a share of the weights say so, and go behind the others."""
    if not any(edit.op is EditOp.SET and edit.name in _TP for fix in fixes for edit in fix.edits):
        return tuple(fixes)
    room = _room(case)
    if room is None:
        return tuple(fixes)
    billions, free, ranks = room
    size = _least_bytes(case)
    fit: list[Fix] = []
    large: list[Fix] = []
    for fix in fixes:
        split = _ranks_of(fix, case)
        need = billions * 1e9 * size / (split or ranks) / _GIB
        if split is None or any(edit.name in _WEIGHTS for edit in fix.edits) or need <= free:
            fit.append(fix)
            continue
        said = f"by the {billions:g} billion parameters of its name each of {split} GPUs would hold {need:.0f} GiB at least, and has {free:.0f} GiB"
        safety = fix.safety if fix.safety != Safety.SAFE.value else Safety.RISKY.value
        large.append(replace(fix, notes=(*fix.notes, said), safety=safety, risk=fix.risk or said))
    return (*fit, *large)


def _ranks_of(fix: Fix, case: Case) -> int | None:
    """The GPUs that share the weights after a fix that sets their number; None where it does not."""
    if case.document is None or fix.document is None:
        return None
    if not any(edit.op is EditOp.SET and edit.name in _TP for edit in fix.edits):
        return None
    sizes = [fix.document.command.value(name) for name in ("tp_size", "pp_size")]
    said = [(size or ("1",))[-1] for size in sizes]
    return (
        int(said[0]) * int(said[1]) if all(one.isdecimal() and 0 < int(one) < 10**6 for one in said) else None
    )


def _least_bytes(case: Case) -> float:
    """Bytes for a parameter that the weights in use surely take; a name that tells no format may be of any with 8 bits."""
    name = str(case.facts.look("arg.model_path") or "").rsplit("/", 1)[-1].replace("_", "-")
    method = case.facts.look("model.quantization")
    if (
        method is None
        and case.facts.look("arg.quantization") in (None, UNKNOWN)
        and not _FEW_BITS.search(name)
    ):
        return 2.0  # its config.json names no quantization
    if _FEW_BITS.search(f"{name} {method} {case.facts.look('arg.quantization')}"):
        return 0.5
    return 1.0


def fitting_checkpoints(fixes: Sequence[Fix], case: Case) -> tuple[Fix, ...]:
    """The fixes without those whose formats all take more than there is, and with a note where one of several does."""
    if not any(_ADVICE.search(fix.title) for fix in fixes):
        return tuple(fixes)
    room = _room(case)
    if room is None:
        return tuple(fixes)
    billions, free, ranks = room
    out: list[Fix] = []
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
    from mtpdoctor.kb.checkpoints import PLAIN, PLAIN_SHARE, WHOLE  # few fixes name formats

    plain = min(PLAIN, PLAIN_SHARE * billions)  # embedding, LM head and norms stay in 16 bits
    return {
        name: (billions * size + plain * (WHOLE - size)) * 1e9 / ranks / _GIB
        for name, size, words in _FORMATS
        if words.search(fix.title)
    }


def _room(case: Case) -> tuple[float, float, int] | None:
    """Billions of parameters, GiB free on a GPU, and GPUs that share the weights."""
    from mtpdoctor.diagnose.published import in_host_memory, room_of  # only where weights are spoken of

    billions = billions_of(case)
    if case.document is None or billions is None or in_host_memory(case.facts):
        return None
    room = room_of(case.facts)
    return (billions, room.free, room.ranks) if room.free is not None else None
