"""Launches whose messages look alike and whose remedies do not: the pairs of tests/test_false_friends.py.

Messages and frames are SGLang's, torch's, transformers', NCCL's and the kernel's own; the launches around them
are put together here.
"""

from __future__ import annotations

from dataclasses import dataclass

CLOCK = "2026-11-29 13:46:{:02d}"
READY = "The server is fired up and ready to roll!"
CALLS = (
    ("managers/scheduler.py", 3012, "run_scheduler_process", "scheduler = Scheduler("),
    ("managers/scheduler.py", 377, "__init__", "self.init_model_worker()"),
    ("managers/tp_worker.py", 265, "__init__", "self._init_model_runner()"),
    ("model_executor/model_runner.py", 420, "__init__", "self.initialize(min_per_gpu_memory)"),
)
MAIN_CALLS = (
    ("launch_server.py", 24, "<module>", "server_args = prepare_server_args(sys.argv[1:])"),
    ("entrypoints/http_server.py", 1290, "launch_server", "_launch_subprocesses(server_args=server_args)"),
)


@dataclass(frozen=True, slots=True)
class Side:
    """One launch of a pair. A line that begins with ``@`` is printed as it is, any other under SGLang's time and
    rank. ``wanted`` must be in some remedy offered first hand (title, edits, what is to be run); ``never`` in none
    that is not left to a person."""

    flags: str
    lines: tuple[str, ...]
    root: str  # regex of the root line
    wanted: str
    never: str | None = None
    releases: tuple[str, ...] = ("0.5.9", "0.5.13.post1", "0.5.16")


@dataclass(frozen=True, slots=True)
class Pair:
    name: str
    one: Side
    other: Side


def died(
    exception: str, *inside: tuple[str, int, str, str], rank: bool = True, text: str | None = None
) -> tuple[str, ...]:
    """A scheduler that ends with an exception, and what the main process says to it."""
    trace = traceback((*CALLS, *inside), exception)
    head = text or "Scheduler hit an exception: Traceback (most recent call last):"
    end = ("!Received sigquit from a child process. It usually means the child failed.", "@Killed")
    return (head if rank else f"!{head}", *trace[1:], "@", *end)


def main_died(exception: str, *inside: tuple[str, int, str, str]) -> tuple[str, ...]:
    return traceback((*MAIN_CALLS, *inside), exception)


def traceback(frames: tuple[tuple[str, int, str, str], ...], exception: str) -> tuple[str, ...]:
    out = ["@Traceback (most recent call last):"]
    for path, line, function, code in frames:
        where = path if path.startswith("/") else f"/usr/lib/python3.12/site-packages/sglang/srt/{path}"
        out += [f'@  File "{where}", line {line}, in {function}', f"@    {code}"]
    return (*out, *(f"@{line}" for line in exception.split("\n")))


def site(package_path: str, line: int, function: str, code: str) -> tuple[str, int, str, str]:
    return (f"/usr/lib/python3.12/site-packages/{package_path}", line, function, code)


def weights(before: float, after: float | None) -> tuple[str, ...]:
    begin = (
        "Init torch distributed begin.",
        "Init torch distributed ends. mem usage=0.12 GB",
        f"Load weight begin. avail mem={before:.2f} GB",
    )
    if after is None:
        return begin
    used = before - after
    end = f"Load weight end. type=Qwen3ForCausalLM, dtype=torch.bfloat16, avail mem={after:.2f} GB, mem usage={used:.2f} GB."
    return (*begin, end)


def oom(tried: str, total: str, free: str, own: str, other: str = "") -> str:
    return (
        f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {tried}. GPU 0 has a total capacity of "
        f"{total} of which {free} is free. {other}Including non-PyTorch memory, this process has {own} memory in use."
        " Of the allocated memory 76.12 GiB is allocated by PyTorch, and 140.20 MiB is reserved by PyTorch but "
        "unallocated. If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF="
        "expandable_segments:True to avoid fragmentation."
    )


