"""The memory sum for people: a bar of the GPU, a small table, what to move."""

from __future__ import annotations

from collections.abc import Iterator

from mtpdoctor.memory.types import Advice, Count, MemorySum, Term
from mtpdoctor.report.evidence import shorten
from mtpdoctor.report.style import MIN_WIDTH, Style
from mtpdoctor.text import one_line, wrap

# One letter a term, for the bar and the first column of the table.
LETTERS = {
    "other processes": "o",
    "CUDA context and NCCL": "c",
    "weights": "W",
    "draft weights": "D",
    "KV pool": "K",
    "draft KV pool": "k",
    "linear-attention state": "S",
    "index tables": "t",
    "graph capture": "g",
    "activations": "a",
}
FREE, LACKING = ".", "!"
_STYLES = {"o": "dim", "c": "dim", "W": "bold", "K": "cyan", "S": "magenta", LACKING: "red"}
_NAMES = {
    "mem_fraction_static": "--mem-fraction-static",
    "max_running_requests": "--max-running-requests",
    "cuda_graph_max_bs": "--cuda-graph-max-bs",
    "context_length": "--context-length",
    "chunked_prefill_size": "--chunked-prefill-size",
    "tp_size": "--tp-size",
}
_VERDICTS = {
    "others": "other processes hold what the launch needs",
    "weights": "the weights leave no room",
    "fraction_low": "the share for weights and pools is too small",
    "fraction_high": "the pools leave too little for what comes beside them",
    "requests": "the state of so many requests finds no room",
}


def render_memory(found: MemorySum, *, width: int = 80, color: bool = False, verbose: bool = False) -> str:
    """The page of ``mtpdoctor memory``; ends in a line feed."""
    page = _Page(max(width, MIN_WIDTH), Style(color), verbose)
    return "\n".join(page.rows(found)) + "\n"


def memory_rows(found: MemorySum, *, width: int, style: Style) -> Iterator[str]:
    """The table alone, for the page of a diagnosis."""
    yield from _Page(width, style, False).table(found)


