"""Commands to type (``run:``) with what this launch says in place of their stand-ins: MODEL_DIR, REPO, PORT, ...

A rule cannot know the folder of the model; the log or the command most often does. Only plain words are put in, for what
a log says goes into a shell here; a stand-in of which nothing is known stays.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from mtpdoctor.facts import UNKNOWN
from mtpdoctor.patterns import lazy

if TYPE_CHECKING:
    from mtpdoctor.case import Case

_PLAIN = lazy(r"[\w./@:+~*=-]+")
_STAND_IN = lazy(r"[A-Z]{2}|<[a-z]")
_REPO = lazy(r"[A-Za-z0-9][\w.-]*/[\w.-]+")
_CACHED = lazy(r"models--([\w.-]+?)--([\w.-]+)")
_POD = lazy(r"(?:^|/|\[)pod/([\w.-]+)")
_JOB = lazy(r"(?i)\b(?:JOB|StepId=|slurm-|job[ =])\s*(\d{2,12})\b")
_NAMES = {
    "model": ("MODEL", "<model>"),
    "folder": ("MODEL_DIR", "<model folder>", "<folder of the model>", "FOLDER", "<folder>"),
    "repo": ("NAMESPACE/NAME", "OWNER/MODEL", "REPO", "REPOSITORY", "<repository>"),
    "draft": ("DRAFT_DIR", "DRAFT"),
    "adapter": ("ADAPTER_DIR", "ADAPTER"),
    "tp": ("TP",),
    "image": ("IMAGE",),
    "container": ("CONTAINER",),
    "first": ("FIRST_NODE", "<address of node 0>"),
    "first_port": ("<port of --dist-init-addr>",),
    "next_port": ("<that port + 1>",),
    "pod": ("POD",),
    "job": ("JOBID",),
    "log": ("LOG", "<log>"),
}  # fmt: skip


def filled(lines: Sequence[str], case: Case) -> tuple[str, ...]:
    """The lines with the stand-ins of which this case tells."""
    known = {kind: value for kind, value in _known(case) if _PLAIN.fullmatch(value)}
    return tuple(_filled(_in_cache(line, known), known) for line in lines)


def _in_cache(line: str, known: dict[str, str]) -> str:
    """A file of a model that is named as on the hub (NAMESPACE/NAME/config.json) lies in the hub's cache."""
    repo, folder = known.get("repo"), known.get("folder")
    if repo is None or folder is None or repo != known.get("model") or f"{repo}/" not in line:
        return line
    return re.sub(rf"(?<![\w./:@~-]){re.escape(repo)}/(?=[\w.*])", lambda m: f"{folder}/", line)


def _filled(line: str, known: dict[str, str]) -> str:
    if not _STAND_IN.search(line):
        return line
    folder, repo = known.get("folder"), known.get("repo")
    if folder is not None and "*" in folder:  # in the hub's cache: the download finds its place by itself
        line = re.sub(r" --local[-_]dir (?:MODEL_DIR|FOLDER|<folder>|/models/REPO)(?!\S)", "", line)
    elif folder is not None:
        line = re.sub(r"(?<=--local-dir )/models/REPO(?!\S)", lambda m: folder, line)
    elif repo is not None:
        line = re.sub(r"(?<=/models/)REPO(?!\S)", lambda m: repo.rpartition("/")[2], line)
    if "first_port" in known and "FIRST_NODE" in line:
        line = re.sub(r"(?<=FIRST_NODE )PORT\b", known["first_port"], line)
    for kind, names in _NAMES.items():
        value = known.get(kind)
        if value is None:
            continue
        for name in names:
            pattern = re.escape(name) if name[0] == "<" else rf"(?<![\w/$.{{-]){name}(?![\w=]|\.(?!json\b))"
            line = re.sub(pattern, lambda m, v=value: v, line)  # type: ignore[misc]
    return line


def _known(case: Case) -> Iterator[tuple[str, str]]:
    facts = case.facts
    look = facts.look
    model = look("arg.model_path")
    if isinstance(model, str) and model and "$" not in model:
        yield "model", model
        yield from _places(model.rstrip("/"), case)
    for kind, name in (
        ("draft", "arg.speculative_draft_model_path"),
        ("tp", "arg.tp_size"),
        ("image", "container.image"),
        ("container", "container.name"),
    ):
        if (value := look(name)) not in (UNKNOWN, None):
            yield kind, str(value)
    adapters = look("arg.lora_paths")
    one = adapters[0] if isinstance(adapters, (list, tuple)) and len(adapters) == 1 else adapters
    if isinstance(one, str) and (path := one.rpartition("=")[2]):
        yield "adapter", path
    address = look("arg.dist_init_addr")
    host, _, port = str(address).rpartition(":") if isinstance(address, str) else ("", "", "")
    if host and port.isdigit():
        yield "first", host.strip("[]")
        yield "first_port", port
        yield "next_port", str(int(port) + 1)
    if case.reading is not None and case.attempt is not None:
        name = case.reading.files[case.attempt.first[0]].name
        if name not in ("-", "", "log") and not name.startswith("<"):
            yield "log", name
            if m := _JOB.search(name.rpartition("/")[2]):
                yield "job", m[1]
        for event in case.attempt.events:
            if m := _POD.search(event.line.stream):
                yield "pod", m[1]
                break


def _places(model: str, case: Case) -> Iterator[tuple[str, str]]:
    """Folder and repository of the model, by its path or its name on the hub."""
    cached = _CACHED.search(model)
    if model.startswith(("/", "~", "./", "../")):
        yield "folder", model
        served = case.facts.look("arg.served_model_name")
        if cached:
            yield "repo", f"{cached[1]}/{cached[2]}"
        elif isinstance(served, str) and _REPO.fullmatch(served):
            yield "repo", served
        elif not model.endswith((".gguf", ".safetensors", ".bin")):
            yield "repo", f"NAMESPACE/{model.rpartition('/')[2]}"
    elif _REPO.fullmatch(model):
        yield "repo", model
        hub = case.facts.look("env.HF_HUB_CACHE")
        home = case.facts.look("env.HF_HOME")
        cache = (
            hub
            if isinstance(hub, str)
            else f"{home}/hub"
            if isinstance(home, str)
            else "~/.cache/huggingface/hub"
        )
        yield "folder", f"{cache}/models--{model.replace('/', '--')}/snapshots/*"
