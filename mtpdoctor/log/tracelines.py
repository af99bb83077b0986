"""How single lines of a Python traceback look, and a traceback while it is being read."""

from __future__ import annotations

import re

from mtpdoctor.log.types import Frame, Line, Link, Traceback
from mtpdoctor.patterns import lazy

HEAD = "Traceback (most recent call last)"

FRAME = lazy(r'^(\s*)File "([^"\n]{1,1000})", line (\d{1,9})(?:, in (.{0,400}?))?\s*$')
CARET = lazy(r"^\s*[~^\-]+\s*$")
REPEATED = lazy(r"^\s*\[Previous line repeated \d+ more times?\]\s*$")
_RANK_TAG = lazy(r"^\[rank(\d+)\]: ?")
_RANK_STREAM = lazy(r"(?:^|[^\w])(rank\d+)$")  # the tag was taken for a stream on the way here
MARGIN = lazy(r"^( *)([|+])(?: |$|(?=-))")
RULE = lazy(r"^ *\+[-+]")
_NAME = r"[A-Za-z_][\w]*(?:\.[\w<>]+)*(?:\([\w.]+\))?"
EXCEPTION = lazy(rf"^({_NAME})(?:: ?(.*)|:?)$", re.S)
# Known exception types that do not end in the usual words.
_ODD_TYPES = lazy(
    r"(?:^|\.)(?:Again|Empty|Full|timeout|error|OutOfResources|Unsupported|BackendCompilerFailed|gaierror|herror"
    r"|RemoteTraceback|_RemoteTraceback|RayTaskError\(\w+\)|Abort|Exit|StopIteration|StopAsyncIteration"
    r"|TimeoutExpired|Unavailable|NotFound|Refused|ConnectTimeout|ReadTimeout|Cancelled|Failed|Invalid\w*"
    r"|\w+Error_\w+|Missing\w*|No\w+Found|Unauthorized|Forbidden|ExceptionGroup|BaseExceptionGroup|LoweringException)$"
)
_USUAL_TYPES = lazy(
    r"(?:Error|Exception|Exit|Interrupt|Warning|Timeout|Fault|Failure|Died|Dead)(?:\(\w+\))?$"
)
# Lines that cannot continue an exception's message: other programs' records, shells, progress bars.
BREAK = lazy(
    r"^(?:\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d|(?:INFO|WARNING|WARN|ERROR|DEBUG|CRITICAL|FATAL)\b\s*[:\s(\[]"
    r"|\[?[IWEF]\d{3,4} \d\d:\d\d|\[rank\d+\]:\[[IWEF]|usage: |srun: |slurmstepd: |Process \S+:$|Exception ignored in"
    r"|Exception in thread |Killed\b|已杀死|段错误|Aborted\b|Terminated\b|Segmentation fault|Bus error|Fatal Python error|terminate called"
    r"|!{5,}|\$ |(?:\([\w.-]{1,40}\) )?(?:[\w.-]+@[\w.-]+:[^\s$#]{0,200}|\[[\w.-]+@[\w.-]+ [^\]\s]{1,80}\])[$#](?:\s|$)|\+{1,3} \S|flashinfer\.comm is not available|\S+\.py:\d+: \w*Warning: |\s*\d{1,3}%\|"
    r"|\w[\w -]*:\s+\d{1,3}%\||command terminated with|\S+ exited with code \d|Stack \(most recent call last\)"
    r"|Current thread 0x|Thread (?:0x|\d+ \()|Process \d+: |Python v\d|Pyspy dump |\[transformers\] |NCCL version|Loading \w+ checkpoint shards)"
)
CONTINUES = lazy(
    r"^(?:CUDA kernel errors might|For debugging consider|Compile with `TORCH_USE_CUDA_DSA|Device-side assert"
    r"|HIP kernel errors might|Search for |GPU device may be out of range)"
)
# what torch's compiler adds to a message, behind empty lines
_AFTER_GAP = lazy(
    r"^(?:from user code:|Set TORCH\w+=|You can suppress this exception|Developer debug context:)"
)
# stacks that are printed for information, and what never ends a process
STACKS = ("Stack (most recent call last)", "(most recent call first)")
NOT_FAILING = (*STACKS, "Exception ignored in")


def is_frame(line: Line) -> bool:
    """Is the line a frame of a Python traceback ("  File ..., line 3, in f")?"""
    return FRAME.match(plain(line)[1]) is not None


def exception_of(body: str) -> tuple[str, str] | None:
    """Type and first message line when ``body`` reads like the last line of a traceback."""
    m = EXCEPTION.match(body)
    if not m or not _plausible(m[1]):
        return None
    return m[1], m[2] or ""


