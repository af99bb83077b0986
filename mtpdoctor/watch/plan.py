"""What is to be launched, decided before anything is started: words and environment, never a shell."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from mtpdoctor.diagnose.given import Given
from mtpdoctor.errors import UserError
from mtpdoctor.launch.types import Form
from mtpdoctor.patterns import lazy

if TYPE_CHECKING:
    from mtpdoctor.launch.document import LaunchDocument
    from mtpdoctor.launch.words import Word

_ELSEWHERE = {
    Form.DOCKER: "start it with docker, then: mtpdoctor watch -- docker logs -f NAME",
    Form.COMPOSE: "docker compose up -d, then: mtpdoctor watch -- docker compose logs -f SERVICE",
    Form.KUBERNETES: "kubectl apply -f FILE, then: mtpdoctor watch -- kubectl logs -f POD",
    Form.SGLANG_CONFIG: "mtpdoctor run -- python -m sglang.launch_server --config FILE",
}
_SHELLS = (Form.SHELL, Form.SCRIPT, Form.SBATCH)
# What stands in front of the server's program. A shell's own words, and what would take the output away or the
# processes out of the launch's session, are left out; what starts it elsewhere, or as somebody else, is refused.
_LEFT_OUT = frozenset(("exec", "command", "builtin", "time", "nohup", "setsid"))
_AWAY = {
    **dict.fromkeys(("ssh", "mosh", "pdsh"), "start the doctor there: ssh HOST mtpdoctor run -- COMMAND"),
    **dict.fromkeys(
        ("srun", "sbatch", "salloc"),
        "start the doctor there (srun ... mtpdoctor run -- COMMAND), or follow its log: mtpdoctor watch LOG",
    ),
    **dict.fromkeys(
        ("sudo", "doas", "su", "runuser"), "start the doctor as that user: sudo mtpdoctor run -- COMMAND"
    ),
    **dict.fromkeys(("tmux", "screen", "systemd-run"), "start the doctor in there: mtpdoctor run -- COMMAND"),
    **dict.fromkeys(("kubectl", "oc"), "start it, then: mtpdoctor watch -- kubectl logs -f POD"),
}
_WITH_VALUE = (
    "-n",
    "-f",
    "-o",
    "-a",
)  # options of a left-out word that take a word of their own (exec -a NAME)
# a variable as a shell would put it in: $NAME, ${NAME}, ${NAME:-default}, ${NAME-default}
_VARIABLE = lazy(r"\$(?:(?P<bare>[A-Za-z_]\w*)|\{(?P<braced>[A-Za-z_]\w*)(?::?-(?P<default>[^}$`]*))?\})")


@dataclass(frozen=True, slots=True)
class LaunchPlan:
    """One launch. ``env`` is the whole environment of the server, secrets and all: never shown as it is."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(repr=False, default_factory=dict)
    cwd: str | None = None
    given: Given = field(default_factory=Given)  # what a diagnosis is made with; document: the launch
    model: str = ""  # for the name of the run's folder
    sets: tuple[str, ...] = ()  # "NAME=value" and "-NAME" against the doctor's own environment; unmasked
    detach: bool = False  # leave it running when the doctor goes
    pty: bool = True  # its output goes through a terminal of its own; else through a pipe
    prove: bool = True  # ask for tokens once it says that it is ready
    prove_timeout: float = 300.0  # seconds
    ready_timeout: float | None = None  # seconds from the launch; later, it counts as failed
    server: bool = True  # False: the program only shows another's log, and may be ended at any time

    @property
    def document(self) -> LaunchDocument | None:
        return self.given.document


def plan_of(given: Given, **options: object) -> LaunchPlan:
    """The launch of ``given.document`` on this machine. ``options`` are fields of LaunchPlan.

    Raises UserError for a form whose server does not run as a process of this machine's user, and for what
    only a shell could work out.
    """
    document = given.document
    assert document is not None
    if document.form in _ELSEWHERE or document.command.container:
        form = document.form.value
        raise UserError(
            f"a {form} launch is not started by the doctor",
            hint=_ELSEWHERE.get(document.form, _ELSEWHERE[Form.DOCKER]),
        )
    command = document.command
    if command.env_files:
        raise UserError(
            f"{', '.join(command.env_files)} would have to be read for its variables",
            hint="set them in front of the command, then leave the file out",
        )
    env = dict(os.environ)
    for name, value in command.env.items():
        env[name] = _expanded(value, env, name, strict=False)
    argv = tuple(_words(document, env))
    env.setdefault("PYTHONUNBUFFERED", "1")
    named = command.value("model_path") or command.value("model") or command.positionals[:1]
    plan = LaunchPlan(argv=argv, env=env, given=given, model=named[-1] if named else "", sets=_sets(env))
    return replace(plan, **options)  # type: ignore[arg-type]


