"""The line(s) of a log that show the launch command."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from mtpdoctor.log.command_lists import entrypoint_and_command, from_list, is_listed, listed
from mtpdoctor.log.prompt import PROMPT, TRACE
from mtpdoctor.log.typed import looks
from mtpdoctor.log.types import Attempt, Line, LogReading
from mtpdoctor.patterns import lazy

LITERALS = (
    "sglang.launch_server",
    "sglang serve",
    "sglang generate",
    "sglang/launch_server",
    "sglang_router",
    "launch_server.py",
    "-m dynamo.sglang",
    "-m sglang.bench_",
    "--model-path",
)

# dynamo's worker and SGLang's benchmarks of one batch take the server's options along with their own
_MODULES = r"(?:sglang\.launch_server|dynamo\.sglang(?:\.\w+)*|sglang\.bench_(?:one_batch|offline)\w*|sglang\.srt\.entrypoints\.http_server)"
_LAUNCH = lazy(
    rf"(?:\bpython[\d.]*\s+(?:-\w+\s+)*-m\s+{_MODULES}(?![\w.])|\bsglang\s+(?:serve|generate)\b|\bsglang/launch_server\.py\b"
    rf"|\blaunch_server\.py\b|-m\s+{_MODULES}(?![\w.])|(?<=\[)sglang\.launch_server(?=\s))"
)
_PROMPTED = lazy(rf"^\s*(?:\[[^\]\s]*\]\s*)?(?:(?P<trace>{TRACE})|{PROMPT}|[\w.~/-]*[$#]|>{{1,3}})\s+")
# Where in a line that tells of a command the command may begin.
_SEPARATOR = lazy(
    r"[:=]\s*|[\])>|+$#%❯➜,;]\s+|[\[`'\"(]|^\s*-\s+|!(?=[\w/.~])|\b(?i:command|cmd|line|with|run(?:ning)?|exec(?:uting)?|launch(?:ing)?|start(?:ing)?)\s+|└─\s*\d+\s+"
)
_NAMED = lazy(
    r"^\s*ExecStart=(?:\{.*?argv\[\]=|[-@:+!|]*(?=[/\w]))|^\s*(?:\w+_)?(?:command|cmd|cmdline|args|argv)\s*=\s*"
)
_HINT = lazy(
    r"(?i)\b(?:try|e\.g\.|example|instead|should|recommend\w*|usage|hint|suggest\w*|(?:can|could|may|to) (?:be )?(?:use|run|start|launch)\w*)\b"
)
_NOT_COMMAND = lazy(
    r"UserWarning|is still supported|Example: |^\s*usage: |: error: |\bps aux\b|^\s*File \"|is deprecated|recommended entrypoint"
    r"|No module named|command not found|\bTraceback\b|Killed\s|已杀死|段错误|核心已转储|Aborted\s|Segmentation fault"
    r"|grep |dead but|please use|Please (?:use|run)|try running|pip install|^\s*//|\bkilled\s|\b(?:killed|terminated) by\b"
)
# What a program that tells of a command writes behind it.
_TAIL = lazy(
    r"(?<!\s)\s+\(code=\w+.*$|(?<!\s)\s+;\s+ignore_errors=.*$|(?<!\s)\s+[\w./-]+\.(?:py|go|rs|cc|cpp):\d+\s*$|\s*\[repeated \d+x across cluster\].*$"
    r"|\s+(?:failed|exited|died|terminated)(?: with\b| due\b|[.!]?$).*$|'?\s+returned non-zero.*$|,?\s*\(?pid[=: ]\s*\d+.*$"
)
_MORE = lazy(r"^\s*>\s+")  # the shell's prompt on a continuation line
_ASSIGN = lazy(r"^(?:env\s+)?(?:[A-Za-z_]\w*=(?:'[^']*'|\"[^\"]*\"|[^\s'\"]*)\s+)*$")
_CARRIER = lazy(r"^\s*(?:\$ |\++ |# )?(?:[A-Z_]+=\S* |docker run|srun |exec |nohup |numactl )")
_FIRST_WORDS = lazy(
    r"^(?:exec|env|nohup|numactl|sudo|time|timeout|docker|podman|nerdctl|srun|mpirun|ssh|bash|sh|taskset|uv|uvx|conda|nsys|ncu"
    r"|torchrun|setsid|stdbuf|apptainer|singularity|ch-run|shifter|sarus|udocker|crictl|kubectl|cd|export|source|\.|set|python[\d.]*|ExecStart=?\S*|xargs|script"
    r"|micromamba|poetry|pixi|ray|accelerate|strace|gdb|nice|ionice|chroot|gosu|tini|dumb-init|catchsegv|enroot|pdsh|CMD|RUN|ENTRYPOINT|pip3?|pixi|hatch)$"
)
_WRAPPED = 60  # lines that an open quotation mark may go on over


# A launch as a key's value in a manifest, a compose file or what `inspect` prints; told by systemd; or alone on a line
# of a list.
_DESCRIBED = lazy(
    r"^\s+(?:-\s+)?\"?(?:command|args|entrypoint|Command|Args|Cmd|Entrypoint|Path)\"?\s*:|^(?:-\s+)?\"(?:Cmd|Args|Entrypoint|Path)\"\s*:"
    r"|^\s*(?:Process: \d+ )?ExecStart=|└─\s*\d+ |returned non-zero|^\s*\[\s*[\"']--model|\bCalledProcessError\b"
)


# A running process as `ps`, `systemd-cgls`, py-spy or a GPU's list of processes shows it.
_PROCESS = lazy(
    r"^\s*(?:[\w+-]+\s+)?\d+\s+(?:\d+\s+){0,3}[\d.]+\s+(?:[\d.:-]+\s+)*\S.*?(?=\S*python|\S*sglang)|^\s*\d+\s+\S+\s+\S+\s+[\d:.-]+\s+(?=\S*python|\S*sglang)|^Process \d+: "
)


def is_described(body: str) -> bool:
    """Does the line tell how a container or service is launched (a manifest, `describe`, `inspect`, `status`), and launch
    nothing itself?"""
    return bool(_DESCRIBED.search(body)) or is_listed(body) or _PROCESS.match(body) is not None


def launch_command(attempt: Attempt, reading: LogReading | None = None) -> tuple[str, Line] | None:
    """The launch command that an attempt shows, joined, without prompt marks, and the line it begins on.

    A restart by a supervisor often shows none: then, with the ``reading``, the one of the attempt before it, unless the
    arguments that the server printed are of another launch. None when no line shows it.
    """
    if attempt.command is not None and attempt.command_text is not None:
        return attempt.command_text, attempt.command
    before = reading.attempts[: attempt.index] if reading is not None else ()
    shown = next((a for a in reversed(before) if a.command_text is not None and a.command is not None), None)
    if shown is None or shown.command_text is None or shown.command is None:
        return None
    names = tuple(f"arg.{name}" for name in _TELLING)
    now = {o.name: o.value for o in attempt.observations if o.name in names}
    then = {o.name: o.value for o in shown.observations if o.name in names}
    if any(then.get(name, value) != value for name, value in now.items()):
        return None
    if now and not then and not _agreement(shown.command_text, {k[4:]: v for k, v in now.items()}):
        return None
    return shown.command_text, shown.command


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


def best_command(
    commands: Sequence[tuple[str, Line]], arguments: Mapping[str, Any] | None = None
) -> tuple[str, Line] | None:
    """The first of several; a later one where a shell's trace shows what the variables had become, or where it holds
    more of what the ``arguments`` of the server that ran tell (of several servers' commands the one of this)."""
    best: tuple[str, Line] | None = None
    rank: tuple[bool, int] = (False, -1)
    for command in commands:
        if (
            _PROCESS.match(command[1].body)
            and str((arguments or {}).get("model_path", "?")) not in command[0]
        ):
            continue  # whether this process is the one of the log is not told
        of_this = ("$" not in command[0], _agreement(command[0], arguments or {}))
        if best is None or of_this > rank:
            best, rank = command, of_this
    return best


_TELLING = ("model_path", "disaggregation_mode", "port", "node_rank", "dist_init_addr", "tp_size")


def _agreement(text: str, arguments: Mapping[str, Any]) -> int:
    values = {str(v) for name in _TELLING if (v := arguments.get(name)) not in (None, "", "null", 0, 1)}
    return len(values.intersection(re.split(r"[\s='\"]+", text))) if values else 0


def _command_at(lines: Sequence[Line], i: int, taken: set[tuple[int, int, int]]) -> str | None:
    """The command that begins at line ``i``, with its continuation lines, which are noted in ``taken``."""
    if is_listed(lines[i].body) or lines[i].body.strip().strip("'\",- ") == "serve":
        return listed(lines, i)
    if (both := entrypoint_and_command(lines, i)) is not None:
        return both
    found = _clean(lines[i])
    if found is None:
        return None
    text, printed = found
    used: list[Line] = []
    joined = _joined(text, lines, i, used)
    if printed:
        joined = _TAIL.sub("", joined).strip()
        joined = with_json_quoted(joined)
    if not _has_arguments(joined):
        return None
    taken.update(line.key for line in used)
    return joined


def _joined(text: str, lines: Sequence[Line], i: int, used: list[Line]) -> str:
    """The command with the lines that it goes on over: behind a backslash, or inside quotation marks."""
    parts = [text.rstrip()]
    stream = (lines[i].file, lines[i].stream)
    following = [x for x in lines[i + 1 : i + 400] if (x.file, x.stream) == stream]
    for line in following[:200]:
        if not parts[-1].endswith("\\"):
            break
        parts.append(_MORE.sub("", line.body).rstrip())
        used.append(line)
    joined = " ".join(p[:-1].strip() if p.endswith("\\") else p.strip() for p in parts).strip()
    if len(parts) == 1 and _unclosed(joined):
        whole = joined
        for n, line in enumerate(following[:_WRAPPED]):
            whole += "\n" + _MORE.sub("", line.body)
            if not _unclosed(whole):
                used.extend(following[: n + 1])
                return whole
    return joined


def _unclosed(text: str) -> bool:
    try:
        shlex.split(text)
    except ValueError as error:
        return "quotation" in str(error)
    return False


def _has_arguments(text: str) -> bool:
    m = _LAUNCH.search(text)
    return bool(m and re.search(r"\s-{1,2}[a-zA-Z]|\s\$|\s\"\$", text[m.end() :]))


def _clean(line: Line) -> tuple[str, bool] | None:
    """The command text at the line without marks around it, and whether a program printed it (so that its quotation
    marks may be gone); None when it is not one."""
    body = line.body
    if len(body) > 20_000:
        return None
    if "sglang" not in body and "launch_server" not in body and not body.rstrip().endswith("\\"):
        return _of_list(body) if "--model" in body else None
    if body.lstrip().startswith("server_args="):
        return None
    m = _LAUNCH.search(body)
    prompt = _PROMPTED.match(body)
    if (
        m
        and prompt
        and m.start() >= prompt.end()
        and not _NOT_COMMAND.search(_before_arguments(body, "pip install"))
    ):
        text = body[prompt.end() :]
        before = body[prompt.end() : m.start()]
        if looks(body):
            return None
        if plausible_prefix(before) or re.search(r"&&|;|\|\|", before):
            return text.strip(), bool(prompt["trace"])
    if _NOT_COMMAND.search(_before_arguments(body)):
        return None
    if (of_list := _of_list(body)) is not None:
        return of_list
    if not m:
        # "docker run ... \" or "VAR=1 \": the launch may stand on a continuation line.
        if body.rstrip().endswith("\\") and (prompt or _CARRIER.match(body)):
            text = body[prompt.end() :] if prompt else body
            return (text.strip(), False) if _CARRIER.match(text) else None
        return None
    return _told(body, m)


def _of_list(body: str) -> tuple[str, bool] | None:
    found = from_list(body, _LAUNCH)
    return (found, False) if found is not None else None


def _told(body: str, m: re.Match[str]) -> tuple[str, bool] | None:
    """The command in a line that tells of one: behind the first mark that a command can begin behind."""
    if _HINT.search(body, 0, m.start()):
        return None
    if _PROCESS.match(body):
        at = body.rfind(" ", 0, m.start()) + 1 if m.start() else 0
        return body[max(at, 0) :].strip(), True
    named = _NAMED.match(body)
    starts = [named.end() if named else 0, *(s.end() for s in _SEPARATOR.finditer(body, 0, m.start()))]
    at = next((at for at in starts if plausible_prefix(body[at : m.start()])), -1)
    if at < 0:
        return None
    text = body[at:]
    opened = body[:at].rstrip()[-1:] if at else text.lstrip()[:1]
    if not at and opened in ("'", '"', "`"):
        text = text.lstrip()[1:]
    if opened == "[":
        text = text[: _closing(text)]
    elif opened in ("'", '"', "`") and (end := text.rfind(opened)) > 0:
        inner = text[:end]
        text = _unescaped(inner) if opened == '"' and "\\" in inner else inner
    text = text.strip()
    return ("python3 -m " + text if text.startswith("sglang.launch_server") else text), True


def _closing(text: str) -> int:
    """Where the list that was open before ``text`` ends."""
    depth = 0
    for i, c in enumerate(text):
        depth += (c == "[") - (c == "]")
        if depth < 0:
            return i
    return len(text)


def _unescaped(text: str) -> str:
    try:
        return str(json.loads(f'"{text}"'))
    except ValueError:
        return text


_JSON_AT = lazy(r"(?<=[\s=])[{\[](?=\s*[\"{\[])")


def with_json_quoted(text: str) -> str:
    """A command as a program printed it, its words joined by blanks: JSON values in quotation marks for a shell."""
    if '"' not in text:
        return text
    decoder = json.JSONDecoder()
    out, at = [], 0
    for m in _JSON_AT.finditer(text):
        if m.start() < at or _quoted_at(text, m.start()):
            continue
        try:
            _, end = decoder.raw_decode(text, m.start())
        except (ValueError, RecursionError):
            continue
        if text[end : end + 1].strip():
            continue
        out += [text[at : m.start()], shlex.quote(text[m.start() : end])]
        at = end
    return "".join([*out, text[at:]])


def _quoted_at(text: str, at: int) -> bool:
    """Does a single or double quotation mark stand open at this place?"""
    quote = ""
    i = 0
    while i < at:
        c = text[i]
        if c == "\\" and quote != "'":
            i += 1
        elif quote:
            quote = "" if c == quote else quote
        elif c in "'\"":
            # a mark inside a word of JSON that came before is none of the shell's
            quote = c
        i += 1
    return bool(quote)


def _before_arguments(body: str, but: str = "") -> str:
    """The part of the line up to the launch itself and a little more (arguments may hold any word)."""
    m = _LAUNCH.search(body)
    text = body if not m else body[: m.end() + 40].split(" --", 1)[0]
    return text.replace(but, "") if but else text


def plausible_prefix(before: str) -> bool:
    """Can this stand before ``python -m sglang.launch_server`` in a command: assignments, wrappers, paths?"""
    before = before.strip()
    if not before or len(before) > 4000:
        return not before
    if _ASSIGN.match(before + " "):
        return True
    first = re.sub(r"^(?:[A-Za-z_]\w*=(?:'[^']*'|\"[^\"]*\"|\S*)\s+)*", "", before).split(" ", 1)[0]
    name = first.rsplit("/", 1)[-1].strip("'\"`")
    if not name and re.fullmatch(r"[\w.~/${}-]+/", first):
        return True  # the path of an interpreter
    return bool(_FIRST_WORDS.match(name)) or before.startswith(("/", "~", "./", "../", "${", "$"))
