"""Text inside text, and edits that find their way back out.

A launch command is often written inside another notation: shell inside a YAML block scalar, shell inside a
quoted ``bash -c`` argument. A ``Layer`` is the decoded inner text with a map from each of its characters to
the outer text, so that an edit of the inner text touches nothing else of the document.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from mtpdoctor.records import dataclass


class Layer:
    """Decoded text and where each character came from. The outermost layer has no parent.

    ``starts[i]:ends[i]`` is the source of character ``i`` in the parent's text, ``start:end`` the source of
    the whole (quotes included). ``escape(text, at)`` writes text for insertion beside character ``at``;
    ``whole(text)`` writes the complete replacement of ``start:end``.
    """

    __slots__ = ("end", "ends", "escape", "parent", "start", "starts", "text", "whole")

    def __init__(
        self,
        text: str,
        parent: Layer | None = None,
        start: int = 0,
        end: int = 0,
        starts: Sequence[int] = (),
        ends: Sequence[int] = (),
        escape: Callable[[str, int], str] | None = None,
        whole: Callable[[str], str] | None = None,
    ) -> None:
        self.text = text
        self.parent = parent
        self.start, self.end = start, end
        self.starts, self.ends = starts, ends
        self.escape, self.whole = escape, whole

    def outer_start(self, at: int) -> int:
        """Place in the document of the beginning of character ``at``."""
        if self.parent is None:
            return at
        inner = self.starts[at] if at < len(self.starts) else (self.ends[-1] if self.ends else self.end)
        return self.parent.outer_start(inner)

    def outer_end(self, at: int) -> int:
        """Place in the document just after character ``at - 1``."""
        if self.parent is None:
            return at
        inner = self.ends[at - 1] if at > 0 else (self.starts[0] if self.starts else self.start)
        return self.parent.outer_end(inner)

    def encode(self, text: str, at: int) -> str:
        """``text`` as it must be written in the document, beside character ``at`` of this layer."""
        if self.parent is None or self.escape is None:
            return text
        inner = self.starts[min(at, len(self.starts) - 1)] if self.starts else self.start
        return self.parent.encode(self.escape(text, at), inner)

    @property
    def root(self) -> Layer:
        layer = self
        while layer.parent is not None:
            layer = layer.parent
        return layer

    def source(self, start: int, end: int) -> str:
        """The document's text for ``start:end``, notation included."""
        if start >= end:
            return ""
        return self.root.text[self.outer_start(start) : self.outer_end(end)]


@dataclass(frozen=True, slots=True)
class Raw:
    """A piece copied from the document as it stands; ``plain`` is what it means in the layer."""

    text: str
    plain: str


Piece = str | Raw


@dataclass(frozen=True, slots=True)
class Splice:
    """Replace ``start:end`` of a layer's text."""

    layer: Layer
    start: int
    end: int
    pieces: tuple[Piece, ...] = ()

    @property
    def plain(self) -> str:
        return "".join(p if isinstance(p, str) else p.plain for p in self.pieces)


def splice_all(splices: Iterable[Splice], text: str, *, rewrite: bool = False) -> str:
    """The document after the splices. Equal splices (two commands sharing a text) count once.

    ``rewrite`` gives up the inner notation where splices fall: the whole quoted text around them is written
    anew. Raises ValueError when splices overlap.
    """
    pending = list(splices)
    flat: set[tuple[int, int, str]] = set()
    while rewrite and any(s.layer.parent is not None for s in pending):
        pending = _lifted(pending)
    for s in pending:
        if s.layer.parent is None:
            flat.add((s.start, s.end, "".join(p if isinstance(p, str) else p.text for p in s.pieces)))
            continue
        beside = max(s.start - 1, 0) if s.start == s.end else s.start
        written = "".join(p.text if isinstance(p, Raw) else s.layer.encode(p, beside) for p in s.pieces)
        if s.start == s.end:
            at = s.layer.outer_end(s.start) if s.start else s.layer.outer_start(s.start)
            flat.add((at, at, written))
        else:
            flat.add((s.layer.outer_start(s.start), s.layer.outer_end(s.end), written))
    return _cut(text, flat)


def _lifted(splices: Sequence[Splice]) -> list[Splice]:
    """The same edits one layer further out: the whole of a layer where it can be written anew."""
    out: list[Splice] = []
    groups: dict[int, list[Splice]] = {}
    for s in splices:
        if s.layer.parent is None:
            out.append(s)
        else:
            groups.setdefault(id(s.layer), []).append(s)
    for group in groups.values():
        layer = group[0].layer
        parent = layer.parent
        assert parent is not None
        if layer.whole is not None:
            new = _cut(layer.text, {(s.start, s.end, s.plain) for s in group})
            out.append(Splice(parent, layer.start, layer.end, (layer.whole(new),)))
            continue
        for s in group:
            beside = max(s.start - 1, 0) if s.start == s.end else s.start
            written = s.plain if layer.escape is None else layer.escape(s.plain, beside)
            if s.start == s.end:
                start = end = layer.ends[s.start - 1] if s.start else layer.start
            else:
                start, end = layer.starts[s.start], layer.ends[s.end - 1]
            out.append(Splice(parent, start, end, (written,)))
    return out


def _cut(text: str, splices: set[tuple[int, int, str]]) -> str:
    out: list[str] = []
    at = 0
    for start, end, new in sorted(splices):
        if start < at:
            raise ValueError("edits overlap")
        out += (text[at:start], new)
        at = end
    out.append(text[at:])
    return "".join(out)
