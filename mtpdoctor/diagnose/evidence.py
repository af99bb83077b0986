"""What of a later release concerns the very thing that failed: the evidence for an upgrade.

From the frames of a traceback and the names in its message and lines: a class that has the attribute, a function that takes the
argument, the failing line gone or under other conditions, a name set or given otherwise. Nothing here says that it mends the
failure, except where the sources leave no doubt (``sure``).
"""

from __future__ import annotations

from collections.abc import Iterator

from mtpdoctor.diagnose.tensor_names import telling_parts
from mtpdoctor.log.types import Frame
from mtpdoctor.paths import releases_folder
from mtpdoctor.patterns import lazy
from mtpdoctor.records import dataclass
from mtpdoctor.release import Release
from mtpdoctor.sglang.changes import concerns, guarded_from, setters_changed
from mtpdoctor.sglang.history import known_file
from mtpdoctor.sglang.lines import LINES_FILE, gone_from
from mtpdoctor.sglang.members import Taken, arguments_of, assigned_elsewhere, attribute_of, is_open
from mtpdoctor.sglang.packed import open_packed

NEAR = 5  # own frames that are looked at
CLOSE = 2  # frames further out, every launch goes through
MAX_NAMES = 6  # of a line

_ATTRIBUTE = lazy(
    r"^(?:'(?P<owner>\w+)' object|type object '(?P<type>\w+)') has no attribute '(?P<name>\w+)'"
)
_KEYWORD = lazy(r"^(?P<callee>[\w.<>]+)\(\) got an unexpected keyword argument '(?P<name>\w+)'")
_MISSING = lazy(
    r"^(?P<callee>[\w.<>]+)\(\) missing \d+ required (?:positional|keyword-only) arguments?: (?P<names>.+)$"
)
_LOCAL = lazy(
    r"(?:name|variable|free variable) '(?P<name>\w+)' (?:is not defined|referenced before|where it is not|is not associated)"
)
_QUOTED = lazy(r"'([A-Za-z_]\w*)'")
_TENSOR = lazy(r"^'(\w+(?:\.\w+){2,})'$")  # of a KeyError: the loader's line says nothing of it
_SNAKE = lazy(r"(?<![\w.])[a-z]\w*_\w+")
_WORD = lazy(r"\.?[A-Za-z_]\w*(?=(\s*\()?)")
# What every launch goes through: that it calls otherwise says nothing.
OUTER = frozenset(
    [
        "run_scheduler_process",
        "dispatch_event_loop",
        "run_event_loop",
        "event_loop_overlap",
        "event_loop_normal",
        "event_loop_pp",
        "run_batch",
        "forward_batch_generation",
        "launch_server",
        "_launch_subprocesses",
        "_launch_scheduler_processes",
        "load_model",
        "initialize",
        "_execute_server_warmup",
        "forward_thread_func",
    ]
)
_COMMON = frozenset(
    [
        "self",
        "cls",
        "return",
        "if",
        "else",
        "elif",
        "for",
        "in",
        "not",
        "and",
        "or",
        "is",
        "None",
        "True",
        "False",
        "assert",
        "raise",
        "from",
        "import",
        "with",
        "as",
        "def",
        "class",
        "lambda",
        "await",
        "async",
        "torch",
        "np",
        "len",
        "int",
        "float",
        "str",
        "list",
        "dict",
        "tuple",
        "set",
        "max",
        "min",
        "sum",
        "range",
        "zip",
        "enumerate",
        "isinstance",
        "getattr",
        "hasattr",
        "super",
        "print",
        "type",
        "append",
        "extend",
        "get",
        "items",
        "keys",
        "values",
        "format",
        "join",
        "size",
        "shape",
        "dtype",
        "device",
        "forward",
        "config",
        "args",
        "kwargs",
        "name",
        "data",
        "x",
        "y",
        "i",
        "j",
        "k",
        "init",
        "cuda",
        "logger",
        "tensor",
        "empty",
        "zeros",
        "ones",
        "cat",
        "to",
        "view",
        "reshape",
        "copy",
        "name",
    ]
)


@dataclass(frozen=True, slots=True)
class Evidence:
    """``release``: the first one in which it differs. ``sure``: with it this failure is not possible any more. ``rank``: 0 best.
    ``gone``: the very line that fails is not there any more."""

    release: Release
    how: str
    rank: int
    sure: bool = False
    gone: bool = False


@dataclass(frozen=True, slots=True)
class Found:
    """``never``: why no known release can mend it, as far as the sources tell."""

    best: tuple[Evidence, ...]
    never: str = ""


@dataclass(frozen=True, slots=True)
class Refused:
    """A call whose callee does not take the arguments ``names`` (``unexpected``), or does not get them."""

    callee: str
    names: tuple[str, ...]
    unexpected: bool

    @property
    def function(self) -> str:
        return self.callee.rsplit(".", 1)[-1]

    @property
    def owner(self) -> str:
        """The class, "" for a function of none."""
        before = self.callee.replace(".<locals>", "").split(".")[:-1]
        return before[-1] if before and before[-1][:1].isupper() else ""

    def suits(self, taken: Taken) -> bool:
        if self.unexpected:
            return all(map(taken.takes, self.names))
        return not set(self.names) & set(taken.required)


def evidence_of(frames: list[Frame], message: str, release: Release, newest: Release) -> Found:
    """``frames``: SGLang's own, the one nearest to the exception first."""
    line = " ".join(message.split())
    exact, never = _exact(line, release, newest)
    found = sorted([*exact, *_by_frames(frames[:NEAR], line, release)], key=lambda e: (e.rank, e.release))
    return Found(tuple(found), never)


