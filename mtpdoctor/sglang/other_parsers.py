"""Options of SGLang's other programs: the router, and the server of image and video models.

``sglang serve`` starts the language server or the one of image and video models; each has options that the
other refuses. The names come from their sources (``other_parsers.json``).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from mtpdoctor.paths import releases_folder
from mtpdoctor.release import Release
from mtpdoctor.sglang.flags import OF_SERVE, flag_table
from mtpdoctor.sglang.releases import known_releases
from mtpdoctor.sglang.store import read_table, release_order

if TYPE_CHECKING:
    from mtpdoctor.launch.types import LaunchCommand

ROUTER = "python -m sglang_router.launch_router"
_TABLE = "other_parsers.json"


def router_flags() -> tuple[str, ...]:
    """The router's options. ``sglang_router.launch_server`` takes those of both, the router's as ``--router-..``."""
    return tuple(read_table(releases_folder() / _TABLE)["router"])


def diffusion_flags() -> tuple[str, ...]:
    """The options that the server of image and video models has in any known release."""
    return tuple(read_table(releases_folder() / _TABLE)["diffusion"])


def diffusion_since(name: str, release: Release | None = None) -> str | None:
    """The first release whose server of image and video models has the option, after ``release`` where that
    is known; None where none has, or where ``release`` itself has it."""
    spans = read_table(releases_folder() / _TABLE)["diffusion"].get(name, ())
    for first, last in spans:
        if release is None or release_order(first) > release:
            return str(first)
        if last is None or release <= release_order(last):
            return None
    return None


MODEL_TYPE_SINCE = (
    "0.5.10"  # ``sglang serve --model-type diffusion``, read from the sources of its command line
)


def first_with_all(names: Iterable[str]) -> str | None:
    """The first release whose server of image and video models has all these options; None where none has."""
    spans = read_table(releases_folder() / _TABLE)["diffusion"]
    if any(name not in spans or spans[name][-1][1] is not None for name in names):
        return None
    return max((str(spans[name][-1][0]) for name in names), key=release_order, default=None)


def only_of_diffusion(name: str) -> bool:
    """Is it an option of the server for image and video models, and of no language server?"""
    return name not in flag_table(None) and name in diffusion_flags()


def starts_diffusion(command: LaunchCommand) -> bool:
    """Does a ``sglang serve`` (``generate``) command ask for the server of image and video models: by its options?"""
    if command.program[-1:] == ("generate",) or any(
        word.startswith("sglang.multimodal_gen") for word in command.program
    ):
        return True
    kinds = [use.values[:1] for use in command.flags if use.name == OF_SERVE]
    if kinds:
        return kinds[-1] == ("diffusion",)
    # the language server takes --dp and --pipeline too, as beginnings of its own options
    return command.program[-1:] == ("serve",) and any(
        only_of_diffusion(use.name) and not flag_table(None).beginning(use.name) for use in command.flags
    )


def diffusion_problems(command: LaunchCommand, release: Release) -> tuple[str, ...]:
    """Options of the command that the release's server for image and video models has not."""
    table = read_table(releases_folder() / _TABLE)["diffusion"]
    if release < known_releases()[0]:  # a build of one's own, which names no release
        release = known_releases()[-1]
    out = []
    for use in command.flags:
        if use.name == OF_SERVE:
            if release < release_order(MODEL_TYPE_SINCE):
                out.append(f"--model-type is not known to SGLang {release}")
            continue
        spans = table.get(use.name)
        if spans is None and use.name not in flag_table(None):
            continue  # of another program, or a spelling that the table lacks: nothing is said
        if spans is None or not any(
            release_order(first) <= release and (last is None or release <= release_order(last))
            for first, last in spans
        ):
            out.append(
                f"{use.name} is not known to the server for image and video models of SGLang {release}"
            )
    return tuple(out)


def owner_of(name: str) -> str | None:
    """In words the program whose option ``name`` is, where it is not one of the language server."""
    if name in router_flags() or name.removeprefix("--router-") in {f[2:] for f in router_flags()}:
        return f"SGLang's router ({ROUTER})"
    if name in diffusion_flags():
        return "SGLang's server for image and video models"
    return None
