"""What the probes look at: the machine's file system, its environment, its programs. Tests put another in."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

GIB = 2**30
_MAX_TEXT = 4 * 2**20  # bytes of one file of /proc or /sys


def _statvfs(path: str) -> tuple[int, int]:
    said = os.statvfs(path)
    return said.f_blocks * said.f_frsize, said.f_bavail * said.f_frsize


def _run(command: Sequence[str], seconds: float) -> str:
    done = subprocess.run(
        command, capture_output=True, text=True, errors="replace", timeout=seconds, stdin=subprocess.DEVNULL
    )
    return done.stdout


@dataclass(frozen=True, slots=True)
class Machine:
    """Where the probes read.

    ``root`` stands before every path; ``sizes`` gives total and free bytes of the file system that holds
    a path (OSError where it has none); ``run`` gives the standard output of a program within a time limit
    (OSError, subprocess.SubprocessError). ``nvml`` and ``psutil`` are those modules, imported when first
    needed unless given.
    """

    root: str = ""
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    sizes: Callable[[str], tuple[int, int]] = _statvfs
    run: Callable[[Sequence[str], float], str] = _run
    nvml: Any = None
    psutil: Any = None
    arch: str = field(default_factory=lambda: os.uname().machine if hasattr(os, "uname") else sys.platform)

    def path(self, name: str) -> Path:
        """A path of the machine, given from its root on."""
        return Path(self.root + name) if self.root else Path(name)

    def read(self, name: str) -> str | None:
        """The text of a small file; None when it is not there or cannot be read."""
        try:
            with open(self.path(name), "rb") as file:
                return file.read(_MAX_TEXT).decode(errors="replace")
        except (OSError, ValueError):
            return None

    def line(self, name: str) -> str | None:
        """The first line of a file, stripped; None where there is none."""
        text = self.read(name)
        words = text.strip("\x00 \t\r\n").splitlines() if text else []
        return words[0].strip() or None if words else None

    def number(self, name: str) -> int | None:
        """A file that holds a whole number (with 0x: a hexadecimal one), else None."""
        text = self.line(name)
        try:
            return int(text, 0) if text is not None else None
        except ValueError:
            return None

    def names(self, name: str) -> list[str]:
        """Names in a folder, sorted; none when it is not there."""
        try:
            return sorted(os.listdir(self.path(name)))
        except OSError:
            return []

    def exists(self, name: str) -> bool:
        try:
            return self.path(name).exists()
        except OSError:
            return False

    def process_library(self) -> Any:
        """psutil. Raises ImportError where it is not installed."""
        if self.psutil is not None:
            return self.psutil
        import psutil

        return psutil

    def gpu_library(self) -> Any:
        """pynvml of nvidia-ml-py. Raises ImportError where it is not installed."""
        if self.nvml is not None:
            return self.nvml
        import pynvml

        return pynvml