def sure_evidence(message: str, release: Release, newest: Release) -> list[Evidence]:
    """What the message alone tells of SGLang's own classes and functions, with no doubt left."""
    return _exact(" ".join(message.split()), release, newest)[0]


def _exact(message: str, release: Release, newest: Release) -> tuple[list[Evidence], str]:
    if (said := _ATTRIBUTE.search(message)) is not None:
        return _attribute(said["owner"] or said["type"], said["name"], release, newest)
    call = refused_call(message)
    return (_argument(call, release) if call is not None else []), ""


def _attribute(owner: str, name: str, release: Release, newest: Release) -> tuple[list[Evidence], str]:
    folder = releases_folder()
    known = attribute_of(folder, owner, name)
    if known is None or not known[0].holds(release) or known[1].holds(release):
        return [], ""
    since = known[1].after(release)
    if since is not None:
        return [Evidence(since, f"{owner} has {name} from {since} on", 0, True)], ""
    if (
        known[0].holds(newest)
        and not is_open(folder, owner, newest)
        and not assigned_elsewhere(folder, name, newest)
    ):
        return [], f"{owner} has no {name} in any release up to {newest}"
    return [], ""


def refused_call(message: str) -> Refused | None:
    """What a TypeError says of a call that was refused for its arguments; None for other messages."""
    if (said := _KEYWORD.search(message)) is not None:
        return Refused(said["callee"], (said["name"],), True)
    if (said := _MISSING.search(message)) is not None:
        return Refused(said["callee"], tuple(_QUOTED.findall(said["names"])), False)
    return None


def _argument(call: Refused, release: Release) -> list[Evidence]:
    known = arguments_of(releases_folder(), call.owner, call.function)
    if known is None or not known[1].holds(release):
        return []
    releases = known[1].releases
    at, newest = releases.index(release), len(releases) - 1

    def fits(number: int) -> bool:
        forms = [taken for numbers, taken in known[0] if number in numbers]
        return bool(forms) and all(map(call.suits, forms))

    if fits(at) or not fits(newest):
        return []
    first = next(n for n in range(at + 1, newest + 1) if all(map(fits, range(n, newest + 1))))
    listed = " and ".join(call.names)
    how = f"takes {listed}" if call.unexpected else f"does not ask for {listed} any more"
    return [Evidence(releases[first], f"{call.callee} {how} from {releases[first]} on", 0, True)]


def _by_frames(frames: list[Frame], message: str, release: Release) -> Iterator[Evidence]:
    folder = releases_folder()
    table = open_packed(folder / LINES_FILE)
    local = _LOCAL.search(message)
    tensor = _TENSOR.match(message)
    said = (*_QUOTED.findall(message), *_SNAKE.findall(message[:300]))
    if tensor is not None:
        said = tuple(telling_parts(tensor[1]))
    named = [local["name"]] if local else [n for n in dict.fromkeys(said) if n not in _COMMON][:MAX_NAMES]
    for distance, frame in enumerate(frames):
        file = known_file(frame.path, table) or frame.path[frame.path.rfind("sglang/") :]
        place = f"{frame.function} ({file.removeprefix('sglang/')})"
        code = frame.code.strip()
        if code and tensor is None:
            yield from _of_line(frame, code, place, file, distance, release)
        for name in named:
            for since in concerns(folder, frame.path, frame.function, name, release)[:1]:
                yield Evidence(
                    since, f"{place} treats {name} otherwise from {since} on", 1 + min(distance, 1)
                )
        if distance == 0 and tensor is None:
            words = [w for w in _names(code) if w not in named]
            for name in words[:MAX_NAMES]:
                for since in concerns(folder, frame.path, frame.function, name, release)[:1]:
                    yield Evidence(since, f"{place} sets or gives {name} otherwise from {since} on", 2)
        if distance < 2:
            for name in _attributes(code):
                for change in setters_changed(folder, name, release)[:1]:
                    if change.function == frame.function:
                        continue
                    where = f"{change.function} ({change.file.removeprefix('sglang/')})"
                    yield Evidence(
                        change.release, f"{where} sets {name} otherwise from {change.release} on", 3
                    )


def _of_line(
    frame: Frame, code: str, place: str, file: str, distance: int, release: Release
) -> Iterator[Evidence]:
    folder = releases_folder()
    if distance > CLOSE or (distance and frame.function in OUTER):
        return
    for since in guarded_from(folder, frame.path, frame.function, code, release)[:1]:
        what = "the line that fails" if distance == 0 else "the call"
        yield Evidence(
            since, f"{what} in {place} runs under other conditions from {since} on", min(distance, 2) or 1
        )
    gone = gone_from(folder, file, frame.function, code, release)
    if gone is not None:
        if distance == 0:
            yield Evidence(
                gone, f"the very line that fails, in {place}, is gone from {gone} on", 1, gone=True
            )
        elif code.endswith(")"):
            yield Evidence(gone, f"the call in {place} is another from {gone} on", 3)


def _names(code: str) -> list[str]:
    return list(
        dict.fromkeys(
            name
            for found in _WORD.finditer(code)
            if (name := found[0].lstrip(".")) not in _COMMON and len(name) > 2 and not found[1]
        )
    )


def _attributes(code: str) -> list[str]:
    """Attributes that the line reads and does not call."""
    return [
        n
        for n in dict.fromkeys(f[0][1:] for f in _WORD.finditer(code) if f[0][:1] == "." and not f[1])
        if n not in _COMMON and len(n) > 3
    ]
