"""What a launch on this very machine would miss: folders and files it names, a port that is taken.

Only asked where no other host was named. Each finding is the error that the launch would print, for the
rules to explain.
"""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Iterator

from mtpdoctor.launch.types import Form, LaunchCommand
from mtpdoctor.log.types import Stage
from mtpdoctor.records import dataclass

_FRAME = 'Traceback (most recent call last):\n  File "sglang/launch_server.py", line 1, in run_server\n'
_MODELS = ("model_path", "tokenizer_path", "speculative_draft_model_path")
_ELSEWHERE = (Form.DOCKER, Form.COMPOSE, Form.KUBERNETES)  # their paths and ports are another machine's
DEFAULT_PORT = 30000


@dataclass(frozen=True, slots=True)
class Missing:
    """``said`` is what the launch would say at ``stage``, ``log`` the same as it stands in a log."""

    said: str
    stage: Stage

    @property
    def log(self) -> str:
        return f"{_FRAME}{self.said}\n"


def missing_here(command: LaunchCommand) -> Iterator[Missing]:
    """In the order in which a launch would come upon it."""
    if command.form in _ELSEWHERE or command.container:
        return
    for dest in _MODELS:
        path = _path(command, dest)
        if path is None:
            continue
        if not os.path.exists(path):
            form = "'repo_name' or 'namespace/repo_name'"
            yield Missing(f"OSError: Repo id must be in the form {form}: '{path}'.", Stage.CONFIG)
        elif os.path.isdir(path) and dest == "model_path" and not _has_config(path):
            yield Missing(f"OSError: {path} does not appear to have a file named config.json.", Stage.CONFIG)
    template = _path(command, "chat_template")
    if template is not None and not os.path.exists(template):
        said = f"RuntimeError: Chat template {template} is not a built-in template name or a valid chat template file path."
        yield Missing(said, Stage.TOKENIZER)
    taken = _taken(command)
    if taken is not None:
        said = (
            f"[Errno {errno.EADDRINUSE}] error while attempting to bind on address "
            f"('{taken[0]}', {taken[1]}): address already in use"
        )
        yield Missing(f"OSError: {said}", Stage.WARMUP)


def _path(command: LaunchCommand, dest: str) -> str | None:
    """A value that can only be a path on this machine; None for a Hub id, a name or a shell variable."""
    values = command.value(dest)
    if not values or "$" in values[0] or not values[0].startswith(("/", "./", "../", "~/")):
        return None
    return os.path.expanduser(values[0])


def _has_config(folder: str) -> bool:
    names = ("config.json", "params.json")  # params.json: Mistral's own form
    try:
        return any(n in names or n.endswith(".gguf") for n in os.listdir(folder))
    except OSError:
        return True  # not ours to read: nothing is known


def _taken(command: LaunchCommand) -> tuple[str, int] | None:
    """Host and port that the server would listen on, where somebody else does already."""
    host = (command.value("host") or ("127.0.0.1",))[0]
    port = (command.value("port") or (str(DEFAULT_PORT),))[0]
    if not port.isdigit() or not 0 < int(port) < 65536:
        return None
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, int(port)))
    except OSError as error:
        return (host, int(port)) if error.errno == errno.EADDRINUSE else None
    return None
