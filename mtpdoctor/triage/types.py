"""What a triage is made of. Plain values that travel between processes and machines; no I/O here."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class LaunchFiles:
    """The files that belong to one launch, in the order in which they are read."""

    name: str  # how people find it again: "customer-a/node3", "run7/server.log"
    paths: tuple[str, ...]  # local paths or URLs; "ARCHIVE!MEMBER" inside an archive
    why: str  # what put them together: "one file", "ranks by name", "rotated parts", "nodes by name"
    size: int | None = None  # bytes as they lie there
    parts: tuple[int, ...] = ()  # paths of each log, oldest part first, where some are rotated; () one each
    nodes: tuple[str, ...] = ()  # of each log, where the launch spans several nodes; () otherwise
    given: bool = True  # False: found in a folder, may be no log of SGLang at all

    @property
    def logs(self) -> tuple[tuple[str, ...], ...]:
        """The paths, log by log."""
        if not self.parts:
            return tuple((path,) for path in self.paths)
        out, at = [], 0
        for count in self.parts:
            out.append(self.paths[at : at + count])
            at += count
        return tuple(out)


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What makes two failures the same one. ``key`` is stable across releases of the doctor for the same
    rule and captures, across ranks, hosts, ports, paths, sizes and times for an unknown failure."""

    key: str  # short hexadecimal digest, e.g. "9f2c41d07a3be85d"
    rule: str | None
    parts: tuple[
        str, ...
    ]  # in words: ("MTP0007", "arch=Qwen3_5MoeForConditionalGeneration") or the exception


@dataclass(frozen=True, slots=True)
class Root:
    """The root cause's line, as the diagnosis gives it (clean, secrets masked)."""

    file: str
    line: int
    text: str
    rank: str | None
    node: str | None = None  # which of several nodes' files failed first


@dataclass(frozen=True, slots=True)
class Member:
    """One launch, examined. ``error`` tells why it could not be read; then nothing else is known of it."""

    launch: LaunchFiles
    outcome: str  # failed | ready | unfinished | empty | unreadable | foreign (no sign of SGLang)
    stage: str | None = None
    fingerprint: Fingerprint | None = None  # None unless it failed
    title: str | None = None
    cause: str | None = None
    confidence: float | None = None
    root: Root | None = None
    evidence: tuple[Root, ...] = ()
    also: tuple[Fingerprint, ...] = ()  # further causes of the same launch
    release: str | None = None
    gpu: str | None = None  # "4xsm120"
    model: str | None = None
    started: str | None = None  # ISO time of its first line that shows one
    ended: str | None = None
    remedy: str | None = None  # title of the best fix
    safety: str | None = None
    edits: tuple[str, ...] = ()
    command: str | None = None  # fixed, masked
    findings: tuple[str, ...] = ()  # rules of what works, but not as wanted
    error: str | None = None
    attempts: int = 1  # launches in its log; the last one counts
    verified: str | None = None  # how far the fix is proven: none | parsed | rules | sglang
    run: tuple[str, ...] = ()  # what to type besides, outside the launch command
    next_steps: tuple[str, ...] = ()  # where no rule knows it
    references: tuple[str, ...] = ()
    bytes: int = 0  # of log text read, decompressed
    stop: str | None = None  # of an unfinished one: where it stands and what may hold it up, in one line


@dataclass(frozen=True, slots=True)
class Group:
    """Launches that failed of the same thing."""

    fingerprint: Fingerprint
    title: str
    cause: str
    members: tuple[Member, ...]  # in order of name
    example: Member  # the one that shows it best: most certain, most facts known
    first_seen: str | None  # ISO times
    last_seen: str | None
    releases: tuple[str, ...]
    gpus: tuple[str, ...]
    models: tuple[str, ...]
    status: str | None = None  # against a baseline: "new", "known", "back" (was gone in the baseline)


@dataclass(frozen=True, slots=True)
class Gone:
    """A group of the baseline, or gone before it, that no launch of this run belongs to."""

    fingerprint: Fingerprint
    title: str
    count: int  # launches, when it was last seen
    last_seen: str | None = None


@dataclass(frozen=True, slots=True)
class Triage:
    """The whole picture; groups by size, then by name."""

    groups: tuple[Group, ...]
    ready: tuple[Member, ...]
    unfinished: tuple[Member, ...]
    unreadable: tuple[Member, ...]
    bytes: int
    interrupted: int = 0  # launches not looked at, since the person ended it
    notes: tuple[str, ...] = field(default=())
    skipped: tuple[tuple[str, int], ...] = ()  # what was left out, and how many files of it
    gone: tuple[Gone, ...] = ()  # only with a baseline

    @property
    def failed(self) -> int:
        """How many launches failed."""
        return sum(len(group.members) for group in self.groups)

    @property
    def launches(self) -> int:
        """How many launches were looked at."""
        return self.failed + len(self.ready) + len(self.unfinished) + len(self.unreadable)
