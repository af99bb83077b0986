"""Options of SGLang's other programs: the router, and the server of image and video models.

``sglang serve`` starts the language server or the one of image and video models; each has options that the
other refuses. The names come from their sources (``other_parsers.json``).
"""

from __future__ import annotations

from mtpdoctor.paths import releases_folder
from mtpdoctor.release import Release
from mtpdoctor.sglang.store import read_table, release_order

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


def owner_of(name: str) -> str | None:
    """In words the program whose option ``name`` is, where it is not one of the language server."""
    if name in router_flags() or name.removeprefix("--router-") in {f[2:] for f in router_flags()}:
        return f"SGLang's router ({ROUTER})"
    if name in diffusion_flags():
        return "SGLang's server for image and video models"
    return None
