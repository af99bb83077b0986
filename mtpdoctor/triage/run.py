"""Files in, the whole picture out: puts launches together, has them examined, groups what comes back."""

from __future__ import annotations

from collections.abc import Callable, Generator

from mtpdoctor.errors import UserError
from mtpdoctor.log.engines import cpus
from mtpdoctor.triage.examine import unreadable
from mtpdoctor.triage.find import Found
from mtpdoctor.triage.gather import gather
from mtpdoctor.triage.groups import Groups
from mtpdoctor.triage.opening import Limits
from mtpdoctor.triage.pool import Task, in_process, over_processes
from mtpdoctor.triage.types import LaunchFiles, Member, Triage

ENGINES = ("local", "ray")
Progress = Callable[[int, int, Groups], None]  # done, in all, what there is so far


def triage(
    found: Found,
    *,
    mode: str | None = None,
    engine: str = "local",
    jobs: int | None = None,
    limits: Limits | None = None,
    progress: Progress | None = None,
    ray_address: str | None = None,
) -> Triage:
    """The triage of the files in ``found``.

    ``mode``: gather.ONE_LAUNCH, gather.EACH_FILE or None; ``jobs``: worker processes (None: one for each CPU;
    0: none, everything in this process). Interrupted (KeyboardInterrupt), it returns what it has.
    Raises UserError for an engine that cannot be used.
    """
    limits = limits or Limits()
    launches = gather(found.items, found.peeks, mode=mode)
    groups = Groups()
    for path, why in found.errors:
        groups.add(unreadable(LaunchFiles(path, (path,), "one file"), why))
    done = 0
    members = _examined(launches, found, engine, jobs, limits, ray_address)
    interrupted = False
    try:
        if progress is not None:
            progress(0, len(launches), groups)
        for member in members:
            groups.add(member)
            done += 1
            if progress is not None:
                progress(done, len(launches), groups)
    except KeyboardInterrupt:
        interrupted = True
    finally:
        members.close()
    return groups.triage(
        interrupted=len(launches) - done if interrupted else 0,
        notes=tuple(found.notes),
        skipped=found.skipped.items(),
    )


def _examined(
    launches: list[LaunchFiles],
    found: Found,
    engine: str,
    jobs: int | None,
    limits: Limits,
    ray_address: str | None,
) -> Generator[Member, None, None]:
    tasks = (
        Task(launch, {p: found.places[p] for p in launch.paths if p in found.places}) for launch in launches
    )
    if engine == "ray":
        from mtpdoctor.triage.ray_engine import over_ray

        return over_ray(tasks, limits, address=ray_address)
    if engine != "local":
        raise UserError(f"no engine {engine!r}", hint="engines: " + ", ".join(ENGINES))
    here = jobs == 0 or not launches
    if here or any(p.startswith("memory://") for launch in launches for p in launch.paths):
        return in_process(tasks, limits)  # what lies in this process's memory, no other one sees
    return over_processes(tasks, limits, min(cpus() if jobs is None else jobs, len(launches)))
