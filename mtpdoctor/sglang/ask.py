"""Asking SGLang itself: its own argument checks, run where it is installed, in a child process.

The child (``child/ask.py``) imports SGLang's argument code, parses and checks, and says what came of it
as data. It starts no server. On a pretended host torch's device queries and the kernel packages are stood
in for; otherwise SGLang sees the host as it is. The child's process group is ended at the time limit.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mtpdoctor.launch.types import LaunchCommand
from mtpdoctor.release import release_or_none
from mtpdoctor.sglang.flags import flag_table

START_TIMEOUT_S = 180.0  # importing SGLang from a cold disk takes a minute
COMMAND_TIMEOUT_S = 60.0
CHILD = Path(__file__).parent / "child" / "ask.py"
ASSUMED_GIB = 80.0
# Multiprocessors of the usual GPU of an architecture: a few of SGLang's defaults look at them.
_MULTIPROCESSORS = {70: 80, 75: 40, 80: 108, 86: 84, 89: 142, 90: 132, 100: 148, 103: 148, 120: 188, 121: 48}
_REFERENCE = re.compile(r"\$[A-Za-z_{(]|`")
_NOT_HERE = re.compile(
    r"LocalEntryNotFoundError|OfflineModeIsEnabled|offline mode|couldn't connect|ConnectionError"
    r"|Repository Not Found|RepositoryNotFoundError|is not a local folder|HFValidationError|GatedRepo"
    r"|does not appear to have a file named|Can't load the configuration|Error retrieving file list"
    r"|No such file or directory: '[^']*config\.json'",
    re.IGNORECASE,
)
_FROM_STAND_INS = re.compile(
    r"MagicMock|NVIDIA driver|CUDA driver|libcuda|No CUDA GPUs|not compiled with CUDA|cudaGetDeviceCount"
)


@dataclass(frozen=True, slots=True)
class PretendedGpus:
    """The GPUs that SGLang is made to believe in. ``sm`` as number (90, 103, 120), memory in GiB each."""

    count: int
    sm: int
    gib: float = ASSUMED_GIB
    name: str = "NVIDIA GPU"
    multiprocessors: int | None = None


@dataclass(frozen=True, slots=True)
class Site:
    """Where SGLang raised: a file of its package (``sglang/srt/server_args.py``), line and function."""

    file: str
    line: int
    function: str


@dataclass(frozen=True, slots=True)
class SglangVerdict:
    """What SGLang makes of a command.

    ``verdict`` is accept, reject or unknown; ``reason`` says why it is unknown. A reject has ``stage``
    (argparse or server_args), ``exception`` and ``message`` as SGLang gave them, ``site``, and for an
    exception that says little itself an ``explanation`` read off SGLang's source. ``resolved`` are all
    arguments that would be in force (no secrets); ``version`` is that SGLang's own.
    """

    verdict: str
    stage: str | None = None
    exception: str | None = None
    message: str = ""
    site: Site | None = None
    explanation: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    resolved: Mapping[str, Any] = field(default_factory=dict)
    version: str | None = None
    reason: str | None = None
    notes: tuple[str, ...] = ()
    folder: str | None = None  # that holds ``sglang/``

    @property
    def error(self) -> str:
        """The exception as the last line of its traceback."""
        return f"{self.exception}: {self.message}" if self.message else self.exception or ""


def ask_sglang(
    python: str,
    command: LaunchCommand,
    *,
    env: Mapping[str, str] | None = None,
    gpu: PretendedGpus | None = None,
    timeout_s: float = START_TIMEOUT_S,
    model: str | None = None,
) -> SglangVerdict:
    """The verdict of the SGLang that ``python`` (an interpreter) imports on one command.

    ``env`` goes on top of the command's own variables; ``gpu`` None asks on the real host; ``model`` is
    the folder to read in place of the command's model path. Never raises for what the child does: no
    answer in ``timeout_s`` seconds, a crash or a missing SGLang are verdict unknown with the reason.
    """
    return ask_many(python, [command], env=env, gpu=gpu, timeout_s=timeout_s, model=model)[0]


def ask_many(
    python: str,
    commands: Sequence[LaunchCommand],
    *,
    env: Mapping[str, str] | None = None,
    gpu: PretendedGpus | None = None,
    timeout_s: float = START_TIMEOUT_S,
    model: str | None = None,
) -> list[SglangVerdict]:
    """:func:`ask_sglang` for several commands on one host. On a pretended host SGLang is imported once."""
    requests: list[dict[str, Any]] = []
    verdicts: dict[int, SglangVerdict] = {}
    for i, command in enumerate(commands):
        open_word = _unresolved(command)
        if open_word is not None:
            reason = f"the command holds {open_word}, whose value is not known here"
            verdicts[i] = SglangVerdict("unknown", reason=reason)
            continue
        own = {k: v for k, v in {**command.env, **(env or {})}.items() if not _REFERENCE.search(v)}
        requests.append({"id": str(i), "argv": arguments(command, model), "env": own})
    if requests:
        groups = [requests] if gpu is not None else [[r] for r in requests]
        for group in groups:
            limit = timeout_s + COMMAND_TIMEOUT_S * (len(group) - 1)
            for row in _run(python, group, gpu, limit):
                i = int(row.pop("id"))
                verdicts[i] = _verdict(
                    row,
                    pretended=gpu is not None,
                    elsewhere=gpu is not None or not _missing_here(commands[i]),
                )
    return [verdicts[i] for i in range(len(commands))]


def arguments(command: LaunchCommand, model: str | None = None) -> list[str]:
    """The server's own words of a command (``sys.argv[1:]``), ``model`` in place of its model path."""
    own = command.value("model_path")
    old = own[0] if own else None
    words: list[str] = []
    loose = list(command.positionals)
    if loose and own is None and command.program[-1:] == ("serve",):
        old = loose.pop(0)
        words += ["--model-path", model or old]
    words += loose
    for use in command.flags:
        values = tuple(model if model and v == old else v for v in use.values)
        words += [f"{use.name}={values[0]}"] if use.joined else [use.name, *values]
    return words


