"""Flags that another parser of SGLang than the language server's refused: the router's, or that of the server
for image and video models."""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Sequence

from mtpdoctor.case import Case
from mtpdoctor.kb.templates import literal
from mtpdoctor.kb.types import EditTemplate, Match, Remedy, Safety
from mtpdoctor.launch.types import EditOp
from mtpdoctor.patterns import lazy
from mtpdoctor.sglang.flags import OF_SERVE, flag_table
from mtpdoctor.sglang.other_parsers import (
    MODEL_TYPE_SINCE,
    ROUTER,
    diffusion_flags,
    diffusion_since,
    first_with_all,
    only_of_diffusion,
    router_flags,
    starts_diffusion,
)
from mtpdoctor.sglang.releases import known_releases
from mtpdoctor.sglang.store import release_order

_PROGRAM = lazy(r"(?P<program>[\w./-]+(?: serve)?): error: ")
_ROUTER = lazy(r"(?:launch_router|sglang[-_]router|\bsmg\b|sglang-model-gateway)")
_DIFFUSION_SEEN = lazy(r"sglang[./]multimodal_gen|[Dd]etected diffusion model|serve backend 'diffusion'")
_OF_SERVER = "[--tokenizer-path "  # in the usage text of the language server only
_LINES = 1200  # before the error; longer than any usage text

_DIFFUSION = frozenset(
    ("ulysses_degree", "ring_degree", "num_gpus", "sp_degree", "performance_mode", "model_type", "vae_path",
     "enable_cfg_parallel", "dit_cpu_offload", "text_encoder_cpu_offload", "vae_cpu_offload", "pipeline_class_name")
)  # fmt: skip


def parser_of(match: Match, case: Case) -> str:
    """Whose parser wrote the error: "router", "diffusion" or "server"."""
    found = _PROGRAM.search(match.line.text)
    program = found["program"] if found else ""
    if _ROUTER.search(program):
        return "router"
    if program.endswith("launch_server.py"):
        return "server"
    if case.reading is not None and case.attempt is not None:
        first = max(case.attempt.first[1], match.line.number - _LINES)
        lines = case.reading.hits.window(match.line.file, first, match.line.number - 1)
        if any(_DIFFUSION_SEEN.search(line.text) for line in lines):
            return "diffusion"
        if any(_OF_SERVER in line.text for line in lines):
            return "server"  # its usage text
    typed = case.document.command.flags if case.document is not None else ()
    return "diffusion" if any(use.dest in _DIFFUSION for use in typed) else "server"


def serves_diffusion(case: Case) -> bool:
    """Is the launch one of the server for image and video models, by its command or its frames?"""
    if case.document is not None:
        command = case.document.command
        if any(use.dest in _DIFFUSION for use in command.flags) or starts_diffusion(command):
            return True
    for event in case.attempt.events if case.attempt is not None else ():
        nodes = event.traceback.chain if event.traceback is not None else ()
        if any(_DIFFUSION_SEEN.search(frame.path) for node in nodes for frame in node.frames):
            return True
    return False


def of_router(flags: Sequence[tuple[str, str | None]]) -> list[Remedy]:
    """For flags that the router refused."""
    out = []
    known = router_flags()
    for name, _ in flags:
        near = difflib.get_close_matches(name, known, n=1, cutoff=0.85)
        if near:
            title, why = f"Write {near[0]}", f"the router has no {name}; {near[0]} comes closest"
        elif name in flag_table(None):
            title = f"Give {name} to the server, not to the router"
            why = f"{name} is an option of sglang.launch_server; the router only passes requests on"
        else:
            title, why = f"Leave {name} out of the router's command", f"the router has no {name}"
        out.append(Remedy(title=title, safety=Safety.MANUAL, why=why, run=(f"{ROUTER} --help",)))
    return out


def of_missed_router(flags: Sequence[tuple[str, str | None]], match: Match, case: Case) -> list[Remedy]:
    """For options of the router that a server refused: the router is a program of its own, and where one command
    starts both (``sglang_router.launch_server``) its options have ``--router-`` in front."""
    known = router_flags()
    mine = [(name, value) for name, value in flags if name in known and name not in flag_table(None)]
    if not mine:
        return []
    shown = ", ".join(name for name, _ in mine)
    if _starts_both(match, case):
        title = "Write " + ", ".join(f"--router-{name[2:]}" for name, _ in mine)
        why = f"sglang_router.launch_server starts servers and router; of the router's options ({shown}) it takes only those with --router- in front"
        return [
            Remedy(
                title=title,
                safety=Safety.MANUAL,
                why=why,
                run=("python -m sglang_router.launch_server --help",),
            )
        ]
    words = (word for name, value in mine for word in (name, *(value or "").split()))
    typed = " ".join(literal(shlex.quote(word)) for word in words)
    why = f"{shown}: options of the router, which is a program of its own and starts no model; each server is started by itself, without them"
    run = ("pip install sglang-router", f"{ROUTER} {typed}")
    return [
        Remedy(title="Start the router with them, beside the servers", safety=Safety.MANUAL, why=why, run=run)
    ]


def starts_a_server(match: Match, case: Case) -> bool:
    """Whether the refused command was to start one server, and no router with it."""
    return case.facts.look("flag.model_path") is not None and not _starts_both(match, case)


