"""Slurm batch scripts: ``#SBATCH`` lines; the commands are shell. Options: sbatch(1)."""

from __future__ import annotations

import re

from mtpdoctor.patterns import lazy

_LINE = lazy(r"^#SBATCH[ \t]+(.*?)[ \t]*\r?$", re.M)
_SHORT = {"N": "nodes", "n": "ntasks", "G": "gpus", "c": "cpus-per-task", "p": "partition", "t": "time",
          "J": "job-name", "o": "output", "e": "error", "w": "nodelist", "A": "account"}  # fmt: skip


def scheduler_options(text: str) -> dict[str, str]:
    """Options of the ``#SBATCH`` lines by long name; a switch has the value ``""``."""
    options: dict[str, str] = {}
    for m in _LINE.finditer(text):
        words = re.sub(r"[ \t]#.*", "", m[1]).split()
        i = 0
        while i < len(words):
            word = words[i]
            i += 1
            if word.startswith("--"):
                name, equals, value = word[2:].partition("=")
            elif word.startswith("-") and len(word) > 1:
                name, value = _SHORT.get(word[1], word[1]), word[2:].lstrip("=")
                equals = value
            else:
                continue
            if not equals and i < len(words) and not words[i].startswith("-"):
                value = words[i]
                i += 1
            options[name] = value.strip("\"'")
    return options
