"""Reading ``--gpu COUNTxsmNNN[@GIB]``, the short form of a pretended host."""

from __future__ import annotations

import re

from mtpdoctor.errors import UserError
from mtpdoctor.host.types import Gpu, HostFacts
from mtpdoctor.patterns import lazy

_SPEC = lazy(r"(\d+)\s*[x*×]\s*(?:sm_?)(\d+)[af]?(?:\s*@\s*(\d+(?:\.\d+)?)\s*(?:gib|gb|g)?)?", re.IGNORECASE)
# Compute capabilities of NVIDIA's datacenter and workstation GPUs; later ones are taken as they come.
_KNOWN_SM = (50, 52, 53, 60, 61, 62, 70, 72, 75, 80, 86, 87, 88, 89, 90, 100, 101, 103, 110, 120, 121)
_MAX_COUNT = 1024
_MAX_GIB = 4096.0


def parse_gpu_spec(text: str) -> HostFacts:
    """``4xsm120@95`` is four SM120 GPUs of 95 GiB each; without ``@GIB`` their memory is not known.

    Nothing else is known of such a host: driver, RAM and packages stay unknown.
    Raises UserError saying what is wrong with the text.
    """
    hint = "write COUNTxsmNNN[@GIB], e.g. 4xsm120@95 or 8xsm90"
    m = _SPEC.fullmatch(text.strip())
    if not m:
        raise UserError(f"--gpu: not a GPU specification: {text!r}", hint=hint)
    count, sm = int(m[1]), int(m[2])
    memory = float(m[3]) if m[3] else None
    if not 1 <= count <= _MAX_COUNT:
        raise UserError(f"--gpu: the number of GPUs must be 1 to {_MAX_COUNT}, not {m[1]}", hint=hint)
    if sm not in _KNOWN_SM and not _KNOWN_SM[-1] < sm < 1000:
        known = ", ".join(f"sm{n}" for n in _KNOWN_SM if n >= 70)
        raise UserError(f"--gpu: there is no compute capability sm{m[2]}", hint=f"known ones: {known}")
    if memory is not None and not 0 < memory <= _MAX_GIB:
        raise UserError(
            f"--gpu: memory per GPU in GiB must be above 0 and at most {_MAX_GIB:g}, not {m[3]}", hint=hint
        )
    gpus = tuple(Gpu(i, f"SM{sm} GPU (pretended)", sm, memory) for i in range(count))
    return HostFacts(platform="cuda", gpus=gpus, pretended=True)
