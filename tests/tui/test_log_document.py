"""The log as it is read for the screen: index, end first, clean lines, search, fold and filter. No screen here."""

from __future__ import annotations

import gzip
import re
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtpdoctor.errors import UserError
from mtpdoctor.log import index as index_module
from mtpdoctor.log.source import LogSource
from mtpdoctor.log.transport import PLAIN
from mtpdoctor.tui.log import document as document_module
from mtpdoctor.tui.log.document import Cancelled, LogDocument
from mtpdoctor.tui.log.rows import Rows, all_rows, chosen_rows
from mtpdoctor.tui.log.search import Pattern, find, find_round
from mtpdoctor.tui.log.shown import shown_of

LINES = st.lists(st.binary(max_size=60).map(lambda b: b.replace(b"\n", b" ")), max_size=60)


def doc(data: bytes) -> LogDocument:
    return LogDocument(LogSource.of_bytes(data), 0)


def text(document: LogDocument, number: int) -> str:
    raw, more = document.raw(number)
    return shown_of(raw, number, 0, PLAIN, left_out=more).text


# -- reading -------------------------------------------------------------------------------------------------
@given(LINES, st.booleans())
def test_lines_are_those_of_the_file(lines: list[bytes], ended: bool) -> None:
    data = b"\n".join(lines) + (b"\n" if ended and lines else b"")
    document = doc(data)
    want = data.split(b"\n")
    if want and not want[-1]:
        want.pop()
    assert [document.raw(n)[0] for n in range(1, document.count + 1)] == want


