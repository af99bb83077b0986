"""An attention backend lacks an attribute that the model, speculation or graphs ask of it: the backends that have it."""

from __future__ import annotations

from mtpdoctor.case import Case
from mtpdoctor.diagnose.kinds.backend import ATTENTION, _order
from mtpdoctor.diagnose.workable import can_work
from mtpdoctor.facts import UNKNOWN
from mtpdoctor.kb.types import EditTemplate, Match, Remedy, Safety
from mtpdoctor.paths import releases_folder
from mtpdoctor.sglang.flags import flag_table
from mtpdoctor.sglang.members import attribute_of

MAX_OFFERED = 2
_PLATFORMS = {"ascend": "npu", "aiter": "rocm", "intel_amx": "cpu"}  # all others are for CUDA, triton for all
# Values of --attention-backend and the classes behind them, as SGLang's registry of backends has them.
_CLASSES = {
    "fa3": "FlashAttentionBackend",
    "fa4": "FlashAttentionBackend",
    "flashinfer": "FlashInferAttnBackend",
    "triton": "TritonAttnBackend",
    "trtllm_mha": "TRTLLMHAAttnBackend",
    "trtllm_mla": "TRTLLMMLABackend",
    "flashmla": "FlashMLABackend",
    "cutlass_mla": "CutlassMLABackend",
    "torch_native": "TorchNativeAttnBackend",
    "aiter": "AiterAttnBackend",
    "ascend": "AscendAttnBackend",
    "intel_amx": "IntelAMXAttnBackend",
}


def backend_part_remedies(match: Match, case: Case) -> list[Remedy]:
    """Captures ``backend`` (the class) and ``what``. Only backends that this release's sources say to have it, and that can run here."""
    release, what = case.release, match.captures.get("what", "")
    spec = flag_table(release).by_dest(ATTENTION)
    if spec is None or spec.refused is not None:
        return []
    if release is None:
        why = "it runs on every GPU and has most of these parts"
        edits = (EditTemplate("set", spec.name, "triton"),)
        return [
            Remedy(
                f"Use another attention backend: {spec.name} triton",
                Safety.RISKY,
                why,
                edits=edits,
                risk="slower",
            )
        ]
    failed = match.captures.get("backend", "")
    sm, platform = case.facts.look("host.gpu.sm"), case.facts.look("host.platform")
    order = _order(ATTENTION, sm if isinstance(sm, int) else None, str(platform))
    has = [v for v in dict.fromkeys((*order, *_CLASSES)) if _CLASSES.get(v) != failed and _has(v, what, case)]
    choices = {str(c) for c in spec.choices or ()}
    able = [
        v
        for v in has
        if v in choices
        and _PLATFORMS.get(v, platform if v == "triton" or platform is UNKNOWN else "cuda") == platform
        and can_work(ATTENTION, v, case.facts, release)
    ]
    others = tuple(
        EditTemplate("remove", s.name)
        for dest in ("prefill_attention_backend", "decode_attention_backend")
        if (s := flag_table(release).by_dest(dest)) is not None
        and case.facts.look(f"flag.{dest}") not in (UNKNOWN, None)
    )
    return [
        Remedy(
            title=f"Use an attention backend that has it: {spec.name} {value}",
            safety=Safety.RISKY,
            why=f"in SGLang {release} {_CLASSES[value]} has {what}, {failed} has not",
            edits=(*others, EditTemplate("set", spec.name, value)),
            risk="not for every model; other figures of speed",
        )
        for value in able[:MAX_OFFERED]
    ]


def _has(value: str, what: str, case: Case) -> bool:
    known = attribute_of(releases_folder(), _CLASSES.get(value, ""), what)
    return known is not None and case.release is not None and known[1].holds(case.release)
