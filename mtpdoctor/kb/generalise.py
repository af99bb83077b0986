r"""A regex that finds a message again when its numbers, paths and names are others.

What varies becomes a class with a named group (``--tp-size (?P<tp_size>\d+)``); every other character stays.
Where the template of the message is known (``sglang.templates``), its holes are what varies and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from mtpdoctor.kb.literals import required_literal

MAX_LENGTH = 240  # characters of a message that the regex is made of
MAX_GROUPS = 6
MIN_LETTERS = 8  # that the longest fixed text of a regex has, so that it is not found everywhere

_UNIT = r"(?=\s?(?:[KMGT]i?B|GiB|ms|s|%|tokens?|x)\b|\b)"
# name of the group where no word before says more -> (what varies, class that takes its place)
_CLASSES: tuple[tuple[str, str, str], ...] = (
    ("url", r"https?://[^\s'\"<>)]+", r"\S+"),
    ("shape", r"torch\.Size\(\[[\d, ]*\]\)", r"torch\.Size\(\[[\d, ]*\]\)"),
    ("address", r"\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b", r"[\d.:]+"),
    ("path", r"(?<![\w/])(?:~|\.{1,2})?(?:/[\w.+@=-]+)+/?", r"[^\s'\":,]+"),
    ("address", r"\b0x[0-9a-fA-F]+\b", r"0x[0-9a-fA-F]+"),
    ("id", r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b", r"[0-9a-fA-F-]+"),
    ("hash", r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{10,}\b", r"[0-9a-f]+"),
    ("arch", r"\b\w+For(?:CausalLM|ConditionalGeneration|\w*Classification)\w*\b", r"\w+"),
    ("model", r"\b(?=[\w.-]*/[\w.-]*\d)[A-Za-z][\w.-]*/[\w.-]+\b", r"[\w./-]+"),
    ("numbers", r"\[\s*-?\d[\d., -]*\]", r"\[[\d., -]*\]"),
    ("numbers", r"\(\s*-?\d+(?:, ?-?\d+)+\)", r"\([\d, -]*\)"),
    ("index", r"(?<=[A-Za-z]\.)\d+(?=\.[A-Za-z])", r"\d+"),
    ("sizes", r"\b\d+(?:x\d+)+\b", r"[\dx]+"),
    ("dtype", r"\btorch\.(?:bfloat16|float\w+|u?int\d+|half|bool)\b", r"torch\.\w+"),
    ("value", r"(?<![\w.-])-?\d+\.\d[\d.]*(?:e-?\d+)?(?![\w])" + _UNIT, r"-?[\d.]+"),
    ("value", r"(?<![\w.])-?\d+(?![\w.]*\w*\.\w)" + _UNIT, r"-?\d+"),
)
_SPLIT = re.compile("|".join(f"(?P<c{i}>{what})" for i, (_, what, _) in enumerate(_CLASSES)))
_QUOTED = re.compile(r"'([^'\n]{1,120})'|\"([^\"\n]{1,120})\"|`([^`\n]{1,120})`")
_NAME = re.compile(r"([A-Za-z_][\w-]*)\W{0,4}$")
_VARIES = re.compile(r"[\d/@\s]|\.\w|For(?:CausalLM|ConditionalGeneration)")
_MEANS = re.compile(
    r"(?i)(?:errno|exit code|exitcode|signal|sm|compute capability|status code|xid|cuda error)\W{0,3}-?$"
)
_LEAD = re.compile(
    r"^.*?(?=NCCL WARN |NCCL ERROR )|^\S+\.py: (?=error: )"
)  # host, process, source line; program
_TAKEN = frozenset(
    {"is", "of", "to", "the", "a", "an", "and", "or", "than", "got", "has", "with", "be", "for", "at"}
)


class _Groups:
    """Names of groups, each once, read off the words before what varies."""

    def __init__(self) -> None:
        self.used: set[str] = set()

    def __call__(self, before: str, default: str, body: str) -> str:
        if len(self.used) >= MAX_GROUPS:
            return f"(?:{body})" if "|" in body else body
        word = _NAME.search(before)
        name = word[1].strip("-").replace("-", "_").lower() if word else ""
        if len(name) < 2 or name in _TAKEN or name.endswith(("error", "exception")) or not name.isascii():
            name = default
        number, plain = 2, name[:24]
        while name in self.used:
            name, number = f"{plain}{number}", number + 1
        self.used.add(name)
        return f"(?P<{name}>{body})"


def generalise(message: str, pieces: Sequence[str] | None = None) -> str:
    """A regex of the first line of ``message``; ``pieces`` are the fixed texts of its template, in order.

    Always matches the line it was made of. What cannot be told to vary stays as it is.
    """
    line = _LEAD.sub("", message.split("\n", 1)[0])
    cut = line if len(line) <= MAX_LENGTH else line[:MAX_LENGTH].rsplit(" ", 1)[0]
    if pieces is not None:
        made = _from_template(cut, pieces, _Groups())
        if made is not None and re.search(made, line):
            return made
    made = _by_classes(cut, _Groups())
    if _fixed_letters(made) < MIN_LETTERS:  # what is quoted is all there is to tell it by
        made = _plain(cut, _Groups())
    try:
        required_literal(made)
    except ValueError:
        made = _escape(cut)
    return made if re.search(made, line) else re.escape(cut)


def _fixed_letters(regex: str) -> int:
    """Letters of the longest text between what varies, the type of the exception aside."""
    regex = re.sub(r"^[\w\\.]+(?:Error|Exception|Exit): ", "", regex)
    fixed = re.split(r"\(\?P<\w+>(?:\\.|[^()])*\)|\[[^\]]*\][+*]|\\[Swd][+*]|\.\+\??", regex)
    return max(sum(c.isalpha() for c in part) for part in fixed)


def _from_template(line: str, pieces: Sequence[str], groups: _Groups) -> str | None:
    """The template with classes for its holes; None where it does not lead to the line."""
    at, out = 0, ""
    for number, whole in enumerate(pieces):
        piece = whole.split("\n", 1)[0]
        found = line.find(piece, at)
        if found < 0:
            return None
        if number == 0:
            out += _by_classes(line[:found], groups)  # the type of the exception
        elif found > at:
            out += _hole(line[at:found], line[:at], groups, last=not piece)
        out += _escape(piece)
        at = found + len(piece)
        if piece != whole:
            return out
    if at < len(line) and not pieces[-1]:
        out += _hole(line[at:], line[:at], groups, last=True)
    return out


def _hole(text: str, before: str, groups: _Groups, *, last: bool) -> str:
    for default, what, body in _CLASSES:
        if re.fullmatch(what, text):
            return groups(before, default, body)
    if re.fullmatch(r"[\w.-]+", text):
        return groups(before, "value", r"[\w.-]+")
    return groups(before, "value", ".+" if last else ".+?")


def _by_classes(text: str, groups: _Groups) -> str:
    out, at = "", 0
    for quoted in _QUOTED.finditer(text):
        inner = next(g for g in quoted.groups() if g is not None)
        if not _VARIES.search(inner):
            continue
        out += _plain(text[at : quoted.start()], groups)
        mark = quoted[0][0]
        before = text[: quoted.start()]
        out += mark + groups(before, "name", f"[^{mark}]+") + mark
        at = quoted.end()
    return out + _plain(text[at:], groups)


def _plain(text: str, groups: _Groups) -> str:
    out, at = "", 0
    for found in _SPLIT.finditer(text):
        if _MEANS.search(text[: found.start()]):
            continue  # this number is the message
        number = int((found.lastgroup or "c0")[1:])
        default, _, body = _CLASSES[number]
        out += _escape(text[at : found.start()]) + groups(text[: found.start()], default, body)
        at = found.end()
    return out + _escape(text[at:])


def _escape(text: str) -> str:
    """Escaped as a person would: blanks, quotes and dashes stay."""
    return re.sub(r"([\\.^$*+?{}\[\]|()])", r"\\\1", text)
