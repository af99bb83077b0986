"""Memory: whose, how much, and of which kind."""

from __future__ import annotations

from tests.false_friends.build import (
    CAPTURE_ADVICE,
    GRAPH,
    INCREASE,
    LOWER,
    MODEL,
    POOL,
    RAISE,
    READY,
    Pair,
    Side,
    died,
    main_died,
    oom,
    site,
    traceback,
    weights,
)

PAIRS = (
    Pair(
        "increase the memory fraction, lower it",
        Side(
            f"{MODEL} --mem-fraction-static 0.1",
            (*weights(78.4, 62.9), *died(INCREASE, POOL)),
            r"Please try to increase --mem-fraction-static",
            RAISE,
            r"--mem-fraction-static 0\.0",
        ),
        Side(
            f"{MODEL} --mem-fraction-static 0.98",
            (
                *weights(78.4, 62.9),
                "KV Cache is allocated. #tokens: 440112, K size: 30.22 GB, V size: 30.22 GB",
                *died(
                    oom("1.21 GiB", "79.10 GiB", "612.38 MiB", "78.49 GiB"),
                    (
                        "model_executor/model_runner.py",
                        2301,
                        "init_memory_pool",
                        "self.token_to_kv_pool_allocator = TokenToKVPoolAllocator(",
                    ),
                    ("mem_cache/allocator.py", 122, "clear", "self.free_pages = torch.arange("),
                ),
            ),
            r"CUDA out of memory",
            LOWER,
            r"--mem-fraction-static 0\.9[89]|--mem-fraction-static 1",
        ),
    ),
    Pair(
        "out of GPU memory: by this launch, by others",
        Side(
            f"{MODEL} --mem-fraction-static 0.95",
            (
                *weights(78.4, 62.9),
                "KV Cache is allocated. #tokens: 400112, K size: 29.22 GB, V size: 29.22 GB",
                "Memory pool end. avail mem=3.21 GB",
                "Capture cuda graph begin. This can take up to several minutes. avail mem=3.11 GB",
                *died(
                    "Exception: Capture cuda graph failed: "
                    + oom("1.16 GiB", "79.10 GiB", "512.38 MiB", "78.49 GiB")
                    + CAPTURE_ADVICE,
                    GRAPH,
                ),
            ),
            r"CUDA out of memory",
            LOWER,
            r"--mem-fraction-static 0\.9[5-9]",
        ),
        Side(
            f"{MODEL} --mem-fraction-static 0.8",
            (
                *weights(5.2, None),
                *died(
                    oom(
                        "1.16 GiB",
                        "79.10 GiB",
                        "412.38 MiB",
                        "4.93 GiB",
                        "Process 4121 has 73.70 GiB memory in use. ",
                    ),
                    ("model_loader/loader.py", 560, "load_model", "model = _initialize_model("),
                    site("torch/utils/_device.py", 104, "__torch_function__", "return func(*args, **kwargs)"),
                ),
            ),
            r"CUDA out of memory",
            r"nvidia-smi|[Oo]ther process|[Ss]top|kill",
            r"set --mem-fraction-static 0\.9",
        ),
    ),
    Pair(
        "out of resource shared memory: a kernel's tile, /dev/shm",
        Side(
            f"{MODEL} --attention-backend triton",
            (
                *weights(93.4, 77.9),
                "Capture cuda graph begin. This can take up to several minutes. avail mem=9.11 GB",
                *died(
                    "Exception: Capture cuda graph failed: out of resource: shared memory, Required: 147456, Hardware "
                    "limit: 101376. Reducing block sizes or `num_stages` may help." + CAPTURE_ADVICE,
                    GRAPH,
                ),
            ),
            r"out of resource: shared memory",
            r"backend|triton|release|kernel",
            r"shm-size|/dev/shm|ipc host|--mem-fraction-static",
        ),
        Side(
            f"{MODEL} --tp 4",
            (
                "Init torch distributed begin.",
                "@gpu1:411:511 [0] misc/shmutils.cc:87 NCCL WARN Error: failed to extend /dev/shm/nccl-9qXvTd to 33030532 bytes, error: No space left on device (28)",
                "@gpu1:411:511 [0] misc/shmutils.cc:129 NCCL WARN Error while creating shared memory segment /dev/shm/nccl-9qXvTd (size 33030528), error: No space left on device (28)",
                *died(
                    "torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:3690, unhandled system error (run with NCCL_DEBUG=INFO for details), NCCL version 2.27.5\n"
                    "ncclSystemError: System call (e.g. socket, malloc) or external library call failed or device error. \n"
                    "Last error:\nError while creating shared memory segment /dev/shm/nccl-9qXvTd (size 33030528), error: No space left on device (28)",
                    (
                        "distributed/parallel_state.py",
                        1490,
                        "init_distributed_environment",
                        "torch.distributed.init_process_group(",
                    ),
                ),
            ),
            r"/dev/shm/nccl",
            r"shm",
            r"--attention-backend|--mem-fraction-static",
        ),
    ),
    Pair(
        "no space left on device: /dev/shm, the disk of the cache",
        Side(
            f"{MODEL} --tp 2",
            (
                "Init torch distributed begin.",
                *died(
                    "torch.distributed.DistBackendError: NCCL error in: /pytorch/torch/csrc/distributed/c10d/NCCLUtils.cpp:77, unhandled system error (run with NCCL_DEBUG=INFO for details), NCCL version 2.27.3\n"
                    "ncclSystemError: System call (e.g. socket, malloc) or external library call failed or device error. \n"
                    "Last error:\nError while creating shared memory segment /dev/shm/nccl-Lp2mJx (size 9637888), error: No space left on device (28)",
                    (
                        "distributed/parallel_state.py",
                        1490,
                        "init_distributed_environment",
                        "torch.distributed.init_process_group(",
                    ),
                ),
            ),
            r"/dev/shm/nccl",
            r"shm",
        ),
        Side(
            "--model-path Qwen/Qwen3-8B",
            (
                *weights(78.4, None),
                *died(
                    "OSError: [Errno 28] No space left on device: '/root/.cache/huggingface/hub/models--Qwen--Qwen3-8B/blobs/9f2c.incomplete'",
                    (
                        "model_loader/weight_utils.py",
                        612,
                        "download_weights_from_hf",
                        "hf_folder = snapshot_download(",
                    ),
                ),
            ),
            r"No space left on device",
            r"df |disk|HF_HOME|free",
            r"shm-size|ipc host",
        ),
    ),
    Pair(
        "Capture cuda graph failed: a dead peer, true exhaustion",
        Side(
            f"{MODEL} --tp 2",
            (
                *weights(93.4, 77.9),
                "Capture cuda graph begin. This can take up to several minutes. avail mem=9.11 GB",
                *(
                    "~TP1 " + line if not line.startswith(("@", "!")) else line
                    for line in died(
                        "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 131072, Hardware limit: 101376. Reducing block sizes or `num_stages` may help.",
                        GRAPH,
                    )[:-2]
                ),
                *died(
                    "Exception: Capture cuda graph failed: NCCL error: remote process exited or there was a network error, Connection closed by peer"
                    + CAPTURE_ADVICE,
                    GRAPH,
                ),
            ),
            r"out of resource: shared memory",
            r"backend|kernel|release",
            r"--mem-fraction-static|--disable-cuda-graph",
        ),
        Side(
            f"{MODEL} --tp 2 --mem-fraction-static 0.94",
            (
                *weights(93.4, 77.9),
                "Capture cuda graph begin. This can take up to several minutes. avail mem=1.11 GB",
                *died(
                    "Exception: Capture cuda graph failed: CUDA out of memory. Tried to allocate 1.16 GiB. GPU 0 has a total capacity of 94.97 GiB of which 401.12 MiB is free. Including non-PyTorch memory, this process has 94.56 GiB memory in use."
                    + CAPTURE_ADVICE,
                    GRAPH,
                ),
            ),
            r"CUDA out of memory",
            LOWER,
        ),
    ),
    Pair(
        "the host cache: larger than the memory that is free, smaller than the GPU's",
        Side(
            f"{MODEL} --enable-hierarchical-cache --hicache-size 400",
            (
                *weights(78.4, 62.9),
                *died(
                    "ValueError: Not enough host memory available. Requesting 400.00 GB but only have 212.31 GB free. Please reduce the size of the hierarchical cache.",
                    (
                        "mem_cache/hiradix_cache.py",
                        88,
                        "__init__",
                        "self.token_to_kv_pool_host = MHATokenToKVPoolHost(",
                    ),
                    ("mem_cache/memory_pool_host.py", 151, "__init__", "raise ValueError("),
                ),
            ),
            r"Not enough host memory",
            r"set --hicache-size (?:[12]?\d?\d)(?:\.\d+)?$|--hicache-size|--hicache-ratio",
            r"--hicache-size [4-9]\d\d",
        ),
        Side(
            f"{MODEL} --enable-hierarchical-cache --hicache-size 8",
            (
                *weights(78.4, 62.9),
                *died(
                    "AssertionError: The host memory should be larger than the device memory with the current protocol",
                    (
                        "mem_cache/hiradix_cache.py",
                        88,
                        "__init__",
                        "self.token_to_kv_pool_host = MHATokenToKVPoolHost(",
                    ),
                    ("mem_cache/memory_pool_host.py", 140, "__init__", "assert ("),
                ),
            ),
            r"host memory should be larger",
            r"remove --hicache-size|--hicache-ratio|larger|raise",
            r"set --hicache-size [0-8]$",
            releases=("0.5.9", "0.5.13.post1"),
        ),
    ),
    Pair(
        "out of memory while serving: of torch's, of the KV pool",
        Side(
            f"{MODEL} --mem-fraction-static 0.92",
            (
                *weights(78.4, 62.9),
                f"!{READY}",
                "Prefill batch. #new-seq: 1, #new-token: 8192, #cached-token: 0, token usage: 0.02, #running-req: 0, #queue-req: 3, ",
                "Scheduler hit an exception: Traceback (most recent call last):",
                *traceback(
                    (
                        (
                            "managers/scheduler.py",
                            3030,
                            "run_scheduler_process",
                            "scheduler.event_loop_overlap()",
                        ),
                        (
                            "model_executor/model_runner.py",
                            2710,
                            "forward_extend",
                            "return self.model.forward(",
                        ),
                        ("models/qwen3.py", 350, "forward", "hidden_states = self.mlp(hidden_states)"),
                    ),
                    oom("1.21 GiB", "79.10 GiB", "612.38 MiB", "78.49 GiB"),
                )[1:],
                "@",
                "!Received sigquit from a child process. It usually means the child failed.",
            ),
            r"CUDA out of memory",
            LOWER,
            r"--mem-fraction-static 0\.9[2-9]",
        ),
        Side(
            f"{MODEL} --mem-fraction-static 0.7",
            (
                *weights(78.4, 62.9),
                f"!{READY}",
                "Decode batch. #running-req: 212, #token: 41231, token usage: 1.00, cuda graph: True, gen throughput (token/s): 512.31, #queue-req: 0, ",
                "Scheduler hit an exception: Traceback (most recent call last):",
                *traceback(
                    (
                        (
                            "managers/scheduler.py",
                            3030,
                            "run_scheduler_process",
                            "scheduler.event_loop_overlap()",
                        ),
                        (
                            "managers/schedule_batch.py",
                            1750,
                            "prepare_for_decode",
                            "self.out_cache_loc = alloc_for_decode(self, token_per_req=1)",
                        ),
                        ("mem_cache/common.py", 330, "alloc_token_slots", "raise RuntimeError(error_msg)"),
                    ),
                    "RuntimeError: Decode out of memory. Try to lower your batch size.\nTry to allocate 212 tokens.\nAvailable tokens: 96",
                )[1:],
                "@",
                "!Received sigquit from a child process. It usually means the child failed.",
            ),
            r"Decode out of memory",
            r"--max-running-requests|--schedule-conservativeness|--mem-fraction-static 0\.[789]",
            r"set --mem-fraction-static 0\.[0-6]",
        ),
    ),
    Pair(
        "memory is unbalanced: others are on the GPU, seen by the draft after the target's weights",
        Side(
            f"{MODEL} --tp 2",
            (
                "Init torch distributed begin.",
                *died(
                    "ValueError: The memory capacity is unbalanced. Some GPUs may be occupied by other processes. pre_model_load_memory=41.2, local_gpu_memory=78.4, local_gpu_memory * 0.9=70.6",
                    ("model_executor/model_runner.py", 720, "init_torch_distributed", "raise ValueError("),
                ),
            ),
            r"memory capacity is unbalanced",
            r"nvidia-smi|other process|stop|free",
            r"set --mem-fraction-static",
        ),
        Side(
            f"{MODEL} --tp 2 --speculative-algorithm EAGLE --speculative-draft-model-path /models/draft",
            (
                *weights(78.4, 62.9),
                "Memory pool end. avail mem=9.21 GB",
                *died(
                    "ValueError: The memory capacity is unbalanced. Some GPUs may be occupied by other processes. pre_model_load_memory=8.1, local_gpu_memory=9.2, local_gpu_memory * 0.9=8.28",
                    ("speculative/eagle_worker.py", 131, "__init__", "super().__init__("),
                    ("model_executor/model_runner.py", 720, "init_torch_distributed", "raise ValueError("),
                ),
            ),
            r"memory capacity is unbalanced",
            r"SGLANG_ENABLE_TP_MEMORY_INBALANCE_CHECK|release|check|draft",
        ),
    ),
    Pair(
        "too long: the context asked for, the warm-up prompt for a tiny pool",
        Side(
            f"{MODEL} --context-length 131072",
            main_died(
                "ValueError: User-specified context_length (131072) is greater than the derived context_length (40960). This may lead to incorrect model outputs or CUDA errors. Note that the derived context_length may differ from max_position_embeddings in the model's config. To allow overriding this maximum, set the env var SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1",
                ("configs/model_config.py", 290, "_derive_context_length", "raise ValueError("),
            ),
            r"greater than the derived context_length",
            r"--context-length 40960|remove --context-length|rope",
        ),
        Side(
            f"{MODEL} --max-total-tokens 4",
            (
                *weights(78.4, 62.9),
                "!INFO:     Application startup complete.",
                "!Input length (28 tokens) exceeds the maximum allowed length (3 tokens). Use a shorter input or enable --allow-auto-truncate., self.rid='a3f1'",
                "!Initialization failed. warmup error: Traceback (most recent call last):",
                *traceback(
                    (
                        (
                            "entrypoints/http_server.py",
                            1768,
                            "_execute_server_warmup",
                            'assert res.status_code == 200, f"{res.text}"',
                        ),
                    ),
                    'AssertionError: {"error":{"message":"Input length (28 tokens) exceeds the maximum allowed length (3 tokens). Use a shorter input or enable --allow-auto-truncate."}}',
                )[1:],
                "!Received sigquit from a child process. It usually means the child failed.",
            ),
            r"exceeds the maximum allowed length",
            r"--max-total-tokens",
            r"--context-length",
        ),
    ),
)
