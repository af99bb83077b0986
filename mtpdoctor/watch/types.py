"""What happens to a watched launch, as events. No I/O here.

A watcher yields events in order; the command line prints them, the interactive doctor shows them, the history
keeps them. ``at`` is seconds since the launch (or since the watching began).
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from mtpdoctor.log.types import Stage
from mtpdoctor.records import dataclass

if TYPE_CHECKING:
    from mtpdoctor.diagnose.types import Report


class End(str, Enum):
    """How a watched launch ended."""

    DIED = "died"  # it ended by itself before or after it was ready
    STOPPED = "stopped"  # the person ended it
    DETACHED = "detached"  # it runs on, watched no longer
    REFUSED = "refused"  # not launched: preflight, or the program could not be started


@dataclass(frozen=True, slots=True)
class Launched:
    at: float
    pid: int | None  # None: a log is watched that somebody else's launch writes
    command: str  # masked
    log: str  # the file that keeps its output
    environment: tuple[str, ...]  # "NAME=value" set, "-NAME" unset, against the doctor's own; masked


@dataclass(frozen=True, slots=True)
class Output:
    """Clean text of one or more whole lines as they came, secrets masked."""

    at: float
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StageReached:
    at: float
    stage: Stage
    rank: str | None
    took: float | None  # seconds that the stage before it took
    usual: tuple[float, float] | None  # seconds, from .. to, usual for ``stage``


@dataclass(frozen=True, slots=True)
class Progress:
    """Within a stage: checkpoint shards loaded, graphs captured."""

    at: float
    stage: Stage
    rank: str | None
    done: int
    total: int
    unit: str  # "shards", "graphs"


@dataclass(frozen=True, slots=True)
class GpuUse:
    """Memory of each GPU in GiB, by index, as the driver counts it."""

    at: float
    used_gib: tuple[float, ...]
    total_gib: tuple[float, ...]
    own_gib: tuple[float, ...]  # held by the processes of this launch


@dataclass(frozen=True, slots=True)
class Ready:
    """SGLang says that it is ready. Not proven yet: see Generated."""

    at: float
    url: str


@dataclass(frozen=True, slots=True)
class Generated:
    """The answer to a real request. ``ok`` False: it answered, but not with tokens; ``said`` tells what."""

    at: float
    ok: bool
    said: str
    tokens: int = 0
    seconds: float | None = None
    tokens_per_s: float | None = None
    accept_length: float | None = None  # tokens per verification step; None: no speculation, or not told
    warnings: tuple[str, ...] = ()  # nothing accepted, overlap off, output repeats itself ...


@dataclass(frozen=True, slots=True)
class Process:
    """One process of the launch, when it stands still."""

    pid: int
    name: str
    rank: str | None
    state: str  # "running", "sleeping", "disk sleep", "zombie", "stopped"
    cpu_percent: float | None
    read_bytes_per_s: float | None
    gpu_percent: int | None
    stack: tuple[str, ...] = ()  # innermost last; () where it cannot be read


@dataclass(frozen=True, slots=True)
class Stuck:
    """No output and no progress for longer than the stage allows."""

    at: float
    stage: Stage
    quiet_s: float
    behind: tuple[str, ...]  # ranks that have not reached what others have
    processes: tuple[Process, ...]
    likely: tuple[str, ...]  # causes, likeliest first, with how to tell them apart
    compiling: bool = False  # busy compiling kernels: slow, not stuck


@dataclass(frozen=True, slots=True)
class Resumed:
    """It goes on after having been quiet."""

    at: float
    stage: Stage


@dataclass(frozen=True, slots=True)
class Lingers:
    """It has failed by its own log, and has not ended."""

    at: float
    rule: str
    title: str
    root: str  # the root line
    quiet_s: float


@dataclass(frozen=True, slots=True)
class Ended:
    at: float
    how: End
    code: int | None  # the child's exit code; negative: killed by that signal
    stage: Stage
    report: Report | None  # the diagnosis, where it died or never became ready
    left_over: tuple[int, ...] = ()  # pids of its processes that had to be killed


WatchEvent = (
    Launched
    | Output
    | StageReached
    | Progress
    | GpuUse
    | Ready
    | Generated
    | Stuck
    | Resumed
    | Lingers
    | Ended
)


@dataclass(frozen=True, slots=True)
class AttemptRecord:
    """One line of a launch's history: what was tried and how far it came."""

    number: int  # from 1
    edits: tuple[str, ...]  # applied since the attempt before; () for the first
    stage: Stage
    how: End
    rule: str | None
    cause: str  # title, or the root line where no rule knows it
    seconds: float
    log: str
