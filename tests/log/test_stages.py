"""Stages: from the marks of every release, and from the frames of a traceback."""

from __future__ import annotations

import pytest

from mtpdoctor.log.reading import reading_from_text
from mtpdoctor.log.types import Stage

MARKS = [
    # 0.4.6
    ("[2025-04-30 00:00:00 TP0] Init torch distributed begin.", Stage.DIST_INIT),
    ("[2025-04-30 00:00:00 TP0] Init torch distributed ends. mem usage=0.09 GB", Stage.DIST_INIT),
    ("[2025-04-30 00:00:00 TP0] Load weight begin. avail mem=78.50 GB", Stage.WEIGHTS),
    (
        "[2025-04-30 00:00:00 TP0] Load weight end. type=LlamaForCausalLM, dtype=torch.bfloat16, avail mem=63.4 GB",
        Stage.WEIGHTS,
    ),
    ("Loading safetensors checkpoint shards:  25% Completed | 1/4 [00:00<00:02,  1.4it/s]", Stage.WEIGHTS),
    (
        "[2025-04-30 00:00:00 TP0] KV Cache is allocated. #tokens: 1, K size: 1.00 GB, V size: 1.00 GB",
        Stage.MEMORY_POOL,
    ),
    ("[2025-04-30 00:00:00 TP0] Memory pool end. avail mem=8.00 GB", Stage.MEMORY_POOL),
    (
        "[2025-04-30 00:00:00 TP0] Capture cuda graph begin. This can take up to several minutes. avail mem=8.00 GB",
        Stage.GRAPH_CAPTURE,
    ),
    (
        "[2025-04-30 00:00:00 TP0] Capture draft cuda graph begin. This can take up to several minutes.",
        Stage.GRAPH_CAPTURE,
    ),
    # 0.5.13
    ("[2026-01-01 00:00:00 TP0] Capture piecewise CUDA graph begin. avail mem=12.00 GB", Stage.GRAPH_CAPTURE),
    (
        "[2026-01-01 00:00:00 TP0] Capture draft extend cuda graph begin (step 1). This can take long",
        Stage.GRAPH_CAPTURE,
    ),
    ("[2026-01-01 00:00:00] Mamba Cache is allocated. max_mamba_cache_size: 487", Stage.MEMORY_POOL),
    # 0.5.23
    ("[2026-01-01 00:00:00 TP0] Capture decode CUDA graph begin. backend=full, bs=[1]", Stage.GRAPH_CAPTURE),
    ("[2026-01-01 00:00:00 TP0] Capture target verify cuda graph begin. avail mem=1 GB", Stage.GRAPH_CAPTURE),
    (
        "[2026-01-01 00:00:00 TP0] KV Cache VA upper bound. dtype: torch.bfloat16, #tokens: 1",
        Stage.MEMORY_POOL,
    ),
    ("[2026-01-01 00:00:00] INFO:     Started server process [7]", Stage.WARMUP),
    ("INFO:     Uvicorn running on http://0.0.0.0:30000 (Press CTRL+C to quit)", Stage.WARMUP),
    ("[2026-01-01 00:00:00] The server is fired up and ready to roll!", Stage.SERVING),
    ("[2026-01-01 00:00:00] server_args=ServerArgs(model_path='/m')", Stage.SERVER_ARGS),
    ("[2026-01-01 00:00:00] server_args={'model_path': '/m', 'tp_size': 4}", Stage.SERVER_ARGS),
]


@pytest.mark.parametrize(("line", "stage"), MARKS, ids=[m[0][21:60] for m in MARKS])
def test_marks(line: str, stage: Stage) -> None:
    attempt = reading_from_text(line + "\n").attempt
    assert attempt is not None
    assert [m.stage for m in attempt.marks] == [stage]
    assert attempt.stage is stage
    killed = reading_from_text(line + "\nKilled\n").attempt
    assert killed is not None
    assert [e.stage for e in killed.events] == [stage]


