"""From one physical line to logical lines: prefix off, escapes off, bars apart, SGLang's own prefix read."""

from __future__ import annotations

from itertools import pairwise

from mtpdoctor.log.clean import decode, harmless, plain_quotes, strip_text
from mtpdoctor.log.kinds import Peeled
from mtpdoctor.log.quoted import quotes_request
from mtpdoctor.log.transport import PLAIN, Transports
from mtpdoctor.log.types import Line
from mtpdoctor.patterns import lazy

TEXT_CAP = 16 << 10  # characters of a logical line that are kept: half from each end

# SGLang prints "[%(asctime)s{prefix}] " (scheduler.py, utils.configure_logger): prefix is a run of
# DP0 ATTN_CP0 MOE_DP0 PP0 TP0 EP0 in an order that changed between releases, or encode_server,
# encode_dp_worker[0]; milliseconds with SGLANG_LOG_MS; no date before 0.4, no year in multimodal_gen.
_TIME = r"(?:(?:\d{4}-)?\d\d-\d\d[ T])?\d\d:\d\d:\d\d(?:[.,]\d+)?"
_RECORD = lazy(rf"\[({_TIME})((?: [A-Za-z_]+\d*(?:\[\d+\])?)*)\](?: |$)")
_RANKS = lazy(r"(?:[A-Z][A-Z_]*\d+|encode_[a-z_]+\[\d+\])(?: [A-Z][A-Z_]*\d+)*$")
# the end of a tqdm bar: everything a bar prints stands inside its brackets
_BAR_END = lazy(r"\|\s*[\d.]+[kMGTP]?/[\d.?]+[kMGTP]?i?B?\s*\[[\d:?]+<[^\]]*\](?: *(?=\[20)|(?=\s*\S))")
_GLUED = lazy(r"(?<=[^\s\"'`(=,:{\[<>|\\])\[20\d\d-\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d+)?(?: [A-Z_]+\d+)*\] ")


def logical_lines(
    raw: bytes | str, number: int, file: int = 0, transports: Transports = PLAIN
) -> tuple[Line, ...]:
    """The logical lines of one physical line (without its ``\\n``); at least one."""
    peeled = peel(raw, transports)
    return parts_of(peeled, number, file)


def peel(raw: bytes | str, transports: Transports = PLAIN) -> Peeled:
    """``raw`` without escapes and transport prefixes; ``rest`` may still hold ``\\r`` and ``\\n``."""
    text = decode(raw) if isinstance(raw, bytes) else strip_text(raw)
    if text[:1] == "\ufeff":
        text = text[1:]
    peeled = transports.peel(text)
    if (
        not peeled.rest.isascii() or "\x1b" in peeled.rest or "\0" in peeled.rest
    ):  # a JSON message brought its own
        return Peeled(peeled.stream, peeled.time, plain_quotes(strip_text(peeled.rest)), peeled.partial)
    return peeled


def parts_of(peeled: Peeled, number: int, file: int, first_part: int = 0) -> tuple[Line, ...]:
    """The logical lines of a peeled physical line, parts counted from ``first_part``."""
    stream = harmless(peeled.stream).replace("\n", " ") if peeled.stream else ""
    time = harmless(peeled.time).replace("\n", " ") if peeled.time else None
    return tuple(
        make_line(text, number, file, first_part + at, stream, time)
        for at, text in enumerate(_split(peeled.rest))
    )


def make_line(text: str, number: int, file: int, part: int, stream: str, time: str | None) -> Line:
    """A Line of text that holds no ``\\r`` or ``\\n``; cut to TEXT_CAP, SGLang's prefix read."""
    if len(text) > TEXT_CAP:
        half = TEXT_CAP // 2
        text = f"{text[:half]} ...[{len(text) - 2 * half} characters left out]... {text[-half:]}"
    text = harmless(text)
    rank, at = None, 0
    for _ in range(2):  # a second time: a wrapper may print the same form in front of SGLang's own
        m = _RECORD.match(text, at) if text[at : at + 1] == "[" else None
        if m is None:
            break
        name = m[2][1:]
        rank = name if name and _RANKS.match(name) else rank
        time, at = m[1], m.end()
    return Line(file, number, part, stream, rank, time, text, text[at:] if at else text)


def _split(text: str) -> list[str]:
    """``text`` at every ``\\n`` and ``\\r``, and where something was printed right behind a bar or
    behind another process's unfinished line. Bars overwritten by nothing but blanks are left out."""
    out: list[str] = []
    for piece in text.split("\n") if "\n" in text else (text,):
        if "\r" in piece:
            bars = [p for p in piece.split("\r") if p.strip()] or [""]
        else:
            bars = [piece]
        for bar in bars:
            if "[" in bar[1:]:
                out.extend(_unglued(bar))
            else:
                out.append(bar)
    return out


def _unglued(text: str) -> list[str]:
    cuts = {m.end() for m in _BAR_END.finditer(text)} if "<" in text else set()
    if "[20" in text[1:]:
        cuts.update(m.start() for m in _GLUED.finditer(text))
    if cuts and (": obj=" in text or '"request.' in text):
        head = _RECORD.match(text)
        if quotes_request(text[head.end() if head else 0 :]):  # users send logs: only behind its end
            cuts = {at for at in cuts if text[at - 1] in ")}"}
    if not cuts:
        return [text]
    edges = [0, *sorted(cuts), len(text)]
    return [text[a:b] for a, b in pairwise(edges) if text[a:b].strip()]