def _missing_here(command: LaunchCommand) -> bool:
    """Whether the command names a model folder that this machine would have to have, and has not."""
    named = command.value("model_path") or ("",)
    return named[0].startswith(("/", "./", "../", "~")) and not os.path.exists(os.path.expanduser(named[0]))


def _unresolved(command: LaunchCommand) -> str | None:
    """A word that a shell or launcher would fill in and SGLang cannot judge as it stands."""
    table = flag_table(None)
    for use in command.flags:
        spec = table.resolve(use.name)
        free_text = spec is not None and spec.type == "str" and not spec.choices
        if free_text and not use.dest.endswith(("model_path", "_algorithm")):
            continue
        for value in use.values:
            if _REFERENCE.search(value):
                return f"{use.name} {value}"
    return next((w for w in command.positionals if _REFERENCE.search(w)), None)


# -- the child -----------------------------------------------------------------------------------------


def _run(
    python: str, requests: list[dict[str, Any]], gpu: PretendedGpus | None, limit_s: float
) -> list[dict[str, Any]]:
    """One row per request, in order; unknown where the child gave none."""
    with tempfile.TemporaryDirectory(prefix="mtpdoctor-") as scratch:
        request = {
            "commands": requests,
            "gpu": _gpu(gpu) if gpu is not None else None,
            "scratch": scratch,
            "timeout_s": COMMAND_TIMEOUT_S,
        }
        output, failure = _talk(python, json.dumps(request).encode(), limit_s)
    rows = _rows(output)
    start: dict[str, Any] = next((r["start"] for r in rows if isinstance(r.get("start"), dict)), {})
    if failure is None and "failed" in start:
        failure = _no_sglang(python, start)
    about = {"version": start.get("version"), "folder": start.get("folder")}
    found = {row["id"]: row for row in rows if "id" in row}
    unknown = {"verdict": "unknown", "reason": failure or f"{python} ended without an answer"}
    return [{**about, **found.get(r["id"], {**unknown, "id": r["id"]})} for r in requests]


def _rows(output: bytes) -> list[dict[str, Any]]:
    rows = []
    for line in output.decode("utf-8", "replace").splitlines():
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if isinstance(row, dict):
            rows.append(row)
    return rows


