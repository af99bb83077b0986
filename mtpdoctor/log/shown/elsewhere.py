"""What a log shows below a prompt of another machine, another Python or another folder than those of the launch."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from mtpdoctor.log.prompt import PROMPT
from mtpdoctor.log.tracelines import is_record
from mtpdoctor.log.types import Line
from mtpdoctor.patterns import lazy
from mtpdoctor.records import dataclass

Key = tuple[int, int, int]

_MARKS = ("$", "#", "%", ">", "❯", "➜")
_PROMPTED = lazy(rf"^\s{{0,20}}(?P<prompt>{PROMPT})\s{{1,20}}(?P<command>\S.*)$")
_WHO = lazy(
    r"^(?:\((?P<env>[\w.-]{1,40})\) ?)?(?:\([\w.-]{1,40}\) ?){0,5}(?:\[?[\w.-]{1,40}@(?P<host>[\w.-]{1,60})|(?P<bare>[\w.-]{1,60}):[~/])?"
)
_CONTAINER_ID = lazy(r"^[0-9a-f]{12}$")  # of a container on the machine that another prompt is of
_STARTS = lazy(r"\bsglang\.launch_server\b|\bsglang\s+(?:serve|generate)\b|\blaunch_server\.py\b")
_ENTERS = lazy(
    r"\b(?:docker|podman|nerdctl|kubectl|srun|salloc|singularity|apptainer|enroot|pyxis|nsenter|lxc|ssh)\b"
)
_REMOTE = lazy(r"^(?:sudo )?(?:ssh|pdsh|rsh)\s+(?:-\S+\s+){0,6}(?:[\w.-]{1,40}@)?([\w.-]{1,60})\s+\S")
_BEFORE = r"(?:(?:sudo|time|watch(?: -\S+(?: \d+)?)?) +){0,3}"
_OF_PYTHON = lazy(
    rf"^{_BEFORE}(?:(?:uv )?pip3? (?:list|freeze|show|install|check)\b|conda list\b|mamba list\b|python[\d.]* (?:-V\b|--version\b|-c |-m (?:pip|torch\.utils\.collect_env|sglang\.check_env)\b))"
)
_OF_MACHINE = lazy(
    rf"^{_BEFORE}(?:nvidia-smi|rocm-smi|nvcc|free|df|lscpu|uname|ulimit|cat /proc/|ldd|ldconfig|python[\d.]* )"
)
_OF_FOLDER = lazy(
    rf"^{_BEFORE}(?:(?P<reads>cat|head|less|more|bat|jq|python[\d.]* -m json\.tool)|ls|ll|du|tree)(?:\s|$)(?P<rest>.*)$"
)
_SYSTEM = ("/dev", "/proc", "/usr", "/lib", "/etc", "/sys", "/opt", "/var")
_MODEL = lazy(r"--model(?:-path)?(?:=|\s+)['\"]?([^\s'\"]+)")
_DRAFT = lazy(r"--speculative-draft-model(?:-path)?(?:=|\s+)['\"]?([^\s'\"]+)")
_MOUNT = lazy(r"(?:=|\s)(/[\w./-]{1,200}):/")


@dataclass(frozen=True, slots=True)
class Launched:
    """What is known of the models of a launch, and its command."""

    command: str = ""
    model: str = ""
    draft: str = ""


def launched(command: str | None, model: object = None, draft: object = None) -> Launched:
    text = command or ""
    typed, drafted = _MODEL.search(text), _DRAFT.search(text)
    return Launched(
        text,
        model if isinstance(model, str) else typed[1] if typed else "",
        draft if isinstance(draft, str) else drafted[1] if drafted else "",
    )


@dataclass(frozen=True, slots=True)
class _Asked:
    """A command that a person typed to look at something."""

    command: str
    env: str | None
    host: str | None


def elsewhere(lines: Sequence[Line], launch: Launched) -> frozenset[Key]:
    """Lines that a command printed which looked at something that is not the launch's."""
    sections: list[tuple[_Asked, list[Key]]] = []
    homes: list[_Asked] = []
    entered = False
    now: list[Key] | None = None
    for line in lines:
        asked = _asked(line.body)
        if asked is not None:
            now = None
            entered = entered or _ENTERS.search(asked.command) is not None
            if _STARTS.search(asked.command):
                homes.append(asked)
                entered = entered or "/sgl-workspace" in line.body
            elif _looks(asked.command):
                now = [line.key]
                sections.append((asked, now))
        elif now is not None:
            if is_record(line) or line.body.startswith("Traceback "):
                now = None
            else:
                now.append(line.key)
    if not sections:
        return frozenset()
    away = (keys for asked, keys in sections if _is_away(asked, homes, entered, launch))
    return frozenset(key for keys in away for key in keys)


def _asked(body: str) -> _Asked | None:
    head = body[:300]
    if not any(mark in head for mark in _MARKS) or (m := _PROMPTED.match(body)) is None:
        return None
    who = _WHO.match(m["prompt"])
    return _Asked(m["command"].strip(), who and who["env"], who and (who["host"] or who["bare"]))


def _looks(command: str) -> bool:
    forms = (_OF_MACHINE, _OF_PYTHON, _OF_FOLDER, _REMOTE)
    return any(form.match(command) is not None for form in forms)


def _is_away(asked: _Asked, homes: Sequence[_Asked], entered: bool, launch: Launched) -> bool:
    remote = _REMOTE.match(asked.command)
    if remote is not None:
        there = {home.host for home in homes}
        return bool(homes) and remote[1] not in there and not any("ssh " in h.command for h in homes)
    hosts = {home.host for home in homes}
    if asked.host and hosts and None not in hosts and asked.host not in hosts and not entered:
        return not any(_CONTAINER_ID.match(name or "") for name in (asked.host, *hosts))
    if _OF_PYTHON.match(asked.command):
        envs = {home.env for home in homes}
        return bool(asked.env and envs) and None not in envs and asked.env not in envs
    folder = _OF_FOLDER.match(asked.command)
    return folder is not None and any(
        _is_anothers(path, launch) for path in _paths(folder["rest"] or "", reads=folder["reads"] is not None)
    )


def _paths(rest: str, *, reads: bool) -> Iterator[str]:
    for word in rest.partition("|")[0].split():
        path = word.strip("'\"")
        if not path.startswith(("-", "<", ">", ".[", *_SYSTEM)) and (not reads or path.endswith(".json")):
            yield path


def _is_anothers(path: str, launch: Launched) -> bool:
    """Is the folder that of the draft, or of a model that is not the launch's?"""
    folder = re.sub(r"/[\w.-]+\.(?:json|safetensors|bin|gguf)$", "", path).rstrip("/")
    if not launch.model or "/" not in path or "$" in path or "*" in folder or folder in ("", ".", "..", "~"):
        return False
    there, name, draft = _plain(folder), _plain(_last(launch.model)), _plain(_last(launch.draft))
    if draft and draft in there and draft not in name:
        return True
    if not name or name in there or _plain(_last(folder)) in _plain(launch.model):
        return False
    return not any(folder.startswith(mount) for mount in _MOUNT.findall(launch.command))


def _last(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]


def _plain(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower())
