"""A test double of an environment that has SGLang: a folder like a virtual environment whose ``sglang`` is
a few lines that behave as the real argument code does, on purpose badly where a test asks for it."""

from __future__ import annotations

import os
import sys
import sysconfig
from pathlib import Path

SERVER_ARGS = """
import argparse, dataclasses, logging, os, subprocess, sys, time
import sgl_kernel_of_this_double  # what loads only where it is installed


@dataclasses.dataclass
class ServerArgs:
    model_path: str = ""
    tp_size: int = 1
    dp_size: int = 1
    mode: str = "plain"
    api_key: str = None
    attention_backend: str = None
    gpu: str = ""

    def __post_init__(self):
        {at_construction}

    def resolve(self):
        import torch
        self.gpu = "%s x %s" % (torch.cuda.device_count(), torch.cuda.get_device_capability())
        if self.attention_backend is None:
            self.attention_backend = "fa3" if torch.cuda.get_device_capability()[0] == 9 else "triton"
        if self.mode == "env":
            self.attention_backend = os.environ.get("DOUBLE_BACKEND", "unset")
        if self.mode == "smi":
            out = subprocess.run(["nvidia-smi"], capture_output=True, text=True).stdout
            self.attention_backend = "+".join(out.split())
        if self.mode == "noise":
            os.write(1, b'{{"id": "0", "verdict": "reject"}}\\n')
            print("loud")
            subprocess.run(["sh", "-c", "echo louder; echo err >&2"])
            logging.getLogger("sglang").warning("radix cache is \\x1b[31moff\\x1b[0m")
        if self.mode == "crash":
            os.abort()
        if self.mode == "exit":
            os._exit(7)
        if self.mode == "hang":
            child = subprocess.Popen(["sleep", "600"])
            open(os.environ["DOUBLE_PIDS"], "w").write("%d %d" % (os.getpid(), child.pid))
            time.sleep(600)
        if self.mode == "hub":
            raise OSError("We couldn't connect to 'https://huggingface.co' to load the files")
        if self.mode == "odd":
            raise ValueError("No rule of mtpdoctor has ever heard of this sentence about widgets")
        if self.mode == "kernel":
            from flashinfer.anything import deep
            deep.call()

    def check_server_args(self):
        assert self.tp_size % self.dp_size == 0


def prepare_server_args(argv):
    parser = argparse.ArgumentParser(prog="sglang serve")
    parser.add_argument("--model-path", "--model", required=True)
    parser.add_argument("--tp-size", "--tensor-parallel-size", type=int, default=1)
    parser.add_argument("--dp-size", "--data-parallel-size", type=int, default=1)
    parser.add_argument("--mode", default="plain")
    parser.add_argument("--api-key")
    parser.add_argument("--attention-backend", choices=["fa3", "triton"])
    return ServerArgs(**vars(parser.parse_args(argv)))
"""

ERA = {
    "old": ("self.resolve()", ""),
    "new": ("pass", "\n    def resolve_once(self):\n        self.resolve()\n"),
}

TORCH = '''
"""A test double of torch: a host without a GPU."""
import types


def _no(*a, **k):
    raise RuntimeError("Found no NVIDIA driver on your system.")


cuda = types.SimpleNamespace(is_available=lambda: False, device_count=lambda: 0, get_device_capability=_no,
                             get_device_properties=_no, get_device_name=_no, mem_get_info=_no)
version = types.SimpleNamespace(cuda=None)
library = types.SimpleNamespace(register_fake=lambda op, func=None, **k: func)
'''


def make_environment(folder: Path, *, version: str | None = "0.5.9", era: str = "old") -> Path:
    """Make the environment and return its Python. ``version`` None: an environment without SGLang."""
    (folder / "bin").mkdir(parents=True)
    python = folder / "bin" / "python"
    os.symlink(os.path.realpath(sys.executable), python)
    home = os.path.dirname(os.path.realpath(sys.executable))
    (folder / "pyvenv.cfg").write_text(f"home = {home}\ninclude-system-site-packages = false\n")
    site = folder / "lib" / f"python{sysconfig.get_python_version()}" / "site-packages"
    site.mkdir(parents=True)
    _write(site / "torch" / "__init__.py", TORCH)
    if version is None:
        return python
    at_construction, more = ERA[era]
    source = SERVER_ARGS.replace("{at_construction}", at_construction).replace("{{", "{").replace("}}", "}")
    source = source.replace("\n    def check_server_args", f"{more}\n    def check_server_args")
    _write(site / "sglang" / "__init__.py", f'__version__ = "{version}"\n')
    _write(site / "sglang" / "srt" / "__init__.py", "")
    _write(site / "sglang" / "srt" / "server_args.py", source)
    _write(site / "sgl_kernel_of_this_double.py", "")
    _write(site / f"sglang-{version}.dist-info" / "METADATA", f"Name: sglang\nVersion: {version}\n")
    return python


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