FRAMES = [
    ("/s/sglang/srt/server_args.py", "_handle_mamba_radix_cache", "ValueError: x", Stage.SERVER_ARGS),
    ("/s/sglang/srt/arg_groups/mamba_hook.py", "validate", "ValueError: x", Stage.SERVER_ARGS),
    ("/s/transformers/models/auto/configuration_auto.py", "from_pretrained", "ValueError: x", Stage.CONFIG),
    ("/s/sglang/srt/configs/model_config.py", "_derive_context_length", "ValueError: x", Stage.CONFIG),
    ("/s/sglang/srt/utils/hf_transformers/tokenizer.py", "get_tokenizer", "OSError: x", Stage.TOKENIZER),
    (
        "/s/sglang/srt/managers/template_manager.py",
        "_load_explicit_chat_template",
        "RuntimeError: x",
        Stage.TOKENIZER,
    ),
    (
        "/s/sglang/srt/distributed/parallel_state.py",
        "initialize_model_parallel",
        "RuntimeError: x",
        Stage.DIST_INIT,
    ),
    (
        "/s/sglang/srt/model_executor/model_runner.py",
        "init_torch_distributed",
        "RuntimeError: x",
        Stage.DIST_INIT,
    ),
    ("/s/sglang/srt/model_executor/model_runner.py", "load_model", "KeyError: 'x'", Stage.WEIGHTS),
    ("/s/sglang/srt/model_executor/model_runner.py", "init_lora_manager", "RuntimeError: x", Stage.WEIGHTS),
    (
        "/s/sglang/srt/model_executor/model_runner.py",
        "profile_max_num_token",
        "RuntimeError: x",
        Stage.MEMORY_POOL,
    ),
    ("/s/sglang/srt/mem_cache/kv_cache_configurator.py", "configure", "RuntimeError: x", Stage.MEMORY_POOL),
    (
        "/s/sglang/srt/model_executor/cuda_graph_runner.py",
        "capture_one_batch_size",
        "RuntimeError: x",
        Stage.GRAPH_CAPTURE,
    ),
    (
        "/s/sglang/srt/model_executor/model_runner_components/cuda_graph_setup.py",
        "capture_decode_graph",
        "Exception: x",
        Stage.GRAPH_CAPTURE,
    ),
    ("/s/sglang/srt/entrypoints/http_server.py", "_execute_server_warmup", "AssertionError: x", Stage.WARMUP),
    ("/s/sglang/srt/managers/scheduler.py", "event_loop_overlap", "RuntimeError: x", Stage.WARMUP),
    (
        "/s/sglang/srt/utils/common.py",
        "get_device",
        "RuntimeError: No accelerator (CUDA, XPU) is available.",
        Stage.ENV,
    ),
    (
        "/s/sgl_kernel/__init__.py",
        "<module>",
        "ImportError: libnuma.so.1: cannot open shared object file",
        Stage.IMPORT,
    ),
    ("/s/sglang/srt/layers/moe/deepep.py", "<module>", "FileNotFoundError: [Errno 2] x", Stage.IMPORT),
    ("/s/sglang/srt/mem_cache/pool_host/base.py", "__init__", "ValueError: x", Stage.MEMORY_POOL),
    ("/s/sglang/srt/managers/tokenizer_manager.py", "__init__", "zmq.error.ZMQError: x", Stage.TOKENIZER),
    ("/s/sglang/srt/managers/multimodal_processor.py", "get_mm_processor", "ValueError: x", Stage.TOKENIZER),
    ("/s/openai_harmony/__init__.py", "load_harmony_encoding", "HarmonyError: x", Stage.TOKENIZER),
    ("/s/sglang/srt/layers/attention/x_backend.py", "forward_extend", "ValueError: x", Stage.GRAPH_CAPTURE),
    ("/s/sglang/srt/model_executor/runner/eager_runner.py", "warmup", "ValueError: x", Stage.GRAPH_CAPTURE),
]


@pytest.mark.parametrize(("path", "function", "exception", "stage"), FRAMES, ids=[f[1] for f in FRAMES])
def test_frames_tell_the_stage(path: str, function: str, exception: str, stage: Stage) -> None:
    text = (
        "Traceback (most recent call last):\n"
        '  File "/s/sglang/launch_server.py", line 66, in <module>\n'
        "    main()\n"
        f'  File "{path}", line 10, in {function}\n'
        "    x()\n"
        '  File "/s/torch/nn/modules/module.py", line 10, in _call_impl\n'
        "    y()\n"
        f"{exception}\n"
    )
    attempt = reading_from_text(text).attempt
    assert attempt is not None
    assert [e.stage for e in attempt.events] == [stage]
    assert attempt.stage is stage


