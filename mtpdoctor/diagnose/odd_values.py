"""An option of the command that counts something and was given nothing, or less: ``--page-size 0``, ``--context-length -5``.

SGLang checks few of them. What it makes of the number fails later, as a division by zero or an empty list, in code that has
nothing to do with the option.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mtpdoctor.diagnose.named_options import number
from mtpdoctor.diagnose.remedies import fix_of
from mtpdoctor.kb.types import EditTemplate, Remedy, Safety
from mtpdoctor.log.types import EventKind
from mtpdoctor.sglang.flags import flag_table

if TYPE_CHECKING:
    from mtpdoctor.case import Case
    from mtpdoctor.diagnose.causality import Cause
    from mtpdoctor.diagnose.types import Fix
    from mtpdoctor.kb.load import Knowledge

# Those whose description gives neither zero nor a negative number a meaning, in any release, and that default to more or to
# nothing typed.
_COUNTS = frozenset(
    [
        "attention_context_parallel_size",
        "attn_cp_size",
        "context_length",
        "cuda_graph_bs",
        "cuda_graph_bs_decode",
        "cuda_graph_bs_prefill",
        "cuda_graph_max_bs",
        "cuda_graph_max_bs_decode",
        "cuda_graph_max_bs_prefill",
        "data_parallel_size",
        "detokenizer_worker_num",
        "dp_size",
        "ep_size",
        "expert_parallel_size",
        "hicache_ratio",
        "kt_cpuinfer",
        "kt_threadpool_count",
        "max_lora_chunk_size",
        "max_lora_rank",
        "max_loras_per_batch",
        "max_prefill_tokens",
        "max_running_requests",
        "max_total_tokens",
        "mem_fraction_static",
        "moe_dense_tp_size",
        "moe_dp_size",
        "nnodes",
        "num_continuous_decode_steps",
        "page_size",
        "piecewise_cuda_graph_max_tokens",
        "pipeline_parallel_size",
        "pp_size",
        "speculative_eagle_topk",
        "speculative_num_draft_tokens",
        "stream_interval",
        "tensor_parallel_size",
        "tokenizer_worker_num",
        "torch_compile_max_bs",
        "tp_size",
        "triton_attention_num_kv_splits",
    ]
)
_FAILED = (EventKind.TRACEBACK, EventKind.NATIVE, EventKind.ERROR)


def odd_fixes(cause: Cause, case: Case, knowledge: Knowledge) -> tuple[Fix, ...]:
    """The launch without each option that counts something and was given a number below one (a share: no more than 0)."""
    event = cause.failure.event
    if case.document is None or event is None or event.kind not in _FAILED:
        return ()
    table = flag_table(case.release)
    out: list[Fix] = []
    for use in case.document.command.flags:
        spec = table.resolve(use.name)
        values = [v for text in use.values if (v := number(text)) is not None]
        if spec is None or use.dest not in _COUNTS or not values or min(values) > 0:
            continue
        fix = fix_of(_without(spec.name, " ".join(use.values)), case, knowledge)
        if fix is not None:
            out.append(fix)
    return tuple(out)


def _without(name: str, value: str) -> Remedy:
    return Remedy(
        title=f"Leave {name} {value} out, or give it a number above 0",
        safety=Safety.RISKY,
        why="the option says how much there is of something, and with this number nothing is left; SGLang takes it and fails later",
        edits=(EditTemplate("remove", name),),
        risk="SGLang chooses the number by itself then",
    )
