"""The pass over the bytes: hits, line numbers, clean text, flat memory, whatever the bytes."""

from __future__ import annotations

import random
import unicodedata
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from log.wrap import TRANSPORTS, wrap
from mtpdoctor.log import scan as scan_module
from mtpdoctor.log.engines import ENGINES
from mtpdoctor.log.lines import TEXT_CAP
from mtpdoctor.log.scan import KEPT, ScannedLog, scan
from mtpdoctor.log.source import LogSource, open_source
from mtpdoctor.log.types import Line

REAL = Path(__file__).parents[1] / "data" / "real_logs"


def scanned(data: bytes, *literals: str, engine: str | None = None) -> ScannedLog:
    return scan([LogSource.of_bytes(data, "server.log")], literals, engine=engine)


def all_lines(log: ScannedLog, file: int = 0) -> list[Line]:
    return log.window(file, 1, log.files[file].line_count)


def line_count(data: bytes) -> int:
    return data.count(b"\n") + (not data.endswith(b"\n") if data else 0)


@pytest.fixture(params=[1 << 18, 300])
def small_chunks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once as it is, once with chunks that end in the middle of everything."""
    monkeypatch.setattr(scan_module, "CHUNK", request.param)
    monkeypatch.setattr("mtpdoctor.log.index._STEP", max(request.param // 4, 64))
    monkeypatch.setattr("mtpdoctor.log.index._AROUND", max(request.param // 64, 24))


# -- hits


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("engine", ENGINES)
def test_hits_are_what_a_search_in_the_clean_text_finds(engine: str) -> None:
    literals = [
        "Traceback (most",
        "[2026-11-29 13:",
        "scheduler",
        "it/s]",
        "EOFError",
        "nowhere to be seen",
        "e",
    ]
    for path in sorted(REAL.glob("*.log"))[::4]:
        log = scanned(path.read_bytes(), *literals, engine=engine)
        lines = all_lines(log)
        assert log.engine == engine
        for literal in literals:
            assert log.lines(literal) == [x for x in lines if literal in x.text]
            assert log.count(literal) == sum(x.text.count(literal) for x in lines)


def test_a_literal_does_not_cross_lines_or_bars() -> None:
    log = scanned(b"CUDA\nerror CUDA\rerror\nCUDA error\n", "CUDA error", "CUDA\nerror", "CUDA\rerror")
    assert [x.number for x in log.lines("CUDA error")] == [3]
    assert log.lines("CUDA\nerror") == log.lines("CUDA\rerror") == []


@pytest.mark.parametrize(
    "raw",
    [
        b"CUDA \x1b[31merr\x1b[0mor",
        b"CU\x00DA er\x00ror",
        b"CUDA\x1b]8;;http://x\x07 er\x1b]8;;\x07ror",
        b"CUDA\x1b]8;;http://x\x1b\\ er\x1b]8;;\x1b\\ror",
        b"CUDA\x1bP+q544e\x1b\\ error",
        b"CUDA\x1b(B e\x1b[mrr\x1b[38;5;196mor\x1b[K",
        b"\x1b[1A\x1b[2KCUDA error",
        b"\xff\xfe\xc3CUDA error\x80",
        b"\xef\xbb\xbfCUDA error",
    ],
)
def test_what_splits_a_literal_invisibly_does_not_hide_it(raw: bytes) -> None:
    log = scanned(b"one\n" + raw + b"\nthree\n", "CUDA error")
    (line,) = log.lines("CUDA error")
    assert (line.number, log.count("CUDA error")) == (2, 1)


@pytest.mark.parametrize(
    "raw", [b"CUDA\x07 error", b"CUDA\xc2\x9b31m error", b"CUDA\xe2\x80\xae error", b"CUDA\x08 error"]
)
def test_what_stands_visibly_between_splits_it(raw: bytes) -> None:
    log = scanned(raw + b"\n", "CUDA error")
    assert log.lines("CUDA error") == []
    assert log.line(0, 1)[0].text.isprintable()


def test_an_unterminated_escape_does_not_swallow_the_rest() -> None:
    log = scanned(b"a \x1b]0;title CUDA error\nb \x1bP CUDA error\nc \x1b[3\nd\x1b", "CUDA error")
    assert [x.number for x in log.lines("CUDA error")] == [1, 2]
    assert "".join(x.text for x in all_lines(log)).isprintable()


def test_a_literal_in_a_transport_prefix_is_no_hit() -> None:
    log = scanned(wrap(["a server", "error", "", "b"], "kubectl_prefix"), "server", "sglang", "pod/")
    assert [x.number for x in log.lines("server")] == [1]
    assert (log.count("server"), log.lines("sglang"), log.count("pod/")) == (1, [], 0)


@pytest.mark.parametrize("literal", ['say "no"', "a\\b", "x<y> & z", "caf\u00e9", "/models/x", "'q'"])
@pytest.mark.parametrize(
    "transport", ["docker_json", "json_logger", "journald_json", "docker_json_ansi", "compose"]
)
def test_literals_with_characters_that_json_escapes(literal: str, transport: str) -> None:
    log = scanned(wrap(["one", f"it is {literal} here", "three", "four"], transport), literal)
    assert [(x.number, x.text) for x in log.lines(literal)] == [(2, f"it is {literal} here")]


def test_json_within_json() -> None:
    import json

    inner = [json.dumps({"message": f'line {i} of "a\\b" <x>'}) for i in range(9)]
    log = scanned(wrap(inner, "docker_json"), '"a\\b" <x>', "line 4 of")
    assert log.transports == (("docker_json", "json"),)
    assert [x.text for x in log.lines("line 4 of")] == ['line 4 of "a\\b" <x>']
    assert len(log.lines('"a\\b" <x>')) == 9


def test_a_rare_literal_in_json_is_found_among_thousands_of_alikes() -> None:
    rows = [f'"POST /generate HTTP/1.1" {503 if i == 6000 else 200} <ok>' for i in range(12_000)]
    for transport in ("docker_json", "json_logger"):
        log = scanned(wrap(rows, transport), '/generate HTTP/1.1" 503 <ok>')
        assert [x.number for x in log.lines('/generate HTTP/1.1" 503 <ok>')] == [6001]


def test_a_stranger_and_an_empty_literal_are_refused() -> None:
    log = scanned(b"abc\n", "abc")
    with pytest.raises(KeyError):
        log.lines("ab")
    with pytest.raises(ValueError, match="empty literal"):
        scanned(b"abc\n", "")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("every", [1, 3])
def test_a_literal_that_stands_everywhere_keeps_its_ends(
    engine: str, every: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan_module, "CHUNK", 1 << 16)
    n = 30_000
    rows = [
        f"[2026-11-29 13:46:42 TP{i % 4}] {'hot hot' if i % every == 0 else 'cold'} {i}" for i in range(n)
    ]
    rows[n - 7] += " the needle"
    log = scanned("\n".join(rows).encode(), "hot", "needle", "ot h", engine=engine)
    numbers = [i + 1 for i in range(n) if i % every == 0]
    assert [x.number for x in log.lines("hot")] == numbers[:KEPT] + numbers[-KEPT:]
    assert log.count("hot") == 2 * len(numbers)
    assert log.count("ot h") == len(numbers)
    assert log.lines("hot")[-1].text == rows[numbers[-1] - 1]
    assert [x.number for x in log.lines("needle")] == [n - 6]


def test_engines_agree_on_hot_and_cold_in_every_transport() -> None:
    lines = (REAL / "scheduler_killed_sigkill.log").read_bytes().decode().split("\n")
    literals = ["2026", "Error", "File ", "/", "no such thing"]
    for transport in TRANSPORTS[::3]:
        data = wrap(lines * 3, transport)
        first, *others = (scanned(data, *literals, engine=name) for name in ENGINES)
        for other in others:
            for literal in literals:
                assert other.lines(literal) == first.lines(literal)
                assert other.count(literal) == first.count(literal)


def test_several_files_are_told_apart(tmp_path: Path) -> None:
    for rank in range(3):
        (tmp_path / f"rank{rank}.log").write_bytes(b"x\n" * rank + b"needle\n")
    log = scan([open_source(str(p)) for p in sorted(tmp_path.iterdir())], ["needle"])
    assert [(x.file, x.number) for x in log.lines("needle")] == [(0, 1), (1, 2), (2, 3)]
    assert [(Path(f.name).name, f.size, f.line_count) for f in log.files] == [
        ("rank0.log", 7, 1),
        ("rank1.log", 9, 2),
        ("rank2.log", 11, 3),
    ]


# -- lines


def test_numbers_count_newlines_of_the_file() -> None:
    assert scanned(b"").files[0].line_count == 0
    assert scanned(b"\n").files[0].line_count == 1
    assert scanned(b"a\n\nb").files[0].line_count == 3
    assert scanned(b"a\x0bb\x0cc\x85d\xe2\x80\xa8e\n").files[0].line_count == 1


def test_windows_are_clipped() -> None:
    log = scanned(b"a\nb\nc\n")
    assert [x.text for x in log.window(0, -5, 99)] == ["a", "b", "c"]
    assert [x.text for x in log.window(0, 2, 2)] == ["b"]
    assert log.window(0, 3, 2) == log.window(0, 4, 9) == []
    assert log.line(0, 0) == log.line(0, 4) == ()


def test_lines_anywhere_in_a_large_file(tmp_path: Path) -> None:
    path = tmp_path / "big.log"
    random_ = random.Random(1)
    rows = [
        f"{i} {'y' * random_.choice([0, 10, 100, 70_000 if i % 500 == 0 else 300])}" for i in range(20_000)
    ]
    path.write_text("\n".join(rows) + "\n")
    log = scan([open_source(str(path))], ["19999 "])
    assert log.lines("19999 ")[0].number == 20_000
    for i in [0, 19_999, *random_.sample(range(20_000), 200), *range(9_990, 10_010)]:
        (line,) = log.line(0, i + 1)
        assert line.text.split()[0] == str(i)
        if len(rows[i]) <= TEXT_CAP:
            assert line.text == rows[i]
    assert [x.number for x in log.window(0, 5_000, 7_000)] == list(range(5_000, 7_001))


def test_a_long_line_shows_its_ends_and_says_so() -> None:
    body = "first " + "x" * 50_000 + " middle needle " + "y" * 50_000 + " last"
    log = scanned(f"a\n{body}\nb\n".encode(), "needle", "first", "last")
    (line,) = log.line(0, 2)
    assert len(line.text) < TEXT_CAP + 100
    assert line.text.startswith("first xxx")
    assert line.text.endswith("yyy last")
    assert f"{len(body) - TEXT_CAP} characters left out" in line.text
    (hit,) = log.lines("needle")
    assert " middle needle " in hit.text
    assert hit.number == 2
    assert log.lines("first") == log.lines("last") == [line]
    assert log.notes == ("server.log: lines longer than 16 KiB are shown in part (line 2 is the first)",)


def test_a_line_of_megabytes_is_read_at_its_ends_and_around_hits() -> None:
    bars = "".join(f"\r{i:6d}%|   | {i}/9 [00:00<00:01]" for i in range(60_000))
    data = (
        "one\n[2026-11-29 13:46:42 TP1] start"
        + bars
        + "\rCUDA error: in the midst of bars"
        + bars
        + "\r[2026-11-29 13:46:43 TP1] at last\nthree needle\n"
    ).encode()
    log = scanned(data, "CUDA error", "at last", "start", "needle")
    assert len(data) > 3 << 20
    assert log.files[0].line_count == 3
    (hit,) = log.lines("CUDA error")
    assert (hit.number, hit.text) == (2, "CUDA error: in the midst of bars")
    (start,), (end,) = log.lines("start"), log.lines("at last")
    assert (start.rank, end.rank, end.number) == ("TP1", "TP1", 2)
    assert start.key < hit.key < end.key
    assert [x.number for x in log.lines("needle")] == [3]
    assert [x.text for x in log.window(0, 3, 3)] == ["three needle"]


def test_a_file_without_any_newline() -> None:
    data = b"x" * 3_000_000 + b"needle" + b"x" * 3_000_000
    log = scanned(data, "needle", "xneedlex")
    assert log.files[0].line_count == 1
    assert len(log.lines("needle")) == 1
    assert len(log.lines("xneedlex")) == 1


def test_truncation_is_carried_along(tmp_path: Path) -> None:
    import gzip

    path = tmp_path / "server.log.gz"
    path.write_bytes(gzip.compress(b"".join(b"%d %f\n" % (i, i**0.5) for i in range(9999)))[:20_000])
    log = scan([open_source(str(path))], ["x"])
    assert log.files[0].truncated is not None
    assert "ends early" in log.files[0].truncated
    assert log.notes == (f"{path}: {log.files[0].truncated}",)


# -- anything at all


def is_clean(text: str) -> bool:
    return not any(
        (unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") and c != "\t") or "\u202a" <= c <= "\u202e"
        for c in text
    )


salt = st.sampled_from(
    [
        b"\x1b",
        b"\x1b[31m",
        b"\x1b]0;",
        b"\x07",
        b"\x9b",
        b"\xc2\x9b",
        b"\r",
        b"\n",
        b"\r\n",
        b"\0",
        b"\xe2\x80\xae",
        b"\\u001b",
        b'{"log":"',
        b'\\n","stream":"stderr"}',
        b"| 1/2 [00:00<00:01]",
        b"[2026-11-29 13:46:42 TP1] ",
        b"0: ",
        b"sglang-1  | ",
        b"2026-11-29T13:46:42.1Z stderr P ",
        b"needle",
        b"ne",
        b"edle",
        b"\xff\xfe",
        b"\xed\xa0\x80",
    ]
)


@pytest.mark.usefixtures("small_chunks")
@settings(max_examples=150, deadline=None)
@given(st.lists(st.one_of(salt, st.binary(max_size=40)), max_size=60))
@example([b"needle"] * 200)
@example(
    [b'{"log":"x needle\\n","stream":"stderr"}\n'] * 5
    + [b'{"log":"\\ud800 \\u001b[31mne\\u001b[0medle\\n","time":"\\n"}\n']
)
@example([b"2026-11-29T13:46:42.1Z stderr P ne\n", b"2026-11-29T13:46:42.1Z stderr F x\n"] * 3)
def test_no_bytes_whatsoever_break_it(pieces: list[bytes]) -> None:
    data = b"".join(pieces)
    logs = [scanned(data, "needle", engine=name) for name in ENGINES]
    log = logs[0]
    lines = all_lines(log)
    assert log.files[0].line_count == line_count(data)
    assert [x.key for x in lines] == sorted({x.key for x in lines})
    assert all(is_clean(x.text + x.body + x.stream + (x.time or "") + (x.rank or "")) for x in lines)
    if not any("json" in name or name == "cri" for name in log.transports[0]):
        assert {x.number for x in lines} == set(range(1, line_count(data) + 1))
        assert log.lines("needle") == [x for x in lines if "needle" in x.text]
    assert all("needle" in x.text for x in log.lines("needle"))
    for other in logs[1:]:
        assert other.lines("needle") == log.lines("needle")
        assert other.count("needle") == log.count("needle")
