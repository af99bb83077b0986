"""Runs inside the environment that has SGLang: asks its own argument checks about launch commands.

Not imported by mtpdoctor: ``mtpdoctor.sglang.ask`` starts it as a script with that environment's Python.
A JSON request comes on standard input, one JSON object a line goes back on the first standard output:
``{"start": ...}`` once SGLang is imported, then one ``{"id": ...}`` per command. Whatever else prints goes
nowhere. No server is started. Standard library only, and syntax that every Python with SGLang reads.

Request: {"commands": [{"id", "argv", "env"}], "gpu": null or {"count", "sm", "gib", "name", "sms"},
"scratch": a folder of this call, "timeout_s": seconds for one command}.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import logging
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import Any

SECRET_FIELDS = ("api_key", "admin_api_key", "ssl_keyfile_password")
MAX_MESSAGE = 4000  # characters
MAX_WARNINGS = 60


def main() -> None:
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    request = json.loads(sys.stdin.buffer.read().decode("utf-8"))
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [p for p in sys.path if os.path.abspath(p or ".") != here]

    def say(value: dict[str, Any]) -> None:
        answer.write(json.dumps(value, default=str) + "\n")
        answer.flush()

    commands, gpu = request["commands"], request.get("gpu")
    if len(commands) == 1:  # what is read at import must see the command's own environment
        os.environ.update(commands[0].get("env") or {})
    try:
        if gpu is not None:
            _load(os.path.join(here, "stand_ins.py")).stand_in(gpu, request["scratch"])
        with _silent():
            server_args = importlib.import_module("sglang.srt.server_args")
        say({"start": _about(server_args)})
    except BaseException as error:
        say({"start": {"failed": _exception_line(error), "missing": getattr(error, "name", None)}})
        return
    if len(commands) == 1:
        say(_ask(commands[0], server_args))
    elif gpu is None:  # a process that has opened the driver cannot be forked: the caller asks one by one
        say({"start": {"failed": "one command at a time on a real host"}})
    else:
        _ask_all(commands, server_args, say, float(request.get("timeout_s") or 60))


def _load(path: str) -> Any:
    import importlib.util

    spec = importlib.util.spec_from_file_location("mtpdoctor_stand_ins", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@contextlib.contextmanager
def _silent() -> Iterator[None]:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        yield


def _about(server_args: Any) -> dict[str, Any]:
    import sglang

    version = getattr(sglang, "__version__", None)
    if not isinstance(version, str) or version.startswith("0.0.0"):
        from importlib import metadata

        try:
            version = metadata.version("sglang")
        except metadata.PackageNotFoundError:
            version = None
    folder = os.path.dirname(os.path.abspath(server_args.__file__))
    return {"version": version, "folder": os.path.dirname(os.path.dirname(folder))}


# -- one command -------------------------------------------------------------------------------------


class _Collector(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        try:
            text = record.getMessage()
        except Exception:
            return
        if text not in self.lines and len(self.lines) < MAX_WARNINGS:
            self.lines.append(text[:MAX_MESSAGE])


def _ask(command: dict[str, Any], server_args: Any) -> dict[str, Any]:
    """SGLang's own verdict on one command."""
    collector = _Collector()
    root = logging.getLogger()
    root.handlers[:] = [collector]
    root.setLevel(logging.INFO)
    printed = io.StringIO()
    out: dict[str, Any] = {"id": command["id"]}
    try:
        with contextlib.redirect_stderr(printed), contextlib.redirect_stdout(printed):
            args = server_args.prepare_server_args(list(command["argv"]))
            if hasattr(args, "resolve_once"):  # from 0.5.20 on, construction no longer resolves
                args.resolve_once()
            if hasattr(args, "check_server_args"):
                args.check_server_args()
            out["resolved"] = _resolved(args)
        out["verdict"] = "accept"
    except SystemExit as exit_:
        errors = [line for line in printed.getvalue().splitlines() if "error: " in line]
        if not errors and exit_.code in (0, None):
            out.update(verdict="unknown", reason="this command only prints a text and ends")
        else:
            text = errors[-1].split("error: ", 1)[1] if errors else f"it ended with exit code {exit_.code}"
            out.update(verdict="reject", stage="argparse", exception="SystemExit", message=text[:MAX_MESSAGE])
    except BaseException as error:
        out.update(verdict="reject", stage="server_args", **_raised(error))
    out["warnings"] = collector.lines
    return out


def _raised(error: BaseException) -> dict[str, Any]:
    frames = traceback.extract_tb(error.__traceback__)
    ours = [f for f in frames if "sglang" in f.filename.replace("\\", "/").split("/")]
    site = ours[-1] if ours else (frames[-1] if frames else None)
    message = str(error)
    return {
        "exception": type(error).__name__,
        "bases": [c.__name__ for c in type(error).__mro__[1:-2]],
        "message": message[:MAX_MESSAGE],
        "site": None if site is None else {"file": site.filename, "line": site.lineno, "function": site.name},
        "last_file": frames[-1].filename if frames else "",
        "cause": _exception_line(error.__cause__) if error.__cause__ is not None else None,
    }