def test_whatever_fails_while_modules_are_imported() -> None:
    head = (
        "Traceback (most recent call last):\n"
        '  File "<frozen runpy>", line 88, in _run_code\n'
        '  File "/s/sglang/launch_server.py", line 6, in <module>\n'
    )
    register = (
        '  File "/s/sglang/srt/configs/ovis.py", line 75, in <module>\n'
        '    AutoConfig.register("aimv2", AIMv2Config)\n'
        '  File "/s/transformers/models/auto/configuration_auto.py", line 993, in register\n'
        "ValueError: 'aimv2' is already used by a Transformers config, pick another name.\n"
    )
    load = (
        '  File "/s/sglang/srt/model_executor/model_runner.py", line 9, in load_model\n    import_module(x)\n'
    )
    attempt = reading_from_text(head + register).attempt
    assert attempt is not None and attempt.stage is Stage.IMPORT
    attempt = reading_from_text(head + load + register).attempt  # imported by a later stage
    assert attempt is not None and attempt.stage is not Stage.IMPORT


def test_a_rank_that_fails_once_the_server_listens() -> None:
    attempt = reading_from_text(
        "[2026-01-01 00:00:00 TP1] Load weight end. type=X, avail mem=106.00 GB\n"
        "[2026-01-01 00:00:00] INFO:     Uvicorn running on http://0.0.0.0:30000 (Press CTRL+C to quit)\n"
        "[2026-01-01 00:00:01 TP1] Scheduler hit an exception: Traceback (most recent call last):\n"
        '  File "/s/sglang/srt/layers/layernorm.py", line 180, in forward_native\n'
        "RuntimeError: x\n"
    ).attempt
    assert attempt is not None and attempt.stage is Stage.WARMUP


def test_the_code_of_a_frame_tells_what_was_left_out_below() -> None:
    attempt = reading_from_text(
        "Traceback (most recent call last):\n"
        '  File "/s/sglang/launch_server.py", line 66, in <module>\n'
        '  File "/s/sglang/srt/managers/tokenizer_manager.py", line 82, in __init__\n'
        "    self.hf_config = get_config(\n"
        "OSError: x\n"
    ).attempt
    assert attempt is not None and attempt.stage is Stage.CONFIG


def test_the_code_of_a_frame_shows_the_loop() -> None:
    attempt = reading_from_text(
        "[2026-01-01 00:00:01 TP1] Scheduler hit an exception: Traceback (most recent call last):\n"
        '  File "/s/sglang/srt/managers/scheduler.py", line 4639, in run_scheduler_process\n'
        "    scheduler.run_event_loop()\n"
        '  File "/s/sglang/srt/models/llama.py", line 160, in load_weights\n'
        "RuntimeError: x\n"
    ).attempt
    assert attempt is not None and attempt.stage is Stage.WARMUP


def test_each_rank_is_where_its_own_marks_say() -> None:
    attempt = reading_from_text(
        "[2026-01-01 00:00:00 TP0] Load weight begin. avail mem=1 GB\n"
        "[2026-01-01 00:00:00 TP1] Init torch distributed begin.\n"
        "[2026-01-01 00:00:00 TP0] Memory pool end. avail mem=8.00 GB\n"
        "[2026-01-01 00:00:01 TP1] Scheduler hit an exception: Traceback (most recent call last):\n"
        '  File "/s/somewhere.py", line 1, in f\n'
        "RuntimeError: x\n"
    ).attempt
    assert attempt is not None
    assert attempt.events[0].stage is Stage.DIST_INIT


def test_draft_model_goes_through_the_stages_again() -> None:
    attempt = reading_from_text(
        "[2026-01-01 00:00:00] Capture cuda graph end. Time elapsed: 2.18 s.\n"
        "[2026-01-01 00:00:00] Load weight begin. avail mem=124.09 GB\n"
        "Killed\n"
    ).attempt
    assert attempt is not None
    assert attempt.events[0].stage is Stage.WEIGHTS


def test_stack_of_a_native_crash() -> None:
    attempt = reading_from_text(
        "Fatal Python error: Bus error\n"
        "\n"
        "Thread 0x00007f1 (most recent call first):\n"
        '  File "/usr/lib/python3.12/threading.py", line 359 in wait\n'
        "\n"
        "Current thread 0x00007f2 (most recent call first):\n"
        '  File "/s/safetensors/x.py", line 1 in read\n'
        '  File "/s/sglang/srt/model_loader/loader.py", line 660 in load_weights_and_postprocess\n'
        '  File "/s/sglang/srt/managers/scheduler.py", line 10 in run_scheduler_process\n'
    ).attempt
    assert attempt is not None
    assert [(e.stage, e.stage_told) for e in attempt.events] == [(Stage.WEIGHTS, True)]


def test_a_stage_that_nothing_tells_is_a_guess() -> None:
    attempt = reading_from_text(
        "RuntimeError: CUDA error: an illegal memory access was encountered\n"
    ).attempt
    assert attempt is not None
    assert [e.stage_told for e in attempt.events] == [False]
