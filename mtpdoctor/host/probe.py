"""Looks at this machine: every probe by itself, side by side, none of them able to hold up the others.

A call into a sick driver or a dead network mount may never come back, and then not even a signal ends
its thread. So the probes run in child processes, which write each answer as a line; whoever has not answered
in time is left behind, its child is killed without waiting for it, and the facts say so (``failures``).
"""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import IO, Any

from mtpdoctor.children import SAFE_PATH
from mtpdoctor.host.machine import Machine
from mtpdoctor.host.saved import host_from_document, host_to_json
from mtpdoctor.host.types import HostFacts, ProbeFailure

LIMIT = 1.5  # seconds for each probe, the start of its process included
_OF_A_DISK, _OF_NVCC = 0.55, 0.65  # of them: what waits itself must be done before it is left behind
_NOTHING = HostFacts(platform=None, gpus=None)
Answer = tuple[str, Mapping[str, Any] | None]  # probe, fields of HostFacts; None: it is done


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a person asks of the probe, beside the machine itself."""

    python: str | None = None  # --python PATH
    model: str | None = None  # --model DIR

    def probes(self, limit: float) -> dict[str, Callable[[Machine], Iterator[Mapping[str, Any]]]]:
        """Every probe by its name, made for ``limit`` seconds."""
        from mtpdoctor.host.accelerators import probe_gpus
        from mtpdoctor.host.disks import probe_disks
        from mtpdoctor.host.ports import probe_ports
        from mtpdoctor.host.system import probe_limits, probe_memory, probe_system
        from mtpdoctor.host.toolkit import probe_nvcc

        return {
            "GPUs": probe_gpus,
            "system": probe_system,
            "memory": probe_memory,
            "limits": probe_limits,
            "environment": _environment,
            "ports": probe_ports,
            "disks": partial(probe_disks, model=self.model, seconds=_OF_A_DISK * limit),
            "nvcc": partial(probe_nvcc, seconds=_OF_NVCC * limit),
            "Python environments": partial(_pythons, python=self.python),
        }


# A driver that brings down its process takes no other probe with it.
_GROUPS = (
    ("GPUs",),
    ("system", "memory", "limits", "environment", "ports", "disks", "nvcc", "Python environments"),
)
NAMES = tuple(name for group in _GROUPS for name in group)


def _environment(machine: Machine) -> Iterator[Mapping[str, Any]]:
    from mtpdoctor.host.environment import relevant

    yield {"env": relevant(machine.environ)}


def _pythons(machine: Machine, python: str | None) -> Iterator[Mapping[str, Any]]:
    from mtpdoctor.host.python import python_environments

    if machine.root:
        root, home = Path(machine.root), machine.path(machine.environ.get("HOME", "/root"))
        found = python_environments(python, machine.environ, home=home, running=None, root=root)
    else:
        found = python_environments(python, machine.environ)
    yield {"pythons": found, "packages": dict(found[0].packages) if found else {}}


def probe_host(wanted: Wanted = Wanted(), limit: float = LIMIT) -> HostFacts:
    """Everything that can be told of this machine within ``limit`` seconds a probe.

    Never raises for what a probe meets: that stands in ``failures``. Raises OSError only when no process
    can be started at all.
    """
    deadline = time.monotonic() + limit
    answers: queue.SimpleQueue[Answer] = queue.SimpleQueue()
    children = [_start(wanted, group, answers, limit) for group in _GROUPS]
    try:
        return replace(_gather(NAMES, answers, deadline, limit), local=True)
    finally:
        for child in children:
            _end(child)


def probe_machine(machine: Machine, wanted: Wanted = Wanted(), limit: float = LIMIT) -> HostFacts:
    """The same of any ``machine``, in threads of this process."""
    answers: queue.SimpleQueue[Answer] = queue.SimpleQueue()
    _run_all(machine, wanted, NAMES, answers.put, limit)
    return replace(_gather(NAMES, answers, time.monotonic() + limit, limit), local=True)


# -- one process's probes, in threads --------------------------------------------------------------
def _run_all(
    machine: Machine, wanted: Wanted, names: Sequence[str], put: Callable[[Answer], None], limit: float
) -> list[threading.Thread]:
    probes = wanted.probes(limit)
    threads = [
        threading.Thread(target=_run_one, args=(machine, name, probes[name], put), daemon=True)
        for name in names
    ]
    for thread in threads:
        thread.start()
    return threads


def _run_one(
    machine: Machine,
    name: str,
    probe: Callable[[Machine], Iterator[Mapping[str, Any]]],
    put: Callable[[Answer], None],
) -> None:
    try:
        for answer in probe(machine):
            put((name, answer))
    except Exception as error:  # whatever it is: the other probes count all the same
        said = f"{type(error).__name__}: {error}".rstrip(": ")
        put((name, {"failures": (ProbeFailure(name, said),)}))
    put((name, None))


def _gather(
    names: Sequence[str], answers: queue.SimpleQueue[Answer], deadline: float, limit: float
) -> HostFacts:
    """Merges answers until every probe is done or the time is up."""
    values: dict[str, Any] = {}
    failures: dict[str, list[ProbeFailure]] = {name: [] for name in names}  # told in the probes' order
    open_ = dict.fromkeys(names)
    while open_:
        try:
            name, answer = answers.get(timeout=max(deadline - time.monotonic(), 0))
        except queue.Empty:
            break
        if answer is None:
            open_.pop(name, None)
            continue
        failures[name].extend(answer.get("failures", ()))
        values.update((k, v) for k, v in answer.items() if k != "failures")
    for name in open_:
        failures[name].append(ProbeFailure(name, _late(name, limit, values)))
    every = dict.fromkeys(failure for told in failures.values() for failure in told)
    known = {"platform": None, "gpus": None, **values, "failures": tuple(every)}
    return HostFacts(**known)


def _late(name: str, limit: float, values: Mapping[str, Any]) -> str:
    said = f"no answer within {limit:g} s"
    if name != "GPUs":
        return said
    if values.get("gpus"):
        return f"{said} to all questions; what is shown of the GPUs is incomplete"
    return (
        f"{said}: the driver hangs, or loads for every call because persistence mode is off. "
        "--timeout 20 waits longer"
    )


# -- child processes -------------------------------------------------------------------------------
# The path of this process goes along: the child finds the same packages, installed or in a checkout.
_CHILD = (
    "import json, sys; spec = json.loads(sys.argv[1]); sys.path[:] = spec['path'];"
    "from mtpdoctor.host.probe import child; child(spec)"
)


def _start(
    wanted: Wanted, names: Sequence[str], answers: queue.SimpleQueue[Answer], limit: float
) -> subprocess.Popen[bytes]:
    path = [os.path.abspath(p) for p in sys.path]
    asked = {"python": wanted.python, "model": wanted.model, "names": list(names), "limit": limit}
    process = subprocess.Popen(
        [sys.executable, "-S", *SAFE_PATH, "-c", _CHILD, json.dumps({"path": path, **asked})],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert process.stdout is not None
    threading.Thread(target=_listen, args=(process, process.stdout, names, answers), daemon=True).start()
    return process


def _listen(
    process: subprocess.Popen[bytes],
    lines: IO[bytes],
    names: Sequence[str],
    answers: queue.SimpleQueue[Answer],
) -> None:
    """Passes on what the child writes; a child that dies before it is done leaves a failure for each probe."""
    open_ = dict.fromkeys(names)
    try:
        for line in lines:
            document = json.loads(line)
            if document.get("done"):
                open_.pop(document["probe"], None)
                answers.put((document["probe"], None))
            else:
                facts = host_from_document(document["host"], "probe")
                answers.put((document["probe"], {n: getattr(facts, n) for n in document["fields"]}))
    except (OSError, ValueError):
        pass
    code = process.wait()
    how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
    for name in open_:
        answers.put((name, {"failures": (ProbeFailure(name, f"the process that asked ended with {how}"),)}))
        answers.put((name, None))


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kills the child and what it started. It is not waited for: one stuck in the kernel does not die."""
    if process.poll() is None:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except (OSError, AttributeError):
            process.kill()


def child(spec: Mapping[str, Any]) -> None:
    """The work of one child process: its answers go to standard output, a JSON document a line."""
    wanted = Wanted(spec["python"], spec["model"])
    lock = threading.Lock()
    out = sys.stdout

    def put(answer: Answer) -> None:
        name, values = answer
        document: dict[str, Any] = {"probe": name, "done": True}
        if values is not None:
            host = replace(_NOTHING, **values)
            document = {"probe": name, "fields": list(values), "host": host_to_json(host)}
        with lock:
            out.write(json.dumps(document) + "\n")
            out.flush()

    for thread in _run_all(Machine(), wanted, spec["names"], put, spec["limit"]):
        thread.join()
    os._exit(0)  # threads left behind by a probe (a dead mount) do not keep it
