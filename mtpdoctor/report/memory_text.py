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
UNDECIDED = "Not decided: "
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
# What to give where a fact is missing, by its name.
_ASKED = {
    "release": "the SGLang release (--sglang RELEASE)",
    "host.gpu.memory_gib": "the GPU's memory (--gpu 1xsm90@79.6, or --host FILE)",
    "model.path": "the model (--model DIR; a config.json will do)",
    "model.architecture": "the shape of this model (its config.json does not tell it)",
    "arg.mem_fraction_static": "the share that SGLang sets by itself (--mem-fraction-static)",
}


def render_memory(found: MemorySum, *, width: int = 80, color: bool = False, verbose: bool = False) -> str:
    """The page of ``mtpdoctor memory``; ends in a line feed."""
    page = _Page(max(width, MIN_WIDTH), Style(color), verbose)
    return "\n".join(page.rows(found)) + "\n"


def memory_rows(found: MemorySum, *, width: int, style: Style) -> Iterator[str]:
    """The table alone, for the page of a diagnosis."""
    yield from _Page(width, style, False).table(found)


def expected(found: MemorySum) -> str:
    """What a launch that fits gets, in one sentence."""
    counts = {c.name: c.value for c in found.counts}
    tokens, requests = counts.get("KV tokens"), counts.get("requests at once")
    parts = [f"{tokens:,} tokens of KV cache" if tokens is not None else ""]
    parts.append(f"{requests:,} requests at once" if requests is not None else "")
    parts.append(f"{found.left_gib:,.1f} GiB left" if found.left_gib is not None else "")
    return ", ".join(p for p in parts if p) or "room for everything"


def tight(found: MemorySum) -> str:
    """Of a launch that starts only if graphs and activations take less than they are reckoned to."""
    most, fraction = found.numbers.get("fraction_most"), found.numbers.get("fraction")
    lower = isinstance(most, float) and isinstance(fraction, float) and most < fraction
    rest = f"; --mem-fraction-static {most} would leave room for them" if lower else ""
    lacking = -(found.left_gib or 0.0)
    return f"weights and pools fit, graphs and activations are estimated to lack {lacking:,.1f} GiB{rest}"


def decisive(found: MemorySum) -> str:
    """Why a launch does not fit, in one sentence with the numbers that decide it."""

    def gib(name: str) -> str:
        value = found.numbers.get(name)
        return f"{value:,.1f} GiB" if isinstance(value, (int, float)) else "an unknown amount"

    numbers = found.numbers
    share = f"--mem-fraction-static {_short(numbers.get('fraction'))}"
    if found.trouble == "others":
        return f"other processes hold {gib('others_gib')} of the GPU; the weights alone need {gib('weights_gib')}"
    if found.trouble == "weights":
        weights, free = numbers.get("weights_gib"), numbers.get("before_gib")
        after = isinstance(weights, (int, float)) and isinstance(free, (int, float)) and weights < free
        rest = ", which leaves no room for a KV cache and what comes beside it" if after else ""
        return f"the weights take {gib('weights_gib')} of each GPU, and {gib('before_gib')} are free{rest}"
    if found.trouble == "fraction_low":
        least = numbers.get("fraction_least")
        rest = f"; {least} is the least that does" if least is not None else ""
        return f"{share} does not hold the weights ({gib('weights_gib')}) and a KV cache{rest}"
    if found.trouble == "fraction_high":
        left = found.left_gib
        lacking = f": {-left:,.1f} GiB are lacking" if left is not None and left < 0 else ""
        return f"{share} leaves too little for what comes beside weights and pools{lacking}"
    if found.trouble == "requests":
        most = numbers.get("max_running_requests")
        rest = f"; that of {most} does" if most is not None else ""
        return f"the linear-attention state of so many requests finds no room{rest}"
    return "not enough memory"


def _short(value: object) -> str:
    return f"{value:.3f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