def _talk(python: str, request: bytes, limit_s: float) -> tuple[bytes, str | None]:
    """Standard output of the child, and what went wrong with it as a whole."""
    env = {**os.environ, "HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "PYTHONIOENCODING": "utf-8"}
    try:
        child = subprocess.Popen(
            [python, str(CHILD)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=env,
            start_new_session=True,
        )
    except OSError as error:
        return b"", f"{python} cannot be run: {error.strerror or error}"
    try:
        output, errors = child.communicate(request, timeout=limit_s)
    except subprocess.TimeoutExpired:
        _end_group(child)
        output, _ = child.communicate()
        return output, f"SGLang gave no answer within {limit_s:g} s"
    finally:
        _end_group(child)  # also what it may have left running
    if child.returncode < 0:
        name = signal.Signals(-child.returncode).name
        return output, f"the process that asks SGLang was ended by {name}"
    if child.returncode:
        last = errors.decode("utf-8", "replace").strip().splitlines()[-1:]
        return output, f"{python} ended with exit code {child.returncode}" + (f": {last[0]}" if last else "")
    return output, None


def _end_group(child: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass
    except AttributeError:  # no process groups on this system
        child.kill()


def _gpu(gpu: PretendedGpus) -> dict[str, Any]:
    processors = gpu.multiprocessors or _MULTIPROCESSORS.get(gpu.sm, 132)
    return {"count": gpu.count, "sm": gpu.sm, "gib": gpu.gib, "name": gpu.name, "sms": processors}


def _no_sglang(python: str, start: Mapping[str, Any]) -> str:
    if start.get("missing") == "sglang":
        return f"{python} has no SGLang installed"
    return f"SGLang cannot be imported by {python}: {start['failed']}"


# -- what it said --------------------------------------------------------------------------------------


def _verdict(row: dict[str, Any], *, pretended: bool, elsewhere: bool) -> SglangVerdict:
    site = row.get("site") or None
    out = SglangVerdict(
        verdict=row["verdict"],
        stage=row.get("stage"),
        exception=row.get("exception"),
        message=row.get("message") or "",
        site=_site(site) if site else None,
        warnings=tuple(row.get("warnings") or ()),
        resolved=row.get("resolved") or {},
        version=row.get("version"),
        reason=row.get("reason"),
        folder=row.get("folder"),
    )
    if out.verdict != "reject" or out.stage == "argparse":
        return out
    text = " ".join([out.exception or "", out.message, row.get("cause") or "", *row.get("bases", ())])
    if elsewhere and _NOT_HERE.search(text):  # offline: the launch itself may reach the Hub
        return replace(out, verdict="unknown", reason=f"SGLang could not read the model here: {_short(out)}")
    mocked = row.get("last_file", "").endswith("mock.py")
    if pretended and (mocked or _FROM_STAND_INS.search(text)):
        return replace(
            out, verdict="unknown", reason=f"the pretended host is not enough for SGLang: {_short(out)}"
        )
    return replace(out, explanation=explain(out))


def _short(verdict: SglangVerdict) -> str:
    text = " ".join(verdict.error.split())
    return text if len(text) <= 200 else text[:197] + "..."


def _site(site: Mapping[str, Any]) -> Site:
    parts = str(site["file"]).replace("\\", "/").split("/")
    if "sglang" in parts:
        parts = parts[len(parts) - 1 - parts[::-1].index("sglang") :]
    return Site("/".join(parts), int(site["line"]), str(site["function"]))


def explain(verdict: SglangVerdict) -> tuple[str, ...]:
    """Sentences from SGLang's source on a rejection whose own message says little."""
    bare = not verdict.message.strip() or (
        verdict.exception in ("AssertionError", "TypeError", "KeyError", "AttributeError", "IndexError")
        and len(verdict.message) < 60
    )
    if not bare or verdict.site is None or verdict.folder is None:
        return ()
    from mtpdoctor.errors import UserError
    from mtpdoctor.sglang.guards import guard_words
    from mtpdoctor.sglang.raise_sites import site_at
    from mtpdoctor.sglang.source import open_source

    try:
        source = open_source(verdict.folder)
    except UserError:
        return ()
    found = site_at(source, verdict.site.file, verdict.site.line, verdict.site.function)
    where = f"{verdict.site.file}:{verdict.site.line}, {verdict.site.function}"
    if found is None:
        return (f"it is raised in {where}",)
    words = guard_words(found, flag_table(release_or_none(verdict.version or "")))
    said = [f"it is raised in {where}: {found.code}"]
    return (*said, "it is reached when " + ", and ".join(words[-4:])) if words else tuple(said)
