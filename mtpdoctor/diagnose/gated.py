"""The option or variable that lets SGLang run the code that failed, and the edit that takes that way out.

From the table of gates (``sglang.gates``): what encloses a frame's line, or all calls of its function. The frame nearest to
the exception counts first. An edit of this kind gives up what the option was for: always ``risky``, and proven like any.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mtpdoctor.case import Case
from mtpdoctor.diagnose.components import in_vision
from mtpdoctor.diagnose.remedies import fix_of
from mtpdoctor.diagnose.types import Fix
from mtpdoctor.diagnose.unknown import is_own
from mtpdoctor.diagnose.workable import can_work
from mtpdoctor.facts import UNKNOWN, Source, whole_number
from mtpdoctor.kb.load import Knowledge
from mtpdoctor.kb.types import EditTemplate, Remedy, Safety
from mtpdoctor.log.types import Frame, Traceback
from mtpdoctor.paths import releases_folder
from mtpdoctor.records import dataclass
from mtpdoctor.release import Release
from mtpdoctor.sglang.flags import FlagSpec, flag_table
from mtpdoctor.sglang.gates import IS, OFF, ON, OVER, Gate, gates_of_frame

MAX_ASKED = 2  # options that were asked for
MAX_CHOSEN = 1  # what SGLang chose by itself
NEAR = 4  # own frames: what SGLang chose further out, every launch goes through
# The vision tower's attention is chosen by an option of its own.
_OF_LANGUAGE = frozenset({"attention_backend", "prefill_attention_backend", "decode_attention_backend"})
_UNSET = (None, False, "", "none", "None", "null", "auto", "False")
# The system refuses: other code of SGLang's would ask it the same.
SURROUNDINGS = frozenset(
    {"OSError", "ZMQError", "PermissionError", "FileNotFoundError", "ConnectionError", "ConnectionRefusedError", "TimeoutError"}
)  # fmt: skip
# Values to try first where an option names the code to be used; the most widely supported first.
_OTHERS = {
    "attention_backend": ("triton", "flashinfer", "fa3", "torch_native"),
    "prefill_attention_backend": ("triton", "flashinfer", "fa3"),
    "decode_attention_backend": ("triton", "flashinfer", "fa3"),
    "mm_attention_backend": ("triton_attn", "sdpa", "fa3"),
    "moe_runner_backend": ("triton", "deep_gemm", "flashinfer_cutlass", "marlin"),
    "sampling_backend": ("pytorch", "flashinfer"),
    "grammar_backend": ("xgrammar", "llguidance", "outlines"),
    "disaggregation_transfer_backend": ("mooncake", "nixl"),
    "hicache_io_backend": ("direct", "kernel"),
    "hicache_mem_layout": ("layer_first", "page_first_direct", "page_first"),
    "lora_backend": ("triton", "csgmv"),
    "linear_attn_backend": ("triton",),
    "mamba_backend": ("triton", "flashinfer"),
}


@dataclass(frozen=True, slots=True)
class Gated:
    """``asked``: edits of what the command asks for; ``chosen``: of what SGLang does by itself. ``steps`` say it."""

    asked: tuple[Fix, ...]
    chosen: tuple[Fix, ...]
    steps: tuple[str, ...]


NOTHING = Gated((), (), ())


@dataclass(frozen=True, slots=True)
class _Way:
    """An edit that closes a gate; ``why`` goes on after the name of the code."""

    title: str
    why: str
    edits: tuple[EditTemplate, ...]


def gated_fixes(traceback: Traceback | None, case: Case, knowledge: Knowledge) -> Gated:
    """Edits by the frames of the exception that is the root cause."""
    if traceback is None:
        return NOTHING
    refused = traceback.type.rsplit(".", 1)[-1] in SURROUNDINGS
    return gated_by_frames(traceback.frames, case, knowledge, near=0 if refused else NEAR)


def gated_by_frames(
    frames: Sequence[Frame], case: Case, knowledge: Knowledge, *, near: int = 0, what: str = "failed"
) -> Gated:
    """Edits by frames, the innermost last. ``near``: so many of the innermost count for what the command did not ask
    for. ``what`` the code did, in a word."""
    if case.release is None or not frames:
        return NOTHING
    asked: dict[str, Fix] = {}
    chosen: dict[str, Fix] = {}
    steps: list[str] = []
    for distance, frame, gate in gates_on(frames, case.release):
        name = gate.name
        if name in asked or name in chosen:
            continue
        by_command = asked_for(gate, case)
        if not by_command and distance >= near:
            continue
        if len(asked if by_command else chosen) >= (MAX_ASKED if by_command else MAX_CHOSEN):
            continue
        for way in _ways(gate, by_command, case):
            remedy = _remedy(way, frame, what)
            fix = fix_of(remedy, case, knowledge)
            if fix is not None and (case.document is None or fix.command is not None):
                (asked if by_command else chosen)[name] = fix
                steps.append(remedy.why)
                break
    return Gated(tuple(asked.values()), tuple(chosen.values()), tuple(steps))


def others_than(fixes: Sequence[Fix], gated: Sequence[Fix]) -> tuple[Fix, ...]:
    """Those of ``gated`` whose edits none of ``fixes`` makes."""
    there = {fix.edits for fix in fixes if fix.edits}
    return tuple(fix for fix in gated if fix.edits not in there)


def gates_on(frames: Sequence[Frame], release: Release) -> Iterator[tuple[int, Frame, Gate]]:
    """Own frames, the nearest to the exception first with its distance, and what each runs under."""
    own = [frame for frame in reversed(frames) if is_own(frame.path)]
    vision = any(in_vision(frame) for frame in own[:NEAR])
    for distance, frame in enumerate(own):
        for gate in gates_of_frame(releases_folder(), frame.path, frame.function, frame.code, release):
            if not vision or gate.name not in _OF_LANGUAGE:
                yield distance, frame, gate


def option_of(gate: Gate, case: Case) -> FlagSpec | None:
    spec = flag_table(case.release).by_dest(gate.name)
    return spec if spec is not None and spec.refused is None else None


def asked_for(gate: Gate, case: Case) -> bool:
    """Is it in the command that the gate is open?"""
    if gate.name.startswith("$"):
        fact = case.facts.fact(f"env.{gate.name[1:]}")
        return fact is not None and str(fact.value).lower() not in ("", "0", "false", "none")
    typed = case.facts.look(f"flag.{gate.name}")
    if typed in (UNKNOWN, None, False) or option_of(gate, case) is None:
        return False
    return (
        gate.how == ON
        or (gate.how == IS and _one_of(typed, gate))
        or (gate.how == OVER and _over(typed, gate))
    )


def _one_of(value: object, gate: Gate) -> bool:
    return _plain(value) in {_plain(v) for v in gate.values}


def _plain(value: object) -> str:
    return str(value).lower().replace("-", "_")


def _over(value: object, gate: Gate) -> bool:
    try:
        return int(str(value)) > int(gate.values[0])
    except ValueError:
        return False


def _ways(gate: Gate, asked: bool, case: Case) -> Iterator[_Way]:
    if gate.name.startswith("$"):
        yield from _of_variable(gate, asked, case)
        return
    spec = option_of(gate, case)
    if spec is None:
        return
    if gate.how == OFF:
        if not asked and case.facts.look(f"arg.{spec.dest}") in _UNSET and spec.arity == "switch":
            edits = (EditTemplate("add", spec.name),)
            yield _Way(f"Switch it off: {spec.name}", f"runs unless {spec.name} is given", edits)
        return
    if asked and gate.how in (ON, OVER):
        yield from _without(gate, spec, case)
    elif gate.how == IS:
        yield from _another(gate, spec, asked, case)


def _of_variable(gate: Gate, asked: bool, case: Case) -> Iterator[_Way]:
    from mtpdoctor.sglang.releases import release_facts

    name = gate.name[1:]
    known = release_facts(case.release).env.get(name)
    if gate.how != ON or known is None or known.type != "bool":
        return
    by_default = known.default is True and case.facts.look(f"env.{name}") in (UNKNOWN, None)
    if asked or by_default:
        said = "is set" if asked else "is on, as it is by default"
        edits = (EditTemplate("env", name, "0"),)
        yield _Way(f"Switch it off: {name}=0", f"runs only where {name} {said}", edits)


_SIZES_OF_ADAPTERS = ("max_lora_rank", "lora_target_modules")


def _without(gate: Gate, spec: FlagSpec, case: Case) -> Iterator[_Way]:
    """Without an option that was asked for, where its default closes the gate."""
    if gate.how == ON and spec.default not in _UNSET:
        return
    if gate.how == OVER and _over(spec.default, gate):
        return
    title, edits = f"Leave {spec.name} out", [EditTemplate("remove", spec.name)]
    if spec.dest == "pp_size":
        tp, pp = (whole_number(case.facts.look(f"arg.{name}")) for name in ("tp_size", "pp_size"))
        if tp is not None and pp is not None:
            title = f"Split by tensor parallelism alone: --tp-size {tp * pp} without {spec.name}"
            edits.append(EditTemplate("set", "--tp-size", str(tp * pp)))
    if spec.dest == "lora_paths" and not all(case.facts.look(f"flag.{n}") for n in _SIZES_OF_ADAPTERS):
        edits.append(EditTemplate("remove", "--enable-lora"))  # alone it asks for these sizes
    yield _Way(title, f"runs only with {spec.name}", tuple(edits))


def _another(gate: Gate, spec: FlagSpec, asked: bool, case: Case) -> Iterator[_Way]:
    """Another value of an option that names the code to be used."""
    shown = case.facts.fact(f"arg.{spec.dest}")
    typed = case.facts.look(f"flag.{spec.dest}")
    value = typed if asked else shown.value if shown is not None and shown.source is Source.LOG else None
    if value is None or not _one_of(value, gate):
        return
    if spec.dest == "disaggregation_transfer_backend" and value == "ascend":
        return  # the others are for other makes
    why = f"runs only with {spec.name} {value}" + ("" if asked else ", which SGLang chose by itself")
    choices = {str(choice) for choice in spec.choices or ()}
    first = ("intel_xpu",) if case.facts.look("host.platform") == "xpu" else ()
    others = [
        other
        for other in (*first, *_OTHERS.get(spec.dest, ()))
        if (other in choices or not choices) and not _one_of(other, gate)
        if can_work(spec.dest, other, case.facts, case.release)
    ]
    for other in others:
        edits = (EditTemplate("set", spec.name, other),)
        yield _Way(f"Let other code do it: {spec.name} {other}", why, edits)
    if asked and not others:
        yield _Way(f"Leave {spec.name} {value} out", why, (EditTemplate("remove", spec.name),))


def _remedy(way: _Way, frame: Frame, what: str) -> Remedy:
    file = frame.path[frame.path.rfind("sglang/") :]
    return Remedy(
        title=way.title,
        safety=Safety.RISKY,
        why=f"what {what} ({frame.function}, {file}) {way.why}",
        edits=way.edits,
        risk="gives up what the option was for; read off the source, not known from experience",
    )
