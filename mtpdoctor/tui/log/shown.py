"""One physical line as it is shown: clean text, where its body begins, its rank. No Textual here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mtpdoctor.log.lines import logical_lines
from mtpdoctor.log.transport import Transports
from mtpdoctor.log.types import Line
from mtpdoctor.redact import mask_secrets
from mtpdoctor.text import safe

_JOINT = " ⏎ "
_ALIKE = 12  # characters by which bars that overwrite each other are known
_MOST_PARTS = 64


@dataclass(frozen=True, slots=True)
class Shown:
    """``text[body:]`` is the text without SGLang's own ``[time rank]`` prefix."""

    text: str
    body: int
    rank: str | None


def masked(text: str) -> str:
    """Safe for a terminal, secrets masked."""
    return mask_secrets(safe(text))


def shown_of(
    raw: bytes,
    number: int,
    file: int,
    transports: Transports,
    *,
    left_out: int = 0,
    clean: Callable[[str], str] = masked,
) -> Shown:
    """``left_out``: bytes of the line behind ``raw``. A line that holds several (bars that overwrite each
    other, an escaped message) is shown as one; of bars the last."""
    return shown_parts(logical_lines(raw, number, file, transports), clean, left_out=left_out)


def shown_parts(lines: tuple[Line, ...], clean: Callable[[str], str] = masked, *, left_out: int = 0) -> Shown:
    """As ``shown_of``, from the logical lines (at least one) of a physical one."""
    parts = _without_overwritten(lines)
    first = parts[0]
    text = _JOINT.join(
        part.text.rstrip() if i < len(parts) - 1 else part.text for i, part in enumerate(parts)
    )
    if left_out:
        text += f" ...[{left_out:,} more bytes]"
    prefix = first.text[: len(first.text) - len(first.body)] if first.body else ""
    text = clean(text).expandtabs(8)
    return Shown(text, len(prefix) if prefix and text.startswith(prefix) else 0, first.rank)


def _without_overwritten(parts: tuple[Line, ...]) -> list[Line]:
    out: list[Line] = []
    for part in parts:
        if out and part.body[:_ALIKE].strip() and part.body[:_ALIKE] == out[-1].body[:_ALIKE]:
            out[-1] = part
        else:
            out.append(part)
    return out[:_MOST_PARTS]
