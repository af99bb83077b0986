"""What tools that look at a machine printed into a log: nvidia-smi, check_env, df, free, ulimit, nvcc, lscpu, ls and their kin.

Each form is looked for only in lines of a log that holds its own words. What two places say differently tells nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib import import_module

from mtpdoctor.log.types import Line, Observation

Reader = Callable[[Sequence[Line]], Iterator[Observation]]

# A word that stands in every output of a form, and the module and function that read it.
FORMS: tuple[tuple[str, str, str], ...] = (
    ("NVIDIA-SMI", "gpus", "tables"),
    ("GPU 0", "gpus", "lists"),
    ("com/gpu: ", "gpus", "of_pod"),
    ("/dev/shm", "machine", "shared_memory"),
    ("Mem: ", "machine", "memory"),
    ("MemTotal:", "machine", "meminfo"),
    ("CPU op-mode(s)", "machine", "processors"),
    ("GNU/Linux", "machine", "system"),
    ("x86_64", "machine", "system"),
    ("aarch64", "machine", "system"),
    ('"ShmSize"', "machine", "inspected"),
    ("/sgl-workspace/", "machine", "container"),
    ("root@", "machine", "container"),
    ("open files ", "limits", "table"),
    ("locked memory ", "limits", "table"),
    ("ulimit -", "limits", "answers"),
    ("ulimit soft", "limits", "answers"),
    ("Cuda compilation tools", "software", "versions"),
    ("CUDA runtime version: ", "software", "versions"),
    ("Python 3.", "software", "versions"),
    ("Python: 3.", "software", "versions"),
    ("Python version: 3.", "software", "versions"),
    ("Nvidia driver version: ", "software", "versions"),
    ("CUDA used to build PyTorch: ", "software", "versions"),
    ("torch.__version__", "software", "asked_of_torch"),
    (" => ", "software", "libraries"),
    ("pip show", "release", "asked"),
    ("pip3 show", "release", "asked"),
    ("Name: sglang", "release", "asked"),
    ("sglang.__version__", "release", "asked"),
    ("sglang --version", "release", "asked"),
    ("sglang')", "release", "asked"),
    ('sglang")', "release", "asked"),
    ("SGLang", "release", "listed"),
    ("sglang |", "release", "listed"),
    ("sglang 0.", "release", "listed"),
    ("sglang:", "release", "listed"),
    ("sglang version", "release", "listed"),
    (".safetensors", "files", "listing"),
    (".gguf", "files", "listing"),
    (".bin", "files", "listing"),
)
CONFIG_SIGN = '"architectures": ['  # of a config.json (config_text.py)
# Literals with the lines around them that are read of a long log.
LITERALS = {
    "NVIDIA-SMI": (1, 60),
    "CUDA available: ": (3, 45),
    "GPU models and configuration": (40, 60),
    "(UUID: ": (0, 16),
    "% /dev/shm": (2, 1),
    "Mem:  ": (2, 2),
    "MemTotal:": (0, 3),
    "locked memory  ": (10, 10),
    "Cuda compilation tools, release ": (0, 0),
    "CPU op-mode(s)": (2, 30),
    '"ShmSize": ': (0, 0),
    "nvidia.com/gpu:  ": (6, 0),
    " => not found": (0, 0),
    "Name: sglang": (0, 1),
    "pip show sglang": (0, 3),
    "sglang.__version__": (0, 4),
    CONFIG_SIGN: (0, 0),
}
# What another launch of the same log need not share.
OF_ONE_LAUNCH = frozenset(
    ("host.container", "host.ram_free_gib", "host.shm_free_gib", "log.memory_limit_gib", "host.package.torch")
)
_CLOSE = 0.03  # of sizes: tools round differently


def shown_by_tools(lines: Sequence[Line]) -> Iterator[Observation]:
    """What ``lines`` show of the machine, each name once."""
    text = "\n".join(line.text for line in lines)
    found: dict[str, list[Observation]] = {}
    for part, function in dict.fromkeys((part, function) for sign, part, function in FORMS if sign in text):
        reader: Reader = getattr(import_module(f"{__name__}.{part}"), function)
        for one in reader(lines):
            found.setdefault(one.name, []).append(one)
    for several in found.values():
        if all(_alike(one.value, several[0].value) for one in several[1:]):
            yield several[0]


def _alike(a: object, b: object) -> bool:
    if isinstance(a, float) and isinstance(b, (int, float)):
        return abs(a - b) <= _CLOSE * max(abs(a), abs(b))
    return a == b