def _exception_line(error: BaseException) -> str:
    text = f"{type(error).__name__}: {error}"
    return " ".join(text.split())[:MAX_MESSAGE]


def _resolved(args: Any) -> dict[str, Any]:
    """Every field as it would be in force; secrets left out."""
    import dataclasses

    view = args
    try:  # from 0.5.20 on the record keeps what was declared, a view holds what it resolves to
        from sglang.srt.arg_groups.overrides import resolving_view

        view = resolving_view(args)
    except Exception:
        pass
    if dataclasses.is_dataclass(args):
        names = [field.name for field in dataclasses.fields(args)]
    else:
        names = list(getattr(type(args), "__struct_fields__", None) or vars(args))
    out = {}
    for name in names:
        if name.startswith("_") or name in SECRET_FIELDS:
            continue
        try:
            value, plain = _plain(getattr(view, name), 0)
        except Exception:
            continue
        if plain:
            out[name] = value
    return out


def _plain(value: Any, depth: int) -> tuple[Any, bool]:
    """The value as JSON can hold it, and whether it could be told."""
    if value is None or isinstance(value, (str, bool, int, float)):
        if isinstance(value, float) and value != value:
            return None, False
        if type(value) in (str, bool, int, float, type(None)):
            return value, True
        inner = getattr(value, "value", value)
        return (inner, True) if type(inner) in (str, bool, int, float) else (str(value), True)
    if depth < 4 and isinstance(value, (list, tuple, set, frozenset)):
        items = [_plain(item, depth + 1) for item in value]
        return [item for item, _ in items], all(ok for _, ok in items)
    if depth < 4 and isinstance(value, dict):
        named = {str(k): _plain(v, depth + 1) for k, v in value.items()}
        return {k: v for k, (v, _) in named.items()}, all(ok for _, ok in named.values())
    if depth < 4 and hasattr(value, "__dataclass_fields__") and not isinstance(value, type):
        fields = {name: getattr(value, name, None) for name in value.__dataclass_fields__}
        return _plain(fields, depth)
    inner = getattr(value, "value", None)  # an enum
    if type(inner) in (str, int):
        return inner, True
    return None, False


# -- several commands, one import --------------------------------------------------------------------


def _ask_all(
    commands: Sequence[dict[str, Any]],
    server_args: Any,
    say: Callable[[dict[str, Any]], None],
    timeout_s: float,
) -> None:
    """Each command in a fork of its own, so that neither environment nor caches leak."""
    import gc

    learned: set[str] = set()
    for command in commands:
        reading, writing = os.pipe()
        known = set(sys.modules)
        started = time.monotonic()
        gc.freeze()
        pid = os.fork()
        if pid == 0:
            try:
                os.close(reading)
                os.environ.update(command.get("env") or {})
                result = _ask(command, server_args)
                loaded = [m for m in sys.modules if m not in known and m.startswith("sglang.")]
                with os.fdopen(writing, "w", encoding="utf-8") as pipe:
                    pipe.write(json.dumps([result, loaded], default=str))
            finally:
                os._exit(0)
        os.close(writing)
        data, ended = _read_until(reading, started + timeout_s)
        if not ended:
            os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        result, loaded = _decoded(data, command["id"], ended, status, timeout_s)
        say(result)
        for name in loaded:  # what a command made SGLang import is imported once for all that follow
            if name not in learned and name not in sys.modules:
                learned.add(name)
                with _silent(), contextlib.suppress(BaseException):
                    importlib.import_module(name)


def _read_until(descriptor: int, deadline: float) -> tuple[bytes, bool]:
    import select

    data = b""
    try:
        while True:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([descriptor], [], [], left)[0]:
                return data, False
            chunk = os.read(descriptor, 1 << 16)
            if not chunk:
                return data, True
            data += chunk
    finally:
        os.close(descriptor)


def _decoded(
    data: bytes, id_: str, ended: bool, status: int, timeout_s: float
) -> tuple[dict[str, Any], list[str]]:
    if not ended:
        return {"id": id_, "verdict": "unknown", "reason": f"no answer within {timeout_s:g} s"}, []
    try:
        result, loaded = json.loads(data.decode("utf-8"))
        return result, loaded
    except ValueError:
        killed = status & 0x7F
        how = f"signal {killed}" if killed else f"exit code {status >> 8}"
        return {"id": id_, "verdict": "unknown", "reason": f"the process that asked ended with {how}"}, []


if __name__ == "__main__":
    main()
    os._exit(0)  # nothing of what was imported may run at exit
