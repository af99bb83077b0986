"""A fix as it is done where this server runs: in a container by another image, under Ray and in Kubernetes where variables and
GPUs are given. Pure.

A remedy says ``pip install`` and ``export``. What pip installs into a container is gone with the container, actors of Ray do not
see what the driver's shell exports, and a pod gets its variables, GPUs and shared memory by its manifest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mtpdoctor.diagnose.installs import sglang_asked
from mtpdoctor.facts import UNKNOWN
from mtpdoctor.launch.types import EditOp, Form
from mtpdoctor.patterns import lazy
from mtpdoctor.records import replace
from mtpdoctor.release import release_or_none
from mtpdoctor.sglang.releases import known_releases

if TYPE_CHECKING:
    from mtpdoctor.case import Case
    from mtpdoctor.diagnose.types import Fix
    from mtpdoctor.log.types import Attempt
    from mtpdoctor.release import Release

OFFICIAL = "lmsysorg/sglang"
_IN_IMAGE = "/sgl-workspace/"  # where SGLang's own images hold its code
_CONTAINERS = frozenset((Form.DOCKER, Form.COMPOSE, Form.KUBERNETES))
_RAY = lazy(r"(?:^|/)[\w.:]*(?:\(|\b)pid=\d+(?:, ip=|\)|$)|^\w+ pid=\d+")
_POD = lazy(r"(?:^|/|\[)pod/")
_EXPORT = lazy(r"^export \w+=")
_IMAGE_NOTE = (
    "in a container start that image in place of the old one: what pip installs into it is gone with it"
)
_RAY_NOTE = (
    'actors of Ray do not see what a shell exports later: runtime_env={"env_vars": {...}} '
    "(ray job submit --runtime-env-json), or the shell of ray start on every node"
)
_POD_NOTE = "in the pod's manifest: env: with name and value"
_GPUS_NOTE = "in Kubernetes: resources: limits: nvidia.com/gpu: in the pod's manifest, with NVIDIA's device plugin on the node"
_UNIT_NOTE = "in the unit: Environment=NAME=VALUE under [Service], then systemctl daemon-reload"


def as_placed(fixes: Sequence[Fix], case: Case, attempt: Attempt) -> tuple[Fix, ...]:
    """The fixes with the image of the release that they install, and with where their variables and GPUs are given."""
    streams = {event.line.stream for event in attempt.events}
    form = case.document.form if case.document is not None else None
    ray = any(_RAY.search(stream) for stream in streams)
    pod = form is Form.KUBERNETES or any(_POD.search(stream) for stream in streams)
    image = _in_own_image(case, attempt)
    out = []
    for fix in fixes:
        placed = _with_image(fix) if image else fix
        note = ""
        if _gives_variables(placed) and placed.document is None:
            note = _RAY_NOTE if ray else _POD_NOTE if pod else _UNIT_NOTE if form is Form.SYSTEMD else ""
        if pod and placed.document is None and any(e.op is EditOp.GPUS for e in placed.edits):
            note = _GPUS_NOTE
        out.append(replace(placed, notes=(*placed.notes, note)) if note else placed)
    return tuple(out)


def _in_own_image(case: Case, attempt: Attempt) -> bool:
    """Does the server run in a container that was made from SGLang's own image for NVIDIA's GPUs?"""
    if case.facts.look("host.platform") not in (UNKNOWN, "cuda"):
        return False
    named = case.facts.look("container.image")
    if isinstance(named, str):
        return named.startswith((f"{OFFICIAL}:", f"docker.io/{OFFICIAL}:"))
    if case.document is not None and case.document.form in _CONTAINERS:
        return False  # the image's name is a variable, or another's
    tracebacks = (event.traceback for event in attempt.events if event.traceback is not None)
    return any(frame.path.startswith(_IN_IMAGE) for one in tracebacks for frame in one.frames)


def _with_image(fix: Fix) -> Fix:
    """The image of the release that the fix installs goes before its pip command."""
    asked = [(sign, release) for sign, text in sglang_asked(fix.run) if (release := release_or_none(text))]
    release = _tagged(*asked[0]) if len(asked) == 1 and not fix.edits else None
    if release is None:
        return fix
    pull = f"docker pull {OFFICIAL}:v{release}"
    rest = tuple(line for line in fix.run if line != pull)
    if any("docker " in line or "fresh/" in line for line in rest):
        return fix
    return replace(fix, run=(pull, *rest), notes=(*fix.notes, _IMAGE_NOTE))


def _tagged(sign: str, release: Release) -> Release | None:
    """The release whose image it is; none for what has no image."""
    known = release in known_releases() and not release.is_prerelease
    return release if known and sign in ("==", ">=") else None


def _gives_variables(fix: Fix) -> bool:
    return any(e.op in (EditOp.ENV, EditOp.UNSET) for e in fix.edits) or any(
        _EXPORT.search(line) for line in fix.run
    )
