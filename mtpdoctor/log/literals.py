"""Python literals that a log shows, as values."""

from __future__ import annotations

from typing import Any


def literal(text: str) -> Any:
    """The value of a literal. Raises ValueError when ``text`` is none, or is nested too deeply.

    Python's parser warns of what it reads ("invalid decimal literal"): of a log's text that is nobody's
    business, so nothing of it reaches the terminal.
    """
    import ast
    import warnings

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.literal_eval(text)
    except (SyntaxError, MemoryError, RecursionError, TypeError) as e:
        raise ValueError("no literal") from e
