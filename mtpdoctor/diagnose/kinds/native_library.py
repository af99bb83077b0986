"""What brings a shared library that the loader did not find: the build of the asking package for this CUDA, pip's package, the
system's. What is known of single libraries stands in ``knowledge/releases/native_libraries.json``.
"""

from __future__ import annotations

import shlex

from mtpdoctor.case import Case
from mtpdoctor.facts import UNKNOWN
from mtpdoctor.kb.types import Match, Remedy, Safety
from mtpdoctor.patterns import lazy
from mtpdoctor.sglang.native_libraries import NativeLibrary, native_library
from mtpdoctor.sglang.packages import moving, package_of
from mtpdoctor.sglang.releases import release_facts
from mtpdoctor.sglang.torch_versions import asked_by_torch, cuda_of

_LIBRARY = lazy(r"\b((?:lib|nvshmem_)[\w+.-]*?\.so(?:\.\d+)*): cannot open shared object")
_SITE = lazy(r"/(?:site|dist)-packages/(\w+)[/.]")
_IMPORT = lazy(r"^\s*(?:from|import) ([A-Za-z_]\w*)")
_OWN = frozenset(("sglang", "torch", "ctypes", "importlib", "common_ops"))
_KERNELS = frozenset(("sgl_kernel", "sglang_kernel", "mooncake", "nixl"))  # whose builds other rules know
# Distributions without a CUDA in their names whose versions are CUDA's.
_OF_13 = frozenset(
    ("nvidia-cuda-runtime", "nvidia-cuda-nvrtc", "nvidia-cublas", "nvidia-cuda-cupti", "nvidia-nvjitlink")
)
_FOLDERS = (
    'export LD_LIBRARY_PATH=$(python -c "import os, nvidia; '
    "print(os.pathsep.join(os.path.join(p, d, 'lib') for p in nvidia.__path__ for d in os.listdir(p)))\"):$LD_LIBRARY_PATH"
)


def native_library_remedies(match: Match, case: Case) -> list[Remedy]:
    """Capture ``library``, else the line itself names it. Nothing for libraries that the table does not hold."""
    said = _LIBRARY.search(match.line.body)
    name = match.captures.get("library") or (said[1] if said is not None else "")
    library = native_library(name)
    if library is None:
        return []
    if library.pip:
        return _of_pip(library, _asker(match), case)
    return [_of_system(library)]


def _of_pip(library: NativeLibrary, asker: str | None, case: Case) -> list[Remedy]:
    if "" in library.pip:
        return [_installed(library, library.pip[""], "")]
    if library.cuda is not None and asker in _KERNELS:
        return []
    here = _cuda_here(case)
    if library.cuda is not None and here is not None and library.cuda != here:
        pins = release_facts(case.release).pins if case.release is not None else {}
        if asker is None or any(name in pins or name in moving() for name in package_of(asker).distributions):
            return []  # where SGLang pins the package, torch is the one of the wrong CUDA
        beside = library.pip.get(library.cuda)
        told = [_other_build(library, asker, here)]
        return [*told, _beside(library, beside, here)] if beside is not None else told
    if library.cuda is not None and asker is None and not _is_shown(case):
        return []  # which of the two is of the wrong CUDA, nothing tells
    cuda = library.cuda or here
    if cuda is None or cuda not in library.pip:
        return []
    return [_installed(library, library.pip[cuda] + _pin(library.pip[cuda], case), cuda)]


def _installed(library: NativeLibrary, requirement: str, cuda: str) -> Remedy:
    of = f" for CUDA {cuda}" if cuda else ""
    return Remedy(
        title=f"Install {requirement}, which brings {library.name}{of}, and let the loader search its folder",
        safety=Safety.MANUAL,
        why="the package is missing or incomplete, or its folder below site-packages is not searched",
        run=(
            f"pip install --force-reinstall --no-deps {shlex.quote(requirement)}",
            *((_FOLDERS,) if cuda else ()),
        ),
    )


def _other_build(library: NativeLibrary, asker: str, here: str) -> Remedy:
    name = package_of(asker).bringing[0]
    origin = package_of(asker).origin
    run = (
        origin.run
        if origin is not None
        else (f"pip install --force-reinstall --no-deps --no-cache-dir {name}",)
    )
    return Remedy(
        title=f"Install the build of {name} for CUDA {here}; the installed one is for CUDA {library.cuda}",
        safety=Safety.MANUAL,
        why=f"{name} asks for {library.name}, and torch here is for CUDA {here}; where the index has one build only, build it from source against this torch",
        run=("pip list | grep -i -E " + shlex.quote(f"^({name}|torch|nvidia-cuda)"), *run),
    )


def _beside(library: NativeLibrary, requirement: str, here: str) -> Remedy:
    return Remedy(
        title=f"Or install {requirement} beside, which brings {library.name}, and let the loader search its folder",
        safety=Safety.MANUAL,
        why=f"the runtimes of CUDA {library.cuda} and {here} can stand side by side; the driver runs what is older than itself",
        run=(f"pip install --no-deps {requirement}", _FOLDERS),
    )


def _of_system(library: NativeLibrary) -> Remedy:
    return Remedy(
        title=f"Install {library.apt}, which holds {library.name}",
        safety=Safety.MANUAL,
        why="it is a library of the system, which pip does not install; slim images lack it, SGLang's images have it",
        run=(
            f"apt-get update && apt-get install -y {library.apt}"
            + (f"   # Fedora, RHEL: dnf install -y {library.dnf}" if library.dnf else ""),
        ),
    )


def _asker(match: Match) -> str | None:
    """The package whose part asks for the library: by the last frames, or what they import."""
    if match.traceback is None:
        return None
    for frame in reversed(match.traceback.frames[-3:]):
        for found in (_IMPORT.match(frame.code), _SITE.search(frame.path)):
            if found is not None and found[1] not in _OWN:
                return found[1]
    return None


def _is_shown(case: Case) -> bool:
    return any(
        case.facts.look(name) not in (UNKNOWN, None)
        for name in ("host.torch.cuda_major", "host.package.torch")
    )


def _cuda_here(case: Case) -> str | None:
    """The major number of torch's CUDA: as shown, else as the torch that the release pins is built."""
    shown = case.facts.look("host.torch.cuda_major")
    if shown not in (UNKNOWN, None):
        return str(shown)
    torch = case.facts.look("host.package.torch")
    if not isinstance(torch, str) and case.release is not None and case.release_is_certain:
        torch = release_facts(case.release).pins.get("torch", "").removeprefix("==")
    found = cuda_of(torch) if isinstance(torch, str) else None
    return found.partition(".")[0] if found else None


def _pin(name: str, case: Case) -> str:
    torch = case.facts.look("host.package.torch")
    if not isinstance(torch, str) and case.release is not None and case.release_is_certain:
        torch = release_facts(case.release).pins.get("torch", "").removeprefix("==")
    known = asked_by_torch(torch).get(name, "") if isinstance(torch, str) and "==" not in name else ""
    return known or (">=13,<14" if name in _OF_13 else "")
