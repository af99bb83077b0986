"""The line(s) of a log that show the launch command."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from mtpdoctor.log.literals import literal
from mtpdoctor.log.types import Attempt, Line, LogReading
from mtpdoctor.patterns import lazy

LITERALS = (
    "sglang.launch_server",
    "sglang serve",
    "sglang/launch_server",
    "sglang_router",
    "launch_server.py",
)

_LAUNCH = lazy(
    r"(?:\bpython[\d.]*\s+(?:-\w+\s+)*-m\s+sglang\.launch_server\b|\bsglang\s+serve\b|\bsglang/launch_server\.py\b|\blaunch_server\.py\b"
    r"|-m\s+sglang\.launch_server\b)"
)
_FLAG = lazy(r"\s--?[a-zA-Z]|\s\$?\{?\w*MODEL|\s\\?$")
_PROMPT = lazy(
    r"^\s*(?:\[[\w.-]+@[\w.-]+ [^\]\s]{1,80}\][$#%]\s+)|^\s*(?:\[[^\]\s]*\]\s*)?(?:(?:\([\w.-]+\)\s*)*[\w.-]+@[\w.-]+(?::[^$#>]*)?[$#>]\s+|[\w.~/-]*[$#]\s+|>{1,3}\s+|\++\s+|%\s+)"
)
_LABEL = lazy(
    r"(?i)^\s*(?:\[[^\]]{0,40}\]\s*)?(?:-?\s*)(?:(?:the )?(?:full |launch(?:ing)?|start(?:ing)?|run(?:ning)?|exec(?:uting)?|server|sglang"
    r"|final|docker)?\s*(?:server |sglang |launch )?(?:command|cmd|args|entrypoint|with command|running|executing|launching|exec|cmdline"
    r"|starting|ExecStart)(?:\s+line)?\s*(?:is)?\s*[:=]\s*)"
)
_NOT_COMMAND = lazy(
    r"UserWarning|is still supported|Example: |^\s*usage: |: error: |\bps aux\b|^\s*File \"|is deprecated|recommended entrypoint"
    r"|^\s*\w+\s+\d+\s+[\d.]+\s+[\d.]+\s+\d+\s+\d+|No module named|command not found|\bTraceback\b|Killed\s|已杀死|段错误|核心已转储|Aborted\s|Segmentation fault"
    r"|grep |dead but|please use|Please (?:use|run)|try running|pip install|^\s*//"
)
_MORE = lazy(r"^\s*>\s+")  # the shell's prompt on a continuation line
_ASSIGN = lazy(r"^(?:env\s+)?(?:[A-Za-z_]\w*=(?:'[^']*'|\"[^\"]*\"|[^\s'\"]*)\s+)*$")


# A launch as a key's value in a manifest, a compose file or what `inspect` prints; or alone on a line of a list.
_DESCRIBED = lazy(
    r"^\s+(?:-\s+)?\"?(?:command|args|entrypoint|Command|Args|Cmd|Entrypoint|Path)\"?\s*:|^(?:-\s+)?\"(?:Cmd|Args|Entrypoint|Path)\"\s*:"
)


def is_described(body: str) -> bool:
    """Does the line tell how a container is launched (a manifest, `describe`, `inspect`), and launch nothing itself?"""
    return bool(_DESCRIBED.match(body)) or body.strip().lstrip("- ").strip("'\",") == "sglang.launch_server"


def launch_command(attempt: Attempt, reading: LogReading | None = None) -> tuple[str, Line] | None:
    """The launch command that an attempt shows, joined, without prompt marks, and the line it begins on.

    None when no line shows it. ``reading`` is not needed: reading a log keeps the text in the attempt.
    """
    if attempt.command is None or attempt.command_text is None:
        return None
    return attempt.command_text, attempt.command


def commands_in(lines: Sequence[Line]) -> list[tuple[str, Line]]:
    """Every launch command shown in ``lines`` (in order), joined, and the line it begins on."""
    found: list[tuple[str, Line]] = []
    taken: set[tuple[int, int, int]] = set()  # continuation lines of a command
    for i, line in enumerate(lines):
        if line.key in taken:
            continue
        text = _command_at(lines, i, taken)
        if text is not None:
            found.append((text, line))
    return found


def best_command(commands: Sequence[tuple[str, Line]]) -> tuple[str, Line] | None:
    """The first of several; a later one where a shell's trace shows what the variables had become."""
    best: tuple[str, Line] | None = None
    for command in commands:
        if best is None or ("$" in best[0] and "$" not in command[0]):
            best = command
    return best


def _command_at(lines: Sequence[Line], i: int, taken: set[tuple[int, int, int]]) -> str | None:
    """The command that begins at line ``i``, with its continuation lines, which are noted in ``taken``."""
    if _is_listed(lines[i]):
        return _listed(lines, i)
    text = _clean(lines[i])
    if text is None:
        return None
    parts = [text.rstrip()]
    used: list[Line] = []
    stream = (lines[i].file, lines[i].stream)
    for line in lines[i + 1 : i + 400]:
        if not parts[-1].endswith("\\") or len(parts) >= 200:
            break
        if (line.file, line.stream) == stream:
            parts.append(_MORE.sub("", line.body).rstrip())
            used.append(line)
    joined = " ".join(p[:-1].strip() if p.endswith("\\") else p.strip() for p in parts).strip()
    if not _has_arguments(joined):
        return None
    taken.update(line.key for line in used)
    return joined


