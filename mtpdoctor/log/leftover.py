"""A prefix that all lines of a file share and that no known transport explains: another program's
logger around SGLang's lines, a quotation mark, an indented paste. It is taken off before events are
looked for."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from mtpdoctor.log.lines import make_line
from mtpdoctor.log.patterns import lazy
from mtpdoctor.log.tracelines import HEAD
from mtpdoctor.log.types import Line

_DIGITS = lazy(r"\d+")
_LEVEL = lazy(r"\b(?:DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL) *")
_LEVEL_MARK = "\x01"
_OWN = lazy(r"\[(?:0-)?0-0[ T]0:0:0")
_STARTS = lazy(
    r'\[(?:\d{4}-)?\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d+)?(?: [A-Z_]+\d+)*\] |  File "[^"]+", line \d+'
)
_SEPARATORS = " \t|>:]-"
_LEAST = 4  # lines to learn from
_SHARE = 0.8


def learn_leftover(lines: Sequence[Line]) -> re.Pattern[str] | None:
    """The prefix as a pattern, None when the lines share none."""
    texts = [line.text for line in lines if line.part == 0 and line.text.strip()]
    if len(texts) < _LEAST:
        return None
    indent = min(len(t) - len(t.lstrip()) for t in texts)
    if indent:
        first = texts[0][:indent]
        return re.compile(re.escape(first)) if all(t.startswith(first) for t in texts) else None
    shapes = [_shape(text) for text in texts]
    prefix = _common(shapes)
    while prefix and prefix[-1] not in _SEPARATORS + _LEVEL_MARK:
        prefix = prefix[:-1]
    bare = prefix.rstrip()
    prefix = prefix[: len(bare) + 1]  # further blanks are the indentation of frames
    if len(prefix) < 2 or not bare:
        return None
    pattern = _pattern(prefix)
    rest = [text[m.end() :] for text in texts if (m := pattern.match(text))]
    told = sum(1 for text in rest if _STARTS.match(text) or text.startswith(HEAD))
    least = 0.2 * len(rest) if _OWN.match(prefix) else 1
    return pattern if told >= max(least, 1) else None


def without(line: Line, pattern: re.Pattern[str]) -> Line:
    """The line without the prefix, SGLang's own prefix read anew."""
    m = pattern.match(line.text)
    if m is None:
        return line
    return make_line(line.text[m.end() :], line.number, line.file, line.part, line.stream, line.time)


def _shape(text: str) -> str:
    return _DIGITS.sub("0", _LEVEL.sub(_LEVEL_MARK, text[:200]))


def _common(shapes: Sequence[str]) -> str:
    """The longest text that most shapes begin with."""
    least = _SHARE * len(shapes)
    prefix = ""
    while len(prefix) < 160:
        following = Counter(s[len(prefix)] for s in shapes if s.startswith(prefix) and len(s) > len(prefix))
        if not following:
            break
        char, count = following.most_common(1)[0]
        if count < least:
            break
        prefix += char
    return prefix


def _pattern(prefix: str) -> re.Pattern[str]:
    out = []
    for char in prefix:
        if char == "0":
            out.append(r"\d+")
        elif char == _LEVEL_MARK:
            out.append(r"(?:DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL) *")
        elif char == " ":
            out.append(" ?" if len(out) == len(prefix) - 1 else " ")  # an empty line may lose the last blank
        else:
            out.append(re.escape(char))
    return re.compile("".join(out))
