"""A name that a file of SGLang has only where a package is there, or on one make of accelerator, and that was missing when
it was used: "name 'x' is not defined", "'NoneType' object is not callable", "'ImportError' object has no attribute"."""

from __future__ import annotations

from collections.abc import Iterator

from mtpdoctor.case import Case
from mtpdoctor.diagnose.kinds.module import remedy_of_row
from mtpdoctor.diagnose.kinds.package import install_remedy, usable_name
from mtpdoctor.diagnose.kinds.third_party import ways_round
from mtpdoctor.kb.types import Match, Remedy, Safety
from mtpdoctor.log.types import Frame
from mtpdoctor.paths import releases_folder
from mtpdoctor.patterns import lazy
from mtpdoctor.sglang.optional import Optional, optional_in
from mtpdoctor.sglang.packages import package_of
from mtpdoctor.sglang.releases import release_facts

_UNDEFINED = lazy(r"name '(?P<name>\w+)' is not defined")
_EMPTY = lazy(
    r"'(?:NoneType|ImportError|ModuleNotFoundError|OSError)' object (?:is not callable|has no attribute)"
)
_USED = lazy(r"(?<![\w.])(?P<name>[A-Za-z_]\w*)\s*(?=[.(\[])")
_FILE = lazy(r"(?:^|/)(sglang/(?:srt|jit_kernel|kernels|multimodal_gen)/.*)")
_PLATFORMS = {
    "cuda": "cuda",
    "hip": "rocm",
    "npu": "npu",
    "xpu": "xpu",
    "cpu": "cpu",
    "musa": "musa",
    "hpu": "hpu",
    "mps": "mps",
}
_GPUS = {"cuda": "NVIDIA", "rocm": "AMD", "xpu": "Intel"}
_PART_OF_ALL = frozenset({"sglang", "torch"})  # packages without which SGLang does not start


def optional_remedies(match: Match, case: Case) -> list[Remedy]:
    """Where the import was tried: to install what the name comes from, as the release asks for it, and to see why it does not
    load. Where only one make of accelerator has the name: to see whether that is found. Behind them the ways round the
    package. Nothing to install where the package is of another make than this one."""
    named = _missing(match, case)
    if named is None:
        return []
    name, found = named
    package, makes = found.package, _makes(found)
    platform = case.facts.look("host.platform")
    row = package_of(package)
    elsewhere = isinstance(platform, str) and bool(
        (makes and platform not in makes) or (row.only and platform not in row.only)
    )
    ways = ways_round(match, package, case)
    if package in _PART_OF_ALL or not usable_name(package):
        return []
    if elsewhere:
        return ways
    if not found.tried:
        return [*([_see_gpu(name, makes)] if makes and makes <= _GPUS.keys() else []), *ways]
    release = release_facts(case.release)
    if row.missing is not None and row.missing.holds(case.release):
        first = remedy_of_row(row.missing, release, case)
    else:
        pinned = next((n for n in row.bringing if n in release.pins), row.bringing[-1])
        first = install_remedy(package, pinned, case)
    return [first, _look(name, found, match), *ways]


def _missing(match: Match, case: Case) -> tuple[str, Optional] | None:
    traceback = match.traceback
    if traceback is None or not traceback.frames:
        return None
    frame = traceback.frames[-1]
    file = _FILE.search(frame.path)
    if file is None:
        return None
    for name in _names(traceback.message, frame):
        found = optional_in(releases_folder(), file[1], name, case.release)
        if found is not None:
            return name, found
    return None


def _names(message: str, frame: Frame) -> Iterator[str]:
    said = _UNDEFINED.search(message)
    if said is not None:
        yield said["name"]
    elif _EMPTY.search(message):
        yield from dict.fromkeys(used["name"] for used in _USED.finditer(frame.code))


def _makes(found: Optional) -> set[str]:
    """The makes of accelerator that alone have the name, as far as the conditions tell."""
    words = (word.strip("_").removeprefix("is_").removesuffix("_available") for word in found.conditions)
    return {_PLATFORMS[word] for word in words if word in _PLATFORMS}


def _see_gpu(name: str, makes: set[str]) -> Remedy:
    whose = " or ".join(_GPUS[make] for make in sorted(makes))
    return Remedy(
        title=f"See whether PyTorch finds the {whose} GPU, and is built for it",
        safety=Safety.MANUAL,
        why=f"this release imports {name} only where PyTorch shows a {whose} GPU; the CPU's build of PyTorch and a container without GPUs show none",
        run=(
            'python -c "import torch; print(torch.__version__, torch.cuda.is_available(), torch.version.cuda, torch.version.hip)"',
        ),
    )


def _look(name: str, found: Optional, match: Match) -> Remedy:
    assert match.traceback is not None
    place = match.traceback.frames[-1].path.rpartition("/")[2]
    line = f"import {found.module}" if found.module == name else f"from {found.module} import {name}"
    return Remedy(
        title=f"See why {name} cannot be imported from {found.module}",
        safety=Safety.MANUAL,
        why=f"{place} goes on without it where the import fails, and says no reason: the package is missing, does not load, or is of another version",
        run=(f'python -c "{line}"', f"pip show {package_of(found.package).distributions[-1]}"),
    )
