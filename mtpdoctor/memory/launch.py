"""What the memory sum needs to know of a launch: release, parallelism, pools, speculation."""

from __future__ import annotations

from mtpdoctor.case import Case
from mtpdoctor.facts import Facts, Source
from mtpdoctor.memory.architecture import is_multimodal
from mtpdoctor.memory.arguments import Arguments
from mtpdoctor.memory.automatic import (
    automatic_chunk,
    automatic_decode_batch,
    automatic_fraction,
    prefill_graph_sizes,
)
from mtpdoctor.memory.cards import memory_mib
from mtpdoctor.model.types import ModelFacts
from mtpdoctor.records import dataclass
from mtpdoctor.release import Release

SPEC_REQUESTS = 48  # what SGLang sets with speculation when nothing is typed (all releases)
_NO_DRAFT = frozenset({"NGRAM"})
# Classes without MTP layers of their own: a draft from the same path is the whole model once more.
_WHOLE = frozenset(
    f"{name}ForCausalLM"
    for name in ("Llama", "Mistral", "Mixtral", "Qwen2", "Qwen2Moe", "Qwen3", "Qwen3Moe", "GptOss", "Gemma2")
)


@dataclass(frozen=True, slots=True)
class Launch:
    """The arguments that move memory, as the release resolves them. Sizes in GiB or tokens."""

    arguments: Arguments
    release: Release
    tp: int
    pp: int
    dp: int  # data-parallel ranks: whole copies, or attention ranks where ``dp_attention``
    dp_attention: bool
    gpu_mib: float | None  # of one GPU, as nvidia-smi counts it
    fraction: float | None  # --mem-fraction-static in force
    fraction_typed: bool
    chunk: int | None  # tokens of one prefill chunk
    decode_batch: int | None  # largest batch that a CUDA graph is captured for; 0: no graphs
    prefill_graphs: tuple[int, ...]
    page: int
    kv_dtype: str | None  # "auto", "fp8_e4m3", ...
    max_requests: int | None
    max_tokens: int | None  # --max-total-tokens
    context: int | None  # tokens
    algorithm: str | None  # of speculation, under SGLang's own name; NEXTN is EAGLE
    draft_path: str | None
    draft_tokens: int | None
    disaggregation: str | None

    @property
    def attention_tp(self) -> int:
        """Ranks that share the heads of one attention layer."""
        return max(1, self.tp // self.dp) if self.dp_attention else self.tp

    @property
    def has_draft(self) -> bool:
        return self.algorithm is not None and self.algorithm not in _NO_DRAFT

    @property
    def draft_is_target(self) -> bool:
        """Is the target loaded a second time as its own draft?"""
        if self.draft_path is None or self.draft_path != self.arguments.text("model_path"):
            return False
        look = self.arguments.facts.look("model.architecture")
        return self.algorithm == "STANDALONE" or look in _WHOLE


def read_launch(case: Case, model: ModelFacts | None) -> Launch | None:
    """None where the release is not known."""
    release = case.release
    if release is None:
        return None
    arguments = Arguments(case.facts)
    algorithm = arguments.text("speculative_algorithm")
    algorithm = "EAGLE" if algorithm == "NEXTN" else algorithm
    gpu_mib = gpu_memory(case.facts)
    multimodal = is_multimodal(model, arguments)
    chunk = automatic_chunk(arguments, release, gpu_mib)
    decode = automatic_decode_batch(arguments, release, gpu_mib)
    prefill = prefill_graph_sizes(arguments, release, chunk, model, multimodal)
    typed = arguments.typed("mem_fraction_static") or arguments.said("mem_fraction_static")
    fraction = arguments.number("mem_fraction_static") if typed else None
    if fraction is None:
        fraction = automatic_fraction(
            arguments, release, gpu_mib, chunk, decode, prefill, model, multimodal, algorithm
        )
    requests = arguments.count("max_running_requests")
    if requests is None and algorithm is not None:
        requests = SPEC_REQUESTS
    return Launch(
        arguments=arguments,
        release=release,
        tp=arguments.count("tp_size") or 1,
        pp=arguments.count("pp_size") or 1,
        dp=arguments.count("dp_size") or 1,
        dp_attention=arguments.on("enable_dp_attention") and (arguments.count("dp_size") or 1) > 1,
        gpu_mib=gpu_mib,
        fraction=fraction,
        fraction_typed=arguments.typed("mem_fraction_static"),
        chunk=chunk,
        decode_batch=decode,
        prefill_graphs=prefill,
        page=arguments.count("page_size") or 1,
        kv_dtype=arguments.text("kv_cache_dtype"),
        max_requests=requests,
        max_tokens=arguments.count("max_total_tokens"),
        context=arguments.count("context_length") or (model.context_length if model else None),
        algorithm=algorithm,
        draft_path=arguments.text("speculative_draft_model_path") or _typed_draft(case.facts),
        draft_tokens=_draft_tokens(arguments, algorithm),
        disaggregation=arguments.text("disaggregation_mode"),
    )


def gpu_memory(facts: Facts) -> float | None:
    """MiB of one GPU: told, else by the card's name. What an out-of-memory error counts as the capacity is
    less than what the driver counts, by which SGLang sets its defaults."""
    memory = facts.fact("host.gpu.memory_gib")
    name = facts.look("host.gpu.name")
    by_name = memory_mib(name if isinstance(name, str) else None)
    if memory is None or not isinstance(memory.value, (int, float)) or not memory.value:
        return by_name
    if memory.source is Source.LOG and by_name is not None:
        return by_name
    return float(memory.value) * 1024


def _typed_draft(facts: Facts) -> str | None:
    """The draft of the command, where a log's ServerArgs line leaves it out."""
    typed = facts.look("flag.speculative_draft_model_path")
    return typed if isinstance(typed, str) else None


def _draft_tokens(arguments: Arguments, algorithm: str | None) -> int | None:
    if algorithm is None:
        return None
    given = arguments.count("speculative_num_draft_tokens")
    if given is not None:
        return given
    steps = arguments.count("speculative_num_steps")
    return steps + 1 if steps is not None else None