def _plausible(name: str) -> bool:
    last = re.split(r"\.(?![^(]*\))", name)[-1]
    if _USUAL_TYPES.search(last) or _ODD_TYPES.search(name):
        return last[:1].isupper() or last[:1] == "_" or "." in name
    return "." in name and last[:1].isupper() and name.count(".") >= 2


_CLASS = lazy(r"[A-Z][A-Z0-9]*[a-z][a-z0-9]*[A-Z]|[A-Z]\w*_\w")


_LONGEST_NAME = 60  # of a class: more is a key or a hash


def names_a_class(name: str, waits_for_code: bool) -> bool:
    """May what stands before the colon below the frames be an exception's type that does not end in the usual words?
    A single word ("Loading: ...") may be another writer's, all the more where the frame's code has not come yet."""
    last = name.rsplit(".", 1)[-1]
    if not last[:1].isupper() or len(last) > _LONGEST_NAME:
        return False
    return "." in name or _CLASS.match(last) is not None or not (waits_for_code or last.endswith("ing"))


_HEAD_ALONE = lazy(r"^( +)(?:[A-Za-z_][\w.]* +)?Traceback \(most recent call last\)")


def indent_of_head(body: str) -> int:
    """Spaces before a traceback's head that stand before all its lines, in Python's own form or IPython's."""
    found = _HEAD_ALONE.match(body)
    return len(found[1]) if found else 0


def is_record(line: Line) -> bool:
    """Does the line begin a record of SGLang's logger (``[time rank] ...``)?"""
    return line.text != line.body and not _RANK_TAG.match(line.text)


def plain(line: Line) -> tuple[str | None, str]:
    """Rank that torch tags its error lines with (``[rank3]: ``), and the text without the tag."""
    body = line.body
    m = _RANK_TAG.match(body)
    if m:
        return f"rank{m[1]}", body[m.end() :]
    m = _RANK_STREAM.search(line.stream)
    return (m[1] if m else None), body


def goes_past_gap(body: str, empty: int) -> bool:
    """Does the line continue a message that has come to ``empty`` empty lines? What is indented behind one
    does (code that a compiler refuses), and the words that torch's compiler adds."""
    if HEAD in body or not body.strip():
        return False
    if empty == 1 and body[:1].isspace() and not FRAME.match(body) and not BREAK.match(body):
        return True
    return _AFTER_GAP.match(body) is not None


class OpenTraceback:
    """A traceback being read."""

    __slots__ = (
        *("head", "rank", "tag", "margin", "group", "frames", "pending", "indent", "lines", "exception"),
        *("type", "message", "link", "inner", "cut", "touched", "intro", "parent", "dress", "begun"),
    )

    def __init__(self, head: Line, rank: str | None, tag: str | None, margin: bool) -> None:
        self.head = head
        self.rank = rank
        self.tag = tag
        self.margin = margin  # inside an exception group: lines begin with "|"
        self.group = False
        self.frames: list[Frame] = []
        # the frame whose code line has not come yet: path, line, function, log line
        self.pending: tuple[str, int, str, Line] | None = None
        self.indent = 0  # of the last frame's "File"
        self.lines: list[Line] = []
        self.exception: Line | None = None
        self.type = ""
        self.message: list[str] = []
        self.link: Link | None = None
        self.inner: Traceback | None = None
        self.cut = False
        self.touched = 0
        self.intro: Line | None = None
        self.parent: OpenTraceback | None = None
        self.dress: str | None = None  # while lines in a library's own form are read
        self.begun = ""  # a path that goes on in the next line

    def flush(self, code: str = "") -> None:
        if self.pending:
            path, lineno, function, line = self.pending
            self.frames.append(Frame(path, lineno, function, code.strip(), line))
            self.pending = None

    def holds(self, path: str, lineno: int) -> bool:
        if self.pending and self.pending[0] == path and self.pending[1] == lineno:
            return True
        return any(f.lineno == lineno and f.path == path for f in self.frames)

    @property
    def last(self) -> tuple[str, int] | None:
        if self.pending:
            return self.pending[0], self.pending[1]
        return (self.frames[-1].path, self.frames[-1].lineno) if self.frames else None

    def build(self, stream: str) -> Traceback:
        self.flush()
        return Traceback(
            head=self.head,
            frames=tuple(self.frames),
            exception=self.exception,
            type=self.type,
            message="\n".join(self.message).rstrip(),
            rank=self.rank,
            stream=stream,
            link=self.link,
            inner=self.inner,
            cut=self.cut or self.exception is None,
            lines=tuple(self.lines),
        )
