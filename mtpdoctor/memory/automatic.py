"""What SGLang sets by itself from the size of a GPU: chunk size, graph batch sizes, --mem-fraction-static.

Every function follows one release range's own source (server_args.py, from 0.5.19 on
arg_groups/memory_hook.py); memory in MiB, as SGLang counts there.
"""

from __future__ import annotations

from mtpdoctor.memory.architecture import is_mla
from mtpdoctor.memory.arguments import Arguments
from mtpdoctor.memory.prefill_graphs import prefill_graphs_on
from mtpdoctor.memory.releases import of
from mtpdoctor.model.types import ModelFacts
from mtpdoctor.release import Release

GIB = 1024  # MiB
_MOST_PREFILL = 1 << 20  # tokens: whatever chunk is typed, no ladder of graphs beyond it is gone through


def automatic_chunk(arguments: Arguments, release: Release, gpu_mib: float | None) -> int | None:
    """Tokens of a prefill chunk before attention data parallelism divides it; None: not known."""
    if arguments.typed("chunked_prefill_size"):
        return arguments.as_typed("chunked_prefill_size")
    if gpu_mib is None:
        return arguments.count("chunked_prefill_size")
    if of(release, "<0.4.7.post1"):
        if of(release, ">=0.4.7") and gpu_mib > 180_000:
            return 16384
        if gpu_mib < 25_000:
            return 2048
        return 16384 if arguments.on("disaggregation_mode") and of(release, ">=0.4.6.post2") else 8192
    if of(release, "<0.5.3"):
        return 2048 if gpu_mib < 35 * GIB else 8192 if gpu_mib < 160 * GIB else 16384
    if gpu_mib < 35 * GIB:
        return 4096 if gpu_mib >= 20 * GIB and of(release, _BIGGER_32G) else 2048
    return 4096 if gpu_mib < 60 * GIB else 8192 if gpu_mib < 160 * GIB else 16384


_BIGGER_32G = ">=0.5.20"  # 32 GiB GPUs: chunks of 4096, graphs up to a batch of 48 (160 with TP 4)


def automatic_decode_batch(arguments: Arguments, release: Release, gpu_mib: float | None) -> int | None:
    """The largest batch with a CUDA graph; 0 where graphs are off, None where it is not known."""
    off = arguments.on("disable_cuda_graph") or arguments.on("disable_decode_cuda_graph")
    if off or arguments.text("cuda_graph_backend_decode") == "disabled":
        return 0
    return decode_limit(arguments, release, gpu_mib)


def decode_limit(arguments: Arguments, release: Release, gpu_mib: float | None) -> int | None:
    """The largest batch for which a graph would be captured, were graphs on."""
    sizes = arguments.numbers("cuda_graph_bs_decode") or arguments.numbers("cuda_graph_bs")
    if sizes:
        return max(sizes)
    given = arguments.count("cuda_graph_max_bs_decode", "cuda_graph_max_bs")
    if given is not None:
        return given
    if gpu_mib is None:
        return None
    most = _decode_batch(arguments.count("tp_size") or 1, release, gpu_mib)
    requests = arguments.count("max_running_requests") if arguments.typed("max_running_requests") else None
    return min(most, requests) if requests and of(release, ">=0.5.22") else most


def _decode_batch(tp: int, release: Release, gpu_mib: float) -> int:
    if of(release, "<0.5.3"):
        small = 25_000 if of(release, "<0.4.7.post1") else 35 * GIB
        return 160 if gpu_mib >= small else 8 if tp < 4 else 80
    if gpu_mib < 20 * GIB:
        return 8
    if gpu_mib < 35 * GIB:
        if of(release, _BIGGER_32G):
            return 48 if tp < 4 else 160
        return (24 if of(release, ">=0.5.4.post1") else 16) if tp < 4 else 80
    if gpu_mib < 60 * GIB:
        return 32 if tp < 4 else 160
    return 512 if gpu_mib >= 160 * GIB or tp >= 4 else 256


def prefill_graph_sizes(
    arguments: Arguments,
    release: Release,
    chunk: int | None,
    model: ModelFacts | None,
    multimodal: bool | None,
) -> tuple[int, ...]:
    """Numbers of tokens for which prefill graphs are captured; () where they are off."""
    if not prefill_graphs_on(arguments, release, model, multimodal):
        return ()
    given = arguments.numbers("cuda_graph_bs_prefill") or arguments.numbers("piecewise_cuda_graph_tokens")
    if given:
        return tuple(given)
    most = arguments.count("cuda_graph_max_bs_prefill")
    if most is None and arguments.typed("piecewise_cuda_graph_max_tokens"):
        most = arguments.count("piecewise_cuda_graph_max_tokens")
    if most is None:
        most = _most_prefill_tokens(arguments, release, chunk, model)
    if arguments.typed("context_length") and of(release, ">=0.5.13,<0.5.17"):
        most = min(most, arguments.count("context_length") or most)
    most = min(most, _MOST_PREFILL)
    return tuple(n for n in _prefill_ladder(release, most) if n <= most)


