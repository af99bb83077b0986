"""A heap of launches as support gets them: real logs, each as of another host, time, transport and size.

    python benchmarks/make_heap.py FOLDER [--launches 5000] [--seed 7] [--unknown 0.02]

Every launch is one of the recorded or reported logs of ``tests/data`` with its times, ports, process ids, addresses,
ranks and amounts of memory changed, carried by one of the transports that the tests know, in part compressed, rotated
or with an earlier attempt before it. Two in a hundred fail of something that no rule can know: invented exceptions at
several raise sites. ``truth.json`` says of each launch what became of it and of which problem.
"""

from __future__ import annotations

import argparse
import bz2
import datetime
import gzip
import json
import lzma
import random
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from tests.log.wrap import wrap  # noqa: E402

DATA = ROOT / "tests" / "data"
FOLDERS = ("real_logs", "h200_logs", "public_reports")
TRANSPORTS = (
    "compose", "compose_timestamps", "docker_json", "docker_timestamps", "swarm", "kubectl_timestamps", "kubectl_prefix",
    "kubectl_both", "cri", "journald", "journald_precise", "systemd", "syslog", "slurm", "ray", "pdsh", "stern", "ts_iso",
    "ansi", "crlf",
)  # fmt: skip

# Logs that fail of the same thing, judged by reading them; every other log is a problem of its own.
SAME: tuple[tuple[str, ...], ...] = (
    ("no_gpu_visible_empty_cvd", "cvd_bad", "no_accelerator_in_container"),
    ("no_weight_files", "tp2_no_weights", "ktransformers_no_safetensors_in_dir"),
    ("kv_pool_70b_fp8_two_4090", "kv_pool_negative_k9s_borders"),
    ("mem_fraction_static_too_low", "tp2_kv_zero", "npu_gpustack_mem_fraction_0_2"),
    ("hybrid_tiny_fraction", "tp2_hybrid_zero"),
    ("big_hicache", "hicache_hugepages_tp8", "hicache_not_enough_host_memory"),
    ("underscore_flag", "flag_underscore_reasoning_parser"),
    ("spec_no_buffer_with_radix", "qwen35_mtp_no_buffer_radix"),
    ("trtllm_mha_prefill_on_hopper", "trtllm_mha_on_rtx_pro_6000"),
    ("dist_addr_unreachable", "tp3_nnodes2"),
    ("chat_template_missing", "chat_template_relative_path"),
    ("tp4_on_two", "invalid_ordinal_dp_tp"),
    ("unbalanced", "memory_unbalanced_tp2"),
    ("nccl_port_busy", "tcpstore_port_in_use_dp"),
    ("missing_shard", "truncated_safetensors"),
    ("lora_path_missing", "tp2_lora_missing"),
    ("awq_marlin_min_thread_k", "awq_qwen25vl_tp_too_large"),
    ("modelopt_fp8_70b_docker_desktop_times", "modelopt_fp8_no_quantization"),
    ("draft_keyerror_job_arrow_ray_prefix", "eagle3_draft_arch_is_target"),
    ("fp8_checkpoint_on_a10", "minimax_m2_fp8_on_a800"),
    ("eagle3_small_draft_index_assert_capture", "glm52_w4afp8_index_assert"),  # the logs tell no more than the assertion
    ("scheduler_killed_sigkill", "tp2_ready_mtp"),
)  # fmt: skip
PROBLEM = {name: names[0] for names in SAME for name in names}


@dataclass(frozen=True)
class Source:
    name: str
    lines: tuple[str, ...]
    outcome: str  # as labelled
    recorded: bool  # on a machine of ours, not taken from a report

    @property
    def problem(self) -> str | None:
        return PROBLEM.get(self.name, self.name) if self.outcome == "failed" else None


def sources() -> list[Source]:
    """The labelled logs."""
    out = []
    for folder in FOLDERS:
        for label in sorted((DATA / folder).glob("*.json")):
            text = label.with_suffix(".log").read_bytes().decode("utf-8", "surrogateescape")
            outcome = json.loads(label.read_text(encoding="utf-8"))["outcome"]
            outcome = "ready" if outcome == "stopped_after_ready" else outcome  # as asked: nothing failed
            out.append(
                Source(label.stem, tuple(text.rstrip("\n").split("\n")), outcome, folder != "public_reports")
            )
    return out


# -- another host, another time --------------------------------------------------------------------

_TIME = re.compile(r"\b(20\d\d-\d\d-\d\d)([T ])(\d\d:\d\d:\d\d)")
_PORT = re.compile(r"--port[ =](\d{4,5})\b|(?<!\w)port=(\d{4,5})\b")
_PID = re.compile(r"\b(pid[=: ]+)(\d{2,7})\b", re.I)
_ADDRESS = re.compile(r"\b(?:10|172|192)\.\d{1,3}\.\d{1,3}\.\d{1,3}\b")
_MEMORY = re.compile(r"(?<![\d.])(\d+\.\d)\d(?= ?G(?:i?B)\b)")
_RANK = re.compile(r"(?<= )TP(\d+)(?=[ \]])")
_HEX = re.compile(r"0x[0-9a-f]{6,}")


