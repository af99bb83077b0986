"""Copying: by the terminal (OSC 52), and into a file for terminals that do not."""

from __future__ import annotations

from typing import Any

from textual.app import App

from mtpdoctor.errors import UserError

OSC52_LIMIT = 74_994  # bytes of text: base64 of it just fits the 100,000 that xterm and tmux take


def copy(app: App[Any], text: str, what: str) -> str:
    """Copies ``text``, and says to the person how to get at it.

    No terminal answers whether it took the text, so it always goes into a file too (readable by its owner
    only: a command may hold a key)."""
    from mtpdoctor.tui.files import write_private

    by_terminal = len(text.encode("utf-8", "replace")) <= OSC52_LIMIT
    if by_terminal:
        app.copy_to_clipboard(text)
    try:
        path = write_private("clipboard.txt", text)
    except UserError as error:
        return f"{what} copied by the terminal; {error}" if by_terminal else str(error)
    if not by_terminal:
        return f"{what} is too long for the terminal's clipboard: it is in {path}"
    return f"{what} copied; if the terminal cannot, it is in {path}"