def _most_prefill_tokens(
    arguments: Arguments, release: Release, chunk: int | None, model: ModelFacts | None
) -> int:
    if of(release, "<0.5.7"):
        return 4096
    most = chunk if chunk is not None else 8192
    if model is not None and is_mla(model, arguments) and of(release, ">=0.5.8"):
        most = min(8192, most) if of(release, ">=0.5.23") else 2048
    if of(release, ">=0.5.10rc0"):
        tokens = arguments.count("max_total_tokens")
        most = min(most, tokens) if tokens is not None else most
        if "llama-2" in (arguments.text("model_path") or "").lower():
            most = min(most, 4096)
    return most


def _prefill_ladder(release: Release, most: int) -> list[int]:
    low = [*range(4, 33, 4), *range(48, 257, 16), *range(288, 513, 32)]
    if of(release, "<0.5.8"):
        return [*low, *range(640, 4097, 128), *range(4352, most + 1, 256)]
    first = 640 if of(release, "<0.5.9") else 576
    return [*low, *range(first, 1025, 64), *range(1280, 4097, 256), *range(4608, most + 1, 512)]


def automatic_fraction(
    arguments: Arguments,
    release: Release,
    gpu_mib: float | None,
    chunk: int | None,
    decode: int | None,
    prefill: tuple[int, ...],
    model: ModelFacts | None,
    multimodal: bool | None,
    algorithm: str | None,
) -> float | None:
    """--mem-fraction-static as the release sets it when nothing is typed; None: a fact is missing."""
    if gpu_mib is None:
        return None
    parallel = (arguments.count("tp_size") or 1) * (arguments.count("pp_size") or 1)
    spec = algorithm is not None
    if of(release, "<0.4.7.post1"):
        return _until_0_4_7(release, gpu_mib, parallel, arguments.count("tp_size") or 1, spec)
    if of(release, "<0.5.3"):
        reserved = _until_0_5_2(release, gpu_mib, parallel, algorithm, arguments.asked("enable_dp_attention"))
    else:
        if decode is None or chunk is None:
            return None
        reserved = reserve_mib(arguments, release, gpu_mib, chunk, decode, prefill, model, algorithm)
    fraction = round((gpu_mib - reserved) / gpu_mib, 3)
    if of(release, "<0.4.9") or not _counts_as_multimodal(arguments, release, multimodal):
        return fraction
    if of(release, "<0.4.9.post3"):
        return fraction * 0.9
    if of(release, ">=0.5.20") and sized_after_capture(arguments, release, prefill, decode, model):
        return fraction - 8 * GIB / gpu_mib
    return fraction * _vision_factor(model)


def _counts_as_multimodal(arguments: Arguments, release: Release, multimodal: bool | None) -> bool:
    if not multimodal:
        return False
    if of(release, ">=0.5.9") and arguments.on("language_only"):
        return False
    if of(release, ">=0.5.18") and arguments.on("language_model_only"):
        return False
    return not (of(release, ">=0.5.17") and arguments.text("disaggregation_mode") == "decode")


def _vision_factor(model: ModelFacts | None) -> float:
    """adjust_mem_fraction_for_vlm: 0.95 of it, less for a vision tower larger than ViT-L/14."""
    vision = model.raw.get("vision_config") if model is not None else None
    if not isinstance(vision, dict):
        return 1.0
    layers = vision.get("num_hidden_layers", 24)
    hidden = vision.get("hidden_size", 1024)
    if not isinstance(layers, int) or not isinstance(hidden, int):
        return 1.0
    complexity = layers * hidden**2 / (24 * 1024**2)
    return 0.95 * max(0.8, min(1.05, 1.0 - 0.1 * (complexity - 1.0)))


def _until_0_4_7(release: Release, gpu_mib: float, parallel: int, tp: int, spec: bool) -> float:
    by_ranks = ((16, 0.79), (8, 0.81), (4, 0.85), (2, 0.87), (1, 0.88))
    early = of(release, "<0.4.6.post2")
    fraction = next((f for n, f in by_ranks if (tp if early else parallel) >= n), 0.88)
    if gpu_mib > 81920:
        fraction = (gpu_mib - 13 * GIB) / gpu_mib if early else 0.88
    if early:
        return fraction
    if of(release, ">=0.4.7") and gpu_mib > 180_000:
        return 0.79
    if gpu_mib > 96 * GIB:
        reserved = 20 * GIB if spec and of(release, ">=0.4.7") else 18 * GIB
        return min(fraction + 48 * GIB * (1 - fraction) / gpu_mib, (gpu_mib - reserved) / gpu_mib)
    return fraction * 0.95 if spec and of(release, ">=0.4.7") else fraction