def elsewhere(lines: tuple[str, ...], rng: random.Random) -> list[str]:
    """The log as of another day, host and process. What failed, and how, stays."""
    text = "\n".join(lines)
    shift = datetime.timedelta(days=rng.randint(-40, 0), seconds=rng.randint(-40_000, 40_000))

    def time(m: re.Match[str]) -> str:
        try:
            at = datetime.datetime.fromisoformat(f"{m[1]} {m[3]}") + shift
        except ValueError:
            return m[0]
        return f"{at:%Y-%m-%d}{m[2]}{at:%H:%M:%S}"

    text = _TIME.sub(time, text)
    for port in {a or b for a, b in _PORT.findall(text)}:
        text = re.sub(rf"(?<![\d.]){port}(?![\d.]\d|\d)", str(rng.randint(20_000, 60_000)), text)
    addresses: dict[str, str] = {}
    text = _ADDRESS.sub(
        lambda m: addresses.setdefault(
            m[0], f"10.{rng.randint(0, 255)}.{rng.randint(0, 255)}.{rng.randint(2, 254)}"
        ),
        text,
    )
    pids: dict[str, str] = {}
    text = _PID.sub(lambda m: m[1] + pids.setdefault(m[2], str(rng.randint(300, 4_000_000))), text)
    text = _MEMORY.sub(lambda m: m[1] + str(rng.randint(0, 9)), text)
    text = _HEX.sub(lambda m: f"0x{rng.getrandbits(44):012x}", text)
    ranks = sorted({m[1] for m in _RANK.finditer(text)}, key=int)
    others = list(ranks)
    rng.shuffle(others)
    to = dict(zip(ranks, others, strict=True))
    text = _RANK.sub(lambda m: f"TP{to[m[1]]}", text)
    return text.split("\n")


# -- what no rule knows ----------------------------------------------------------------------------

# problem -> exception, message (what is in braces varies), and the last frames: file and function
UNKNOWN: dict[str, tuple[str, str, tuple[tuple[str, str], ...]]] = {
    "ring_overflow": ("RuntimeError", "ring slot {n} of {big} is still owned by rank {rank}", (
        ("sglang/srt/managers/tp_worker.py", "forward_batch_generation"),
        ("sglang/srt/layers/ringlink/ring_dispatch.py", "acquire_slot"))),
    "ring_overflow_elsewhere": ("RuntimeError", "ring slot {n} of {big} is still owned by rank {rank}", (
        ("sglang/srt/managers/tp_worker.py", "forward_batch_generation"),
        ("sglang/srt/layers/ringlink/ring_combine.py", "release_slot"))),
    "ledger_digest": ("LedgerMismatchError", "digest 0x{hex} of page {n} differs from the one in {path}", (
        ("sglang/srt/pageledger/ledger.py", "verify"), ("sglang/srt/pageledger/digest.py", "compare"))),
    "ledger_missing": ("LedgerMismatchError", "page {n} was never written to {path}", (
        ("sglang/srt/pageledger/ledger.py", "verify"), ("sglang/srt/pageledger/digest.py", "compare"))),
    "plan_cell": ("PlanError", "cell ({n}, {n}) of the tile plan asks for {size} of {size}", (
        ("sglang/srt/tileplan/planner.py", "build"), ("sglang/srt/tileplan/cells.py", "place_cell"))),
    "beacon": ("BeaconTimeout", "no beacon from {host}:{port} for {n} s", (
        ("sglang/srt/beacons/client.py", "wait_for_beacon"),)),
    "warp_table": ("ValueError", "warp table version {n} is older than the driver's ({n})", (
        ("sglang/srt/layers/warptable/loader.py", "load_warp_table"),)),
    "quorum": ("QuorumLost", "{n} of {n} voters answered, host {host} left at {time}", (
        ("sglang/srt/quorum/voter.py", "count_votes"), ("sglang/srt/quorum/state.py", "require"))),
}  # fmt: skip


