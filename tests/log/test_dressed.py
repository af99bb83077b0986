"""Tracebacks in the forms of rich and IPython, stacks that are no tracebacks, messages past empty lines."""

from __future__ import annotations

import pytest

from mtpdoctor.log.reading import reading_from_text
from mtpdoctor.log.types import Event, EventKind, Link, Stage

RICH = """\
╭───────────────────── Traceback (most recent call last) ──────────────────────╮
│ /usr/lib/python3.12/site-packages/typer/main.py:311 in __call__              │
│                                                                              │
│    308 │   │   try:                                                          │
│ ❱  311 │   │   │   return get_command(self)(*args, **kwargs)                 │
│                                                                              │
│ /usr/lib/python3.12/site-packages/sglang/srt/model_executor/model_runner.py: │
│ 1081 in init_memory_pool                                                     │
│                                                                              │
│   1080 │   │   if self.max_total_num_tokens <= 0:                            │
│ ❱ 1081 │   │   │   raise RuntimeError(                                       │
│ ╭────────── locals ──────────╮                                               │
│ │ self = <ModelRunner>       │                                               │
│ ╰────────────────────────────╯                                               │
╰──────────────────────────────────────────────────────────────────────────────╯
RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.

The above exception was the direct cause of the following exception:

╭───────────────────── Traceback (most recent call last) ──────────────────────╮
│ /app/run.py:12 in main                                                       │
│                                                                              │
│ ❱ 12 │   raise LaunchError("no")                                             │
╰──────────────────────────────────────────────────────────────────────────────╯
LaunchError: no
"""
IPYTHON = """\
---------------------------------------------------------------------------
RuntimeError                              Traceback (most recent call last)
Cell In[3], line 2
      1 import sglang as sgl
----> 2 llm = sgl.Engine(model_path="x")

File /s/sglang/srt/model_executor/model_runner.py:1081, in ModelRunner.init_memory_pool(self, total)
   1080     if x:
-> 1081         raise RuntimeError(

RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.
"""
OLD_IPYTHON = """\
---------------------------------------------------------------------------
RuntimeError                              Traceback (most recent call last)
<ipython-input-3-8a5edab28263> in <module>
----> 1 f()

/s/sglang/srt/model_executor/model_runner.py in init_memory_pool(self, total)
   1080     if x:
-> 1081         raise RuntimeError(

RuntimeError: Not enough memory.
"""


def events(text: str) -> list[Event]:
    attempt = reading_from_text(text).attempt
    assert attempt is not None
    return list(attempt.events)


def frames(event: Event) -> list[tuple[str, int, str, str]]:
    assert event.traceback is not None
    return [(f.path.rsplit("/", 1)[-1], f.lineno, f.function, f.code) for f in event.traceback.root.frames]


def test_boxes_of_rich() -> None:
    (event,) = events(RICH)
    assert event.traceback is not None and event.traceback.inner is not None
    assert (event.traceback.type, event.traceback.link) == ("LaunchError", Link.CAUSE)
    assert event.traceback.inner.message.startswith("Not enough memory")
    assert frames(event) == [
        ("main.py", 311, "__call__", "return get_command(self)(*args, **kwargs)"),
        ("model_runner.py", 1081, "init_memory_pool", "raise RuntimeError("),
    ]
    assert event.stage is Stage.MEMORY_POOL


def test_boxes_of_rich_inside_a_terminal_with_borders() -> None:
    (event,) = events("".join(f"│ {line:<100} │\n" for line in RICH.splitlines()))
    assert frames(event)[1] == ("model_runner.py", 1081, "init_memory_pool", "raise RuntimeError(")


@pytest.mark.parametrize("text", [IPYTHON, OLD_IPYTHON], ids=["new", "old"])
def test_listings_of_ipython(text: str) -> None:
    (event,) = events(text)
    assert event.traceback is not None and not event.traceback.cut
    assert event.line.text.startswith("RuntimeError: Not enough memory.")
    assert frames(event)[-1] == ("model_runner.py", 1081, "init_memory_pool", "raise RuntimeError(")
    assert len(frames(event)) == 2
    assert event.stage is Stage.MEMORY_POOL


FAILED = (
    "[2026-01-01 00:00:01 TP0] Scheduler hit an exception: Traceback (most recent call last):\n"
    '  File "/s/a.py", line 1, in f\n'
    "    x()\n"
)
PY_SPY = (
    "Process 4242: python3 -m sglang.launch_server --model-path /m --tp 2\n"
    "Python v3.12.3 (/usr/bin/python3.12)\n"
    "\n"
    'Thread 4242 (idle): "MainThread"\n'
    "    wait (threading.py:359)\n"
    "    run_scheduler_process (sglang/srt/managers/scheduler.py:12)\n"
    "\n"
)
FAULTHANDLER = (
    "Thread 0x00007f1 (most recent call first):\n"
    '  File "/usr/lib/python3.12/threading.py", line 359 in wait\n'
    "\n"
    "Current thread 0x00007f2 (most recent call first):\n"
    '  File "/s/x.py", line 12, in run\n'
    '  File "/s/y.py", line 12 in run\n'
    "\n"
)