def _until_0_5_2(
    release: Release, gpu_mib: float, parallel: int, algorithm: str | None, dp_attention: bool
) -> float:
    """From 0.4.7.post1 on: what is set aside, in MiB."""
    if gpu_mib < 35 * GIB:
        reserved = (2.8 + parallel / 10) * GIB
    elif gpu_mib < 90 * GIB:
        reserved = (9.5 + parallel / 2) * GIB
    elif gpu_mib < 160 * GIB:
        reserved = (12 + parallel / 2) * GIB
    else:
        reserved = 32.0 * GIB
    if algorithm is not None:
        reserved += (6 if algorithm == "STANDALONE" and of(release, ">=0.5.2") else 2) * GIB
    return reserved + (4 * GIB if dp_attention else 0)


def reserve_mib(
    arguments: Arguments,
    release: Release,
    gpu_mib: float,
    chunk: int,
    decode: int,
    prefill: tuple[int, ...],
    model: ModelFacts | None,
    algorithm: str | None,
) -> float:
    """What releases from 0.5.3 on set aside for activations and graphs, in MiB."""
    parallel = (arguments.count("tp_size") or 1) * (arguments.count("pp_size") or 1)
    if of(release, ">=0.5.16") and sized_after_capture(arguments, release, prefill, decode, model):
        return (512 if of(release, "<0.5.18") else 1536) + parallel / 8 * GIB
    reserved = 512 + activation_mib(arguments, release, chunk, decode) + parallel / 8 * GIB
    reserved += graph_mib(arguments, release, gpu_mib, decode, prefill, model)
    if of(release, ">=0.5.5.post1,<0.5.8"):  # added after the floor in these
        late = prefill_tokens_mib(release, prefill)
        reserved -= late
    else:
        late = 0.0
    if gpu_mib > 60 * GIB:
        reserved = max(reserved, 10 * GIB)
    if algorithm is not None and of(release, "<0.5.14"):
        more = 4 if of(release, ">=0.5.10rc0") else 2
        reserved += 6 * GIB if algorithm == "STANDALONE" else 0 if algorithm == "NGRAM" else more * GIB
    if (
        of(release, ">=0.5.15")
        and arguments.text("moe_a2a_backend") == "deepep"
        and arguments.text("disaggregation_mode") != "prefill"
        and decode
    ):
        reserved += 2 * GIB
    return reserved + late


def prefill_tokens_mib(release: Release, prefill: tuple[int, ...]) -> float:
    return (max(prefill) // (4 if of(release, "<0.5.7") else 8)) if prefill else 0.0


def activation_mib(arguments: Arguments, release: Release, chunk: int, decode: int) -> float:
    """1.5 MiB for each token of a forward pass, of 2048 tokens at least."""
    if of(release, ">=0.5.15") and arguments.text("disaggregation_mode") == "decode":
        requests = arguments.count("max_running_requests") or decode or 1
        return max(requests * (arguments.count("speculative_num_draft_tokens") or 1), 2048) * 1.5
    tokens = chunk if chunk > 0 else arguments.count("max_prefill_tokens") or 16384
    return max(tokens, 2048) * 1.5


def graph_mib(
    arguments: Arguments,
    release: Release,
    gpu_mib: float | None,
    decode: int,
    prefill: tuple[int, ...],
    model: ModelFacts | None,
) -> float:
    """2 MiB for each request of the largest captured batch, 8 MiB for each prefill graph."""
    mode = arguments.text("disaggregation_mode")
    batch = decode
    if not decode and of(release, "<0.5.15"):  # the estimate counts a batch that is not captured
        batch = decode_limit(arguments, release, gpu_mib) or 0
    late = of(release, ">=0.5.15")
    reserved = 0.0 if late and mode == "prefill" else batch * 2.0
    ranks = arguments.as_typed("dp_size") or 1
    alone = ranks == 1 and of(release, ">=0.5.22")  # no attention data parallelism of one rank
    if arguments.asked("enable_dp_attention") and not alone and not (late and mode == "prefill"):
        batch = decode_limit(arguments, release, gpu_mib) or 0
        reserved += batch * ranks * (4.5 if batch > 300 else 3)
    if prefill and not (late and mode == "decode"):
        if of(release, "<0.5.8"):
            reserved += prefill_tokens_mib(release, prefill) if of(release, ">=0.5.5.post1") else 0
        elif of(release, ">=0.5.10rc0") and model is not None and is_mla(model, arguments):
            reserved += 1.5 * GIB
        else:
            reserved += len(prefill) * 8
    return reserved


def sized_after_capture(
    arguments: Arguments,
    release: Release,
    prefill: tuple[int, ...],
    decode: int | None,
    model: ModelFacts | None,
) -> bool:
    """Pools sized after the graphs are captured (SGLANG_ENABLE_POST_CAPTURE_KV_SIZING, off unless set)."""
    asked = (arguments.environment("SGLANG_ENABLE_POST_CAPTURE_KV_SIZING") or "").lower()
    if of(release, "<0.5.16") or asked not in ("1", "true", "yes", "on", "y"):
        return False
    mode = arguments.text("disaggregation_mode")
    if model is not None and is_mla(model, arguments):
        return False
    return bool(decode or mode == "prefill") and bool(prefill or mode == "decode")
