"""Building HTML so that text cannot be mark-up: every string is escaped unless it was built here."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import TypeAlias


class Html(str):
    """Finished mark-up."""

    __slots__ = ()


Child: TypeAlias = "str | Iterable[Child] | None"
_EMPTY = frozenset({"br", "hr", "input", "link", "meta", "wbr"})


def tag(name: str, /, *children: Child, **attributes: str | bool | None) -> Html:
    """One element. ``class_`` is ``class``, ``data_key`` is ``data-key``; True is an attribute without value,
    None and False are none."""
    written = [name]
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        attribute = key.rstrip("_").replace("_", "-")
        written.append(attribute if value is True else f'{attribute}="{escape(value)}"')
    head = f"<{' '.join(written)}>"
    if name in _EMPTY:
        return Html(head)
    return Html(f"{head}{join(children)}</{name}>")


def join(children: Iterable[Child]) -> Html:
    """The children one after the other: text escaped, None left out, lists flattened."""
    out: list[str] = []
    for child in children:
        if child is None:
            continue
        if isinstance(child, Html):
            out.append(child)
        elif isinstance(child, str):
            out.append(escape(child))
        else:
            out.append(join(child))
    return Html("".join(out))