def invented(problem: str, base: Source, rng: random.Random) -> list[str]:
    """A launch that gets as far as its weights, then fails of ``problem``."""
    kind, message, frames = UNKNOWN[problem]
    lines = elsewhere(base.lines, rng)
    stop = next((i for i, x in enumerate(lines) if "Load weight end" in x), len(lines) // 2) + 1
    lines = lines[:stop]
    stamp = next((m for m in map(_TIME.search, reversed(lines)) if m), None)
    at = f"{stamp[1]} {stamp[3]}" if stamp else "2026-11-29 12:00:00"
    rank = rng.randint(0, 7)
    values: dict[str, Callable[[], object]] = {
        "n": lambda: rng.randint(2, 4000),
        "big": lambda: rng.choice([4096, 8192, 65_536]),
        "rank": lambda: rng.randint(0, 15),
        "hex": lambda: f"{rng.getrandbits(40):010x}",
        "path": lambda: f"/mnt/{rng.choice('abc')}{rng.randint(1, 99)}/ledger/{rng.randint(1, 10**6)}",
        "size": lambda: f"{rng.uniform(0.5, 90):.2f} {rng.choice(['MiB', 'GiB'])}",
        "host": lambda: rng.choice(["gpu-node{:02d}", "10.4.7.{}", "dgx{}.cluster.local"]).format(
            rng.randint(1, 99)
        ),
        "port": lambda: rng.randint(10_000, 60_000),
        "time": lambda: at,
    }
    said = re.sub(r"\{(\w+)\}", lambda m: str(values[m[1]]()), message)
    site = rng.choice(
        [
            "/usr/local/lib/python3.12/dist-packages",
            "/opt/venv/lib/python3.11/site-packages",
            "/sgl-workspace",
        ]
    )
    calls = (("sglang/srt/managers/scheduler.py", "run_scheduler_process"), *frames)
    lines.append(f"[{at} TP{rank}] Scheduler hit an exception: Traceback (most recent call last):")
    for file, function in calls:
        lines.append(f'  File "{site}/{file}", line {rng.randint(40, 4000)}, in {function}')
        lines.append(f"    {function}_inner(state)")
    lines += [
        f"{kind}: {said}",
        "",
        f"[{at}] Received sigquit from a child process. It usually means the child failed.",
    ]
    return lines


# -- the heap --------------------------------------------------------------------------------------


def _pack(data: bytes, kind: str) -> bytes:
    if kind == ".gz":
        return gzip.compress(data, 1)
    if kind == ".xz":
        return lzma.compress(data, preset=0)
    if kind == ".bz2":
        return bz2.compress(data, 1)
    if kind == ".zst":
        import zstandard

        return zstandard.ZstdCompressor(level=1).compress(data)
    return data


def make_heap(
    folder: Path, launches: int, *, seed: int = 7, unknown: float = 0.02
) -> dict[str, dict[str, str | None]]:
    """Writes the heap; returns the truth: path of the launch (of its newest part) -> outcome and problem."""
    rng = random.Random(seed)
    all_of_them = sources()
    healthy = [
        s
        for s in all_of_them
        if s.recorded and s.outcome == "ready" and "Load weight end" in "".join(s.lines)
    ]
    strange = sorted(UNKNOWN)
    truth: dict[str, dict[str, str | None]] = {}
    for number in range(launches):
        if rng.random() < unknown or (number < len(strange) and launches >= 20 * len(strange)):
            problem: str | None = strange[number % len(strange)]
            outcome, lines = "failed", invented(str(problem), rng.choice(healthy), rng)
        else:
            source = (
                all_of_them[number % len(all_of_them)]
                if number < len(all_of_them)
                else rng.choice(all_of_them)
            )
            outcome, problem, lines = source.outcome, source.problem, elsewhere(source.lines, rng)
        transport = rng.choice(TRANSPORTS) if rng.random() < 0.55 else "plain"
        data = wrap(lines, transport)
        suffix = rng.choices(["", ".gz", ".zst", ".xz", ".bz2"], [70, 14, 8, 5, 3])[0]
        style = number % 4
        if style == 0:  # a folder for each run
            path = folder / f"customer-{number % 37}" / f"run-{number:05d}" / f"server.log{suffix}"
        elif style == 1:  # all runs of a customer in one folder
            path = folder / f"customer-{number % 37}" / "logs" / f"sglang_{number:05d}.log{suffix}"
        elif style == 2:
            path = folder / "tickets" / f"{number % 211:03d}" / f"job-{number}.out{suffix}"
        else:
            path = folder / "pods" / f"ns{number % 9}_sglang-{number}" / "0.log"
            suffix = ""
        path.parent.mkdir(parents=True, exist_ok=True)
        if (
            style == 0 and not suffix and data.count(b"\n") > 40 and rng.random() < 0.3
        ):  # rotated while it ran
            rows = data.splitlines(keepends=True)
            cut = len(rows) // 3
            path.with_name("server.log.2.gz").write_bytes(gzip.compress(b"".join(rows[:cut]), 1))
            path.with_name("server.log.1").write_bytes(b"".join(rows[cut : 2 * cut]))
            data = b"".join(rows[2 * cut :])
        path.write_bytes(_pack(data, suffix))
        truth[path.relative_to(folder).as_posix()] = {"outcome": outcome, "problem": problem}
    return truth


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--launches", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--unknown", type=float, default=0.02)
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    if any(args.folder.iterdir()):
        sys.exit(f"{args.folder} is not empty")
    truth = make_heap(args.folder, args.launches, seed=args.seed, unknown=args.unknown)
    (args.folder / "truth.json").write_text(json.dumps(truth, indent=1), encoding="utf-8")
    problems = {t["problem"] for t in truth.values()} - {None}
    print(f"{len(truth)} launches, {len(problems)} problems in {args.folder}")


if __name__ == "__main__":
    main()
