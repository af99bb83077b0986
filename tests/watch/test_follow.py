"""Following a growing file: whatever is done to it, every byte once and in order."""

from __future__ import annotations

import gzip
import os
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mtpdoctor.errors import UserError
from mtpdoctor.log import stages as log_stages
from mtpdoctor.log.lines import logical_lines
from mtpdoctor.watch.follow import FileFollower
from mtpdoctor.watch.lines import LineCutter
from mtpdoctor.watch.source import Source


def append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def everything(follower: FileFollower, size: int = 7) -> str:
    out = b""
    while data := follower.read(size):
        out += data
    return out.decode()


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "server.log"
    path.write_text("one\n")
    return path


def test_from_the_beginning_and_on(log: Path) -> None:
    follower = FileFollower(str(log))
    assert everything(follower) == "one\n" and follower.behind() == 0
    append(log, "two\n")
    assert follower.behind() == 4 and everything(follower) == "two\n"


def test_renamed_and_created_anew(log: Path) -> None:
    follower = FileFollower(str(log))
    everything(follower)
    append(log, "last before\n")
    log.rename(log.with_name("server.log.1"))
    assert everything(follower) == "last before\n"  # and no new one yet
    append(log.with_name("server.log.1"), "still into the old one\n")
    log.write_text("first after\n")
    assert everything(follower) == "still into the old one\nfirst after\n"
    assert follower.turns == 1


def test_copied_and_emptied(log: Path) -> None:
    follower = FileFollower(str(log))
    everything(follower)
    shutil.copy(log, log.with_name("server.log.1"))
    with gzip.open(log.with_name("server.log.2.gz"), "wb") as file:
        file.write(b"old\n")
    os.truncate(log, 0)
    append(log, "new\n")
    assert everything(follower) == "new\n" and follower.turns == 1


def test_emptied_and_longer_again_before_anybody_looked(log: Path) -> None:
    follower = FileFollower(str(log))
    everything(follower)
    os.truncate(log, 0)
    append(log, "quite another text\n")
    assert everything(follower) == "quite another text\n" and follower.turns == 1


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"cannot read .*none\.log: No such file"):
        FileFollower(str(tmp_path / "none.log"))
    later = FileFollower(str(tmp_path / "none.log"), must_exist=False)
    assert later.read(10) == b""
    (tmp_path / "none.log").write_text("there")
    assert later.read(10) == b"there"


def test_a_compressed_log_is_not_followed(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="compressed") as caught:
        Source([str(tmp_path / "server.log.1.gz")], own=False)
    assert "mtpdoctor diagnose" in (caught.value.hint or "")


ACTIONS = st.lists(
    st.tuples(st.sampled_from(["write", "rename", "empty", "read"]), st.integers(1, 40)), max_size=25
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(ACTIONS)
def test_nothing_is_lost_or_read_twice(tmp_path: Path, actions: list[tuple[str, int]]) -> None:
    """Rotation at any moment, as long as what is emptied was read before (which copytruncate itself cannot promise)."""
    path = tmp_path / "x.log"
    path.write_text("")
    follower = FileFollower(str(path))
    written = read = ""
    for number, (action, size) in enumerate(actions):
        if action == "write":
            text = f"<{number}>" * size
            append(path, text)
            written += text
        elif action == "rename":
            read += everything(follower, size)
            path.rename(tmp_path / "x.log.1")
            path.write_text("")
        elif action == "empty":
            read += everything(follower, size)
            os.truncate(path, 0)
        else:
            read += follower.read(size).decode()
    read += everything(follower)
    follower.close()
    assert read == written


# -- lines -----------------------------------------------------------------------------------------------

PIECES = st.lists(
    st.sampled_from(
        [
            "[2026-11-29 15:20:22 TP0] Load weight begin. avail mem=127.84 GB\n",
            "sglang-1  | plain\n",
            "\r  0%|     | 0/4 [00:00<?, ?it/s]",
            "\r 50%|##   | 2/4 [00:01<?, ?it/s]",
            "\n",
            "\x1b[31mred\x1b[0m\n",
            "Traceback (most recent call last):\n",
            "no end",
        ]
    ),
    max_size=30,
)


@given(PIECES, st.integers(1, 50))
def test_lines_are_those_of_the_whole_log(pieces: list[str], size: int) -> None:
    data = "".join(pieces).encode()
    cutter = LineCutter()
    lines = []
    for at in range(0, len(data), size):
        lines += cutter.feed(data[at : at + size]).lines
        cutter.unfinished()
    lines += cutter.last().lines
    whole = data.removesuffix(b"\n") if data else None
    expected = [
        line.text
        for number, raw in enumerate(whole.split(b"\n") if whole is not None else [], 1)
        for line in logical_lines(raw, number)
    ]
    seen = [line.text.removeprefix("sglang-1  | ") for line in lines]
    assert seen == [text.removeprefix("sglang-1  | ") for text in expected]


@given(PIECES, st.integers(20, 300))
def test_a_flood_gives_the_telling_lines_with_their_numbers(pieces: list[str], size: int) -> None:
    data = "".join(pieces).encode() + b"\n"
    plain, flood = LineCutter(), LineCutter()
    every = [line for at in range(0, len(data), size) for line in plain.feed(data[at : at + size]).lines]
    cuts = [flood.skim(data[at : at + size]) for at in range(0, len(data), size)]
    some = [(line.number, line.body) for cut in cuts for line in cut.lines]
    telling = [
        (line.number, line.body) for line in every if log_stages.mark_of(line) or "Traceback" in line.body
    ]
    assert set(telling) <= set(some) <= {(line.number, line.body) for line in every}
    skipped = sum(cut.skipped for cut in cuts)
    assert skipped + len({number for number, _ in some}) == data.count(b"\n")


def test_a_bar_is_seen_while_it_grows() -> None:
    cutter = LineCutter()
    cutter.feed(b"a line\n")
    assert cutter.unfinished() == ()
    cutter.feed(b"\rCapturing batches:  50%|#    | 2/4 [00:01<00:01]")
    bar = cutter.unfinished()
    assert len(bar) == 1 and "2/4" in bar[0].text
    assert cutter.unfinished() == ()  # told once
    assert [line.text for line in cutter.feed(b"\rCapturing batches: 100%|#### | 4/4 [00:02<00:00]\n").lines][
        -1
    ].startswith("Capturing batches: 100%")


def test_a_line_without_an_end_does_not_grow_without_bound() -> None:
    cutter = LineCutter()
    for _ in range(40):
        cutter.feed(b"z" * 100_000)
    assert sum(len(line.text) for line in cutter.last().lines) < 1 << 20


def test_what_stood_there_before_is_read_but_only_its_end_shown(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    path.write_text("".join(f"line {i}\n" for i in range(20000)))
    source = Source([str(path)], own=False)
    shown: list[str] = []
    lines = 0
    while (piece := source.next()).read:
        shown += [line.text for line in piece.shown()]
        lines += len(piece.lines)
    assert lines == 20000 and not source.old
    assert shown == [f"line {i}" for i in range(19990, 20000)]
    append(path, "new\n")
    assert [line.text for line in source.next().shown()] == ["new"]
