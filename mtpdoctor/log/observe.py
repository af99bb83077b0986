"""Values read off single log lines, by the fact names of docs/knowledge-format.md."""

from __future__ import annotations

import re
from collections.abc import Iterable

from mtpdoctor.log import installed as _installed
from mtpdoctor.log import package_lines as _package_lines
from mtpdoctor.log import printed_environment as _environment
from mtpdoctor.log.drivers import driver_in
from mtpdoctor.log.platforms import SAID, platform_said
from mtpdoctor.log.release_lines import release_in
from mtpdoctor.log.server_args import parse_server_args
from mtpdoctor.log.types import Line, Observation
from mtpdoctor.patterns import lazy

_NUM = r"(-?\d+(?:\.\d+)?)"
# Literals whose lines are worth looking at. None is frequent in a serving log.
LITERALS = (
    "server_args=",
    "Load weight begin",
    "Load weight end",
    "Memory pool end",
    "KV Cache is allocated",
    "Mamba Cache is allocated",
    "Init torch distributed ends",
    "cuda graph end",
    "sliding window memory pool",
    "Sliding window memory pool",
    "Not enough GPU memory for hybrid",
    "max_total_num_tokens=",
    "total capacity of",
    "is occupied by",
    "in use by another process",
    "dist-info",
    "sglang==",
    "sglang-0.",
    "sgl-project/sglang",
    "lmsysorg/sglang",
    "/sglang:",
    ".sif",
    ".sqsh",
    ".squashfs",
    "SGLang version",
    "sglang version",
    "sglang: 0.",
    "sglang_version",
    "not supported for now",
    "No processor registered",
    "has no SGlang implementation",
    "has no SGLang implementation",
    "NVIDIA H",
    "NVIDIA A",
    "NVIDIA B",
    "NVIDIA L",
    "NVIDIA R",
    "NVIDIA G",
    "NVIDIA T",
    "NVIDIA V",
    "NVIDIA D",
    "NVIDIA J",
    "Tesla ",
    "GeForce RTX",
    "NVIDIA_",
    "AMD Instinct",
    "AMD_Instinct",
    "cuda capability",
    "CUDA capability",
    "-gencode",
    "gpu-name",
    ".cache/flashinfer/",
    "attention backend for DeepSeek",
    "device_name=",
    "compute capability",
    "CUDA_VISIBLE_DEVICES=",
    "export ",
    "NCCL INFO",
    *_environment.LITERALS,
    *_installed.LITERALS,
    *_package_lines.LITERALS,
    *(literal for literal, _, _ in SAID),
    "GB host memory for",
    "Limits:",
    "Requests:",
    "memory:  ",
    "memory: usage",
    "Driver Version:",
)

