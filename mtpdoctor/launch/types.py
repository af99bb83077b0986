"""The typed structures of launch commands and edits to them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from mtpdoctor.records import dataclass, field


class Form(str, Enum):
    """The forms a launch is written in."""

    SHELL = "shell"
    SCRIPT = "script"
    DOCKER = "docker"
    COMPOSE = "compose"
    KUBERNETES = "kubernetes"
    SBATCH = "sbatch"
    SYSTEMD = "systemd"
    SGLANG_CONFIG = "sglang-config"


class EditOp(str, Enum):
    SET = "set"  # set a flag's value (add it if missing)
    ADD = "add"  # add a boolean flag
    REMOVE = "remove"  # remove a flag and its values
    ENV = "env"  # set an environment variable
    UNSET = "unset"  # remove an environment variable
    SHM_SIZE = "shm-size"  # containers only, below
    IPC = "ipc"
    GPUS = "gpus"
    IMAGE_TAG = "image-tag"


@dataclass(frozen=True, slots=True)
class Edit:
    """One typed edit. ``name`` is a long flag (``--tp-size``), a variable, or "" for container ops."""

    op: EditOp
    name: str
    value: str | None = None

    def __str__(self) -> str:
        if self.op is EditOp.ENV:
            return f"env {self.name}={self.value}"
        return " ".join(p for p in (self.op.value, self.name, self.value) if p)


@dataclass(frozen=True, slots=True)
class FlagUse:
    """One flag as it stands in the command, at its place."""

    name: str  # as written: "--tp"
    dest: str  # canonical destination: "tp_size"; for an unknown flag its own name with underscores
    values: tuple[str, ...]  # unquoted; () for a switch
    joined: bool  # written --flag=value


@dataclass(frozen=True, slots=True)
class LaunchCommand:
    """A launch command, independent of the form it was written in.

    ``flags`` keep their order and repetitions; ``env`` is what the form sets for the server
    (values that could not be resolved are kept as written, e.g. "$MODEL").
    """

    form: Form
    program: tuple[str, ...]  # ("python", "-m", "sglang.launch_server") or ("sglang", "serve")
    flags: tuple[FlagUse, ...]
    env: Mapping[str, str]
    positionals: tuple[str, ...] = ()
    container: Mapping[str, str] | None = None  # image, gpus, shm_size, ipc, ... where the form has them
    env_files: tuple[str, ...] = ()  # files that set further variables; named, never read
    scheduler: Mapping[str, str] = field(default_factory=dict)  # #SBATCH options, replicas of a manifest, ...

    def value(self, dest: str) -> tuple[str, ...] | None:
        """Values of the last use of a flag; None when not given; () for a switch."""
        for use in reversed(self.flags):
            if use.dest == dest:
                return use.values
        return None
