"""Where in a text an error is, for people."""

from __future__ import annotations

from mtpdoctor.errors import UserError


def place(text: str, offset: int) -> tuple[int, int]:
    """Line and column, both counted from 1."""
    offset = min(offset, len(text))
    return text.count("\n", 0, offset) + 1, offset - (text.rfind("\n", 0, offset) + 1) + 1


def unreadable(text: str, offset: int, name: str, message: str, hint: str | None = None) -> UserError:
    line, column = place(text, offset)
    return UserError(f"{name}:{line}:{column}: {message}", hint=hint)


def no_server(name: str, found: str) -> UserError:
    return UserError(
        f"{name}: no SGLang server command in it; {found}",
        hint="it should hold 'python -m sglang.launch_server ...' or 'sglang serve ...'",
    )
