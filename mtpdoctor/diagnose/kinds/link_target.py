"""A file that is not there although its folder lists it: a link whose target the container does not see."""

from __future__ import annotations

import shlex
from posixpath import dirname

from mtpdoctor.case import Case
from mtpdoctor.kb.types import Match, Remedy, Safety


def link_remedies(match: Match, case: Case) -> list[Remedy]:
    """Captures: ``path``. Where a listing in the log shows where the link leads, that folder is to be mounted."""
    path = match.captures.get("path", "")
    folder, target = case.facts.look("log.weights_link_folder"), case.facts.look("log.weights_link")
    if isinstance(folder, str) and isinstance(target, str):
        return _known(path, folder, target)
    return []


def link_said(match: Match, case: Case) -> str:
    target = case.facts.look("log.weights_link")
    return f"The listing shows links; one leads to {target}." if isinstance(target, str) else ""


def _known(path: str, folder: str, target: str) -> list[Remedy]:
    mount = shlex.quote(f"{folder}:{folder}")
    copies = shlex.quote(dirname(path) or "MODEL_DIR")
    return [
        Remedy(
            title=f"Mount what the links lead to at the same path where the server runs: {folder} (or a folder above it)",
            safety=Safety.MANUAL,
            why=f"the listing shows that the weights are links, to {target}; a link works only where its target is under that very path",
            run=(
                f"docker run -v {mount}:ro ...   # beside the other mounts",
                f"srun --container-mounts=...,{mount} ...   # added to the mounts that are there",
                "# Kubernetes: a volume with that folder, its mountPath the same path",
            ),
        ),
        Remedy(
            title="Or put real files in the place of the links, on a machine that sees their targets",
            safety=Safety.MANUAL,
            why="then nothing else has to be mounted",
            run=(f"cp -rL {copies} {copies}.files   # -L follows the links; give the server that folder",),
        ),
    ]
