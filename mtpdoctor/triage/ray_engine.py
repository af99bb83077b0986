"""The same examination on an existing Ray cluster. Ray is an extra: ``pip install 'mtpdoctor[ray]'``.

The cluster's workers need mtpdoctor too, of the same version, and see the files under the same paths or URLs;
members of archives travel with their launch.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Generator, Iterable
from typing import Any

from mtpdoctor import __version__
from mtpdoctor.errors import UserError
from mtpdoctor.triage.examine import examine, unreadable
from mtpdoctor.triage.opening import Limits
from mtpdoctor.triage.pool import Task
from mtpdoctor.triage.types import LaunchFiles, Member

_TRIES = 2
_MAX_UNDER_WAY = 1024
_CONNECT_SECONDS = 120.0


def over_ray(
    tasks: Iterable[Task],
    limits: Limits,
    *,
    address: str | None = None,
    runtime_env: dict[str, Any] | None = None,
) -> Generator[Member, None, None]:
    """The members, as they are done. ``address``: of the cluster, else ``RAY_ADDRESS``. Raises UserError."""
    ray = _connected(address, runtime_env)
    under_way: dict[Any, tuple[Task, int, float]] = {}
    try:
        remote = ray.remote(num_cpus=1, max_retries=0)(examine_there)
        _same_version(ray)
        room = min(max(int(ray.cluster_resources().get("CPU", 1)), 1) * 2, _MAX_UNDER_WAY)
        todo = iter(tasks)
        again: deque[tuple[Task, int]] = deque()
        more = True
        while more or again or under_way:
            while (more or again) and len(under_way) < room:
                task, tries = again.popleft() if again else (next(todo, None), 1)
                if task is None:
                    more = False
                    continue
                reference = remote.remote(task.launch, _carried(task), limits)
                under_way[reference] = (task, tries, time.monotonic())
            if not under_way:
                continue
            done, _ = ray.wait(list(under_way), num_returns=1, timeout=1.0)
            for reference in done:
                task, tries, _since = under_way.pop(reference)
                member = _result(ray, reference, task, tries)
                if member is None:
                    again.append((task, tries + 1))
                else:
                    yield member
            # a launch waits for at most one other here: twice the time is enough for both
            before = time.monotonic() - 2 * limits.seconds
            late = [r for r, (_, _, since) in under_way.items() if since < before]
            # what has come is fetched: it was in time, and only one is taken a turn
            there = set(ray.wait(late, num_returns=len(late), timeout=0)[0]) if late else set()
            for reference in [r for r in late if r not in there]:
                task, _, _ = under_way.pop(reference)
                ray.cancel(reference, force=True)
                yield unreadable(task.launch, f"examining it took longer than {limits.seconds:g} seconds")
    finally:
        for reference in under_way:
            ray.cancel(reference, force=True)
        ray.shutdown()


def examine_there(launch: LaunchFiles, places: dict[str, bytes], limits: Limits) -> Member:
    """Runs in a worker of the cluster."""
    return examine(launch, _knowledge(), places=places, limits=limits)


_loaded: list[Any] = []


def _knowledge() -> Any:
    if not _loaded:
        from mtpdoctor.kb.load import load_knowledge

        _loaded.append(load_knowledge())
    return _loaded[0]


def version_there() -> str:
    return __version__


def _connected(address: str | None, runtime_env: dict[str, Any] | None) -> Any:
    import logging

    try:
        import ray
    except ImportError:
        raise UserError(
            "--engine ray needs Ray, which is not installed", hint="pip install 'mtpdoctor[ray]'"
        ) from None
    address = address or os.environ.get("RAY_ADDRESS")
    if not address:
        raise UserError(
            "--engine ray needs the address of a cluster", hint="--ray-address HOST:PORT, or RAY_ADDRESS"
        )
    _answers(address)
    try:
        ray.init(address=address, runtime_env=runtime_env, logging_level=logging.ERROR, log_to_driver=False)
    except Exception as error:  # ray raises what its parts raise
        text = " ".join(str(error).split())[:200]
        raise UserError(f"no connection to the Ray cluster at {address}: {text}", hint="is it up?") from None
    return ray


def _answers(address: str) -> None:
    """Ray itself waits many minutes for an address that nobody listens at."""
    import socket

    host, found, port = address.removeprefix("ray://").rpartition(":")
    if not found or not port.isdigit():  # "auto": Ray looks for a cluster on this machine
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()
    except (OSError, OverflowError) as error:
        raise UserError(f"no Ray cluster answers at {address}: {error}", hint="is it up?") from None


def _same_version(ray: Any) -> None:
    try:
        theirs = ray.get(ray.remote(num_cpus=0)(version_there).remote(), timeout=_CONNECT_SECONDS)
    except Exception as error:
        text = " ".join(str(error).split())[-200:]
        raise UserError(
            f"the Ray workers cannot run mtpdoctor: {text}",
            hint=f"install mtpdoctor {__version__} on all nodes",
        ) from None
    if theirs != __version__:
        raise UserError(
            f"the Ray workers have mtpdoctor {theirs}, here it is {__version__}",
            hint="install the same on all nodes",
        )


def _carried(task: Task) -> dict[str, bytes]:
    out: dict[str, bytes] = {}
    for path, place in task.places.items():
        with open(place, "rb") as file:
            out[path] = file.read()
    return out


def _result(ray: Any, reference: Any, task: Task, tries: int) -> Member | None:
    """None: the worker died, and the launch is worth another try."""
    try:
        member: Member = ray.get(reference)
        return member
    except Exception as error:  # a killed worker, a lost node, an out-of-memory kill by Ray
        if tries < _TRIES:
            return None
        text = " ".join(str(error).split())[:160]
        return unreadable(task.launch, f"the worker that examined it failed ({_TRIES} times): {text}")
