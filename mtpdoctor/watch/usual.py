"""How long each stage of a launch usually takes, in seconds.

Measured on 82 recorded launches of SGLang 0.5.13.post1 on an H200 (small models, cold and warm caches) and on the
time stamps of 274 public reports (models up to several hundred GB, other GPUs and releases): from the first to the
last tenth of the launches that left the stage, rounded. Weights are the exception: they depend on how much is loaded
from where, so that they are only told where the size is known: from what a warm page cache or several fast disks give
to what public reports tell of network storage (5 GB shards of 26 s each).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mtpdoctor.log.types import Stage

if TYPE_CHECKING:
    from mtpdoctor.diagnose.given import Given

# stage -> seconds from its first sign until the next stage's
USUAL: dict[Stage, tuple[float, float]] = {
    Stage.IMPORT: (5, 40),  # Python, torch and SGLang, up to the server_args line
    Stage.SERVER_ARGS: (0, 5),
    Stage.CONFIG: (0, 10),
    Stage.TOKENIZER: (6, 30),  # the schedulers start: they import everything once more
    Stage.DIST_INIT: (1, 16),
    Stage.MEMORY_POOL: (0, 10),
    Stage.GRAPH_CAPTURE: (2, 90),  # longer where Triton or DeepGEMM compile for the first time
    Stage.WARMUP: (1, 30),  # up to 80 where the first request compiles
}


_FAST, _SLOW = 6e9, 0.2e9  # bytes of weights per second
_DUMMY = (0.0, 30.0)  # --load-format dummy: made on the GPU


def usual(stage: Stage, weights: int | None = None) -> tuple[float, float] | None:
    """Seconds, from .. to; None where there is nothing to wait for, or nobody can tell.

    ``weights``: bytes that are loaded, 0 for dummy weights; None: not known."""
    if stage is not Stage.WEIGHTS:
        return USUAL.get(stage)
    if weights is None:
        return None
    return (weights / _FAST, max(weights / _SLOW, 10.0)) if weights else _DUMMY


def weight_bytes(given: Given) -> int | None:
    """Bytes of the weights that the launch command names; None where they are not on this machine (yet)."""
    document = given.document
    if document is not None and document.command.value("load_format") == ("dummy",):
        return 0
    if given.model is not None and given.model.weights is not None:
        return given.model.weights.total_bytes or None
    if document is None:
        return None
    from mtpdoctor.model.locate import local_model

    command = document.command
    named = command.value("model_path") or command.value("model") or command.positionals[:1]
    folder = local_model(named[-1]) if named else None
    if folder is None:
        return None
    try:
        sizes = [p.stat().st_size for p in folder.iterdir() if p.suffix in (".safetensors", ".bin", ".pt")]
    except OSError:
        return None
    return sum(sizes) or None
