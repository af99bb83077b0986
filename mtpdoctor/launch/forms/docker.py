"""``docker run`` and its kin inside a shell command: options, image, the command after it.

Options: ``docker run --help`` (Docker 27) and podman-run(1).
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence

from mtpdoctor.launch.layers import Splice
from mtpdoctor.launch.words import Binding, Word
from mtpdoctor.records import dataclass, field

_ENGINES = frozenset(("docker", "podman", "nerdctl", "nvidia-docker"))
# fmt: off
_SWITCHES = frozenset((
    "--detach", "--interactive", "--tty", "--rm", "--init", "--privileged", "--read-only",
    "--publish-all", "--no-healthcheck", "--oom-kill-disable", "--sig-proxy",
    "--disable-content-trust", "--quiet", "--help", "--replace", "--no-hosts", "--rmi", "--env-host",
    "--http-proxy", "--tls-verify", "--all",
))
# fmt: on
_SHORT_SWITCHES = frozenset("ditPqh")
_KEPT = {"gpus": "gpus", "shm-size": "shm_size", "ipc": "ipc", "network": "network", "net": "network",
         "runtime": "runtime", "device": "device", "entrypoint": "entrypoint", "user": "user"}  # fmt: skip


@dataclass(slots=True)
class ContainerRun:
    """The container part of a command. ``rest`` is the index of the first word after the image."""

    facts: dict[str, str] = field(default_factory=dict)
    options: dict[str, tuple[int, str | None]] = field(default_factory=dict)  # name -> (word, inline value)
    bindings: list[Binding] = field(default_factory=list)
    env_files: list[str] = field(default_factory=list)
    image: int | None = None
    rest: int = 0
    entrypoint: int | None = None
    last_env: int | None = None  # last word of the last -e option


def find_engine(words: Sequence[str]) -> int | None:
    """Index of ``run`` (``exec``, ``create``) of a container engine's command line; else None."""
    for i, word in enumerate(words):
        if posixpath.basename(word) in _ENGINES:
            for j in range(i + 1, min(i + 8, len(words))):
                if words[j] in ("run", "exec", "create"):
                    return j
    return None


def read_run(words: Sequence[Word], at: int) -> ContainerRun:
    """Options and image after ``words[at]`` (``run``)."""
    run = ContainerRun()
    i = at + 1
    while i < len(words):
        text = words[i].value
        if not text.startswith("-") or text == "-":
            break
        name, inline, last = _option(words, i)
        if name is None:
            i += 1
            continue
        value = inline if inline is not None else words[last].value if last < len(words) else ""
        run.options[name] = (i, inline)
        if name in ("e", "env") and last < len(words):
            run.bindings.append(_binding(words, i, last, value, inline))
            run.last_env = last
        elif name == "env-file":
            run.env_files.append(value)
        elif name in _KEPT:
            run.facts[_KEPT[name]] = value
            if name == "entrypoint":
                run.entrypoint = last
        i = last + 1
    if i < len(words):
        run.image = i
        run.facts["image"] = words[i].value
    run.rest = min(i + 1, len(words))
    return run


def _option(words: Sequence[Word], i: int) -> tuple[str | None, str | None, int]:
    """(name without dashes or None for a switch, inline value, index of the last word of the option)."""
    text = words[i].value
    if text.startswith("--"):
        name, equals, inline = text.partition("=")
        if name in _SWITCHES:
            return None, None, i
        return name[2:], (inline if equals else None), (i if equals else i + 1)
    for k, c in enumerate(text[1:], 1):
        if c in _SHORT_SWITCHES:
            continue
        rest = text[k + 1 :]
        return c, (rest.removeprefix("=") if rest else None), (i if rest else i + 1)
    return None, None, i


def _binding(words: Sequence[Word], i: int, last: int, text: str, inline: str | None) -> Binding:
    name, equals, value = text.partition("=")
    word = words[last]
    prefix = word.value[: len(word.value) - len(text)]

    def replace(new: str) -> list[Splice]:
        return word.host.replace(word, f"{prefix}{name}={new}")

    def remove() -> list[Splice]:
        return word.host.remove(words[i : last + 1])

    return Binding(name, value if equals else f"${name}", replace, remove)


def retag(image: str, tag: str) -> str:
    """The image with another tag; a digest pinned to the old image goes."""
    image = image.split("@", 1)[0]
    return re.sub(r":(?:\$\{[^{}]*\}|[^:/{}])*\Z", "", image) + ":" + tag


def edit_run(words: Sequence[Word], at: int, run: ContainerRun, op: str, value: str) -> list[Splice]:
    """Splices for a container edit: ``shm-size``, ``ipc``, ``gpus``, ``image-tag``."""
    if op == "image-tag":
        if run.image is None:
            return []
        image = words[run.image]
        return image.host.replace(image, retag(image.value, value))
    if op in run.options:
        i, inline = run.options[op]
        word = words[i] if inline is not None else words[i + 1]
        return word.host.replace(word, value if inline is None else f"--{op}={value}")
    return add_option(words, at, run, (f"--{op}", value))


def add_option(words: Sequence[Word], at: int, run: ContainerRun, option: Sequence[str]) -> list[Splice]:
    """A new option, in front of the image; a new ``-e`` behind the last one."""
    place = (run.image if run.image is not None else run.rest) - 1
    if option[0] == "-e" and run.last_env is not None:
        place = run.last_env
        like = words[place - 1] if words[place - 1].value in ("-e", "--env") else words[place]
    else:
        like = words[run.image] if run.image is not None else None  # type: ignore[assignment]
    anchor = words[max(place, at)]
    return anchor.host.insert_after(anchor, [option], like)