def _starts_both(match: Match, case: Case) -> bool:
    if case.reading is None or case.attempt is None:
        return False
    first = max(1, match.line.number - _LINES)
    lines = case.reading.hits.window(match.line.file, first, match.line.number)
    return any("sglang_router.launch_server" in x.text or "smg server" in x.text for x in lines)


def _has_counterpart(name: str, case: Case) -> bool:
    """Is it an option of another engine for which the language server has one of its own?"""
    from mtpdoctor.sglang.help import (  # the diagnosis of most failures asks only whose server it is
        HelpKind,
        explain_unknown,
    )

    helped = explain_unknown(name, case.release)
    return helped.kind is HelpKind.FOREIGN and any(e.op is not EditOp.REMOVE for e in helped.edits)


def of_missed_diffusion(flags: Sequence[tuple[str, str | None]], case: Case) -> list[Remedy]:
    """For options of the server for image and video models that the language server refused: ``sglang serve`` took
    the model for a language model. Nothing is to be left out, another server is to be started."""
    names = [name for name, _ in flags if only_of_diffusion(name)]
    foreign = {name for name, _ in flags if _has_counterpart(name, case)}
    if not set(names) - foreign or len(names) <= len(foreign - set(names)):
        return []  # other engines have --num-gpus and --master-port too
    shown = ", ".join(names)
    release = case.release if case.release is not None and case.release >= known_releases()[0] else None
    later = [name for name in names if release is None or diffusion_since(name, release) is not None]
    first = first_with_all(names)
    out: list[Remedy] = []
    model = literal(shlex.quote(str(case.facts.look("flag.model_path") or "MODEL")))
    program = case.document.command.program if case.document is not None else ()
    if program[-1:] == ("sglang.launch_server",):
        out.append(
            Remedy(
                title="Start it with sglang serve: sglang.launch_server serves language models only",
                safety=Safety.MANUAL,
                why=f"{shown} are options of the server for image and video models",
                run=(f"sglang serve --model-path {model} {names[0]} ...",),
            )
        )
    serve = program[-1:] == ("serve",)
    if first is not None and later:
        out.append(
            Remedy(
                title=f"Use SGLang {first} or later, whose server for image and video models has all these options",
                safety=Safety.MANUAL,
                why=f"{', '.join(later)} came later than {release}"
                if release is not None
                else f"all of {shown} are known from {first} on; models that such a server knows come with its releases",
                run=(f'pip install --upgrade "sglang[diffusion]>={first}"',),
            )
        )
    if serve and (release is None or release >= release_order(MODEL_TYPE_SINCE)):
        out.append(
            Remedy(
                title="Start the server for image and video models: --model-type diffusion",
                safety=Safety.RISKY,
                why=f"{shown} are options of that server; sglang serve took the model for a language model, because it has "
                "no model_index.json of diffusers and its path is none that this release knows",
                edits=(EditTemplate("set", OF_SERVE, "diffusion"),),
                risk="that server must know the model",
            )
        )
    out.append(
        Remedy(
            title="Check that the model is one for images or videos, and that the release knows it",
            safety=Safety.MANUAL,
            why="a folder is taken for such a model by its model_index.json, a repository by its name",
            run=(f"ls {model}/model_index.json", "pip show sglang diffusers"),
        )
    )
    return out


def of_diffusion(flags: Sequence[tuple[str, str | None]], case: Case) -> list[Remedy]:
    """For flags that the server for image and video models refused."""
    names = [name for name, _ in flags]
    shown = ", ".join(names)
    since = {name: diffusion_since(name, case.release) for name in names}
    near = {
        name: close[0]
        for name in names
        if since[name] is None
        and (close := difflib.get_close_matches(name, diffusion_flags(), n=1, cutoff=0.85))
        and close[0] != name
    }
    of_server = [name for name in names if name in flag_table(None) and name not in near]
    why = "the server for image and video models has options of its own and does not know it"
    if of_server:
        why += f"; {', '.join(of_server)} is an option of the server for language models"
    out = [
        Remedy(
            title=f"Leave {shown} out",
            safety=Safety.RISKY,
            why=why,
            edits=tuple(EditTemplate("remove", name, None) for name in names),
            risk=f"what {shown} asked for is not done",
        )
    ]
    out += [
        Remedy(
            title=f"Write {right}",
            safety=Safety.MANUAL,
            why=f"the server for image and video models has no {name}; {right} comes closest",
            run=("sglang serve --model-path MODEL --help",),
        )
        for name, right in near.items()
    ]
    came = {name: first for name, first in since.items() if first is not None}
    if came:
        said = ", ".join(f"{name} (came with {first})" for name, first in came.items())
        out.append(
            Remedy(
                title=f"Upgrade SGLang for {said}",
                safety=Safety.MANUAL,
                why="later releases of the server for image and video models have it",
                run=('pip install --upgrade "sglang[diffusion]"',),
            )
        )
    elif not near and not of_server:
        upgrade = Remedy(
            title=f"Upgrade SGLang, if the model card or the documentation names {shown}",
            safety=Safety.MANUAL,
            why="options of image and video models come with the model that needs them, often only in a "
            "pre-release; sglang serve --help lists what the installed release has",
            run=("sglang serve --model-path MODEL --help", 'pip install --upgrade --pre "sglang[diffusion]"'),
        )
        out.insert(0, upgrade)
    return out
