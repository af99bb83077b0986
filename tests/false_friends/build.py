"""Launches whose messages look alike and whose remedies do not: what the pairs are made of.

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