POOL = ("model_executor/model_runner.py", 2210, "init_memory_pool", "raise RuntimeError(")
GRAPH = ("model_executor/cuda_graph_runner.py", 380, "__init__", "self.capture()")
INCREASE = "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static."
CAPTURE_ADVICE = (
    "\nPossible solutions:\n1. set --mem-fraction-static to a smaller value (e.g., 0.8 or 0.7)\n2. set --cuda-graph-max-bs"
    " to a smaller value (e.g., 16)\n3. disable torch compile by not using --enable-torch-compile\n4. disable CUDA graph "
    "by --disable-cuda-graph. (Not recommended. Huge performance loss)\nOpen an issue on GitHub https://github.com/"
    "sgl-project/sglang/issues/new/choose \n"
)
LOWER = r"(set --mem-fraction-static 0\.[1-8])|[Ll]ower --mem-fraction|remove --mem-fraction-static"
RAISE = r"set --mem-fraction-static 0\.[89]|remove --mem-fraction-static|[Rr]aise --mem-fraction"
MODEL = "--model-path /models/Qwen3-8B"

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
        "the message says increase: others hold the GPU, the weights fill it",
        Side(
            f"{MODEL} --mem-fraction-static 0.85",
            (*weights(2.9, 1.2), *died(INCREASE, POOL)),
            r"Please try to increase --mem-fraction-static",
            r"nvidia-smi|[Oo]ther process|free the GPU|[Ss]top what",
            r"set --mem-fraction-static 0\.9",
        ),
        Side(
            "--model-path /models/Qwen2.5-72B --mem-fraction-static 0.98 --tp 2",
            (*weights(78.4, 0.4), *died(INCREASE, POOL)),
            r"Please try to increase --mem-fraction-static",
            r"--tp(-size)? 4|more GPUs|quantiz|smaller",
            r"set --mem-fraction-static 0\.(99|1)|remove --mem-fraction-static",
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
        "exit code -9: the kernel's OOM killer, the server's own watchdog",
        Side(
            f"{MODEL} --tp 2",
            (
                *weights(78.4, None),
                "@[ 4711.203911] oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=docker-1f2e.scope,mems_allowed=0-1,oom_memcg=/system.slice/docker-1f2e.scope,task_memcg=/system.slice/docker-1f2e.scope,task=sglang::schedul,pid=4711,uid=0",
                "@[ 4711.203977] Memory cgroup out of memory: Killed process 4711 (sglang::schedul) total-vm:91233412kB, anon-rss:64233412kB, file-rss:81232kB, shmem-rss:10244kB, UID:0 pgtables:133172kB oom_score_adj:0",
                "!Rank 0 scheduler died during initialization (exit code: -9). If exit code is -9 (SIGKILL), a common cause is the OS OOM killer. Run `dmesg -T | grep -i oom` to check.",
            ),
            r"Killed process|oom-kill",
            r"memory|RAM|limit",
            r"--watchdog-timeout",
        ),
        Side(
            f"{MODEL} --tp 2",
            (
                *weights(78.4, 62.9),
                "Memory pool end. avail mem=9.21 GB",
                f"!{READY}",
                "Prefill batch. #new-seq: 1, #new-token: 8192, #cached-token: 0, token usage: 0.02, #running-req: 0, #queue-req: 3, ",
                "Watchdog timeout (self.watchdog_timeout=300, self.soft=False)",
                "!Received sigquit from a child process. It usually means the child failed.",
                "!Subprocess scheduler_0 (pid=4711) crashed with exit code -9. Triggering SIGQUIT for cleanup...",
            ),
            r"[Ww]atchdog timeout",
            r"watchdog|py-spy|hang|step",
            r"set --mem-fraction-static",
        ),
    ),
    Pair(
        "exit code -9: killed with no word why, stopped by a person",
        Side(
            f"{MODEL} --tp 2",
            (
                *weights(78.4, None),
                "!Rank 1 scheduler died during initialization (exit code: -9). If exit code is -9 (SIGKILL), a common cause is the OS OOM killer. Run `dmesg -T | grep -i oom` to check.",
            ),
            r"exit code: -9",
            r"dmesg",
        ),
        Side(
            f"{MODEL} --tp 2",
            (
                *weights(78.4, 62.9),
                f"!{READY}",
                '!INFO:     10.0.0.7:44112 - "POST /v1/chat/completions HTTP/1.1" 200 OK',
                "!SIGTERM received. signum=None frame=None. Draining requests and shutting down...",
                "!Gracefully exiting... Remaining number of requests 0. Remaining requests remaining_rids=[].",
                "@Killed",
            ),
            "",
            "",
        ),
    ),
    Pair(
        "the model: the hub is out of reach, the path is wrong",
        Side(
            "--model-path Qwen/Qwen3-8B",
            main_died(
                "OSError: We couldn't connect to 'https://huggingface.co' to load the files, and couldn't find them in the cached files.\nCheck your internet connection or see how to run the library in offline mode at 'https://huggingface.co/docs/transformers/installation#offline-mode'.",
                ("utils/hf_transformers_utils.py", 210, "get_config", "config = AutoConfig.from_pretrained("),
            ),
            r"couldn't connect",
            r"HF_ENDPOINT|proxy|network|download|offline|connect",
        ),
        Side(
            "--model-path /model/Qwen3-8B",
            main_died(
                "huggingface_hub.errors.HFValidationError: Repo id must be in the form 'repo_name' or 'namespace/repo_name': '/model/Qwen3-8B'. Use `repo_type` argument if needed.",
                ("utils/hf_transformers_utils.py", 210, "get_config", "config = AutoConfig.from_pretrained("),
            ),
            r"Repo id must be",
            r"path|mount|folder|-v ",
            r"HF_ENDPOINT|HF_HUB_OFFLINE|HF_TOKEN",
        ),
    ),
    Pair(
        "the model: no such repository, no access to it",
        Side(
            "--model-path Qwen/Qwen3-8B-Instrukt",
            main_died(
                "OSError: Qwen/Qwen3-8B-Instrukt is not a local folder and is not a valid model identifier listed on 'https://huggingface.co/models'\nIf this is a private repository, make sure to pass a token having permission to this repo either by logging in with `hf auth login` or by passing `token=<your_token>`",
                ("utils/hf_transformers_utils.py", 210, "get_config", "config = AutoConfig.from_pretrained("),
            ),
            r"is not a local folder",
            r"name|spell|id|path",
        ),
        Side(
            "--model-path meta-llama/Llama-3.1-8B-Instruct",
            main_died(
                "OSError: You are trying to access a gated repo.\nMake sure to have access to it at https://huggingface.co/meta-llama/Llama-3.1-8B-Instruct.\n403 Client Error. (Request ID: Root=1-67)\n\nCannot access gated repo for url https://huggingface.co/meta-llama/Llama-3.1-8B-Instruct/resolve/main/config.json.",
                ("utils/hf_transformers_utils.py", 210, "get_config", "config = AutoConfig.from_pretrained("),
            ),
            r"gated repo",
            r"token|access|HF_TOKEN",
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
        "a port is taken: of HTTP, of the process group",
        Side(
            f"{MODEL} --port 30000",
            (
                *weights(78.4, 62.9),
                "!INFO:     Started server process [411]",
                "!INFO:     Waiting for application startup.",
                "!INFO:     Application startup complete.",
                "!ERROR:    [Errno 98] error while attempting to bind on address ('127.0.0.1', 30000): address already in use",
            ),
            r"address already in use",
            r"set --port",
            r"--nccl-port|--dist-init-addr",
        ),
        Side(
            f"{MODEL} --tp 2 --nnodes 2 --node-rank 0 --dist-init-addr 10.0.0.5:29500",
            (
                "Init torch distributed begin.",
                *died(
                    "torch.distributed.DistNetworkError: The server socket has failed to listen on any local network address. port: 29500, useIpv6: false, code: -98, name: EADDRINUSE, message: address already in use",
                    (
                        "distributed/parallel_state.py",
                        1490,
                        "init_distributed_environment",
                        "torch.distributed.init_process_group(",
                    ),
                    site("torch/distributed/rendezvous.py", 189, "_create_c10d_store", "return TCPStore("),
                ),
            ),
            r"EADDRINUSE",
            r"--dist-init-addr|--nccl-port|29500",
            r"set --port",
        ),
    ),
    Pair(
        "a port cannot be bound: taken, not allowed",
        Side(
            f"{MODEL} --port 8000",
            (
                *weights(78.4, 62.9),
                "!INFO:     Started server process [411]",
                "!ERROR:    [Errno 98] error while attempting to bind on address ('0.0.0.0', 8000): address already in use",
            ),
            r"address already in use",
            r"--port|stop|ss -",
        ),
        Side(
            f"{MODEL} --port 443",
            (
                *weights(78.4, 62.9),
                "!INFO:     Started server process [411]",
                "!ERROR:    [Errno 13] error while attempting to bind on address ('0.0.0.0', 443): permission denied",
            ),
            r"permission denied",
            r"set --port (?!443)\d{4,}|root|setcap",
        ),
    ),
    Pair(
        "no kernel image: this torch is too old for the GPU, the GPU is too old",
        Side(
            f"{MODEL}",
            (
                "@/usr/lib/python3.12/site-packages/torch/cuda/__init__.py:235: UserWarning: ",
                "@NVIDIA RTX PRO 6000 Blackwell Server Edition with CUDA capability sm_120 is not compatible with the current PyTorch installation.",
                "@The current PyTorch install supports CUDA capabilities sm_50 sm_60 sm_70 sm_75 sm_80 sm_86 sm_90.",
                *weights(93.4, None),
                *died(
                    "RuntimeError: CUDA error: no kernel image is available for execution on the device\nCUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.",
                    ("model_loader/loader.py", 560, "load_model", "model = _initialize_model("),
                ),
            ),
            r"sm_120 is not compatible|no kernel image",
            r"torch|image|cu12[89]|cu13|wheel|CUDA 1[23]",
            r"--attention-backend|--mem-fraction-static",
        ),
        Side(
            f"{MODEL} --dtype half",
            (
                "@/usr/lib/python3.12/site-packages/torch/cuda/__init__.py:283: UserWarning: ",
                "@    Found GPU0 Tesla V100-SXM2-32GB which is of cuda capability 7.0.",
                "@    Minimum and Maximum cuda capability supported by this version of PyTorch is",
                "@    (7.5) - (12.0)",
                *weights(31.4, None),
                *died(
                    "RuntimeError: CUDA error: no kernel image is available for execution on the device\nCUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.",
                    ("model_loader/loader.py", 560, "load_model", "model = _initialize_model("),
                ),
            ),
            r"no kernel image|capability 7\.0|\(7\.5\)",
            r"torch|GPU|newer|SM|capabilit|older",
            r"--mem-fraction-static",
        ),
    ),
    Pair(
        "EAGLE3: no draft was named, the draft is another model's",
        Side(
            f"{MODEL} --speculative-algorithm EAGLE3 --speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4",
            (
                *weights(78.4, 62.9),
                *died(
                    "AttributeError: 'Qwen3ForCausalLM' object has no attribute 'set_embed'",
                    (
                        "speculative/eagle_worker.py",
                        160,
                        "__init__",
                        "self.draft_model_runner.model.set_embed(embed)",
                    ),
                    site("torch/nn/modules/module.py", 1964, "__getattr__", "raise AttributeError("),
                ),
            ),
            r"set_embed",
            r"--speculative-draft-model-path|draft",
            r"--mem-fraction-static",
        ),
        Side(
            f"{MODEL} --speculative-algorithm EAGLE3 --speculative-draft-model-path /models/draft --speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4",
            (
                *weights(78.4, 62.9),
                "Capture draft cuda graph begin. This can take up to several minutes. avail mem=9.11 GB",
                *died(
                    "RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x12288 and 15360x5120)",
                    (
                        "speculative/eagle_worker.py",
                        421,
                        "forward_target_extend",
                        "logits_output = self.draft_model_runner.forward(",
                    ),
                    ("models/llama_eagle3.py", 166, "forward", "hidden_states = self.fc(hidden_states)"),
                    site(
                        "torch/nn/modules/linear.py",
                        134,
                        "forward",
                        "return F.linear(input, self.weight, self.bias)",
                    ),
                ),
            ),
            r"shapes cannot be multiplied",
            r"draft",
            r"--mem-fraction-static",
        ),
    ),
    Pair(
        "the configuration is not understood: transformers too old, code that was not trusted",
        Side(
            "--model-path Qwen/Qwen9-8B",
            main_died(
                "ValueError: The checkpoint you are trying to load has model type `qwen9` but Transformers does not recognize this architecture. This could be because of an issue with the checkpoint, or because your version of Transformers is out of date.\n\nYou can update Transformers with the command `pip install --upgrade transformers`.",
                ("utils/hf_transformers_utils.py", 210, "get_config", "config = AutoConfig.from_pretrained("),
            ),
            r"does not recognize this architecture",
            r"transformers|release|image",
            r"add --trust-remote-code",
        ),
        Side(
            "--model-path moonshotai/Kimi-K2",
            main_died(
                "ValueError: The repository moonshotai/Kimi-K2 contains custom code which must be executed to correctly load the model. You can inspect the repository content at https://hf.co/moonshotai/Kimi-K2 .\n You can inspect the repository content at https://hf.co/moonshotai/Kimi-K2.\nPlease pass the argument `trust_remote_code=True` to allow custom code to be run.",
                ("utils/hf_transformers_utils.py", 210, "get_config", "config = AutoConfig.from_pretrained("),
            ),
            r"custom code|trust_remote_code",
            r"--trust-remote-code",
            r"pip install (-U|--upgrade) transformers",
        ),
    ),
    Pair(
        "waiting for others: a node that never came, a rank that died",
        Side(
            f"{MODEL} --tp 16 --nnodes 2 --node-rank 0 --dist-init-addr 10.0.0.5:5000",
            (
                "Init torch distributed begin.",
                *died(
                    "torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 8/16 clients joined.",
                    (
                        "distributed/parallel_state.py",
                        1490,
                        "init_distributed_environment",
                        "torch.distributed.init_process_group(",
                    ),
                    site("torch/distributed/rendezvous.py", 189, "_create_c10d_store", "return TCPStore("),
                ),
            ),
            r"waiting for clients",
            r"node|--dist-init-addr|address|firewall|start",
            r"--mem-fraction-static",
        ),
        Side(
            f"{MODEL} --tp 2 --quantization fp8",
            (
                *weights(78.4, None),
                "~TP1 Scheduler hit an exception: Traceback (most recent call last):",
                *traceback(
                    (
                        *CALLS,
                        (
                            "model_loader/weight_utils.py",
                            700,
                            "safetensors_weights_iterator",
                            'with safe_open(st_file, framework="pt") as f:',
                        ),
                    ),
                    "safetensors_rust.SafetensorError: Error while deserializing header: MetadataIncompleteBuffer",
                )[1:],
                "@",
                *died(
                    "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [127.0.0.1]:41223",
                    ("model_executor/model_runner.py", 980, "load_model", "dist.monitored_barrier("),
                ),
            ),
            r"MetadataIncompleteBuffer|deserializing header",
            r"download|copy|file|shard",
            r"--dist-timeout|--dist-init-addr",
        ),
    ),
    Pair(
        "a time limit: of loading the weights, of a collective while serving",
        Side(
            f"{MODEL} --tp 2",
            (
                *weights(78.4, None),
                *died(
                    "ValueError: TP rank 0 could finish the model loading, but there are other ranks that didn't finish loading. It is likely due to unexpected failures (e.g., OOM) or a slow node.",
                    ("model_executor/model_runner.py", 985, "load_model", "raise ValueError("),
                ),
            ),
            r"could finish the model loading",
            r"rank|other|node|log|disk|slow",
            r"--watchdog-timeout",
        ),
        Side(
            f"{MODEL} --tp 2",
            (
                *weights(78.4, 62.9),
                f"!{READY}",
                "Decode batch. #running-req: 12, #token: 41231, token usage: 0.21, cuda graph: True, gen throughput (token/s): 512.31, #queue-req: 0, ",
                "@[rank1]:[E1129 13:46:40.311004213 ProcessGroupNCCL.cpp:685] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=4127, OpType=ALLREDUCE, NumelIn=4096, NumelOut=4096, Timeout(ms)=600000) ran for 600029 milliseconds before timing out.",
                "@[rank1]:[E1129 13:46:40.311904213 ProcessGroupNCCL.cpp:2090] [PG ID 2 PG GUID 3 Rank 1] Process group watchdog thread terminated with exception: [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=4127, OpType=ALLREDUCE, NumelIn=4096, NumelOut=4096, Timeout(ms)=600000) ran for 600029 milliseconds before timing out.",
                "@terminate called after throwing an instance of 'c10::DistBackendError'",
                "@Fatal Python error: Aborted",
                "!Received sigquit from a child process. It usually means the child failed.",
            ),
            r"Watchdog caught collective operation timeout",
            r"NCCL|rank|hang|P2P|py-spy|collective",
            r"--mem-fraction-static",
        ),
    ),
    Pair(
        "an option this release does not know: it came later, it was another server's",
        Side(
            f"{MODEL} --mamba-scheduler-strategy extra_buffer",
            ("@launch_server.py: error: unrecognized arguments: --mamba-scheduler-strategy extra_buffer",),
            r"unrecognized arguments",
            r"image-tag|release|remove --mamba-scheduler-strategy|newer|upgrade|0\.5\.",
            releases=("0.5.1", "0.5.3"),
        ),
        Side(
            f"{MODEL} --max-model-len 32768",
            ("@launch_server.py: error: unrecognized arguments: --max-model-len 32768",),
            r"unrecognized arguments",
            r"--context-length 32768",
            releases=("0.5.9", "0.5.16"),
        ),
    ),
    Pair(
        "an option this release does not know: it was renamed, it is misspelt",
        Side(
            f"{MODEL} --mamba-scheduler-strategy extra_buffer --enable-ep-moe",
            ("@launch_server.py: error: unrecognized arguments: --enable-ep-moe",),
            r"unrecognized arguments",
            r"--ep-size|--ep |remove --enable-ep-moe",
            releases=("0.5.9", "0.5.10.post1"),
        ),
        Side(
            f"{MODEL} --mem-fraction-statik 0.8",
            ("@launch_server.py: error: unrecognized arguments: --mem-fraction-statik 0.8",),
            r"unrecognized arguments",
            r"--mem-fraction-static 0\.8",
            releases=("0.5.9", "0.5.16"),
        ),
    ),
    Pair(
        "mamba strategy and prefix cache: the first wants extra_buffer, the second wants it away",
        Side(
            "--model-path /models/Qwen3.5-27B --speculative-algorithm NEXTN --mamba-scheduler-strategy no_buffer",
            main_died(
                "ValueError: Speculative decoding for Qwen3_5ForConditionalGeneration is not compatible with radix cache when using --mamba-scheduler-strategy no_buffer. To use radix cache with speculative decoding, please use --mamba-scheduler-strategy extra_buffer and set SGLANG_ENABLE_SPEC_V2=1.",
                ("server_args.py", 2011, "_handle_mamba_radix_cache", "raise ValueError("),
            ),
            r"not compatible with radix cache",
            r"set --mamba-scheduler-strategy extra_buffer",
            releases=("0.5.10.post1", "0.5.13.post1"),
        ),
        Side(
            "--model-path /models/Qwen3.5-27B --speculative-algorithm NEXTN --mamba-scheduler-strategy extra_buffer --disable-radix-cache",
            main_died(
                "ValueError: mamba extra_buffer is not compatible with --disable-radix-cache. Please use --mamba-scheduler-strategy no_buffer or drop --disable-radix-cache.",
                ("server_args.py", 2031, "_handle_mamba_radix_cache", "raise ValueError("),
            ),
            r"extra_buffer",
            r"remove --mamba-scheduler-strategy|remove --disable-radix-cache|no_buffer",
            releases=("0.5.10.post1", "0.5.13.post1"),
        ),
    ),
    Pair(
        "no GPU: the container has no driver, the driver is too old",
        Side(
            f"{MODEL}",
            main_died(
                "ImportError: libcuda.so.1: cannot open shared object file: No such file or directory",
                ("utils/common.py", 41, "<module>", "import sgl_kernel"),
                site("sgl_kernel/__init__.py", 5, "<module>", "from sgl_kernel import common_ops"),
            ),
            r"libcuda\.so\.1",
            r"gpus all|--gpus|driver|runtime",
            r"--mem-fraction-static",
        ),
        Side(
            f"{MODEL}",
            main_died(
                "RuntimeError: The NVIDIA driver on your system is too old (found version 12040). Please update your GPU driver by downloading and installing a new version from the URL: http://www.nvidia.com/Download/index.aspx Alternatively, go to: https://pytorch.org to install a PyTorch version that has been compiled with your version of the CUDA driver.",
                ("utils/common.py", 412, "get_device_name", "return torch.cuda.get_device_name(device_id)"),
                site("torch/cuda/__init__.py", 412, "_lazy_init", "torch._C._cuda_init()"),
            ),
            r"driver on your system is too old",
            r"driver|image|torch",
            r"gpus all",
        ),
    ),
    Pair(
        "the kernel package: for CUDA 12 on CUDA 13, for CUDA 13 on CUDA 12",
        Side(
            f"{MODEL}",
            main_died(
                "ImportError: libcudart.so.12: cannot open shared object file: No such file or directory",
                ("utils/common.py", 41, "<module>", "import sgl_kernel"),
                site(
                    "sgl_kernel/load_utils.py",
                    151,
                    "_load_architecture_specific_ops",
                    "spec.loader.exec_module(common_ops)",
                ),
            ),
            r"libcudart\.so\.12",
            r"cu13|CUDA 13|cu130",
            r"--mem-fraction-static",
        ),
        Side(
            f"{MODEL}",
            main_died(
                "ImportError: libcudart.so.13: cannot open shared object file: No such file or directory",
                ("utils/common.py", 41, "<module>", "import sgl_kernel"),
                site(
                    "sgl_kernel/load_utils.py",
                    151,
                    "_load_architecture_specific_ops",
                    "spec.loader.exec_module(common_ops)",
                ),
            ),
            r"libcudart\.so\.13",
            r"cu12|CUDA 12|12\.[0-9]",
            r"--mem-fraction-static",
        ),
    ),
    Pair(
        "a weight file: cut off, a pointer of Git LFS",
        Side(
            f"{MODEL}",
            (
                *weights(78.4, None),
                *died(
                    "safetensors_rust.SafetensorError: Error while deserializing header: MetadataIncompleteBuffer",
                    (
                        "model_loader/weight_utils.py",
                        700,
                        "safetensors_weights_iterator",
                        'with safe_open(st_file, framework="pt") as f:',
                    ),
                ),
            ),
            r"MetadataIncompleteBuffer",
            r"[Dd]ownload|copy",
            r"git lfs pull",
        ),
        Side(
            f"{MODEL}",
            (
                *weights(78.4, None),
                *died(
                    "safetensors_rust.SafetensorError: Error while deserializing header: HeaderTooLarge",
                    (
                        "model_loader/weight_utils.py",
                        700,
                        "safetensors_weights_iterator",
                        'with safe_open(st_file, framework="pt") as f:',
                    ),
                ),
            ),
            r"HeaderTooLarge",
            r"[Ll][Ff][Ss]",
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
        "no network interface: the name given to NCCL, the one Gloo chose",
        Side(
            f"{MODEL} --tp 2",
            (
                "Init torch distributed begin.",
                "@gpu1:411:511 [0] transport/net_socket.cc:46 NCCL WARN NET/Socket : no interface found",
                "@gpu1:411:511 [0] bootstrap.cc:119 NCCL WARN Bootstrap : no socket interface found",
                *died(
                    "torch.distributed.DistBackendError: NCCL error in: /pytorch/torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:3690, invalid usage (run with NCCL_DEBUG=WARN for details), NCCL version 2.27.5\nncclInvalidUsage: This usually reflects invalid usage of NCCL library.\nLast error:\nBootstrap : no socket interface found",
                    (
                        "distributed/parallel_state.py",
                        1490,
                        "init_distributed_environment",
                        "torch.distributed.init_process_group(",
                    ),
                ),
            ),
            r"no socket interface found|no interface found",
            r"NCCL_SOCKET_IFNAME",
            r"env GLOO_SOCKET_IFNAME",
        ),
        Side(
            f"{MODEL} --tp 2",
            (
                "Init torch distributed begin.",
                *died(
                    "RuntimeError: [enforce fail at ../third_party/gloo/gloo/transport/tcp/device.cc:84] ifa != nullptr. Unable to find address for: ib9",
                    (
                        "distributed/parallel_state.py",
                        260,
                        "__init__",
                        'cpu_group = torch.distributed.new_group(ranks, backend="gloo")',
                    ),
                ),
            ),
            r"Unable to find address for|ifa != nullptr",
            r"GLOO_SOCKET_IFNAME",
            r"env NCCL_SOCKET_IFNAME",
        ),
    ),
    Pair(
        "too few GPUs: fewer visible than ranks, two ranks on one",
        Side(
            f"{MODEL} --tp 4",
            (
                "Init torch distributed begin.",
                *died(
                    "torch.AcceleratorError: CUDA error: invalid device ordinal\nCUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.",
                    (
                        "model_executor/model_runner.py",
                        640,
                        "init_torch_distributed",
                        "torch.get_device_module(self.device).set_device(self.gpu_id)",
                    ),
                    site("torch/cuda/__init__.py", 567, "set_device", "torch._C._cuda_setDevice(device)"),
                ),
            ),
            r"invalid device ordinal",
            r"--tp(-size)? |CUDA_VISIBLE_DEVICES|gpus",
        ),
        Side(
            f"{MODEL} --tp 2",
            (
                "Init torch distributed begin.",
                "@gpu1:411:511 [0] init.cc:943 NCCL WARN Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 1b000",
                *died(
                    "torch.distributed.DistBackendError: NCCL error in: /pytorch/torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:3690, invalid usage (run with NCCL_DEBUG=WARN for details), NCCL version 2.27.5\nncclInvalidUsage: This usually reflects invalid usage of NCCL library.\nLast error:\nDuplicate GPU detected : rank 1 and rank 0 both on CUDA device 1b000",
                    (
                        "distributed/parallel_state.py",
                        1490,
                        "init_distributed_environment",
                        "torch.distributed.init_process_group(",
                    ),
                ),
            ),
            r"Duplicate GPU detected",
            r"--base-gpu-id|CUDA_VISIBLE_DEVICES|same GPU|--gpu-id-step|each rank",
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
