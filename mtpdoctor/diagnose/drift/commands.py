"""What to type to bring packages to the versions that are asked for."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from mtpdoctor.case import Case
from mtpdoctor.diagnose.drift.found import (
    FLASHINFER_PARTS,
    KERNELS,
    PUBLISHED,
    Drift,
    index_of_cubin,
    packages_shown,
    pins_of,
)
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
        run=(*_pip(wanted, case), *_other_parts(drifts)),
        risk="what else uses this Python may need the other version; use an environment of its own then",
    )


def reason(drift: Drift) -> str:
    """In words, with where the log shows it."""
    asked = f" ({drift.asked_where})" if drift.asked_where and drift.asked_where != drift.where else ""
    if drift.why == "built" and drift.owner in PUBLISHED:
        return (
            f"{drift.asker}{asked} was published for torch {drift.spec[2:]}, by SGLang's releases that pin it"
        )
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
    shown = packages_shown(case)
    flashinfer = next((d.exact for d in drifts if d.name == "flashinfer-python"), None)
    pins = pins_of(case)
    for part in FLASHINFER_PARTS:
        there = shown[part][0].partition("+")[0] if part in shown else None
        if flashinfer is not None and (there != flashinfer if there else pins.get(part) == f"=={flashinfer}"):
            out.append(f"{part}=={flashinfer}")
    torch = next((d.exact for d in drifts if d.name == "torch"), None)
    if torch is not None:  # these hold code that was compiled against it
        beside = asked_by_torch(torch)
        for name in ("torchvision", "torchaudio"):
            if (
                name not in {d.name for d in drifts}
                and name in beside
                and (name in shown or name in pins or name == "torchvision")
            ):
                out.append(name + beside[name])
    return list(dict.fromkeys(out))


def _pip(wanted: Sequence[str], case: Case) -> tuple[str, ...]:
    """What lies in an index of its own gets a command of its own."""
    groups: dict[str | None, list[str]] = {}
    torch = next((w[7:] for w in wanted if w.startswith("torch==")), None)
    for requirement in wanted:
        index = index_of(torch, case) if torch is not None and requirement.startswith("torch") else None
        if requirement.startswith(tuple(f"{name}==" for name in PUBLISHED)):
            index = _kernel_index(case)
        elif requirement.startswith("flashinfer-jit-cache=="):
            index = _cache_index(case)
        groups.setdefault(index, []).append(shlex.quote(requirement))
    return tuple(
        index_of_cubin(f"pip install {' '.join(names)}" + (f" --index-url {index}" if index else ""))
        for index, names in groups.items()
    )


def _cuda(case: Case) -> str | None:
    cuda = case.facts.look("host.torch.cuda")
    return cuda if isinstance(cuda, str) else None


def _cache_index(case: Case) -> str | None:
    """The index of flashinfer-jit-cache for the CUDA of the one that is there, else of torch."""
    local = packages_shown(case).get("flashinfer-jit-cache", ("", ""))[0].partition("+")[2]
    cuda = (_cuda(case) or "").replace(".", "")
    tag = local if local.startswith("cu") else f"cu{cuda}" if cuda else None
    return f"https://flashinfer.ai/whl/{tag}" if tag else None


def _kernel_index(case: Case) -> str | None:
    """The kernel package on the usual index is for the CUDA of the torch that the release pins; another has its own."""
    cuda, pinned = _cuda(case), pins_of(case).get("torch", "").removeprefix("==")
    usual = cuda_of(pinned) if pinned else None
    if cuda is None or usual is None or cuda.partition(".")[0] == usual.partition(".")[0]:
        return None
    return f"https://docs.sglang.ai/whl/{'cu130' if cuda.startswith('13') else 'cu129'}/"


def _other_parts(drifts: Sequence[Drift]) -> tuple[str, ...]:
    if any(d.name.startswith("flashinfer") for d in drifts):
        return ("pip list | grep -i flashinfer   # all of its packages have to be of the same version",)
    return ("pip check",)


def _rebuild(drift: Drift, case: Case) -> Remedy:
    """A kernel package that the log shows being compiled against another torch than the one it runs with."""
    cpu = drift.owner in KERNELS and ("cpu" in drift.owner or case.facts.look("host.platform") == "cpu")
    return compile_again(
        drift.owner,
        f"the torch {drift.have} that is installed",
        f"{reason(drift)}, and {drift.have} is installed ({drift.where}); ",
        "cd sgl-kernel && cp pyproject_cpu.toml pyproject.toml"
        if cpu
        else f"cd {drift.owner}   # its sources",
        drift.have.partition("+")[0],
    )


def compile_again(package: str, torch: str, why: str, prepare: str, version: str = "VERSION") -> Remedy:
    """To compile ``package`` against ``torch`` (in words); ``version`` of torch is for the build file."""
    return Remedy(
        title=f"Compile {package} again, against {torch}",
        safety=Safety.MANUAL,
        why=f"{why}pip builds in an environment of its own, with the newest torch that the build file admits, unless it is told not to",
        run=(
            prepare,
            "pip install scikit-build-core wheel",
            "pip install --force-reinstall --no-deps --no-build-isolation .",
            f"# or, with build isolation: write torch=={version} into [build-system] requires of pyproject.toml, and build as before",
        ),
    )