def plan_to_follow(argv: tuple[str, ...], given: Given | None = None, **options: object) -> LaunchPlan:
    """A program that shows a server's log (``docker logs -f NAME``); ended with the watch."""
    plan = LaunchPlan(
        argv=argv,
        env=dict(os.environ),
        given=given or Given(),
        pty=False,
        server=False,
        model=Path(argv[0]).name,
    )
    return replace(plan, **options)  # type: ignore[arg-type]


def _words(document: LaunchDocument, env: Mapping[str, str]) -> list[str]:
    """Program and arguments. Only words that a shell (or systemd) would still have worked on are worked on."""
    command = document.command
    site = document.sites[document.commands.index(command)]
    before = site.before
    if document.form is Form.SBATCH and any(Path(word.value).name == "srun" for word in before):
        before = ()  # the job's step is this process
    for name in (*site.carriers, *(word.value for word in before)):
        away = _AWAY.get(Path(name).name)
        if away is not None:
            raise UserError(f"{Path(name).name} would start the server out of the doctor's reach", hint=away)
    if site.program and site.program_values is None:
        out = _runner([part for word in before for part in _parts(word, document, env)])
        out += [part for word in site.program for part in _parts(word, document, env)]
    else:
        out = list(command.program or ("python3", "-m", "sglang.launch_server"))
    for word in site.args:
        out += _parts(word, document, env)
    if out[0] in ("python", "python3") and shutil.which(out[0], path=env.get("PATH")) is None:
        other = "python3" if out[0] == "python" else "python"  # "python" is not everywhere
        out[0] = other if shutil.which(other, path=env.get("PATH")) else out[0]
    return out


def _runner(words: list[str]) -> list[str]:
    """What runs the server's program (``numactl -N 0``, ``uv run``, ``env -u X``), fit to be watched."""
    at = 0
    while at < len(words) and Path(words[at]).name in _LEFT_OUT:
        at += 1
        while at < len(words) and words[at].startswith("-"):
            at += 2 if words[at] in _WITH_VALUE else 1
    out = words[at:]
    if out[1:2] == ["run"] and Path(out[0]).name in ("conda", "mamba"):
        shown = ("--no-capture-output", "--live-stream", "--interactive")
        if not any(word in shown for word in out):
            out.insert(2, shown[0])  # else it keeps the output to itself until the end
    return out


def _parts(word: Word, document: LaunchDocument, env: Mapping[str, str]) -> list[str]:
    if word.value in ("$@", "$*", "${@}") and word.open:
        return []  # of a script that is given no arguments
    systemd = document.form is Form.SYSTEMD
    written = document.text[word.start : word.end] if document.form in _SHELLS else ""
    if word.value.startswith("~") and written.startswith("~"):
        return [os.path.expanduser(word.value)]
    if not word.open and not (systemd and "$" in word.value):
        return [word.value]
    value = _expanded(word.value, env, "the command", strict=True)
    alone = _VARIABLE.fullmatch(word.value)
    splits = alone is not None and (written.startswith("$") or (systemd and alone["bare"] is not None))
    return value.split() if splits else [value]


def _expanded(text: str, env: Mapping[str, str], where: str, *, strict: bool) -> str:
    """With variables put in. Raises UserError for what only a shell could work out, and, when ``strict``, for a
    variable that is not set."""

    def value(m: re.Match[str]) -> str:
        name = m["bare"] or m["braced"]
        known = env.get(name) or m["default"]
        if known is None and strict:
            raise UserError(f"${name} in {where} is not set", hint=f"export {name}=..., or write its value")
        return m[0] if known is None else known

    if "`" in text or "$(" in text:
        raise UserError(
            f"{where} holds a command substitution, and no shell is used",
            hint="write what it stands for; in what is typed after -- your own shell works it out",
        )
    return _VARIABLE.sub(value, text) if "$" in text else text


def _sets(env: Mapping[str, str]) -> tuple[str, ...]:
    changed = [f"{n}={v}" for n, v in env.items() if os.environ.get(n) != v]
    return (*changed, *(f"-{n}" for n in os.environ if n not in env))