@given(LINES)
def test_the_end_is_the_same_before_and_after_counting(lines: list[bytes]) -> None:
    data = b"".join(line + b"\n" for line in lines)
    whole = doc(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(document_module, "AT_ONCE", -1)
        early = doc(data)
        assert not early.numbered
        tail = [early.raw(n)[0] for n in range(1, early.count + 1)]
        assert tail == [whole.raw(n)[0] for n in range(1, whole.count + 1)]
        early.index = early.build()
        assert early.count == whole.count


@given(st.lists(st.binary(max_size=40), min_size=1, max_size=12))
def test_a_log_that_grows_by_pieces_is_the_same_as_one_read_at_once(pieces: list[bytes]) -> None:
    with tempfile.NamedTemporaryFile() as file, pytest.MonkeyPatch.context() as patch:
        patch.setattr(index_module, "_STEP", 16)
        # a beginning that is no mark of another encoding or of compressed data
        file.write(b"start\n")
        file.flush()
        document = LogDocument.open(file.name, 0)
        whole = b"start\n"
        for piece in pieces:
            piece = piece.replace(b"\0", b"0")
            file.write(piece)
            file.flush()
            whole += piece
            grown = document.grown()
            assert (grown is None) == (not piece)
            document.index = grown or document.index
            want = whole.split(b"\n")
            if not want[-1]:
                want.pop()
            assert [document.raw(n)[0] for n in range(1, document.count + 1)] == want
        document.close()


def test_a_log_that_was_begun_anew_is_said_and_a_compressed_one_never_grows(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_bytes(b"one\ntwo\n")
    document = LogDocument.open(str(log), 0)
    log.write_bytes(b"one\n")
    with pytest.raises(UserError, match="begun anew"):
        document.grown()
    document.close()
    packed = tmp_path / "server.log.gz"
    packed.write_bytes(gzip.compress(b"one\n"))
    document = LogDocument.open(str(packed), 0)
    packed.write_bytes(packed.read_bytes() * 2)
    assert document.grown() is None
    document.close()


def test_counting_can_be_ended_and_tells_how_far_it_is() -> None:
    document = doc(b"x\n" * 3_000_000)
    told: list[float] = []
    assert document.build(told.append).line_count == 3_000_000
    assert told == sorted(told) and told[-1] == 1.0
    with pytest.raises(Cancelled):
        document.build(stop=lambda: True)


def test_a_line_of_megabytes_is_cut() -> None:
    document = doc(b"first\n" + b"y" * 5_000_000 + b"\nlast\n")
    assert text(document, document.count) == "last", "the end, before lines are counted"
    document.index = document.build()
    assert document.count == 3
    shown = text(document, 2)
    assert len(shown) < 40_000
    assert re.search(r"[\d,]+ more bytes", shown)
    assert text(document, 3) == "last"


def test_compressed_logs_are_read_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "server.log.gz"
    path.write_bytes(gzip.compress(b"one\ntwo\n"))
    document = LogDocument.open(str(path), 0)
    assert (document.count, text(document, 2)) == (2, "two")
    document.close()


def test_what_is_no_log_is_said(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="directory"):
        LogDocument.open(str(tmp_path), 0)


# -- one line ------------------------------------------------------------------------------------------------
@given(st.binary(max_size=200))
def test_no_byte_of_a_log_reaches_the_terminal_as_control(raw: bytes) -> None:
    shown = shown_of(raw.replace(b"\n", b""), 1, 0, PLAIN)
    assert not any(ord(c) < 32 or 127 <= ord(c) < 160 or c in "\u202e\u2028\u200f" for c in shown.text)
    assert 0 <= shown.body <= len(shown.text)


def test_the_prefix_is_told_from_the_body_and_secrets_are_masked() -> None:
    shown = shown_of(b"[2026-01-31 12:00:00 TP3] started with --api-key hunter2hunter2", 1, 0, PLAIN)
    assert (shown.rank, shown.text[: shown.body]) == ("TP3", "[2026-01-31 12:00:00 TP3] ")
    assert "hunter2" not in shown.text


def test_of_bars_that_overwrite_each_other_the_last_is_shown() -> None:
    bars = b"\r".join(b"Loading shards:  %d%%" % n for n in range(0, 101, 10)) + b"\rdone"
    assert shown_of(bars, 1, 0, PLAIN).text == "Loading shards:  100% ⏎ done"


# -- searching -----------------------------------------------------------------------------------------------
@given(
    st.lists(st.sampled_from([b"", b"Out of Memory", b"abc", b"abcabc", b"ABC", b"x.y"]), max_size=40),
    st.data(),
)
def test_search_finds_the_nearest_line_in_either_direction(lines: list[bytes], data: st.DataObject) -> None:
    document = doc(b"".join(line + b"\n" for line in lines))
    word, regex = data.draw(st.sampled_from([("abc", False), ("ABC", False), ("a.c", True), ("x.y", False)]))
    start = data.draw(st.integers(1, max(len(lines), 1)))
    pattern = Pattern(word, regex)
    flags = re.IGNORECASE if pattern.any_case else 0
    compiled = re.compile(word if regex else re.escape(word), flags)
    hits = [n for n, line in enumerate(lines, 1) if compiled.search(line.decode())]
    assert find(document, pattern, start) == min((n for n in hits if n >= start), default=None)
    assert find(document, pattern, start, forward=False) == max((n for n in hits if n <= start), default=None)
    found, _ = find_round(document, pattern, start)
    assert (found is None) == (not hits)


def test_search_far_across_blocks_and_through_colour_codes() -> None:
    filler = b"a line of filler that goes on for a while, number %07d\n"
    data = b"".join(filler % n for n in range(60_000)) + b"out \x1b[31mof\x1b[0m memory\n" + filler * 5
    document = doc(data)
    assert find(document, Pattern("Out of memory".lower()), 1) == 60_001
    assert find(document, Pattern("number 0000005"), document.count, forward=False) == 6
    assert find(document, Pattern("OUT OF"), 1) is None, "capitals are meant as such"
    with pytest.raises(Cancelled):
        find(document, Pattern("nowhere"), 1, stop=lambda: True)


def test_hidden_lines_are_not_found() -> None:
    document = doc(b"a\nb a\na\n")
    assert find(document, Pattern("a"), 1, allowed=lambda n: n == 3) == 3


def test_bad_and_exploding_patterns_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    document = doc(b"a" * 5000 + b"!\n")
    with pytest.raises(UserError, match="not a regular expression"):
        find(document, Pattern("(", True), 1)
    monkeypatch.setattr("mtpdoctor.tui.log.search.TIME_LIMIT", 0.05)
    with pytest.raises(UserError, match="takes too long"):
        find(document, Pattern(r"(a|aa)+(a|aa)+(a|aa)+$", True), 1)


@given(st.text(max_size=40), st.text(min_size=1, max_size=5))
def test_what_is_marked_on_a_line_is_what_was_looked_for(line: str, word: str) -> None:
    for start, end in Pattern(word).spans(line):
        assert line[start:end].lower() == word.lower() or not Pattern(word).any_case


# -- fold and filter -----------------------------------------------------------------------------------------
RANKED = b"".join(
    f"[2026-01-31 12:00:0{i} TP{r}] {what}\n".encode()
    for i, what in enumerate(("Load weight begin.", "Memory pool end. avail mem=12.3 GB"))
    for r in range(4)
)
MIXED = (
    b"$ sglang serve\n"
    + RANKED
    + b"[2026-01-31 12:00:09 TP2] Oops: Traceback (most recent call last):\n  File x\n"
)


def test_folding_shows_once_what_ranks_say_alike() -> None:
    document = doc(MIXED)
    rows = chosen_rows(document, fold=True)
    assert [text(document, rows.number(r)) for r in range(len(rows))] == [
        "$ sglang serve",
        "[2026-01-31 12:00:00 TP0] Load weight begin.",
        "[2026-01-31 12:00:01 TP0] Memory pool end. avail mem=12.3 GB",
        "[2026-01-31 12:00:09 TP2] Oops: Traceback (most recent call last):",
        "  File x",
    ]
    assert rows.folded == {2: 4, 6: 4}
    kept = chosen_rows(document, fold=True, keep={4})
    assert kept.holds(4), "what is marked stays"


def test_a_traceback_that_all_ranks_print_goes_with_its_first_line() -> None:
    trace = b"Scheduler hit an exception: Traceback (most recent call last):\n  File a\nValueError: no\n"
    data = b"".join(b"[2026-01-31 12:00:00 TP%d] " % r + trace for r in range(3))
    different = b"[2026-01-31 12:00:00 TP3] " + trace.replace(b"no", b"another")
    document = doc(data + different)
    rows = chosen_rows(document, fold=True)
    shown = [text(document, rows.number(r)) for r in range(len(rows))]
    assert shown.count("ValueError: no") == 1
    assert "ValueError: another" in shown, "what differs is never hidden"


def test_the_lines_of_one_rank_keep_what_belongs_to_them() -> None:
    document = doc(MIXED)
    rows = chosen_rows(document, rank="TP2")
    shown = [text(document, rows.number(r)) for r in range(len(rows))]
    assert shown[0] == "$ sglang serve"
    assert shown[-1] == "  File x"
    assert all("TP2" in line for line in shown[1:-1]) and len(shown) == 5


@given(st.sets(st.integers(1, 50)), st.integers(1, 60))
def test_rows_and_numbers_belong_together(numbers: set[int], number: int) -> None:
    from array import array

    rows = Rows(50, array("Q", sorted(numbers)))
    assert [rows.number(r) for r in range(len(rows))] == sorted(numbers)
    assert rows.holds(number) == (number in numbers)
    for each in numbers:
        assert rows.number(rows.row(each)) == each
    whole = Rows(50)
    assert all(whole.number(whole.row(n)) == n for n in range(1, 51))


def test_choosing_can_be_ended() -> None:
    with pytest.raises(Cancelled):
        chosen_rows(doc(MIXED), fold=True, stop=lambda: True)
    assert len(all_rows(doc(MIXED))) == 11
