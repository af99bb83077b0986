"""Stacks that stand in a log, times to be subtracted, and which ranks are behind."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mtpdoctor.log.clock import between, seconds_of
from mtpdoctor.log.lines import make_line
from mtpdoctor.log.ranks import RankMarks, local_ranks, plain
from mtpdoctor.log.stacks import stacks_in
from mtpdoctor.log.stages import mark_of
from mtpdoctor.log.types import Line, Stage


def lines_of(text: str) -> list[Line]:
    return [make_line(line, n, 0, 0, "", None) for n, line in enumerate(text.splitlines(), 1)]


def test_a_dump_of_py_spy() -> None:
    stacks = stacks_in(
        lines_of(
            'Process 4242: sglang::scheduler_DP1_TP3\nPython v3.12.11 (/usr/bin/python3.12)\n\nThread 4242 (active): "MainThread"\n'
            "    wait (torch/utils/file_baton.py:50)\n    _jit_compile (torch/utils/cpp_extension.py:2156)\n"
            'Thread 4300 (idle+gil): "Thread-1"\n    wait (threading.py:355)\n[2026-05-20 10:00:00] goes on\n    wait (a.py:1)\n'
        )
    )
    assert [(s.who, s.busy, s.frames[-1]) for s in stacks] == [
        ("DP1 TP3", True, "wait (torch/utils/file_baton.py:50)"),
        ("DP1 TP3", False, "wait (threading.py:355)"),
    ]
    assert (
        stacks[0].frames[0].startswith("_jit_compile")
        and stacks[0].line is not None
        and stacks[0].line.number == 4
    )


def test_a_dump_of_faulthandler() -> None:
    stacks = stacks_in(
        lines_of(
            "Thread 0x00007f1c2a7fc700 (most recent call first):\n"
            '  File "/site/filelock/_api.py", line 344 in acquire\n  File "/site/x.py", line 7 in main\n'
        )
    )
    assert (
        stacks[0].frames == ("main (/site/x.py:7)", "acquire (/site/filelock/_api.py:344)")
        and stacks[0].busy is None
    )


@given(st.lists(st.text(max_size=80), max_size=30))
def test_whatever_the_lines_are_stacks_have_frames(texts: list[str]) -> None:
    assert all(stack.frames for stack in stacks_in(lines_of("\n".join(texts))))


def test_times_of_one_clock_are_subtracted_and_of_two_are_not() -> None:
    own = make_line("[2026-05-20 10:00:10 TP0] a", 1, 0, 0, "", None)
    later = make_line("[2026-05-20 10:01:10 TP0] b", 2, 0, 0, "", "2026-05-20T08:01:10.5Z")
    carried = make_line("c", 3, 0, 0, "", "2026-05-20T08:01:12.5Z")
    assert between(own, later) == 60 and between(later, own) is None
    assert between(own, carried) is None and between(None, own) is None
    assert seconds_of("May 20 10:00:00") is None and seconds_of("1763000000.5") == 1763000000.5


def test_local_ranks_of_a_node() -> None:
    assert local_ranks(4, None) == range(4) and local_ranks(None, 1) is None
    assert local_ranks(16, 2, 1) == range(8, 16)
    assert local_ranks(16, 2) is None and local_ranks(16, 2, 1, 2) is None and local_ranks(5, 2, 0) is None


def test_who_is_behind() -> None:
    marks = RankMarks()
    for line in lines_of(
        "\n".join(
            f"[2026-05-20 10:00:00 TP{i} EP{i}] {text}"
            for text, ranks in (("Load weight begin. avail", (0, 1, 2)), ("Load weight end. avail", (0, 2)))
            for i in ranks
        )
    ):
        stage = mark_of(line)
        assert stage is Stage.WEIGHTS
        marks.mark(line, stage)
    assert marks.behind() == ("TP1",) and marks.behind(range(5)) == ("TP1", "TP3", "TP4")
    assert plain("DP1 TP3 EP3") == "DP1 TP3" and plain("EP3") == "EP3"
