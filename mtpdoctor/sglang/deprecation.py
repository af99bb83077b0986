"""What the help text of a flag says of its end, and of what to use instead."""

from __future__ import annotations

import re

# "Use '--x' instead", "Please set `--x` to 'y'", "Alias for --x y."; a value is taken only where it is
# quoted with the flag, joined by "=", or named by "to".
_REPLACEMENT = re.compile(
    r"(?:\b(?:use|set|prefer)|replaced by|alias (?:for|of)|renamed to|in favou?r of)\s+[`'\"]?(--[a-z][\w-]*)"
    r"(?:=(\w+)|(?:[`'\"] to ['\"]| )(?!instead)(\w+)(?=[`'\".]))?",
    re.I,
)
_DEPRECATED = re.compile(
    r"^\W*(?:note:?\s+)?(?:--\S+\s+(?:is\s+)?)?(?:deprecat|removed)"
    r"|^\W*this (?:flag|argument|option) (?:is|has been) deprecat|\(deprecated",
    re.I,
)


def says_deprecated(text: str) -> bool:
    return bool(_DEPRECATED.search(text))


def named_instead(text: str) -> str | None:
    """``--flag`` or ``--flag=value``, None where the text names none."""
    found = _REPLACEMENT.search(text)
    if found is None:
        return None
    value = found[2] or found[3]
    return f"{found[1]}={value}" if value else str(found[1])