_SIMPLE: tuple[tuple[str, str, re.Pattern[str]], ...] = (
    (
        "log.avail_mem_before_load_gib",
        "Load weight begin",
        lazy(rf"Load weight begin\..{{0,40}}avail mem={_NUM} ?G"),
    ),
    (
        "log.avail_mem_after_load_gib",
        "Load weight end",
        lazy(rf"Load weight end\..*?avail mem={_NUM} ?G"),
    ),
    ("log.weights_gib", "Load weight end", lazy(rf"Load weight end\..*?mem usage={_NUM} ?G")),
    (
        "log.avail_mem_after_pool_gib",
        "Memory pool end",
        lazy(rf"Memory pool end\..{{0,40}}avail mem={_NUM} ?G"),
    ),
    ("log.kv_tokens", "Cache is allocated", lazy(r"KV Cache is allocated\..*?#tokens: (\d+)")),
    ("log.max_total_num_tokens", "max_total_num_tokens=", lazy(r"\bmax_total_num_tokens=(\d+)")),
    (
        "log.max_running_requests",
        "max_running_requests=",
        lazy(r"max_total_num_tokens=.*\bmax_running_requests=(\d+)"),
    ),
    ("log.context_len", "context_len=", lazy(r"max_total_num_tokens=.*\bcontext_len=(\d+)")),
    ("log.total_mem_gib", "total capacity of", lazy(r"total capacity of (\d+(?:\.\d+)? [GM]iB)")),
    (
        "host.gpu.memory_gib",
        "total capacity of",
        lazy(r"GPU \d+ has a total capacity of (\d+(?:\.\d+)? [GM]iB)"),
    ),
    ("log.init_mem_gib", "Init torch distributed ends", lazy(rf"mem usage={_NUM} ?G")),
    ("log.state_slots", "Mamba Cache is allocated", lazy(r"max_mamba_cache_size: (\d+)")),
    ("log.full_tokens", "indow memory pool", lazy(r"full_layer_tokens=(\d+)")),
    ("log.window_tokens", "indow memory pool", lazy(r"swa_layer_tokens=(\d+)")),
    ("log.graph_gib", "Capture cuda graph end", lazy(rf"mem usage={_NUM} ?G")),
    ("log.avail_mem_after_graphs_gib", "Capture cuda graph end", lazy(rf"avail mem={_NUM} ?G")),
    ("log.avail_mem_ready_gib", "available_gpu_mem=", lazy(rf"available_gpu_mem={_NUM} ?G")),
    ("log.state_rest_gib", "Not enough GPU memory for hybrid", lazy(rf"total_rest_memory={_NUM} ?G")),
    ("log.state_slot_mib", "Not enough GPU memory for hybrid", lazy(rf"mamba_cache_per_req={_NUM} ?M")),
    ("log.oom_wanted_gib", "Tried to allocate", lazy(r"Tried to allocate (\d+(?:\.\d+)? [GMK]iB)")),
    ("host.gpu.free_gib", "is free", lazy(r"of which (\d+(?:\.\d+)? [GMK]iB) is free")),
)
# Sizes that one line gives in several parts; they are added up.
_SUMS: tuple[tuple[str, str, re.Pattern[str]], ...] = (
    ("log.kv_gib", "KV Cache is allocated", lazy(r"\b(?:K|V|KV) size: (\d+(?:\.\d+)?) ?G")),
    ("log.state_gib", "Mamba Cache is allocated", lazy(r"\b(?:conv|ssm)_state size: (\d+(?:\.\d+)?) ?G")),
    (
        "log.spec_state_gib",
        "Mamba Cache is allocated",
        lazy(r"\bintermediate_\w+ size: (\d+(?:\.\d+)?) ?G"),
    ),
)
_OTHERS = lazy(r"Process \d+ has (\d+(?:\.\d+)? [GMK]iB) memory in use")
# Of a draft: the second such line of the rank that wrote the first (target and draft take turns).
_OF_DRAFT: tuple[tuple[str, str, re.Pattern[str]], ...] = (
    ("log.draft_weights_gib", "Load weight end", lazy(rf"mem usage={_NUM} ?G")),
    ("log.draft_kv_gib", "KV Cache is allocated", lazy(r"\b(?:K|V|KV) size: (\d+(?:\.\d+)?) ?G")),
)
_POOL_END = lazy(rf"Memory pool end\..*?avail mem={_NUM} ?G")
_ARCHITECTURE = lazy(r"Load weight end\..*?\btype=(\w+)")
_ACCEPT_LEN = lazy(r"accept len: (\d+(?:\.\d+)?)")
_GPU_NAME = lazy(
    r"\b(NVIDIA[ _](?:GeForce[ _])?(?:RTX[ _](?:PRO[ _])?[A-Z]?\d{3,4}\w*(?:[ _](?:Ti|SUPER|D|Ada(?:[ _]Generation)?"
    r"|Blackwell(?:[ _]\w+[ _]Edition)?))?|H\d{2,3}(?:[ _](?:PCIe|NVL|80GB[ _]HBM3|SXM\w*))?|GH200(?:[ _]\w+)?|GB\d{2,3}"
    r"|B\d{3}|A\d{2,3}G?(?:-\w+)*|L\d{1,2}S?|T4|V100\S*|Thor|DGX[ _]Spark|Jetson[ _][\w ]*?(?:Thor|Orin))|GeForce[ _]RTX[ _]\d{4}(?:[ _](?:Ti|SUPER|D))*|Tesla[ _][VTPM]\d{1,3}\S*|AMD[ _]Instinct[ _]MI\d+\w*)(?![A-Za-z0-9])"
)
_CAPABILITY = (
    lazy(r"with cuda capability sm_(\d{2,3})a? is not compatible", re.I),
    lazy(r"(?i)of cuda capability (\d{1,2})\.(\d)\b"),
    lazy(r"--?gpu-name[= ]sm_(\d{2,3})[af]?\b"),
    lazy(r"\.cache/flashinfer/(?:\d+\.\d[\w.+]*/)?(\d{2,3})[af]?/"),
    lazy(r"(?i)compute capability[ :=(]*(\d{1,2})\.(\d)\b(?! or| and above|\+)"),
    lazy(r"(?i)device capability[ :=(]*\(?(\d{1,2}), ?(\d)\)"),
)
_ARCH = lazy(r"-gencode[= ]\W*arch=compute_(\d{2,3})[af]?,")
_ASKED = lazy(r"(?i)(?:requires?|needs?|minimum|at least|only|supports?|>=?|or newer)\b[^.;]{0,40}$")
_SPARSE = lazy(r"Use (?:nsa|dsa) attention backend for DeepSeek")
_HOST_POOL = lazy(r"Allocating (\d+(?:\.\d+)?) GB host memory for (.{3,40})")
_LIMIT = lazy(r"^\s*memory:\s+(\d+(?:\.\d+)?)([KMGT]i?)\s*$")  # of a pod, under "Limits:"
_USAGE = lazy(r"memory: usage \d+kB, limit (\d+)kB")  # of a container, by the kernel
_UNITS = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_VISIBLE = lazy(r"os\.environ\.get\('CUDA_VISIBLE_DEVICES'\)=(None|'[^']*')")