@pytest.mark.parametrize("stack", [PY_SPY, FAULTHANDLER], ids=["py-spy", "faulthandler"])
def test_a_stack_that_is_shown_for_information(stack: str) -> None:
    quiet = reading_from_text("[2026-01-01 00:00:01 TP0] Load weight begin.\n" + stack).attempt
    assert quiet is not None and quiet.events == () and quiet.command is None
    (event,) = events(FAILED + "RuntimeError: boom\n" + stack)
    assert event.summary == "RuntimeError: boom"
    later = events(FAILED + "RuntimeError: boom\n" + stack + FAILED + "KeyError: 'x'\n")
    assert [e.summary for e in later] == ["RuntimeError: boom", "KeyError: 'x'"]
    assert all(e.traceback is not None and e.traceback.inner is None for e in later)


EXCERPT = (
    "triton.compiler.errors.CompilationError: at 105:8:\n"
    "\n"
    "    w_base = w_ptr + idx\n"
    "\n"
    "        accumulator += tl.dot(a, b)\n"
    "                       ^\n"
    'AssertionError("Both operands must be same dtype. Got bf16 and fp16")\n'
)


def test_a_message_goes_on_behind_an_empty_line() -> None:
    (event,) = events(FAILED + EXCERPT + "\n[2026-01-01 00:00:02 TP1] Load weight end.\n")
    assert event.traceback is not None
    assert event.traceback.message.endswith('Got bf16 and fp16")')
    assert [line.number for line in event.traceback.lines] == list(range(1, 11))


@pytest.mark.parametrize(
    "follows",
    [
        "[2026-01-01 00:00:02 TP1]     indented record\n",
        "not indented\n",
        "\n    two empty lines before\n",
        "   5%|▌         | 1/20 [00:00<00:01]\n",
    ],
)
def test_what_does_not_belong_to_the_message_behind_an_empty_line(follows: str) -> None:
    (event,) = events(FAILED + "ValueError: a\n\n" + follows)
    assert event.summary == "ValueError: a"
    assert event.traceback is not None and event.traceback.lines[-1].number == 4


def test_another_traceback_behind_an_empty_line() -> None:
    found = events(FAILED + EXCERPT + "\n" + FAILED.replace("TP0", "TP1") + "KeyError: 'x'\n")
    assert [(e.rank, e.kind) for e in found] == [("TP0", EventKind.TRACEBACK), ("TP1", EventKind.TRACEBACK)]
    assert found[0].traceback is not None and found[0].traceback.lines[-1].text.startswith("AssertionError(")


def test_where_torch_compile_says_whose_code_it_was() -> None:
    (event,) = events(
        FAILED + "torch._dynamo.exc.Unsupported: Observed exception\n"
        "  Explanation: no handler\n\n\n"
        "from user code:\n"
        '   File "/s/model.py", line 3, in forward\n'
        "    y = f(x)\n\n"
        "Set TORCHDYNAMO_VERBOSE=1 for the internal stack trace\n\n"
    )
    assert "from user code:" in event.summary and "TORCHDYNAMO_VERBOSE" in event.summary


NOTEBOOK = """\
[NbConvertApp] ERROR |
Traceback (most recent call last):
nbclient.exceptions.CellExecutionError: An error occurred while executing the following cell:
------------------
llm = sgl.Engine(model_path="x")
------------------

"""


@pytest.mark.parametrize("indent", ["", "  ", "      "])
@pytest.mark.parametrize("text", [IPYTHON, OLD_IPYTHON], ids=["new", "old"])
def test_a_notebook_that_a_program_runs(text: str, indent: str) -> None:
    """The runner's own exception and the cell's, in a log that is indented as a whole."""
    found = events("".join(f"{indent}{line}\n" for line in (NOTEBOOK + text).splitlines()))
    assert [e.traceback.type for e in found if e.traceback] == [
        "nbclient.exceptions.CellExecutionError",
        "RuntimeError",
    ]
    assert frames(found[-1])[-1] == ("model_runner.py", 1081, "init_memory_pool", "raise RuntimeError(")
    assert found[-1].line.body.strip().startswith("RuntimeError: Not enough memory.")


@pytest.mark.parametrize("head", [FAILED[FAILED.index("Traceback") :], ""], ids=["head", "cut"])
def test_a_traceback_indented_as_a_whole(head: str) -> None:
    text = head + '  File "/s/sglang/srt/server_args.py", line 9, in g\n    h()\nValueError: a\nb\n'
    (event,) = events("".join(f"    {line}\n" for line in text.splitlines()))
    assert event.traceback is not None and event.traceback.type == "ValueError"
    assert event.traceback.message == "a\nb"
    assert frames(event)[-1] == ("server_args.py", 9, "g", "h()")