def _has_arguments(text: str) -> bool:
    m = _LAUNCH.search(text)
    return bool(m and re.search(r"\s-{1,2}[a-zA-Z]|\s\$", text[m.end() :]))


def _clean(line: Line) -> str | None:
    """The command text at the line without marks around it, None when it is not one."""
    body = line.body
    if len(body) > 20_000:
        return None
    if "sglang" not in body and "launch_server" not in body and not body.rstrip().endswith("\\"):
        return None
    if body.lstrip().startswith("server_args=") or _NOT_COMMAND.search(_before_arguments(body)):
        return None
    listed = _from_list(body)
    if listed is not None:
        return listed
    m = _LAUNCH.search(body)
    if not m:
        # "docker run ... \" or "VAR=1 \": the launch may stand on a continuation line.
        if body.rstrip().endswith("\\") and re.match(
            r"^\s*(?:\$ |\++ |# )?(?:[A-Z_]+=\S* |docker run|srun |exec |nohup |numactl )", body
        ):
            return _PROMPT.sub("", body, count=1).strip()
        return None
    text = _LABEL.sub("", _PROMPT.sub("", body, count=1), count=1)
    m = _LAUNCH.search(text)
    if not m:
        return None
    before = text[: m.start()]
    if not _plausible_prefix(before):
        return None
    text = text.strip()
    if text[:1] in "'\"`" and text[-1:] == text[:1] and len(text) > 2:
        text = text[1:-1]
    return text.strip()


def _is_listed(line: Line) -> bool:
    """One word a line, as ``kubectl describe`` and YAML lists show a command."""
    return line.body.strip().lstrip("- ").strip("'\"") == "sglang.launch_server"


def _listed(lines: Sequence[Line], i: int) -> str | None:
    stream, indent = (lines[i].file, lines[i].stream), _indent(lines[i])
    marked = lines[i].body.lstrip().startswith("- ")
    words: list[str] = []
    for line in reversed(lines[max(i - 8, 0) : i]):
        if (line.file, line.stream) != stream or _indent(line) != indent or not line.body.strip():
            break
        words.insert(0, _word(line))
    words.append("sglang.launch_server")
    for line in lines[i + 1 : i + 200]:
        if (line.file, line.stream) != stream:
            continue
        if line.body.strip() in ("Args:", "args:"):
            continue
        dashed = line.body.lstrip().startswith("- ")
        if _indent(line) != indent or not line.body.strip() or dashed != marked:
            break
        words.append(_word(line))
    if "-m" not in words or len(words) < 4:
        return None
    words = words[max(words.index("-m") - 1, 0) :]
    return " ".join(shlex.quote(w) for w in words)


def _indent(line: Line) -> int:
    return len(line.body) - len(line.body.lstrip())


def _word(line: Line) -> str:
    text = re.sub(r"^- ", "", line.body.strip())
    return text[1:-1] if text[:1] in "'\"" and text[-1:] == text[:1] and len(text) > 1 else text


def _before_arguments(body: str) -> str:
    """The part of the line up to the launch itself and a little more (arguments may hold any word)."""
    m = _LAUNCH.search(body)
    return body if not m else body[: m.end() + 40].split(" --", 1)[0]


def _plausible_prefix(before: str) -> bool:
    """What stands before ``python -m sglang.launch_server`` in a command: assignments, wrappers, paths."""
    before = before.strip()
    if not before or len(before) > 4000:
        return not before
    if _ASSIGN.match(before + " "):
        return True
    first = (
        re.sub(r"^(?:[A-Za-z_]\w*=(?:'[^']*'|\"[^\"]*\"|\S*)\s+)*", "", before)
        .split(" ", 1)[0]
        .rsplit("/", 1)[-1]
    )
    first = first.strip("'\"`")
    return bool(
        re.match(
            r"^(?:exec|env|nohup|numactl|sudo|time|timeout|docker|podman|nerdctl|srun|mpirun|ssh|bash|sh|taskset|uv|uvx|conda|nsys|ncu"
            r"|torchrun|setsid|stdbuf|apptainer|singularity|ch-run|shifter|sarus|udocker|crictl|kubectl|cd|export|source|\.|set|python[\d.]*|ExecStart=?\S*|xargs|script"
            r"|micromamba|poetry|pixi|ray|accelerate|strace|gdb|nice|ionice|chroot|gosu|tini|dumb-init|catchsegv|enroot|pdsh|CMD|RUN|ENTRYPOINT)$",
            first,
        )
        or before.startswith(("/", "~", "./", "../", "${", "$"))
    )


def _from_list(body: str) -> str | None:
    """``['python3', '-m', 'sglang.launch_server', ...]`` or a JSON list, as one shell line."""
    start = body.find("[")
    while start >= 0:
        end = body.rfind("]")
        if end <= start:
            return None
        piece = body[start : end + 1]
        if len(piece) > 20 and piece[1:].lstrip()[:1] in ("'", '"'):
            try:
                words = literal(piece)
            except ValueError:
                words = None
            if isinstance(words, list) and all(isinstance(w, str) for w in words):
                joined = " ".join(shlex.quote(w) for w in words)
                shell = next((w for w in words if _LAUNCH.search(w) and " -" in w), None)
                if shell is not None:
                    return shell
                if _LAUNCH.search(" ".join(words)):
                    return joined
        start = body.find("[", start + 1)
    return None
