"""The backend whose code failed, the option that chooses it, and what else that option can be.

Which backend a file belongs to is read off its path: SGLang's own modules are named after them, and the
kernel libraries have a folder for each use.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mtpdoctor.case import Case
from mtpdoctor.diagnose.components import in_vision
from mtpdoctor.diagnose.workable import can_work
from mtpdoctor.facts import UNKNOWN
from mtpdoctor.kb.types import EditTemplate, Match, Remedy, Safety
from mtpdoctor.patterns import lazy
from mtpdoctor.records import dataclass
from mtpdoctor.release import parse_release
from mtpdoctor.sglang.flags import FlagSpec, flag_table

ATTENTION, MOE, SAMPLING, GRAMMAR = (
    "attention_backend",
    "moe_runner_backend",
    "sampling_backend",
    "grammar_backend",
)
LINEAR, VISION, FP8, FP4 = (
    "linear_attn_backend",
    "mm_attention_backend",
    "fp8_gemm_runner_backend",
    "fp4_gemm_runner_backend",
)
A2A, LORA, MAMBA = "moe_a2a_backend", "lora_backend", "mamba_backend"
SPARSE = "sparse attention"  # of models that --attention-backend does not decide for
_WORDS = {
    ATTENTION: "attention",
    MOE: "the experts (MoE)",
    SAMPLING: "sampling",
    GRAMMAR: "structured output",
    LINEAR: "linear attention",
    VISION: "attention of the vision part",
    FP8: "FP8 matrix products",
    FP4: "FP4 matrix products",
    A2A: "sending tokens to experts",
    LORA: "adapters",
    MAMBA: "Mamba layers",
    SPARSE: "sparse attention",
}
NEAR_VISION = 6  # innermost frames
LAYERS = frozenset(_WORDS)  # the options that say what computes a layer
# A path's end or a symbol -> option and value; the first that is found in the innermost frame counts.
_PLACES: tuple[tuple[str, str, str | None], ...] = (
    (
        r"attention/flashattention_backend|FlashAttentionBackend|flash_attn_interface|sgl_kernel/flash_attn|/hopper/|flash_fwd_launch",
        ATTENTION,
        "fa3",
    ),
    (r"flash_attn/cute|flash_attention_v4|sgl_kernel/_fa4", ATTENTION, "fa4"),
    (
        r"attention/flashinfer_(?:mla_)?backend|flashinfer/(?:prefill|decode|mla|attention|cascade|sparse)\b|FlashInfer(?:MLA)?AttnBackend|BatchPrefillWith|BatchDecodeWith",
        ATTENTION,
        "flashinfer",
    ),
    (r"attention/flashmla_backend|flash_mla|FlashMLABackend", ATTENTION, "flashmla"),
    (r"attention/cutlass_mla|cutlass_mla_decode", ATTENTION, "cutlass_mla"),
    (
        r"attention/trtllm_mla_backend|TRTLLMMLABackend|trtllm_batch_decode_with_kv_cache_mla",
        ATTENTION,
        "trtllm_mla",
    ),
    (
        r"attention/trtllm_mha_backend|TRTLLMHAAttn|TllmGenFmha|trtllm_batch_(?:decode|context)|fmhaRunner",
        ATTENTION,
        "trtllm_mha",
    ),
    (r"attention/aiter_|AiterAttnBackend|Aiter MLA", ATTENTION, "aiter"),
    (r"attention/wave_", ATTENTION, "wave"),
    (r"attention/torch_native_backend", ATTENTION, "torch_native"),
    (r"attention/torch_flex_backend", ATTENTION, "flex_attention"),
    (r"attention/(?:triton_backend|triton_ops)|TritonAttnBackend", ATTENTION, "triton"),
    (r"attention/vision", VISION, None),
    (
        r"attention/(?:linear|fla|hybrid_linear_attn_backend)|causal_conv1d|chunk_gated_delta|fused_recurrent",
        LINEAR,
        None,
    ),
    (r"attention/mamba|mamba_ssm|selective_state_update|mamba/ops", MAMBA, None),
    (
        r"sampling/|layers/sampler|sgl_kernel/sampling|flashinfer/sampling|top_k_top_p_sampling",
        SAMPLING,
        "flashinfer",
    ),
    (r"constrained/(?:xgrammar)|/xgrammar/", GRAMMAR, "xgrammar"),
    (r"constrained/outlines|/outlines(?:_core)?/", GRAMMAR, "outlines"),
    (r"constrained/llguidance|/llguidance/", GRAMMAR, "llguidance"),
    (r"token_dispatcher/deepep|/deep_ep/|deep_ep\.", A2A, "deepep"),
    (r"token_dispatcher/mooncake", A2A, "mooncake"),
    (r"token_dispatcher/flashinfer", A2A, "flashinfer"),
    (
        r"flashinfer_trtllm_moe|moe_runner/flashinfer_trtllm|trtllm_fused_moe|trtllm_(?:fp4|fp8|bf16|mxint4)\w*_moe|trtllm_batched_gemm|\bbmm_\w*(?:Fp|E\dm|Bfloat|MxE|E2m1)",
        MOE,
        "flashinfer_trtllm",
    ),
    (
        r"cutlass_fused_moe|moe_runner/flashinfer_cutlass|flashinfer/fused_moe|flashinfer_cutlass_moe",
        MOE,
        "flashinfer_cutlass",
    ),
    (r"flashinfer_cutedsl_moe|moe_runner/flashinfer_cutedsl|cutedsl.*moe", MOE, "flashinfer_cutedsl"),
    (r"moe/cutlass_|moe_runner/cutlass", MOE, "cutlass"),
    (r"moe_runner/deep_gemm|m_grouped_\w*gemm|grouped_gemm_nt", MOE, "deep_gemm"),
    (r"triton_kernels_moe|/triton_kernels/|moe_runner/triton_kernels", MOE, "triton_kernel"),
    (r"moe_runner/marlin|marlin_moe|moe_wna16_marlin", MOE, "marlin"),
    (r"moe_runner/aiter|aiter/fused_moe|module_moe_", MOE, "aiter"),
    # the layer of experts itself, which every runner goes through: no sign of Triton's
    (r"moe/fused_moe_triton/layer", MOE, None),
    (r"fused_moe_triton|moe_runner/triton|fused_moe_kernel|moe_align_block_size", MOE, "triton"),
    (r"mxfp4_flashinfer_trtllm_moe", MOE, "flashinfer_trtllm"),
    (r"quantization/[\w/]*moe\w*\.py|layers/moe/|MoEMethod\b", MOE, None),
    (r"fp4_gemm|mm_fp4|cutlass_scaled_fp4", FP4, None),
    (
        r"deep_gemm_wrapper|/deep_gemm/|deep_gemm\b|DeepGEMM|deepgemm|csrc/\S*jit(?:_kernels)?/|csrc/apis/(?:gemm|einsum|layout)\.hpp",
        FP8,
        "deep_gemm",
    ),
    (r"flashinfer/gemm|bmm_fp8|gemm_fp8_nt", FP8, "flashinfer_trtllm"),
    (r"fp8_blockwise_scaled_mm|fp8_scaled_mm", FP8, "cutlass"),
    (r"lora/backend/chunked|csgmv", LORA, "csgmv"),
    (r"lora/triton_ops|lora/backend/triton", LORA, "triton"),
    (r"/aiter/|ck_tile|composable_kernel", ATTENTION, "aiter"),
    # files of the kernels themselves, as a line without a traceback names them
    (r"trtllm[_/]?fmha|fmha\w*[Rr]unner|trtllm_gen", ATTENTION, "trtllm_mha"),
    (r"cutlass_mla|sm100_mla", ATTENTION, "cutlass_mla"),
    (r"FlashMLA/|flash_fwd_mla|splitkv_mla", ATTENTION, "flashmla"),
    (r"DeepEP/|deep_ep/|kernels/(?:intranode|internode)(?:_ll)?\.cu|nvshmem", A2A, "deepep"),
    (r"(?:moe|grouped_mm|grouped_gemm)\w*\.cuh?\b|csrc/moe/|group_gemm", MOE, None),
    (r"(?:nvfp4|fp4)\w*\.cuh?\b", FP4, None),
    (r"(?:fp8|blockwise|scaled_mm)\w*\.cuh?\b|csrc/gemm/", FP8, "cutlass"),
    (
        r"flashinfer/\S*(?:attention|prefill|decode|mla|page|cascade|pod)\S*\.(?:cuh?|h)\b",
        ATTENTION,
        "flashinfer",
    ),
)
_COMPILED = [(lazy(pattern), dest, value) for pattern, dest, value in _PLACES]
_SPARSE = lazy(r"attention/(?:nsa|dsa|deepseek_v4|dsv4|minimax_sparse)(?:_\w+|/|\b)")
_SPARSE_OPTIONS = (  # which of them a release has, its table tells
    ("dsa", ("dsa_prefill_backend", "dsa_decode_backend", "nsa_prefill_backend", "nsa_decode_backend")),
    ("nsa", ("nsa_prefill_backend", "nsa_decode_backend", "dsa_prefill_backend", "dsa_decode_backend")),
    ("deepseek_v4", ("dsv4_attn_backend",)),
    ("dsv4", ("dsv4_attn_backend",)),
)
_OLD_MOE = {  # switches that chose a runner before --moe-runner-backend
    "flashinfer_cutlass": ("--enable-flashinfer-cutlass-moe", "--enable-flashinfer-moe"),
    "flashinfer_trtllm": ("--enable-flashinfer-trtllm-moe",),
}
_IMPORT_OF_DEEPGEMM = lazy(r"deep_gemm_wrapper/configurer\.py")
_ASKS_FIRST = parse_release("0.5.21")


@dataclass(frozen=True, slots=True)
class Found:
    """Whose code failed. ``value`` None: the path tells the use, not the choice."""

    dest: str
    value: str | None


def backend_of(match: Match) -> Found | None:
    """The backend of the innermost frame (or of the message) that belongs to one. A kernel that sparse attention
    calls is chosen by the options of that."""
    sparse = _sparse_file(match) is not None
    vision = match.traceback is not None and any(in_vision(f) for f in match.traceback.frames[-NEAR_VISION:])
    for text in _places(match):
        for pattern, dest, value in _COMPILED:
            if pattern.search(text):
                if vision and dest == ATTENTION:
                    return Found(VISION, value)  # kernels that the language model's attention has too
                return Found(SPARSE, None) if sparse and dest == ATTENTION else Found(dest, value)
        if sparse and _SPARSE.search(text):
            return Found(SPARSE, None)
    return None


def _sparse_file(match: Match) -> str | None:
    for frame in reversed(match.traceback.frames if match.traceback is not None else ()):
        if (found := _SPARSE.search(frame.path)) is not None:
            return found[0].partition("/")[2]
    return None


def _places(match: Match) -> Iterator[str]:
    if match.traceback is None:
        yield match.line.body
        return
    yield match.traceback.message[:4000]
    for frame in reversed(match.traceback.frames):
        yield f"{frame.path}:{frame.function}"
        yield frame.code


def backend_remedies(match: Match, case: Case) -> list[Remedy]:
    """Leave the choice to SGLang where it was typed, then other choices that suit the GPU, as the release
    spells them; at the end all choices it has."""
    found = backend_of(match)
    if found is None:
        return []
    if found.dest == SPARSE:
        return list(_sparse(match, case))
    spec = _option(found.dest, case)
    if found.value == "deep_gemm" and _imports_deepgemm(match):
        # no backend that is chosen changes that; the variable is asked before the import from 0.5.21 on only
        late = case.release is None or case.release >= _ASKS_FIRST
        return list(_switches(found, case)) if late else []
    out = list(_switches(found, case))
    if spec is None:
        return out
    value, typed = _in_force(found, spec, case)
    what = _WORDS[found.dest]
    here = f"{value} " if value else ""
    if typed is not None:
        out.append(
            Remedy(
                title=f"Leave {spec.name} out, so that SGLang chooses",
                safety=Safety.RISKY,
                why=f"{here}did {what} when it failed; the automatic choice is the best tested",
                edits=_without(spec, case),
                risk="SGLang may choose the same again; other figures of speed",
            )
        )
    choices = [str(c) for c in spec.choices or ()]
    for other in _others(found.dest, value, choices, case)[:2]:
        out.append(
            Remedy(
                title=f"Let another backend do {what}: {spec.name} {other}",
                safety=Safety.RISKY,
                why=f"the code of {value or what} failed; {other} goes another way",
                edits=(*_without(spec, case, itself=False), EditTemplate("set", spec.name, other)),
                risk=f"slower in places; {other} need not support this model, quantization or option",
            )
        )
    if choices:
        out.append(
            Remedy(
                title=f"Choose among the backends of this release: {spec.name} " + "|".join(choices),
                safety=Safety.MANUAL,
                why=f"{spec.name} decides which code does {what}",
            )
        )
    return out


def _sparse(match: Match, case: Case) -> Iterator[Remedy]:
    """Options of the model's own sparse attention. Nothing where the release lets none be chosen: another
    --attention-backend does not serve the model."""
    file = _sparse_file(match) or ""
    dests = next((dests for start, dests in _SPARSE_OPTIONS if file.startswith(start)), ())
    specs = [spec for dest in dests if (spec := _option(dest, case)) is not None]
    for spec in specs:
        if case.facts.look(f"flag.{spec.dest}") not in (UNKNOWN, None):
            yield Remedy(
                title=f"Leave {spec.name} out, so that SGLang chooses",
                safety=Safety.RISKY,
                why="SGLang chooses what suits the GPU and the type of the KV cache",
                edits=(EditTemplate("remove", spec.name),),
                risk="SGLang may choose the same again; other figures of speed",
            )
    if specs:
        yield Remedy(
            title="Choose among the kernels of sparse attention: "
            + ", ".join(f"{s.name} " + "|".join(str(c) for c in s.choices or ("...",)) for s in specs),
            safety=Safety.MANUAL,
            why="these options decide here, --attention-backend does not; some need one type of the KV cache",
        )


def _option(dest: str, case: Case) -> FlagSpec | None:
    spec = flag_table(case.release).by_dest(dest)
    return spec if spec is not None and spec.refused is None else None


def _in_force(found: Found, spec: FlagSpec, case: Case) -> tuple[str | None, Any]:
    typed = case.facts.look(f"flag.{spec.dest}")
    typed = None if typed is UNKNOWN else typed
    arg = case.facts.look(f"arg.{spec.dest}")
    value = found.value or (str(arg) if arg not in (UNKNOWN, None, "auto") else None)
    for narrower in _narrower(spec, case):
        typed = typed or narrower
    return value, typed


_PHASES = {
    ATTENTION: ("prefill_attention_backend", "decode_attention_backend"),
    LINEAR: ("linear_attn_prefill_backend", "linear_attn_decode_backend"),
}


def _narrower(spec: FlagSpec, case: Case) -> Iterator[str]:
    """Options of one phase that were typed."""
    for dest in _PHASES.get(spec.dest, ()):
        typed = case.facts.look(f"flag.{dest}")
        if typed not in (UNKNOWN, None):
            yield dest


def _without(spec: FlagSpec, case: Case, itself: bool = True) -> tuple[EditTemplate, ...]:
    table = flag_table(case.release)
    names = [s.name for d in _narrower(spec, case) if (s := table.by_dest(d)) is not None]
    if itself and case.facts.look(f"flag.{spec.dest}") not in (UNKNOWN, None):
        names.append(spec.name)
    return tuple(EditTemplate("remove", name) for name in names)


def _others(dest: str, value: str | None, choices: list[str], case: Case) -> list[str]:
    sm, platform = case.facts.look("host.gpu.sm"), case.facts.look("host.platform")
    arg = case.facts.look(f"arg.{dest}")
    taken = {value, None if arg is UNKNOWN else arg}
    order = _order(dest, sm if isinstance(sm, int) else None, str(platform))
    return [
        o for o in order if o in choices and o not in taken and can_work(dest, o, case.facts, case.release)
    ]


def _order(dest: str, sm: int | None, platform: str) -> tuple[str, ...]:
    """What to try first: other choices, the most widely supported first."""
    rocm = platform == "rocm"
    blackwell = sm is not None and sm >= 100
    if dest == ATTENTION:
        if rocm:
            return ("triton", "aiter")
        if sm is not None and 90 <= sm < 100:
            return ("fa3", "flashinfer", "triton")
        if sm in (100, 103):
            return ("flashinfer", "triton", "trtllm_mha")
        return ("triton", "flashinfer")
    if dest == MOE:
        if rocm:
            return ("triton", "aiter")
        return ("triton", "flashinfer_cutlass", "marlin") if blackwell else ("triton", "marlin")
    return {
        SAMPLING: ("pytorch", "flashinfer"),
        GRAMMAR: ("xgrammar", "llguidance", "outlines", "none"),
        LINEAR: ("triton",),
        MAMBA: ("triton", "flashinfer"),
        VISION: ("triton_attn", "sdpa"),
        FP8: ("triton", "cutlass"),
        FP4: ("flashinfer_cutlass", "cutlass", "marlin"),
        A2A: ("none",),
        LORA: ("triton", "csgmv"),
    }[dest]


def _switches(found: Found, case: Case) -> Iterator[Remedy]:
    """Switches and variables that bring a backend in where no option names it."""
    facts, table = case.facts, flag_table(case.release)
    if found.value == "deep_gemm":
        yield Remedy(
            title=f"Compute without DeepGEMM: {_deepgemm_variable(case)}=0",
            safety=Safety.RISKY,
            why="FP8 products then take kernels that need no compiling at start",
            edits=(EditTemplate("env", _deepgemm_variable(case), "0"),),
            risk="slower FP8 products; models that need DeepGEMM for their weights' scales refuse it",
        )
    if found.value == "aiter" and facts.look("env.SGLANG_USE_AITER") != "0":
        yield Remedy(
            title="Compute without AITER: SGLANG_USE_AITER=0",
            safety=Safety.RISKY,
            why="attention and experts then take Triton kernels",
            edits=(EditTemplate("env", "SGLANG_USE_AITER", "0"),),
            risk="slower; some models on AMD GPUs are written for AITER only",
        )
    for name in _OLD_MOE.get(found.value or "", ()):
        spec = table.get(name)
        if spec is not None and facts.look(f"flag.{spec.dest}") is True:
            yield Remedy(
                title=f"Leave {name} out",
                safety=Safety.RISKY,
                why="it chose the kernels of the experts that failed",
                edits=(EditTemplate("remove", name),),
                risk="slower experts",
            )


def _deepgemm_variable(case: Case) -> str:
    from mtpdoctor.sglang.releases import release_facts

    env = release_facts(case.release).env  # 0.5.3 has both names and reads the old one
    return "SGL_ENABLE_JIT_DEEPGEMM" if "SGL_ENABLE_JIT_DEEPGEMM" in env else "SGLANG_ENABLE_JIT_DEEPGEMM"


def _imports_deepgemm(match: Match) -> bool:
    """Whether it failed where SGLang tries whether deep_gemm can be imported, at the import of its layers."""
    frames = match.traceback.frames if match.traceback is not None else ()
    return any(_IMPORT_OF_DEEPGEMM.search(frame.path) for frame in frames)
