"""A step that the watchdog ended: what the log shows of it counts, and what it makes pointless is not advised."""

from __future__ import annotations

import pytest

from mtpdoctor.diagnose.engine import diagnose
from mtpdoctor.diagnose.types import Diagnosis
from mtpdoctor.kb.load import load_knowledge
from mtpdoctor.log.reading import reading_from_text

STARTED = """\
$ python -m sglang.launch_server --model-path Qwen/Qwen3-8B --tp 2
[2026-04-17 06:44:10 TP0] Load weight begin. avail mem=78.00 GB
[2026-04-17 06:44:18 TP0] Memory pool end. avail mem=14.79 GB
[2026-04-17 06:44:21] INFO:     Uvicorn running on http://127.0.0.1:30000 (Press CTRL+C to quit)
"""
SERVED = """\
[2026-04-17 06:44:24] The server is fired up and ready to roll!
[2026-04-17 06:44:46 TP0] Prefill batch, #new-seq: 1, #new-token: 64, #cached-token: 0, token usage: 0.00, #running-req: 0, #queue-req: 0
"""
STACK = """\
Process 9987: sglang::scheduler_TP0
Thread 9987 (active): "MainThread"
    synchronize (torch/cuda/streams.py:105)
    all_gather (sglang/srt/distributed/parallel_state.py:1248)
    event_loop_normal (sglang/srt/managers/scheduler.py:911)
"""
COMPILES = "[2026-04-17 06:44:30 TP0] Entering DeepGEMM JIT Pre-Compile session\n"
ENDED = """\
[2026-04-17 06:49:47 TP0] Scheduler watchdog timeout (self.watchdog_timeout=300, self.soft=False)
[2026-04-17 06:49:53] Received sigquit from a child process. It usually means the child failed.
"""


def first(log: str) -> Diagnosis:
    knowledge = load_knowledge()
    return diagnose(reading_from_text(log, knowledge.literals), knowledge).diagnoses[0]


@pytest.mark.parametrize(
    ("between", "stacks", "longer"),
    [
        (SERVED, True, False),
        (SERVED + STACK, False, False),
        (COMPILES, True, True),
        (COMPILES + STACK, False, True),
        (SERVED + COMPILES, True, True),
    ],
)
def test_advice_goes_by_what_the_log_shows(between: str, stacks: bool, longer: bool) -> None:
    said = first(STARTED + between + ENDED)
    assert any("py-spy dump" in run for fix in said.fixes for run in fix.run) is stacks
    assert any(e.name == "--watchdog-timeout" for fix in said.fixes for e in fix.edits) is longer
    assert ("all_gather (sglang/srt/distributed/parallel_state.py:1248)" in said.cause) is not stacks
    assert said.fixes or said.next_steps


def test_what_alone_lets_the_waiting_code_run_is_left_out_first() -> None:
    """The stacks are those of SGLang 0.5.10, whose source runs ``event_loop_pp`` only with pipeline stages."""
    stacks = STACK.replace(
        "event_loop_normal (sglang/srt/managers/scheduler",
        "event_loop_pp (sglang/srt/managers/scheduler_pp_mixin",
    )
    log = (
        STARTED.replace("--tp 2", "--tp 2 --pp-size 2 --enable-two-batch-overlap --moe-a2a-backend deepep")
        + SERVED
        + stacks
        + ENDED
    )
    said = first("sglang==0.5.10\n" + log)
    assert (
        said.fixes[0].title
        == "Split by tensor parallelism alone: --tp-size 4 without --pipeline-parallel-size"
    )
    assert said.fixes[0].why.startswith(
        "what waits (event_loop_pp, sglang/srt/managers/scheduler_pp_mixin.py) runs only with"
    )
    guesses = [fix.title for fix in said.fixes if fix.title.startswith("Try without")]
    assert guesses == ["Try without --enable-two-batch-overlap", "Try without --moe-a2a-backend"]
