"""What to type to bring packages to the versions that are asked for."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from mtpdoctor.case import Case
from mtpdoctor.diagnose.drift.found import KERNELS, PUBLISHED, Drift, packages_shown, pins_of
from mtpdoctor.kb.types import Remedy, Safety
from mtpdoctor.sglang.torch_versions import asked_by_torch, cuda_of

_WHEELS = "https://download.pytorch.org/whl"


def install_remedy(drifts: Sequence[Drift], case: Case) -> Remedy:
    """One command for all of them. ``drifts`` is not empty."""
    built = next((d for d in drifts if d.why == "built" and d.owner not in PUBLISHED), None)
    if built is not None:
        return _rebuild(built, case)
    wanted = _requirements(drifts, case)
    have = ", ".join(f"{d.name} {d.have}" for d in drifts)
    return Remedy(
        title=f"Install {' '.join(wanted)} in place of {have}",
        safety=Safety.MANUAL,
        why="; ".join(dict.fromkeys(reason(d) for d in drifts)),
        run=(_pip(wanted, case), *_other_parts(drifts)),
        risk="what else uses this Python may need the other version; use an environment of its own then",
    )


def reason(drift: Drift) -> str:
    """In words, with where the log shows it."""
    asked = f" ({drift.asked_where})" if drift.asked_where and drift.asked_where != drift.where else ""
    if drift.why == "built" and drift.owner in PUBLISHED:
        return f"{drift.asker}{asked} was published for torch {drift.spec[2:]}, by SGLang's releases that pin it"
    if drift.why == "built":
        return f"{drift.asker} was compiled against torch {drift.spec[2:]}{asked}"
    return f"{drift.asker} asks for {drift.name}{drift.spec}{asked}"


def index_of(version: str, case: Case) -> str | None:
    """The index that has torch ``version`` for the CUDA (or CPU) of the torch that is installed; None for the usual one."""
    shown = packages_shown(case)
    torch = shown.get("torch", ("", ""))[0]
    local = torch.partition("+")[2]
    if local.startswith(("cu", "cpu", "xpu", "rocm")) and cuda_of(version) != cuda_of(torch):
        return f"{_WHEELS}/{local}"
    if case.facts.look("host.platform") == "cpu":
        return f"{_WHEELS}/cpu"
    return None


def _requirements(drifts: Sequence[Drift], case: Case) -> list[str]:
    out = [d.name + d.spec for d in drifts]
    torch = next((d.exact for d in drifts if d.name == "torch"), None)
    if torch is not None:  # these hold code that was compiled against it
        shown, pins = packages_shown(case), pins_of(case)
        beside = asked_by_torch(torch)
        for name in ("torchvision", "torchaudio"):
            if name not in {d.name for d in drifts} and name in beside and (name in shown or name in pins or name == "torchvision"):
                out.append(name + beside[name])
    return out


def _pip(wanted: Sequence[str], case: Case) -> str:
    line = f"pip install {' '.join(shlex.quote(w) for w in wanted)}"
    torch = next((w[7:] for w in wanted if w.startswith("torch==")), None)
    index = index_of(torch, case) if torch is not None else None
    return f"{line} --index-url {index}" if index else line


def _other_parts(drifts: Sequence[Drift]) -> tuple[str, ...]:
    if any(d.name.startswith("flashinfer") for d in drifts):
        return ("pip list | grep -i flashinfer   # flashinfer-cubin and flashinfer-jit-cache have to be of the same version",)
    return ("pip check",)


def _rebuild(drift: Drift, case: Case) -> Remedy:
    """A kernel package that the log shows being compiled against another torch than the one it runs with."""
    here = drift.have.partition("+")[0]
    cpu = "cpu" in drift.owner or case.facts.look("host.platform") == "cpu"
    prepare = ("cd sgl-kernel && cp pyproject_cpu.toml pyproject.toml",) if cpu and drift.owner in KERNELS else (
        f"cd {drift.owner}   # its sources",
    )
    return Remedy(
        title=f"Compile {drift.owner} again, against the torch {drift.have} that is installed",
        safety=Safety.MANUAL,
        why=f"{reason(drift)}, and {drift.have} is installed ({drift.where}); pip builds in an environment of its own, "
        "with the newest torch that the build file admits, unless it is told not to",
        run=(
            *prepare,
            "pip install scikit-build-core wheel",
            "pip install --force-reinstall --no-deps --no-build-isolation .",
            f"# or, with build isolation: write torch=={here} into [build-system] requires of pyproject.toml, and build as before",
        ),
    )
