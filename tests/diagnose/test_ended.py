"""A launch that had not failed and came to its end: told as that, in the words of whatever told it."""

from __future__ import annotations

import pytest

from mtpdoctor.diagnose.engine import diagnose
from mtpdoctor.diagnose.types import Report
from mtpdoctor.kb.load import load_knowledge
from mtpdoctor.log.reading import reading_from_text

EARLY = (
    "$ python -m sglang.launch_server --model-path openai/gpt-oss-20b",
    "[2026-06-20 22:10:08] Init torch distributed begin.",
    "[2026-06-20 22:10:10] Init torch distributed ends. elapsed=1.90 s, mem usage=0.40 GB",
    "[2026-06-20 22:10:11] Load weight begin. avail mem=47.00 GB",
)
READY = (
    *EARLY,
    "[2026-06-20 22:10:17] Load weight end. elapsed=24.11 s, type=GptOssForCausalLM, avail mem=33.10 GB, mem usage=13.90 GB.",
    "[2026-06-20 22:10:31] Capture cuda graph end. Time elapsed: 11.52 s. mem usage=0.61 GB. avail mem=6.50 GB.",
    "[2026-06-20 22:10:32] INFO:     Uvicorn running on http://0.0.0.0:30000 (Press CTRL+C to quit)",
    "[2026-06-20 22:10:34] The server is fired up and ready to roll!",
    "[2026-06-20 22:10:36] Decode batch, #running-req: 3, #token: 2100, token usage: 0.01, gen throughput (token/s): 211.40, #queue-req: 0",
)
_TERM = "[2026-06-20 22:12:02] SIGTERM received. signum=15 frame=<frame at 0x7>. Draining requests and shutting down..."
ENDS = [
    (_TERM, "SIGTERM", None),
    (f"{_TERM}\n[2026-06-20 22:12:13] INFO:     Finished server process [1]\nexited with code 0", "SIGTERM", 0),
    ("^C[2026-06-20 22:12:02] INFO:     Shutting down\nINFO:     Finished server process [1]", "Ctrl-C", None),
    ("gptoss exited with code 143", "SIGTERM", 143),
    (
        "Gracefully stopping... (press Ctrl+C again to force)\n Container gptoss  Stopped\ngptoss exited with code 137",
        "docker compose",
        137,
    ),
    ("  Normal  Killing  12s  kubelet  Stopping container sglang", "Kubernetes (its container was stopped)", None),
    ("    State:          Terminated\n      Reason:       Error\n      Exit Code:    143", "SIGTERM", 143),
    (
        "Jun 20 22:12:02 box systemd[1]: Stopping SGLang server...\n"
        "Jun 20 22:13:32 box systemd[1]: sglang.service: State 'stop-sigterm' timed out. Killing.\n"
        "Jun 20 22:13:32 box systemd[1]: sglang.service: Main process exited, code=killed, status=9/KILL",
        "systemd",
        9,
    ),
    (
        "slurmstepd: error: *** STEP 4711.0 ON node01 CANCELLED AT 2026-06-20T22:12:02 ***\n"
        "srun: error: node01: task 0: Terminated",
        "Slurm (cancelled)",
        None,
    ),
    ("2026-06-20 22:12:02,111 INFO stopped: sglang (terminated by SIGTERM)", "SIGTERM", None),
    (
        "W0620 22:12:02.111000 99 torch/distributed/elastic/agent/server/api.py:719] Received Signals.SIGTERM death signal, shutting down workers",
        "SIGTERM",
        None,
    ),
    ("(raylet) Raylet received SIGTERM, exiting", "SIGTERM", None),
    ("[1]+  Terminated              python -m sglang.launch_server", "SIGTERM", None),
    ("exited with code 0", None, 0),
]  # fmt: skip


def report_of(*lines: str) -> Report:
    knowledge = load_knowledge()
    return diagnose(reading_from_text("\n".join(lines) + "\n", knowledge.literals), knowledge)


@pytest.mark.parametrize("lines", [READY, EARLY], ids=["ready", "loading"])
@pytest.mark.parametrize(("end", "sign", "code"), ENDS)
def test_what_ended_it_is_told_and_nothing_is_diagnosed(
    end: str, sign: str | None, code: int | None, lines: tuple[str, ...]
) -> None:
    report = report_of(*lines, end)
    assert (report.outcome, report.diagnoses, report.findings) == (
        "ready" if lines is READY else "unfinished",
        (),
        (),
    )
    assert report.ended is not None and report.ended.sure
    assert (report.ended.sign, report.ended.code) == (sign, code)


def test_a_ctrl_c_alone_ends_the_showing_of_a_log() -> None:
    assert report_of(*READY, "^C").ended is None
    loading = report_of(*EARLY, "^C")
    assert loading.ended is not None and not loading.ended.sure


def test_a_server_that_serves_and_one_that_failed_have_no_such_end() -> None:
    assert report_of(*READY).ended is None
    assert report_of(*READY, "model-download exited with code 0", *READY[-1:] * 3).ended is None
    killed = report_of(*READY, "exited with code 137")
    assert killed.ended is None or killed.outcome == "failed"


def test_a_probe_that_kills_a_slow_start_stays_the_cause() -> None:
    probe = "  Normal   Killing    1s   kubelet  Container sglang failed startup probe, will be restarted"
    report = report_of(*EARLY, _TERM, probe)
    assert report.outcome == "failed" and report.diagnoses and report.ended is None


def test_a_traceback_that_a_server_logged_and_survived_is_no_failure() -> None:
    said = "[2026-06-20 22:12:02] Draft L3 write failed (best-effort), skipping."
    frames = (
        "Traceback (most recent call last):",
        '  File "/sgl-workspace/sglang/python/sglang/srt/mem_cache/hiradix_cache.py", line 120, in write_backup_storage',
        "    self.write(node)",
        "AssertionError: no page",
    )
    assert report_of(*READY, said, *frames).outcome == "ready"
    assert report_of(*READY, *frames).outcome == "failed"
    assert report_of(*EARLY, said, *frames).outcome == "failed"
