"""How long each stage of a launch usually takes, in seconds.

Measured on 82 recorded launches of SGLang 0.5.13.post1 on an H200 (small models, cold and warm caches) and on the
time stamps of 274 public reports (models up to several hundred GB, other GPUs and releases): from the first to the
last tenth of the launches that left the stage, rounded. Weights are the exception: they depend on what is loaded
from where, so that the upper end is that of public reports on network storage.
"""

from __future__ import annotations

from mtpdoctor.log.types import Stage

# stage -> seconds from its first sign until the next stage's
USUAL: dict[Stage, tuple[float, float]] = {
    Stage.IMPORT: (5, 40),  # Python, torch and SGLang, up to the server_args line
    Stage.SERVER_ARGS: (0, 5),
    Stage.CONFIG: (0, 10),
    Stage.TOKENIZER: (6, 30),  # the schedulers start: they import everything once more
    Stage.DIST_INIT: (1, 16),
    Stage.WEIGHTS: (1, 600),
    Stage.MEMORY_POOL: (0, 10),
    Stage.GRAPH_CAPTURE: (2, 90),  # longer where Triton or DeepGEMM compile for the first time
    Stage.WARMUP: (1, 30),  # up to 80 where the first request compiles
}


def usual(stage: Stage) -> tuple[float, float] | None:
    """Seconds, from .. to; None where there is nothing to wait for."""
    return USUAL.get(stage)
