"""The typed structures a log is read into. No I/O here."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from enum import Enum
from typing import Protocol

from mtpdoctor.records import dataclass


class Stage(str, Enum):
    """How far a launch got, in the order of a launch (definition order is launch order)."""

    ENV = "env"
    IMPORT = "import"
    ARGPARSE = "argparse"
    SERVER_ARGS = "server_args"
    CONFIG = "config"
    TOKENIZER = "tokenizer"
    DIST_INIT = "dist_init"
    WEIGHTS = "weights"
    MEMORY_POOL = "memory_pool"
    GRAPH_CAPTURE = "graph_capture"
    WARMUP = "warmup"
    SERVING = "serving"

    @property
    def order(self) -> int:
        return _ORDER[self]


_ORDER = {stage: i for i, stage in enumerate(Stage)}


@dataclass(frozen=True, slots=True)
class Line:
    """One logical line of a log.

    ``number`` counts from 1 over lines split at ``\\n`` in the decompressed file; a physical line
    holding ``\\r`` bars or an unescaped JSON message has several logical lines of one number
    (``part`` counts them from 0). ``text`` is clean (no transport prefix, no ANSI, no control
    characters); ``body`` is ``text`` without SGLang's own ``[time rank]`` prefix.
    """

    file: int  # index into LogReading.files
    number: int
    part: int
    stream: str  # transport stream: compose service, pod/container, Slurm task, Ray pid, "" if none
    rank: str | None  # as the log names it: "TP3", "DP1 TP3 EP3", "PP0 TP1"; None outside ranks
    time: str | None  # timestamp as printed (transport's or SGLang's), None if none
    text: str
    body: str

    @property
    def key(self) -> tuple[int, int, int]:
        """Position in reading order."""
        return (self.file, self.number, self.part)


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame of a Python traceback."""

    path: str
    lineno: int  # line in the *source* file
    function: str
    code: str  # "" where the source line was not printed
    line: Line  # the log line


class Link(str, Enum):
    """How a traceback is tied to the one printed before it."""

    CAUSE = "cause"  # "The above exception was the direct cause of ..."
    CONTEXT = "context"  # "During handling of the above exception, another ..."


@dataclass(frozen=True, slots=True)
class Traceback:
    """One Python traceback: its frames and its exception line.

    ``cut`` is set when head or exception line is missing (log cut, interleaving). ``inner`` is the
    exception that this one was raised from or while handling (printed above it).
    """

    head: Line  # the "Traceback (most recent call last):" line, or the first line seen when cut
    frames: tuple[Frame, ...]
    exception: Line | None  # "SomeError: message", first line of it
    type: str  # "torch.cuda.OutOfMemoryError", "" when cut
    message: str  # whole message, may span lines
    rank: str | None
    stream: str
    link: Link | None = None
    inner: Traceback | None = None
    cut: bool = False
    lines: tuple[Line, ...] = ()  # every log line that belongs to it, in order

    @property
    def chain(self) -> tuple[Traceback, ...]:
        """Itself, then the exceptions behind it, the innermost last."""
        nodes = [self]
        while (inner := nodes[-1].inner) is not None:
            nodes.append(inner)
        return tuple(nodes)

    @property
    def root(self) -> Traceback:
        """The innermost exception of the chain."""
        return self.chain[-1]


class EventKind(str, Enum):
    TRACEBACK = "traceback"
    ARGPARSE = "argparse"  # "PROG: error: ..."
    NATIVE = "native"  # C++ stack dump, "terminate called", Fatal Python error, Segmentation fault
    CUDA = "cuda"  # CUDA/NCCL/HIP error outside a traceback
    SIGNAL = "signal"  # sigquit from child, SIGTERM/SIGKILL seen, "Killed"
    EXIT = "exit"  # "exit code -9", "exited with code 137", OOMKilled
    OOM_KILL = "oom_kill"  # kernel or cgroup OOM lines
    SHUTDOWN = "shutdown"  # asked for by the user: SIGTERM, Ctrl-C, "Shutting down"
    ERROR = "error"  # any other error-looking line (level ERROR/CRITICAL, "Error:", bash errors)


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened in a launch, at one line, on one rank."""

    kind: EventKind
    line: Line  # the telling line: exception line for tracebacks, "error:" line for argparse
    stage: Stage
    rank: str | None
    summary: str
    traceback: Traceback | None = None
    fatal: bool = False  # the process that printed it is going down with it
    stage_told: bool = True  # False: neither stage marks nor frames tell the stage, it is a guess


@dataclass(frozen=True, slots=True)
class StageMark:
    """A line that proves a stage was entered or left."""

    stage: Stage
    line: Line
    rank: str | None


@dataclass(frozen=True, slots=True)
class Observation:
    """A value read off a log line, by its dotted fact name (``log.avail_mem_before_load_gib``)."""

    name: str
    value: object
    line: Line


@dataclass(frozen=True, slots=True)
class Span:
    """Physical lines ``first``..``last`` (inclusive) of one file."""

    file: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Attempt:
    """One launch attempt inside a log: its lines, marks and events, in order."""

    index: int  # from 0
    first: tuple[int, int]  # (file, line number), inclusive
    last: tuple[int, int]  # inclusive
    marks: tuple[StageMark, ...]
    events: tuple[Event, ...]
    observations: tuple[Observation, ...]
    command: Line | None  # the line that shows the launch command, if any
    ready: Line | None  # "The server is fired up and ready to roll!"
    stage: Stage  # how far it got
    shutdown: Line | None  # the user asked it to stop
    spans: tuple[Span, ...] = ()  # its lines, file by file: several files need not be one range
    command_text: str | None = None  # the launch command, continuation lines joined, prompt marks off
    served: Line | None = None  # the last batch

    def holds(self, line: Line) -> bool:
        """Is the line one of this attempt's?"""
        if not self.spans:
            return self.first <= (line.file, line.number) <= self.last
        return any(s.file == line.file and s.first <= line.number <= s.last for s in self.spans)


@dataclass(frozen=True, slots=True)
class FileInfo:
    """One input of a reading. ``truncated`` names damage that was read around."""

    name: str
    size: int  # bytes, decompressed
    line_count: int
    truncated: str | None = None


@dataclass(frozen=True, slots=True)
class LogReading:
    """Everything read off the log(s) of one launch. The last attempt counts."""

    files: tuple[FileInfo, ...]
    attempts: tuple[Attempt, ...]
    hits: Hits
    is_sglang: bool  # any line looks like SGLang's
    notes: tuple[str, ...] = ()  # what was odd about the input, for people

    @property
    def attempt(self) -> Attempt | None:
        return self.attempts[-1] if self.attempts else None


class Hits(Protocol):
    """Where the literals looked for occur, and random access to the lines around."""

    def among(self, literals: Collection[str]) -> Iterable[str]:
        """Those of the literals that may occur: the others surely do not."""

    def lines(self, literal: str) -> list[Line]:
        """Logical lines that contain ``literal``, in reading order (first and last thousands of a
        literal that occurs too often)."""

    def count(self, literal: str) -> int:
        """How often the literal occurs in all."""

    def line(self, file: int, number: int) -> tuple[Line, ...]:
        """The logical lines of one physical line."""

    def window(self, file: int, first: int, last: int) -> list[Line]:
        """Logical lines of the physical lines ``first``..``last`` (inclusive, clipped)."""
