"""One paste-ready shell command for a launch in any form."""

from __future__ import annotations

import re
import shlex

from mtpdoctor.launch.types import FlagUse, LaunchCommand
from mtpdoctor.patterns import lazy

_REFERENCE = lazy(r"\$(?:[A-Za-z_]\w*|[@*]|\{[\w@*]+[^{}]*\}|\([^()]*\))|`[^`]*`")

_CONTROL = lazy(r"[\x00-\x1f\x7f]")
_ESCAPES = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}


_SINGLE = lazy(r"'([^']*)'")


def _word(value: str, literal: frozenset[str] = frozenset()) -> str:
    """Quoted for a shell; what only the person's own shell can resolve stays live in double quotes, but not in values that
    were ``literal``.

    Line breaks and control characters are written as bash's ``$'..'`` escapes: the line stays one line.
    """
    if _CONTROL.search(value):
        text = value.replace("\\", "\\\\").replace("'", "\\'")
        return "$'" + _CONTROL.sub(lambda m: _ESCAPES.get(m[0], f"\\x{ord(m[0]):02x}"), text) + "'"
    if _REFERENCE.search(value) and value not in literal:
        out: list[str] = []
        at = 0
        for m in _REFERENCE.finditer(value):
            out += (re.sub(r'(["\\$`])', r"\\\1", value[at : m.start()]), m[0])
            at = m.end()
        out.append(re.sub(r'(["\\$`])', r"\\\1", value[at:]))
        return '"' + "".join(out) + '"'
    return shlex.quote(value)


def _flag(use: FlagUse, literal: frozenset[str]) -> str:
    if use.joined:
        return f"{use.name}={_word(use.values[0], literal)}" if use.values[0] else f"{use.name}="
    return " ".join([use.name, *(_word(value, literal) for value in use.values)])


def command_line(command: LaunchCommand, *, multiline: bool = False, written: str = "") -> str:
    """The command as a shell line: environment, program, arguments. Nothing of the form's container is in it.

    ``multiline`` writes one flag a line with ``\\`` continuations. ``written``: the shell text that it was read from; what stands
    there between single quotes is no reference.
    """
    literal = frozenset(_SINGLE.findall(written) if "$" in written or "`" in written else ())
    env = [f"{name}={_word(value, literal)}" for name, value in command.env.items()]
    program = [_word(w) for w in command.program or ("python3", "-m", "sglang.launch_server")]
    head = " ".join([*env, *program, *(_word(word, literal) for word in command.positionals)])
    return (" \\\n  " if multiline else " ").join([head, *(_flag(use, literal) for use in command.flags)])
