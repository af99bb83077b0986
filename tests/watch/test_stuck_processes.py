"""What a watchdog sees of real processes: children, compilers, stacks, locks and downloads."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st
from standing import SITE, launch_environment
from stuck_scenes import in_stage, judged, process
from waiting import until

from mtpdoctor.log.types import Stage
from mtpdoctor.watch.processes import look, rank_of, read_stack, signs
from mtpdoctor.watch.stuck import Watchdog
from mtpdoctor.watch.types import Process, StageReached

# -- looking at real processes -----------------------------------------------------------------------


def test_a_real_hang_is_looked_at_with_its_children_and_compilers() -> None:
    env = launch_environment({"lines": [], "then": "hang", "compiler": "cicc", "children": True})
    server = subprocess.Popen(
        [sys.executable, "-m", "sglang.launch_server", "--port", "1"],
        env=env,
        cwd=SITE,
        stdout=subprocess.DEVNULL,
    )
    try:
        seen: tuple[Process, ...] = ()

        def all_as_they_are() -> bool:
            """The compiler computes, the ranks sleep; on a busy machine not at every look."""
            nonlocal seen
            seen = look([server.pid], sample_s=0.2, stacks=False)
            by_name = {p.name: p for p in seen}
            return (
                {"cicc", "sglang::schedul", "sglang::detoken"} <= set(by_name)
                and (by_name["cicc"].cpu_percent or 0) > 5
                and by_name["sglang::schedul"].state == "sleeping"
            )

        until(all_as_they_are, "the look of a hang")
        assert judged(in_stage(Stage.GRAPH_CAPTURE), 400, *seen).compiling
        assert isinstance(signs([server.pid]), tuple)
    finally:
        from mtpdoctor.watch.tree import descendants

        for pid in (*descendants(server.pid), server.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, 9)
        server.wait()


def test_processes_that_are_gone_are_left_out() -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    assert look([gone.pid], sample_s=0.0) == ()
    assert isinstance(signs([gone.pid]), tuple)


def test_ranks_by_the_name_of_the_process() -> None:
    assert rank_of("sglang::scheduler_TP3") == "TP3"
    assert rank_of("sglang::scheduler_DP1_TP3_EP3") == "DP1 TP3 EP3"
    assert rank_of("sglang::detokenizer") is None
    assert rank_of("python") is None


def test_the_telling_thread_of_a_dump() -> None:
    dump = (
        "Process 5: python -m sglang.launch_server\nPython v3.12.3 (/usr/bin/python3.12)\n\n"
        'Thread 5 (idle): "MainThread"\n    wait (threading.py:355)\n    main (a.py:1)\n'
        'Thread 0x7F (active): "loader"\n    mmap (safetensors/torch.py:9)\n    load \x1b[31m(b.py:2)\n'
    )
    assert read_stack(dump) == ("load (b.py:2)", "mmap (safetensors/torch.py:9)")
    assert read_stack(dump.replace("(active)", "(idle)"))[-1] == "wait (threading.py:355)"
    assert read_stack("") == ()


@given(st.text(max_size=300))
def test_any_dump_is_survived(text: str) -> None:
    assert isinstance(read_stack(text), tuple)


def test_stale_locks_and_downloads_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = time.time() - 1000
    for path in (
        tmp_path / "torch_extensions" / "py312_cu130" / "ext" / "lock",
        tmp_path / "huggingface" / "hub" / "models--a--b" / "blobs" / "abc.incomplete",
    ):
        path.parent.mkdir(parents=True)
        path.write_text("")
        os.utime(path, (old, old))
    sleeper = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(30)"],
        env={"XDG_CACHE_HOME": str(tmp_path), "PATH": os.environ["PATH"], "NCCL_SOCKET_IFNAME": "nosuch7"},
    )
    try:
        # It may be empty just after the program was started.
        until(lambda: "XDG_CACHE_HOME" in psutil.Process(sleeper.pid).environ())
        found = " | ".join(signs([sleeper.pid]))
    finally:
        sleeper.kill()
        sleeper.wait()
    assert "build lock" in found and "ext/lock is 17 min old" in found
    assert "download abc.incomplete" in found
    assert "'nosuch7' of NCCL_SOCKET_IFNAME is not up" in found


def test_a_lock_file_that_builders_leave_behind_is_no_stale_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """FlashInfer and TVM FFI lock by the kernel: their files stay after every build."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    paths = [
        tmp_path / "tvm-ffi" / "sgl_kernel_jit_kvcache_512_true" / "lock",
        tmp_path / "flashinfer" / "0.6.1" / "90a" / "cached_ops" / "lock",
    ]
    for path in paths:
        path.parent.mkdir(parents=True)
        path.write_text("")
        os.utime(path, (time.time() - 1000,) * 2)
    assert not any("lock" in sign for sign in signs([]))
    with paths[0].open() as held:
        holder = subprocess.Popen(
            [
                sys.executable,
                "-c",
                "import fcntl, time; fcntl.flock(0, fcntl.LOCK_EX); print(1, flush=True); time.sleep(60)",
            ],
            stdin=held,
            stdout=subprocess.PIPE,
        )
    try:
        assert holder.stdout is not None and holder.stdout.readline()
        found = [sign for sign in signs([]) if "lock" in sign]
    finally:
        holder.kill()
        holder.communicate()
    assert found == [f"lock held by pid {holder.pid}: {paths[0]}"]


def test_a_stopped_rank_is_said_before_anything_else() -> None:
    dog = Watchdog(tp_size=2)
    dog.saw(StageReached(0.0, Stage.MEMORY_POOL, "TP0", None, None))
    seen = dog.judge(500.0, (process(rank="TP0"), process(rank="TP1", state="stopped")))
    assert seen is not None and seen.likely[0].startswith("A process of the launch is stopped")
    assert "kill -CONT" in seen.likely[0]
