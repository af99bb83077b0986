"""A launch command as a list of words: in one line, or one word a line as manifests and `inspect` show it."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence
from typing import Any

from mtpdoctor.log.literals import literal
from mtpdoctor.log.types import Line
from mtpdoctor.patterns import lazy

_MODULE = lazy(r"sglang\.launch_server|dynamo\.sglang(?:\.\w+)*")
_ITEM = lazy(r"^- ")
_ARGUMENTS = ("--model-path", "--model")
_ENTRYPOINT = lazy(r"^\s*\"?entrypoint\"?\s*:\s*(?P<value>\S.*)$")
_COMMAND = lazy(r"^\s*\"?command\"?\s*:\s*(?P<value>\S.*)$")
PYTHON = ("python3", "-m", "sglang.launch_server")


def is_listed(body: str) -> bool:
    """Does the line hold the server's module and nothing else?"""
    return _MODULE.fullmatch(body.strip().lstrip("- ").strip("'\",")) is not None


def listed(lines: Sequence[Line], i: int) -> str | None:
    """The command one of whose words stands in line ``i``, one word a line."""
    stream, indent = (lines[i].file, lines[i].stream), _indent(lines[i])
    marked = lines[i].body.lstrip().startswith("- ")
    words = [_word(lines[i])]
    for line in reversed(lines[max(i - 8, 0) : i]):
        if (line.file, line.stream) != stream or _indent(line) != indent or not line.body.strip():
            break
        words.insert(0, _word(line))
    at = len(words) - 1
    for line in lines[i + 1 : i + 200]:
        if (line.file, line.stream) != stream:
            continue
        if line.body.strip() in ("Args:", "args:"):
            continue
        dashed = line.body.lstrip().startswith("- ")
        if _indent(line) != indent or not line.body.strip() or dashed != marked:
            break
        words.append(_word(line))
    if words[at] == "serve":
        start = at - 1 if at and words[at - 1].rsplit("/", 1)[-1] == "sglang" else -1
    else:
        start = at - 1 if at and words[at - 1] == "-m" else -1
    if start < 0 or len(words) < at + 2:
        return None
    begin = max(start - 1, 0) if words[at] != "serve" else start
    words = words[begin:]
    return joined(words if words[0] != "-m" else ["python3", *words])


def _indent(line: Line) -> int:
    return len(line.body) - len(line.body.lstrip())


def _word(line: Line) -> str:
    text = _ITEM.sub("", line.body.strip())
    if text[:1] == '"' and text.rstrip(",")[-1:] == '"':
        try:
            return str(json.loads(text.rstrip(",")))
        except ValueError:
            pass
    return text[1:-1] if text[:1] in "'\"" and text[-1:] == text[:1] and len(text) > 1 else text


def from_list(body: str, launch: Any) -> str | None:
    """``['python3', '-m', 'sglang.launch_server', ...]`` or a JSON list, as one shell line. ``launch``: the pattern of
    what starts a server."""
    start = body.find("[")
    while start >= 0:
        end = body.rfind("]")
        if end <= start:
            return None
        piece = body[start : end + 1]
        if len(piece) > 20 and piece[1:].lstrip()[:1] in ("'", '"'):
            words = _literal(piece)
            if words is None and (closed := _closed(body, start)) is not None:
                words = _literal(body[start:closed])
            if words is not None and (text := _command(words, launch)) is not None:
                return text
        start = body.find("[", start + 1)
    return None


def _literal(piece: str) -> list[str] | None:
    try:
        words = literal(piece)
    except ValueError:
        return None
    return words if isinstance(words, list) and words and all(isinstance(w, str) for w in words) else None


def _closed(body: str, start: int) -> int | None:
    """Behind the bracket that closes the one at ``start``, outside quotation marks."""
    depth, quote, i = 0, "", start
    while i < len(body):
        c = body[i]
        if quote:
            if c == "\\":
                i += 1
            elif c == quote:
                quote = ""
        elif c in "'\"":
            quote = c
        elif c in "[]":
            depth += 1 if c == "[" else -1
            if not depth:
                return i + 1
        i += 1
    return None


def _command(words: list[str], launch: Any) -> str | None:
    shell = next((w for w in words if launch.search(w) and " -" in w), None)
    if shell is not None:
        return shell
    if words[0] in _ARGUMENTS:  # of a container whose image starts the server
        return joined([*PYTHON, *words])
    if launch.search(" ".join(words)):
        return joined(words if words[0] != "-m" else ["python3", *words])
    return None


def joined(words: Sequence[str]) -> str:
    return " ".join(shlex.quote(w) for w in words)


def entrypoint_and_command(lines: Sequence[Line], i: int) -> str | None:
    """Of a compose file that tells the program and its arguments apart, in lines next to each other."""
    m = _ENTRYPOINT.match(lines[i].body)
    if m is None or i + 1 >= len(lines):
        return None
    following = _COMMAND.match(lines[i + 1].body)
    if following is None or not re.search(r"launch_server|\bserve\b", m["value"]):
        return None
    parts = [_scalar(m["value"]), _scalar(following["value"])]
    return " ".join(parts) if all(parts) else None


def _scalar(text: str) -> str:
    words = _literal(text.strip()) if text.startswith("[") else None
    if words is not None:
        return joined(words)
    return text.strip().strip("'\"")
