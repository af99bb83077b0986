"""Where in a list of words an SGLang server is started, whatever stands in front of it."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence

from mtpdoctor.patterns import lazy

_MODULES = ("sglang.launch_server", "sglang_router.launch_server", "sglang.srt.entrypoints.http_server")
# Programs that take the server's options along with some of their own: dynamo's worker, benchmarks of one batch.
_CARRIERS = lazy(r"dynamo\.sglang(?:\.\w+)*|sglang\.bench_(?:one_batch|offline)\w*")
_PYTHON = lazy(r"(?:python|pypy)[\d.]*t?$")
_RUNNERS = ("torchrun", "accelerate", "uv", "uvx", "coverage", "debugpy")
# Commands that only talk about a server.
# fmt: off
_TALK = frozenset((
    "echo", "printf", "pkill", "pgrep", "grep", "egrep", "rg", "kill", "killall", "ps", "pip", "pip3",
    "cat", "which", "type", "alias", "man", "less", "tail", "head", "sed", "awk", "ls", "cd", "mkdir",
    "rm", "cp", "mv", "chmod", "wget", "curl", "git", "trap", "wait", "sleep", "test", "[", "[[", "for",
    "case", "function", "read",
))
# fmt: on


def talks_only(name: str) -> bool:
    return posixpath.basename(name) in _TALK


def has_more_options(program: Sequence[str]) -> bool:
    """Does the program take options of its own beside those of SGLang's server?"""
    return any(_CARRIERS.fullmatch(word) for word in program)


def find_program(words: Sequence[str]) -> tuple[int, int] | None:
    """``start, end`` of the words that start the server: interpreter and module, or ``sglang serve``."""
    for i, word in enumerate(words):
        if i and words[i - 1] == "-m" and (word in _MODULES or _CARRIERS.fullmatch(word)):
            return _interpreter(words, i - 1), i + 1
        if word.startswith("-m") and word[2:] in _MODULES:
            return _interpreter(words, i), i + 1
        base = posixpath.basename(word)
        if base == "launch_server.py" and not word.startswith("-"):
            return _interpreter(words, i), i + 1
        if base == "sglang" and i + 1 < len(words) and words[i + 1] == "serve":
            start = _interpreter(words, i) if i and words[i - 1].startswith("-") is False else i
            return (start if _PYTHON.match(posixpath.basename(words[start])) else i), i + 2
        if (
            word in ("sglang.cli.main", "sglang.cli")
            and i
            and words[i - 1] == "-m"
            and "serve" in words[i + 1 : i + 2]
        ):
            return _interpreter(words, i - 1), i + 2
    return None


def _interpreter(words: Sequence[str], at: int) -> int:
    """The interpreter (or launcher) before position ``at``, with only options between; else ``at``."""
    for i in range(at - 1, -1, -1):
        base = posixpath.basename(words[i])
        if _PYTHON.match(base) or base in _RUNNERS:
            return i
    return at
