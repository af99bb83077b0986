"""Styles stand in a ``.tcss`` beside the widget they dress."""

from __future__ import annotations

from pathlib import Path


def beside(module_file: str) -> str:
    """The text of the ``.tcss`` file of a widget's module (same name, same folder), for ``DEFAULT_CSS``."""
    return Path(module_file).with_suffix(".tcss").read_text(encoding="utf-8")
