"""The command as it would have to begin: ``sglang`` was called without, or with a wrong, subcommand or module."""

from __future__ import annotations

import shlex

from mtpdoctor.case import Case
from mtpdoctor.kb.types import Match, Remedy, Safety
from mtpdoctor.patterns import lazy
from mtpdoctor.release import parse_release

# What stands before the options: the program, and at most one word that is no option and no path of a model.
_CALL = lazy(
    r"(?:^|[\s/'\"])(?:sglang|python[\d.]*t?\s+-m\s+sglang(?:\.(?!launch_server\b)[\w.]+)?)(?:\s+(?P<word>[a-z][\w-]*))?"
    r"(?P<rest>\s+(?:--?[A-Za-z]|\S*[/\w]).*)$"
)
_NOT_CALL = lazy(
    r": error: |^\s*usage: |No module named|command not found|is a package and|systemd\[\d+\]|\bpip\b"
)
_BEFORE = 200  # lines above the message in which the command is looked for
_SERVE_SINCE = parse_release("0.5.5")


def entry_remedies(match: Match, case: Case) -> list[Remedy]:
    """The typed options behind ``sglang serve``, and behind the module that every release has."""
    typed = _typed(match, case)
    serve = f"sglang serve {typed}"
    module = f"python3 -m sglang.launch_server {typed}"
    remedies = [
        Remedy(
            title="Start the server with its subcommand: sglang serve",
            safety=Safety.MANUAL,
            why="the program sglang wants to know what to do before any option: serve starts a server",
            run=(serve,),
        ),
        Remedy(
            title="Start the server by its module: python3 -m sglang.launch_server",
            safety=Safety.MANUAL,
            why="every release has it; sglang serve came with 0.5.5",
            run=(module,),
        ),
    ]
    if case.release is not None and case.release < _SERVE_SINCE:
        return remedies[1:]
    return remedies


def _typed(match: Match, case: Case) -> str:
    """The options of the last such call above the message, quoted again; a placeholder where none is shown."""
    model = "--model-path MODEL"
    if case.reading is None:
        return model
    line = match.line
    lines = case.reading.hits.window(line.file, max(1, line.number - _BEFORE), line.number)
    for i in range(len(lines) - 1, -1, -1):
        text = lines[i].body
        found = None if _NOT_CALL.search(text) else _CALL.search(text)
        if found is None:
            continue
        parts = [found["rest"].rstrip()]
        for more in lines[i + 1 : i + 60]:
            if not parts[-1].endswith("\\"):
                break
            parts.append(more.body.rstrip())
        whole = " ".join(p.rstrip("\\").strip() for p in parts)
        try:
            words = shlex.split(whole)
        except ValueError:
            return model
        if words and not words[0].startswith("-"):  # vllm's way: the model without an option's name
            words = ["--model-path", *words]
        if any(w.startswith("-") for w in words):
            return shlex.join(words)
    return model