def _gib(text: str) -> float:
    number, unit = text.split()
    return round(float(number) / {"GiB": 1, "MiB": 1024, "KiB": 1024**2}[unit], 4)


# The classes that SGLang says it does not have; several stand in a list.
_LACKED = lazy(
    r"Model architectures \[([^\]]+)\] are not supported|(?<!\w)(\w{1,120}) has no SG[lL]ang implementation(?: and|, falling back)"
)
_UNPROCESSED = lazy(r"No processor registered for architecture: \[([^\]]+)\]")
# Images that are built every day from the development branch.
_DEVELOPMENT = lazy(
    r"\b((?:rocm/sgl-dev|lmsysorg/sglang(?:-\w+)?|quay\.io/ascend/sglang):(?:[\w.-]*-20\d{6}[\w.-]*|(?:nightly|dev|main)[\w.-]*))"
)


class Observer:
    """Feed the lines of one attempt; the first line that shows a value counts (accept length: the last)."""

    def __init__(self) -> None:
        self._seen: dict[str, Observation] = {}
        self._first_rank: dict[str, str | None] = {}
        self._last_ranks: dict[str, Line] = {}  # of pipeline stages, and a line of each
        self._host_pools: dict[tuple[str | None, str], tuple[float, Line]] = {}  # GB, by rank and what for
        self._limits = False  # the lines that follow are a pod's limits, not its requests
        self._package_lines = _package_lines.PackageLines()
        self._variables = _environment.Variables()
        self._pool_ends: list[float] = []  # free after each pool of the first rank that showed one

    def feed(self, line: Line) -> None:
        text = line.text
        if line.rank and line.rank.startswith("PP"):
            self._last_ranks.setdefault(line.rank, line)
        if "server_args=" in text:
            self._arguments(line)
            return
        for name, literal, pattern in _SIMPLE:
            if literal in text and name not in self._seen and (m := pattern.search(text)):
                self._note(name, self._number(m[1]), line)
        if "host.driver" not in self._seen and (shown := driver_in(text)):
            self._note("host.driver", shown[0], line)
            if shown[1]:
                self._note("host.cuda_driver", shown[1], line)
        if "size: " in text or "Load weight end" in text:
            self._pools(line, text)
        if "Memory pool end" in text and (m := _POOL_END.search(text)):
            self._pool_end(float(m[1]), line)
        if "memory in use" in text and (found := _OTHERS.findall(text)):
            self._note("log.oom_others_gib", round(sum(map(_gib, found)), 4), line)
        if "Load weight end" in text and (m := _ARCHITECTURE.search(text)):
            self._note("model.architecture", m[1], line)
        if ("not supported for now" in text or "has no SGlang" in text or "has no SGLang" in text) and (
            m := _LACKED.search(text)
        ):
            self._note("log.lacked", tuple(re.findall(r"\w+", m[1] or m[2])), line)
        if "No processor registered" in text and (m := _UNPROCESSED.search(text)):
            self._note("log.unprocessed", tuple(re.findall(r"\w+", m[1])), line)
        if "accept len" in text and (m := _ACCEPT_LEN.search(text)) and (value := float(m[1])) > 0:
            self._seen["log.accept_len"] = Observation("log.accept_len", value, line)
        if "sglang" in text.lower() and "release" not in self._seen and (release := release_in(text)):
            self._note("release", release, line)
        if ("sgl" in text and ":" in text) and (m := _DEVELOPMENT.search(text)):
            self._note("log.development", m[1], line)
        self._variables.feed(line)
        self._packages(line, text)
        self._hardware(line, text)
        self._host_memory(line, text)

    def _host_memory(self, line: Line, text: str) -> None:
        if "GB host memory for" in text and (m := _HOST_POOL.search(text)):
            self._host_pools.setdefault((line.rank, m[2]), (float(m[1]), line))
        elif "Limits:" in text or "Requests:" in text:
            self._limits = "Limits:" in text
        elif "memory: " in text:
            if self._limits and (m := _LIMIT.match(line.body)):
                self._note("log.memory_limit_gib", round(float(m[1]) * _UNITS[m[2]] / 2**30, 2), line)
            elif (m := _USAGE.search(text)) and int(m[1]) < 2**43:  # more means: none
                self._note("log.memory_limit_gib", round(int(m[1]) / 2**20, 2), line)

    def _host_sums(self) -> None:
        """The host pools of the hierarchical cache over all ranks that show them, GB of 10^9 bytes."""
        line = next(iter(self._host_pools.values()))[1]
        kv = sum(size for (_, what), (size, _) in self._host_pools.items() if "hierarchical KV" in what)
        total = sum(size for size, _ in self._host_pools.values())
        self._note("log.host_pools_gb", round(total, 2), line)
        self._note("log.host_kv_pools_gb", round(kv, 2), line)
        self._note("log.host_pool_ranks", len({rank for rank, _ in self._host_pools}), line)

    def _packages(self, line: Line, text: str) -> None:
        """What was installed last counts."""
        for name, value, fills in self._package_lines.feed(line.body):
            known = self._seen.get(name)
            if known is not None and (fills or str(known.value).startswith(f"{value}+")):
                continue  # pip list leaves the local part of a version out ("+cu128")
            self._seen[name] = Observation(name, value, line)
        build = _installed.build_in(text) if "sglang" in text or "FlagOS" in text else None
        if build is not None:
            self._note("log.build", build, line)

    def _pools(self, line: Line, text: str) -> None:
        for name, literal, pattern in _SUMS:
            if literal in text and name not in self._seen and (found := pattern.findall(text)):
                self._note(name, round(sum(map(float, found)), 4), line)
        for name, literal, pattern in _OF_DRAFT:
            if literal not in text:
                continue
            if name not in self._first_rank:
                self._first_rank[name] = line.rank
            elif self._first_rank[name] == line.rank and (found := pattern.findall(text)):
                self._note(name, round(sum(map(float, found)), 4), line)

    def _pool_end(self, free: float, line: Line) -> None:
        """A draft of several layers makes a pool for each; what one draft pool took is no news."""
        if self._first_rank.setdefault("pools", line.rank) != line.rank:
            return
        self._pool_ends.append(free)
        took = round(self._pool_ends[0] - free, 4)
        if len(self._pool_ends) >= 3 and took > 0:
            for name, value in (
                ("log.draft_pools", len(self._pool_ends) - 1),
                ("log.draft_pools_gib", took),
            ):
                self._seen[name] = Observation(name, value, line)

    def _hardware(self, line: Line, text: str) -> None:
        if (
            ("NVIDIA" in text or "Tesla" in text or "Instinct" in text)
            and "host.gpu.name" not in self._seen
            and (m := _GPU_NAME.search(text))
        ):
            self._note("host.gpu.name", m[1].replace("_", " "), line)
        if (platform := platform_said(text)) is not None:
            self._note("host.platform", platform, line)
        if "host.gpu.sm" not in self._seen:
            self._capability(line, text)
        if "attention backend for DeepSeek" in text and _SPARSE.search(text):
            self._note("model.is_dsa", True, line)
        if "NCCL INFO" in text:  # NCCL writes such lines at no other setting
            self._note("env.NCCL_DEBUG", "INFO", line)
        if "CUDA_VISIBLE_DEVICES" in text and (m := _VISIBLE.search(text)):
            self._note("env.CUDA_VISIBLE_DEVICES", None if m[1] == "None" else m[1][1:-1], line)

    def _capability(self, line: Line, text: str) -> None:
        """The GPU's own figure; not one that a message asks for, nor one of several that code is built for."""
        if not any(word in text for word in ("apability", "gpu-name", ".cache/flashinfer/", "-gencode")):
            return
        for pattern in _CAPABILITY:
            if (m := pattern.search(text)) and not _ASKED.search(text[: m.start()]):
                self._note("host.gpu.sm", int("".join(m.groups())), line)
                return
        built_for = set(_ARCH.findall(text))
        if len(built_for) == 1:
            self._note("host.gpu.sm", int(built_for.pop()), line)

    def _arguments(self, line: Line) -> None:
        if any(name.startswith("arg.") for name in self._seen):
            return
        for name, value in (parse_server_args(line.text) or {}).items():
            self._note(f"arg.{name}", value, line)

    @staticmethod
    def _number(text: str) -> float | int:
        if text.endswith("B"):
            return _gib(text)
        return float(text) if "." in text else int(text)

    def _note(self, name: str, value: object, line: Line) -> None:
        self._seen.setdefault(name, Observation(name, value, line))

    def _stages(self) -> None:
        """How many pipeline and tensor parallel ranks names like "PP1 TP3" show."""
        for name, letters in (("log.pp_ranks", "PP"), ("log.tp_ranks", "TP")):
            shown = [
                (int(m[1]), line)
                for rank, line in self._last_ranks.items()
                if (m := re.search(rf"{letters}(\d+)", rank))
            ]
            if shown:
                highest, line = max(shown, key=lambda s: s[0])
                self._note(name, highest + 1, line)

    def finish(
        self, died: tuple[int, int, int] | None = None, shown: Iterable[Observation] = ()
    ) -> tuple[Observation, ...]:
        """``died``: the key of the line of the first failure; ``shown``: what tools printed, which fills gaps."""
        for one in shown:
            known = self._seen.get(one.name)
            if known is None or str(one.value).startswith(f"{known.value}+"):  # lists leave "+cu128" out
                self._seen[one.name] = one
        if (platform := self._seen.get("host.platform")) is not None and platform.value == "rocm":
            self._seen.pop("host.gpu.sm", None)  # check_env calls "9.4" the capability of a gfx942
        for variable, value, line in self._variables.known(died):
            self._note(f"env.{variable}", value, line)
        if self._last_ranks:
            self._stages()
        if self._host_pools:
            self._host_sums()
        if (wanted := self._seen.get("log.oom_wanted_gib")) is not None:  # known not to be there
            self._note("log.draft_pools", None, wanted.line)
        return tuple(sorted(self._seen.values(), key=lambda o: (o.line.key, o.name)))