class _Page:
    def __init__(self, width: int, style: Style, verbose: bool) -> None:
        self.width, self.style, self.verbose = width, style, verbose

    def rows(self, found: MemorySum) -> Iterator[str]:
        yield from self.verdict(found)
        yield ""
        yield from self.table(found)
        if found.advice:
            yield ""
            for number, advice in enumerate(found.advice, 1):
                yield from self.advice(advice, number)
        if found.notes:
            yield ""
        for note in found.notes:
            yield from self.prose(f"Note: {note}")

    def verdict(self, found: MemorySum) -> Iterator[str]:
        if found.fits is None:
            name, text = "NOT DECIDED", f"not known here: {', '.join(found.missing) or 'what decides it'}"
            yield from self.titled(name, "yellow", text)
        elif found.fits:
            yield from self.titled("FITS", "green", self.expected(found))
        else:
            why = _VERDICTS.get(found.trouble, "not enough memory")
            yield from self.titled("DOES NOT FIT", "red", why)

    def expected(self, found: MemorySum) -> str:
        counts = {c.name: c.value for c in found.counts}
        tokens, requests = counts.get("KV tokens"), counts.get("requests at once")
        parts = [f"{tokens:,} tokens of KV cache" if tokens is not None else ""]
        parts.append(f"{requests:,} requests at once" if requests is not None else "")
        parts.append(f"{found.left_gib:,.1f} GiB left" if found.left_gib is not None else "")
        return ", ".join(p for p in parts if p) or "room for everything"

    # -- the table -----------------------------------------------------------------------------
    def table(self, found: MemorySum) -> Iterator[str]:
        sizes = [f"{found.total_gib:,.1f} GiB" if found.total_gib is not None else ""]
        sizes.append(f"{found.free_gib:,.1f} free before the launch" if found.free_gib is not None else "")
        known = ", ".join(s for s in sizes if s)
        head = f"Memory of {found.rank}" + (f" ({known})" if known else "")
        yield self.style("bold", shorten(head, (), self.width))
        bar = self.bar(found)
        if bar:
            yield f"  {bar}"
        name_width = max((len(t.name) for t in found.terms), default=0)
        printed = any(t.printed_gib is not None for t in found.terms)
        if printed:
            yield self.style("dim", f"    {'':<{name_width}}  {'GiB':>7}  {'printed':>7}")
        for term in found.terms:
            yield self.term(term, name_width, printed)
        if found.left_gib is not None:
            word = "left" if found.left_gib >= 0 else "lacking"
            row = f"  {FREE if found.left_gib >= 0 else LACKING} {word:<{name_width}}  {abs(found.left_gib):7.2f}"
            yield self.style("red", row) if found.left_gib < 0 else row
        yield from self.counts(found.counts)

    def term(self, term: Term, name_width: int, printed: bool) -> str:
        letter = LETTERS.get(term.name, "?")
        size = "      ?" if term.gib is None else f"{term.gib:7.2f}"
        row = f"{term.name:<{name_width}}  {size}"
        if printed:
            row += f"  {'' if term.printed_gib is None else f'{term.printed_gib:.2f}':>7}"
        left = self.width - 4 - len(row) - 2
        how = shorten(one_line(term.how), (), left) if left >= 12 else ""
        shown = f"{row}  {how}".rstrip()
        return f"  {self.style(_STYLES.get(letter, 'dim'), letter)} {shown}"

    def counts(self, counts: tuple[Count, ...]) -> Iterator[str]:
        parts = []
        for count in counts:
            if count.value is None and count.printed is None:
                continue
            value = f"{count.value:,}" if count.value is not None else "?"
            if count.printed is not None and count.printed != count.value:
                value += f" (printed {count.printed:,})"
            parts.append(f"{value} {count.name}")
        for row in wrap(", ".join(parts), self.width - 2) if parts else ():
            yield f"  {row}"

    def bar(self, found: MemorySum) -> str:
        """The GPU from left to right, a column for each share of it."""
        columns = min(self.width, 100) - 4
        known = [(LETTERS.get(t.name, "?"), t.gib) for t in found.terms if t.gib is not None and t.gib > 0]
        total = found.total_gib
        if total is None:
            total = found.free_gib
            known = [part for part in known if part[0] != "o"]
        if not total or columns < 20:
            return ""
        used = sum(size for _, size in known)
        scale = columns / max(total, used)
        out, position, reached = [], 0.0, 0
        for letter, size in known:
            position += size * scale
            width = max(0, round(position) - reached)
            reached += width
            shown = letter * width
            out.append(self.style(_STYLES.get(letter, "dim"), shown) if shown else "")
        end = round(total * scale)
        rest = FREE * (end - reached) if end > reached else ""
        return f"[{''.join(out)}{rest}]"

    # -- what to do ----------------------------------------------------------------------------
    def advice(self, advice: Advice, number: int) -> Iterator[str]:
        name = _NAMES.get(advice.option, "--" + advice.option.replace("_", "-"))
        what = f"remove {name}" if advice.value is None else f"{advice.direction} {name} to {advice.value}"
        loses = f" ({advice.loses})" if advice.loses else ""
        yield from self.titled(f"{number}. {what}", "bold", f"{advice.why}{loses}")

    def titled(self, title: str, name: str, text: str) -> Iterator[str]:
        rows = wrap(f"{title}: {one_line(text)}", min(self.width, 100) - 2)
        lead = f"{title}:"
        first = rows[0]
        yield (
            self.style(name, lead) + first[len(lead) :] if first.startswith(lead) else self.style(name, first)
        )
        yield from (f"  {row}" for row in rows[1:])

    def prose(self, text: str) -> Iterator[str]:
        rows = wrap(one_line(text), min(self.width, 100) - 2)
        yield rows[0] if rows else ""
        yield from (f"  {row}" for row in rows[1:])
