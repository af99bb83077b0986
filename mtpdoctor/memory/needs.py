"""What a rank needs beside weights and pools: context, NCCL, graphs, activations.

The figures without a formula in SGLang are measured on an H200 (SGLang 0.5.13.post1) or read off public
logs; each says so.
"""

from __future__ import annotations

from mtpdoctor.memory.architecture import text_of
from mtpdoctor.memory.automatic import graph_mib
from mtpdoctor.memory.launch import Launch
from mtpdoctor.model.types import ModelFacts

CONTEXT_GIB = 0.5  # CUDA context and loaded kernels of one process (measured)
NCCL_ALONE_GIB = 0.09  # "Init torch distributed ends ... mem usage" with one rank (measured)
PLAIN_FRACTION = 0.88  # what releases set where nothing is known of the GPU
NCCL_GIB = 1.0  # the same with several (public logs: 0.9 to 1.5)
LIBRARIES_GIB = (
    0.11  # between the measure that --mem-fraction-static counts from and "Load weight begin" (measured)
)
GRAPHS_LEAST_GIB = 0.04  # of any graphs at all (measured)
MARGIN = 0.02  # of the memory: fragments of the allocator


def nccl_gib(launch: Launch) -> float:
    return NCCL_GIB if launch.tp * launch.pp > 1 else NCCL_ALONE_GIB


def graphs_gib(launch: Launch, model: ModelFacts | None) -> float | None:
    """Of the captured CUDA graphs, as SGLang itself estimates them: 2 MiB for each request of the largest
    batch, 8 MiB for each prefill graph."""
    if launch.decode_batch is None:
        return None
    mib = graph_mib(
        launch.arguments, launch.release, launch.gpu_mib, launch.decode_batch, launch.prefill_graphs, model
    )
    return max(mib / 1024, GRAPHS_LEAST_GIB) if launch.decode_batch or launch.prefill_graphs else 0.0


def activations_gib(launch: Launch, model: ModelFacts | None) -> float | None:
    """Of one prefill chunk, from the model's widths: the residual stream, the widest projection and the
    logits live at the same time. None where the model is not known."""
    if launch.chunk is None or model is None or not model.hidden_size:
        return None
    tokens = launch.chunk if launch.chunk > 0 else launch.arguments.count("max_prefill_tokens") or 16384
    hidden = model.hidden_size
    text = text_of(model)
    dense = _int(text.get("intermediate_size")) or 4 * hidden
    width = 12 * hidden + 3 * dense / launch.tp
    if model.is_moe:
        active = _int(text.get("num_experts_per_tok")) or 8
        expert = _int(text.get("moe_intermediate_size")) or dense
        width = 12 * hidden + active * (hidden + 3 * expert / launch.tp)
    logits = (launch.decode_batch or 64) * (model.vocab_size or 0) * 8 / launch.tp
    return (tokens * width * 2 + logits) / 2**30


def _int(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