class _Page:
    def __init__(self, width: int, style: Style, verbose: bool) -> None:
        self.width, self.style, self.verbose = width, style, verbose

    def rows(self, found: MemorySum) -> Iterator[str]:
        yield from self.verdict(found)
        table = list(self.table(found))
        if table:
            yield ""
            yield from table
        if found.advice:
            yield ""
            for number, advice in enumerate(found.advice, 1):
                yield from self.advice(advice, number)
        if self.verbose and found.numbers:
            yield ""
            shown = (f"{name} {value}" for name, value in sorted(found.numbers.items()))
            yield from self.prose(f"Numbers: {', '.join(shown)}")
        if any(not note.startswith(UNDECIDED) for note in found.notes):
            yield ""
        for note in found.notes:
            if not note.startswith(UNDECIDED):
                yield from self.prose(f"Note: {note}")

    def verdict(self, found: MemorySum) -> Iterator[str]:
        if found.fits is None:
            said = next((n for n in found.notes if n.startswith(UNDECIDED)), None)
            asked = "; ".join(_ASKED.get(name, name) for name in found.missing)
            text = said.removeprefix(UNDECIDED) if said else f"not known here: {asked or 'what decides it'}"
            yield from self.titled("NOT DECIDED", "yellow", text)
        elif found.fits and (found.left_gib or 0.0) < 0:
            yield from self.titled("TIGHT", "yellow", tight(found))
        elif found.fits:
            yield from self.titled("FITS", "green", expected(found))
        else:
            yield from self.titled("DOES NOT FIT", "red", decisive(found))

    # -- the table -----------------------------------------------------------------------------
    def table(self, found: MemorySum) -> Iterator[str]:
        sizes = [f"{found.total_gib:,.1f} GiB" if found.total_gib is not None else ""]
        sizes.append(f"{found.free_gib:,.1f} free before the launch" if found.free_gib is not None else "")
        known = ", ".join(s for s in sizes if s)
        if not found.terms and not known:
            return
        head = f"Memory of {found.rank}" + (f" ({known})" if known else "")
        yield self.style("bold", shorten(head, (), self.width))
        bar = self.bar(found)
        if bar:
            yield f"  {bar}"
        scale = self.scale(found) if bar else ""
        name_width = max([len(scale), *(len(t.name) for t in found.terms)])
        printed = any(t.printed_gib is not None for t in found.terms)
        column = f"  {'printed':>7}" if printed else ""
        yield self.style("dim", f"    {scale:<{name_width}}  {'GiB':>7}{column}")
        for term in found.terms:
            yield from self.term(term, name_width, printed)
        if found.left_gib is not None:
            word, mark = ("left", FREE) if found.left_gib >= 0 else ("lacking", LACKING)
            row = f"  {mark} {word:<{name_width}}  {abs(found.left_gib):7.2f}"
            if found.left_gib < 0 and found.trouble in ("fraction_low", "requests"):
                row += f"{'' if not printed else '         '}  within --mem-fraction-static"
            yield self.style("red", row) if found.left_gib < 0 else row
        yield from self.counts(found.counts)

    def scale(self, found: MemorySum) -> str:
        """What a column of the bar stands for."""
        return f"a letter: {self.whole(found) / self.columns():.{1 if self.whole(found) > 8 else 3}f} GiB"

    def whole(self, found: MemorySum) -> float:
        """GiB of the whole bar: of the GPU, or of what is wanted of it where that is more."""
        return max(found.total_gib or found.free_gib or 0.0, sum(size for _, size in self.shares(found)))

    def shares(self, found: MemorySum) -> list[tuple[str, float]]:
        known = [(LETTERS.get(t.name, "?"), t.gib) for t in found.terms if t.gib is not None and t.gib > 0]
        return known if found.total_gib is not None else [part for part in known if part[0] != "o"]

    def columns(self) -> int:
        return min(self.width, 100) - 4

    def term(self, term: Term, name_width: int, printed: bool) -> Iterator[str]:
        letter = LETTERS.get(term.name, "?")
        size = "      ?" if term.gib is None else f"{term.gib:7.2f}"
        row = f"{term.name:<{name_width}}  {size}"
        if printed:
            row += f"  {'' if term.printed_gib is None else f'{term.printed_gib:.2f}':>7}"
        left = self.width - 4 - len(row) - 2
        how = wrap(one_line(term.how), left) if left >= 20 and term.how else []
        first = f"{row}  {how[0]}" if how else row
        yield f"  {self.style(_STYLES.get(letter, 'dim'), letter)} {first.rstrip()}"
        yield from (f"{'':<{4 + len(row) + 2}}{more}" for more in how[1:])

    def counts(self, counts: tuple[Count, ...]) -> Iterator[str]:
        parts = []
        for count in counts:
            if count.value is None and count.printed is None:
                continue
            value = f"{count.value:,}" if count.value is not None else "?"
            if count.printed is not None and count.printed != count.value:
                value += f" (printed {count.printed:,})"
            name = count.name
            if name == "of full context":
                name = "request of full context" if count.value == 1 else "requests of full context"
            parts.append(f"{value} {name}")
        for row in wrap(", ".join(parts), self.width - 2) if parts else ():
            yield f"  {row}"

    def bar(self, found: MemorySum) -> str:
        """The GPU from left to right, a column for each share of it."""
        columns = self.columns()
        known, total = self.shares(found), found.total_gib or found.free_gib
        if not total or columns < 20:
            return ""
        scale = columns / self.whole(found)
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
