"""Which stage of a launch a line or a traceback belongs to.

The texts are those of SGLang 0.4.6 to 0.5.23, read off the releases' sources.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from mtpdoctor.log.types import Line, Stage, Traceback
from mtpdoctor.patterns import lazy

READY = "The server is fired up and ready to roll!"
# what a node other than the first prints, and prints last, when all its ranks are ready (from 0.4.9 on)
WORKER_UP = (
    "Dummy health check server started",
    "Dummy health check server scheduled",
    "Starting dummy health check server",
)
ROUTER_UP = "Router ready | workers"  # of SGLang's router, which prints no server_args
ROUTER_HAS_WORKER = "(marked as healthy)"  # it registers its workers after that, one by one
# it goes on without one that it could not register
ROUTER_ALONE = "ailed job: type=AddWorker"
SERVER_ARGS = "server_args="
BATCH_LINES = ("Decode batch", "Prefill batch")  # in every second line of a serving log: never searched for

# Text -> stage that the line proves to have been entered. The first that occurs in the line counts.
_MARKS: tuple[tuple[str, Stage], ...] = (
    (READY, Stage.SERVING),
    ("Init torch distributed begin", Stage.DIST_INIT),
    ("Init torch distributed ends", Stage.DIST_INIT),
    ("Init parallel begin", Stage.DIST_INIT),  # from 0.5.21 on
    ("Init parallel ends", Stage.DIST_INIT),
    ("Init nccl begin", Stage.DIST_INIT),  # before 0.4
    ("sglang is using nccl==", Stage.DIST_INIT),
    ("Load weight begin", Stage.WEIGHTS),
    ("Load weight end", Stage.WEIGHTS),
    ("checkpoint shards:", Stage.WEIGHTS),
    ("Loading weights took", Stage.WEIGHTS),
    ("Loading MLX model", Stage.WEIGHTS),  # Apple's, as the next
    ("MLX model loaded in", Stage.WEIGHTS),
    (" safetensors files: [", Stage.WEIGHTS),  # diffusion pipelines
    ("KV Cache is allocated", Stage.MEMORY_POOL),
    ("Cache VA upper bound", Stage.MEMORY_POOL),
    ("Mamba Cache is allocated", Stage.MEMORY_POOL),
    ("Memory pool end", Stage.MEMORY_POOL),
    ("Capturing batches", Stage.GRAPH_CAPTURE),
    ("Capturing num tokens", Stage.GRAPH_CAPTURE),
    ("Compiling num tokens", Stage.GRAPH_CAPTURE),
    ("Running FlashInfer autotune", Stage.GRAPH_CAPTURE),
    ("Loading required modules", Stage.WEIGHTS),  # the server for images and videos, as the next
    ("Processing warmup req", Stage.WARMUP),
    ("Started server process", Stage.WARMUP),
    ("Started parent process", Stage.WARMUP),  # of several tokenizer workers
    ("Waiting for application startup", Stage.WARMUP),
    ("Application startup complete", Stage.WARMUP),
    ("Uvicorn running on", Stage.WARMUP),
    ("Warmup ended", Stage.WARMUP),
    ("Start of pd disaggregation warmup", Stage.WARMUP),
    ("Start of prefill warmup", Stage.WARMUP),
    ("gRPC server listening", Stage.WARMUP),
    *((text, Stage.WARMUP) for text in (*WORKER_UP, ROUTER_UP, ROUTER_HAS_WORKER, ROUTER_ALONE)),
    ("Using default HuggingFace chat template", Stage.TOKENIZER),
    ("Loading chat template from argument", Stage.TOKENIZER),
    ("Use chat template for the OpenAI-compatible API server", Stage.TOKENIZER),
    (SERVER_ARGS, Stage.SERVER_ARGS),
    ("usage: ", Stage.ARGPARSE),
)
_CAPTURE = lazy(r"\bCapture .{0,60}(?:graph|draft extend)\w*\b.{0,30}(?:begin|end)\b", re.I)

_OTHERS_BAR = (
    "Loading checkpoint shards:"  # that of transformers, which a trainer shows; SGLang names the format
)

LITERALS: tuple[str, ...] = (
    *(text for text, _ in _MARKS if not text.startswith(("Capturing", "Compiling", "usage"))),
    "Capture ",
    "usage: sglang",
    "usage: launch_server",
    "usage: python",
)


def mark_of(line: Line) -> Stage | None:
    """The stage that the line proves to have been entered, None when it proves nothing."""
    body = line.body
    if ("server_args" in body and not _is_server_args(body)) or _OTHERS_BAR in body:
        return None
    for text, stage in _MARKS:
        if text in body:
            if text == "usage: " and not re.match(
                r"\s*usage: \S*(?:sglang|launch_server|python|serve)", body
            ):
                continue
            return stage
    if "Capture " in body and _CAPTURE.search(body):
        return Stage.GRAPH_CAPTURE
    return None


def is_batch(line: Line) -> bool:
    """A line that the scheduler prints while it runs batches."""
    return line.body.startswith(BATCH_LINES)


def _is_server_args(body: str) -> bool:
    return bool(re.match(r"\s*server_args=(?:ServerArgs\(|\{)", body)) or "server_args" not in body


# -- stage of a traceback ------------------------------------------------------------------------------

_LOOPS = lazy(
    r"^(?:event_loop\w*|run_event_loop|dispatch_event_loop|run_batch|process_batch_result\w*|forward_thread_func_?"
    r"|recv_requests|process_input_requests|handle_loop|event_loop)$"
)
_LOOP_CALL = lazy(r"\b(?:scheduler\.(?:run_)?event_loop\w*|dispatch_event_loop)\(")
_CALL = lazy(r"^(?:return |await |[\w.]+(?:, [\w.]+)* = )?(?:\w+\.)*(\w+)\(")
_NO_DEVICE = lazy(
    r"No accelerator \(|No accelerator|Found no NVIDIA driver|no NVIDIA GPU|NVIDIA driver on your system is too old"
    r"|Torch not compiled with CUDA|No CUDA GPUs are available|system not yet initialized|forward compatibility was attempted"
    r"|CUDA driver version is insufficient|system has unsupported display driver|No HIP GPUs are available"
    r"|no CUDA-capable device|Can't initialize NVML|NVML Shared Library Not Found|CUDA unknown error"
)
_LIBRARY = lazy(r"undefined symbol|cannot open shared object file|GLIBCXX_|GLIBC_2|version `\w+' not found")
# Function name -> stage.
_FUNCTIONS: tuple[tuple[re.Pattern[str], Stage], ...] = (
    (
        lazy(r"^(?:_?execute_\w*warmup\w*|_wait_and_warmup\w*|execute_warmups|_global_warmup)$"),
        Stage.WARMUP,
    ),
    (
        lazy(
            r"^(?:init_(?:piecewise_|device_|cuda_|decode_cuda_|prefill_cuda_)?(?:cuda_)?graphs?|capture(?:_\w+)?"
            r"|_capture\w*|kernel_warmup|_?flashinfer_autotune|_?run_flashinfer_autotune|_dummy_run|warmup_compile"
            r"|init_decode_cuda_graph|init_prefill_cuda_graph|warmup_torch_compile)$"
        ),
        Stage.GRAPH_CAPTURE,
    ),
    (
        lazy(
            r"^(?:init_memory_pools?(?:_and_cache)?|alloc_memory_pool|profile_max_num_token|_profile_available_bytes"
            r"|_?resolve_memory_pool_config|calculate_pool_sizes|init_cache\w*|_?init_tree_cache\w*|configure_kv_cache_dtype"
            r"|init_attention_backends?|_get_attention_backend\w*|init_kv_cache\w*|build_attention_backends|_init_pools"
            r"|init_memory_pool_and_cache|build_kv_cache)$"
        ),
        Stage.MEMORY_POOL,
    ),
    (
        lazy(
            r"^(?:load_model|load_weights?(?:_\w+)?|_?load_model_\w+|_get_all_weights|safetensors_weights_iterator"
            r"|init_lora_manager|init_lora_adapters|load_lora_adapters?|maybe_init_lora_manager|get_quant_config"
            r"|process_weights_after_loading|get_model_architecture|_initialize_model|init_uno_lora_manager)$"
        ),
        Stage.WEIGHTS,
    ),
    (
        lazy(
            r"^(?:init_torch_distributed|init_distributed_environment|initialize_model_parallel|init_process_group"
            r"|init_model_parallel_group|init_world_group|init_parallel_runtime|_init_parallel_groups"
            r"|initialize_dp_attention|init_custom_ar|_prewarm_nccl|launch_dp_schedulers|_broadcast_worker_ports"
            r"|init_ipc_channels|get_zmq_socket\w*)$"
        ),
        Stage.DIST_INIT,
    ),
    (
        lazy(
            r"^(?:get_tokenizer\w*|get_processor|get_mm_processor|import_processors|init_tokenizer\w*|initialize_templates|load_chat_template"
            r"|_load_explicit_chat_template|_?load_chat_template\w*|_fix_\w*tokenizer\w*|load_completion_template)$"
        ),
        Stage.TOKENIZER,
    ),
    (
        lazy(
            r"^(?:get_config|get_hf_config|get_config_dict|_get_config_dict|_derive_\w+|get_hf_text_config|get_model_config"
            r"|init_model_config|_verify_quantization|_verify_\w+|get_generation_config|get_context_length|check_imports)$"
        ),
        Stage.CONFIG,
    ),
    (
        lazy(
            r"^(?:prepare_server_args|from_cli_args|check_server_args|resolve_once|check_lora_server_args"
            r"|_handle_\w+|_parse_server_args)$"
        ),
        Stage.SERVER_ARGS,
    ),
)
_FILES: tuple[tuple[re.Pattern[str], Stage], ...] = (
    (lazy(r"sglang/srt/configs/model_config\.py$|configuration_\w+\.py$"), Stage.CONFIG),
    (
        lazy(r"sglang/srt/model_loader/|sglang/multimodal_gen/runtime/loader/|safetensors/torch\.py$"),
        Stage.WEIGHTS,
    ),
    (lazy(r"pool_configurator\.py$|kv_cache_configurator\.py$"), Stage.MEMORY_POOL),
    (
        lazy(r"sglang/srt/distributed/(?:bootstrap|parallel_state)\.py$|torch/distributed/rendezvous"),
        Stage.DIST_INIT,
    ),
    (lazy(r"tokenization_\w+\.py$|sglang/srt/managers/template_manager\.py$"), Stage.TOKENIZER),
    (lazy(r"sglang/srt/server_args\.py$|sglang/srt/arg_groups/"), Stage.SERVER_ARGS),
    (lazy(r"argparse\.py$"), Stage.ARGPARSE),
    (lazy(r"(?:^|/)(?:openai_harmony|tiktoken)/|harmony_utils\.py$"), Stage.TOKENIZER),
)
# What a class builds when it is made, by its file and the function.
_BUILT: tuple[tuple[re.Pattern[str], Stage], ...] = (
    (lazy(r"sglang/srt/managers/(?:tokenizer|multi_tokenizer|detokenizer)\w*\.py$"), Stage.TOKENIZER),
    (lazy(r"sglang/srt/(?:mem_cache/|managers/cache_controller\.py$)"), Stage.MEMORY_POOL),
    (lazy(r"torch/cuda/__init__\.py$"), Stage.DIST_INIT),
    (lazy(r"sglang/multimodal_gen/runtime/models/"), Stage.WEIGHTS),
)
_BUILDING = lazy(r"^(?:__init__|_?(?:init|create|build|alloc|allocate)_\w+|set_device)$")
_REFUSING = lazy(r"/quantization/|sglang/srt/mem_cache/")
# A pass through the model: before the server is up only captures and their warm-up make one.
_PASS_FILES = lazy(r"sglang/srt/(?:models|layers|model_executor)/")
_PASS = lazy(r"^_?(?:forward\w*|warmup\w*|dummy_run)$")


def stage_of_traceback(traceback: Traceback, current: Stage | None, ready: bool) -> Stage | None:
    """What the launch was doing when the exception was raised; None when the frames do not tell.

    ``current`` is the last stage that this rank is known to have entered, ``ready`` whether the server
    had been ready before.
    """
    chain = chain_of(traceback)
    outer_frames = traceback.frames
    if any(_LOOPS.match(f.function) or _LOOP_CALL.search(f.code) for t in chain for f in t.frames):
        return Stage.SERVING if ready else Stage.WARMUP
    for node in chain:
        text = f"{node.type}: {node.message}"
        if _NO_DEVICE.search(text) and (current is None or current.order < Stage.WEIGHTS.order):
            return Stage.ENV
    root = chain[-1]
    for node in chain:
        kind = node.type.rsplit(".", 1)[-1]
        if kind in ("ImportError", "ModuleNotFoundError") or (
            kind == "OSError" and _LIBRARY.search(node.message)
        ):
            if _refuses(node):
                continue
            frames = [f for t in chain for f in t.frames]
            if not any(f.function in ("check_imports", "get_class_from_dynamic_module") for f in frames):
                return Stage.IMPORT
    if (current is None or current.order <= Stage.SERVER_ARGS.order) and _imports(root):
        return Stage.IMPORT
    for node in (traceback, *(n for n in chain if n is not traceback and n is root)):
        stage = _stage_of_frames(node)
        if stage is not None:
            return stage
    if outer_frames and outer_frames[-1].function == "<module>" and current is None:
        return Stage.IMPORT
    if (current is None or current.order < Stage.WARMUP.order) and any(
        _PASS.match(f.function) and _PASS_FILES.search(f.path) for f in root.frames
    ):
        return Stage.GRAPH_CAPTURE
    return None


def _refuses(traceback: Traceback) -> bool:
    """Does a loader or a pool refuse by an ImportError of its own, with no module being imported?"""
    frames = traceback.frames
    if not frames or not frames[-1].code.startswith("raise ") or not _REFUSING.search(frames[-1].path):
        return False
    return all(f.function != "<module>" for f in frames[1:])


def _imports(traceback: Traceback) -> bool:
    """Was a module being imported, other than the one that was started, and not by a later stage?"""
    frames = traceback.frames
    modules = [i for i, f in enumerate(frames) if f.function == "<module>"]
    if not modules:
        return False
    started = not any(f.function == "_get_module_details" for f in frames[: modules[0]])
    if started and len(modules) == 1:
        return False
    above = [(f.path, f.function) for f in frames[: modules[-1]] if f.function != "<module>"]
    return _stage_of_calls(reversed(above)) is None


def _stage_of_frames(traceback: Traceback) -> Stage | None:
    calls: list[tuple[str, str]] = []
    for frame in reversed(traceback.frames):
        # what the frame was calling: the frames below it may have been left out of a report
        if m := _CALL.match(frame.code):
            calls.append(("", m[1]))
        calls.append((frame.path, frame.function))
    return _stage_of_calls(calls)


def _stage_of_calls(calls: Iterable[tuple[str, str]]) -> Stage | None:
    """The stage that the innermost telling call belongs to; ``calls`` are path and function, innermost first."""
    for path, function in calls:
        for names, stage in _FUNCTIONS:
            if names.match(function):
                if stage is Stage.SERVER_ARGS and not ("server_args" in path or "arg_groups" in path):
                    continue
                return stage
        path = path.replace("\\", "/")
        for files, stage in _FILES:
            if files.search(path):
                return stage
        if _BUILDING.match(function):
            for files, stage in _BUILT:
                if files.search(path):
                    return stage
    return None


def stage_of_stack(calls: Sequence[tuple[str, str]], ready: bool) -> Stage | None:
    """What a native stack dump (innermost call first) says; None when it does not tell."""
    if any(_LOOPS.match(function) for _, function in calls):
        return Stage.SERVING if ready else Stage.WARMUP
    return _stage_of_calls(calls)


def chain_of(traceback: Traceback) -> list[Traceback]:
    """The chain from the outermost exception (last printed) to the innermost."""
    chain = [traceback]
    while (inner := chain[-1].inner) is not None and len(chain) < 100:
        chain.append(inner)
    return chain
