"""Where the doctor's own data lies. Nothing is read here."""

from __future__ import annotations

import os
import sys
from functools import lru_cache
from pathlib import Path

from mtpdoctor.errors import UserError

_PACKAGE = Path(__file__).resolve().parent


def knowledge_folder() -> Path:
    """The folder of the knowledge: ``$MTPDOCTOR_KNOWLEDGE``, else ``knowledge/`` beside the package (a
    checkout), else ``mtpdoctor/_knowledge`` (an installed wheel).

    Raises UserError when the variable names no folder, or an installation has lost its data.
    """
    return _find(os.environ.get("MTPDOCTOR_KNOWLEDGE") or "")


def own_knowledge_folder() -> Path:
    """The folder of the doctor's own knowledge, whatever ``$MTPDOCTOR_KNOWLEDGE`` says."""
    return _find("")


@lru_cache(maxsize=8)
def _find(override: str) -> Path:
    if override:
        chosen = Path(override).expanduser()
        if not chosen.is_dir():
            raise UserError(
                f"MTPDOCTOR_KNOWLEDGE is {override!r}, which is no folder",
                hint="unset it, or point it at a folder of rule files",
            )
        return chosen
    beside = _PACKAGE.parent / "knowledge"
    # Only a checkout has rules beside the package; site-packages may hold anything under that name.
    if (beside / "releases").is_dir():
        return beside
    inside = _PACKAGE / "_knowledge"
    if inside.is_dir():
        return inside
    raise UserError(
        "the doctor's knowledge folder is missing",
        hint="reinstall mtpdoctor, or set MTPDOCTOR_KNOWLEDGE to a checkout's knowledge/ folder",
    )


def releases_folder() -> Path:
    """The learned facts of SGLang's releases, inside the knowledge folder."""
    return knowledge_folder() / "releases"


def cache_folder() -> Path:
    """The user's cache folder of the doctor; not created here. ``$MTPDOCTOR_CACHE`` overrides it."""
    override = os.environ.get("MTPDOCTOR_CACHE")
    if override:
        return Path(override).expanduser()
    if sys.platform == "linux":  # as platformdirs has it, which takes too long to import for a small log
        base = os.environ.get("XDG_CACHE_HOME", "")
        return Path(base if os.path.isabs(base) else os.path.expanduser("~/.cache"), "mtpdoctor")
    from platformdirs import user_cache_path

    return user_cache_path("mtpdoctor")


def samples_folder() -> Path | None:
    """The sample logs: ``sample_logs/`` of a checkout, else ``mtpdoctor/_samples`` of a wheel; None when gone."""
    for folder in (_PACKAGE.parent / "sample_logs", _PACKAGE / "_samples"):
        if (folder / "spec_no_buffer_with_radix.log").is_file():
            return folder
    return None


def state_folder() -> Path:
    """Where what was launched is kept (``runs/``); not created here. ``$MTPDOCTOR_STATE`` overrides it, else
    ``$XDG_STATE_HOME/mtpdoctor``."""
    override = os.environ.get("MTPDOCTOR_STATE")
    if override:
        return Path(override).expanduser()
    if sys.platform == "linux":
        base = os.environ.get("XDG_STATE_HOME", "")
        return Path(base if os.path.isabs(base) else os.path.expanduser("~/.local/state"), "mtpdoctor")
    from platformdirs import user_state_path

    return user_state_path("mtpdoctor")
