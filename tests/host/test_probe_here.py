"""The probe of the machine at hand: in child processes, whatever a driver does to them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from waiting import LONG, until, with_more_time

from mtpdoctor.host.probe import Wanted, probe_host


def driver(folder: Path, body: str) -> None:
    """A pynvml of that behaviour, in front of the real one."""
    (folder / "pynvml.py").write_text(
        f"import os, signal, time\nclass NVMLError(Exception):\n    value = 999\ndef nvmlInit():\n    {body}\n"
    )


def test_this_machine() -> None:
    host = probe_host(limit=LONG)
    assert host.local and host.failures == ()
    assert host.gpus is not None and host.ports is not None and host.pythons
    assert host.ram_gib and host.ram_gib > 0.1
    assert host.machine == os.uname().machine
    assert {"Hugging Face cache", "temporary files"} <= {d.purpose for d in host.disks or ()}


def test_the_model_and_the_python_that_are_asked_for(tmp_path: Path) -> None:
    host = probe_host(Wanted(python=sys.executable, model=str(tmp_path)), limit=LONG)
    assert host.python is not None and host.python.origin == "--python"
    assert str(tmp_path) in {d.path for d in host.disks or () if d.purpose == "model"}


def test_a_driver_that_hangs_holds_nothing_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    driver(tmp_path, f"open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid())); time.sleep(600)")
    monkeypatch.syspath_prepend(str(tmp_path))
    pid_file = tmp_path / "pid"
    host, limit = with_more_time(
        lambda limit: probe_host(limit=limit), lambda h: len(h.failures) == 1 and pid_file.exists()
    )
    (failure,) = host.failures
    assert failure.probe == "GPUs" and f"no answer within {limit:g} s" in failure.said
    assert host.gpus is None and host.platform is None and host.ram_gib
    pid = int(pid_file.read_text())

    def ended() -> bool:
        """At most a zombie is left until it is waited for."""
        try:
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
        except OSError:
            return True

    until(ended, "the end of the hanging child")


def test_a_driver_that_brings_its_process_down_takes_nothing_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver(tmp_path, "os.kill(os.getpid(), signal.SIGSEGV); time.sleep(60)")
    monkeypatch.syspath_prepend(str(tmp_path))
    host = probe_host(limit=LONG)
    (failure,) = host.failures
    assert failure.probe == "GPUs" and "SIGSEGV" in failure.said
    assert host.gpus is None and host.pythons and host.disks


def test_a_hanging_driver_does_not_keep_the_command_from_ending(tmp_path: Path) -> None:
    driver(tmp_path, "time.sleep(600)")
    path = [str(tmp_path), str(Path(__file__).resolve().parents[2]), os.environ.get("PYTHONPATH", "")]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, path))}

    def probed(limit: float) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "mtpdoctor", "probe", "--timeout", f"{limit:g}"],
            capture_output=True,
            text=True,
            env=environ,
            timeout=LONG,
            cwd=tmp_path,
        )

    done, limit = with_more_time(probed, lambda d: d.stdout.count("no answer within") == 1)
    assert done.returncode == 0, done.stderr
    assert "Could not be looked at" in done.stdout and f"no answer within {limit:g} s" in done.stdout
    assert "Memory" in done.stdout
