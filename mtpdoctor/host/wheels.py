"""For which CUDA, and for which GPUs, the installed torch and the kernel package were built.

Read from files: torch's ``version.py`` as text, the CUDA libraries that the kernels' shared objects need,
the architectures of the GPU code in them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from mtpdoctor.host.derived import KERNELS
from mtpdoctor.host.distributions import Distribution
from mtpdoctor.host.elf import Library, read_library
from mtpdoctor.host.site_folders import read_text
from mtpdoctor.patterns import lazy

_CUDA = lazy(r"(?m)^cuda\b[^=\n]*=\s*['\"](\d+(?:\.\d+)+)['\"]")
_LOCAL = lazy(r"\+cu(\d{2})(\d+)$")
_RUNTIME = lazy(r"libcudart\.so\.(\d+)")


def torch_cuda(torch: Distribution) -> str | None:
    """ "13.0"; None for a build without CUDA, or where nothing says it."""
    text = read_text(torch.folder / "torch" / "version.py")
    said = _CUDA.search(text) if text else None
    return said[1] if said else _of_version(torch.version)


def torch_sms(torch: Distribution) -> tuple[int, ...]:
    """The GPU architectures that torch's own kernels were compiled for; () where it cannot be told."""
    library = read_library(torch.folder / "torch" / "lib" / "libtorch_cuda.so")
    return library.sms if library else ()


def kernel_package(installed: Mapping[str, tuple[Distribution, ...]]) -> Distribution | None:
    return next((installed[name][0] for name in KERNELS if name in installed), None)


def kernel_build(kernel: Distribution) -> tuple[str | None, tuple[int, ...]]:
    """CUDA release ("13.0", or "13" where only the library's name tells) and GPU architectures.

    The architectures are those of ``common_ops``, which every launch loads: the wheel's other objects
    hold kernels of some features, and fewer architectures.
    """
    libraries = list(_libraries(kernel.folder / "sgl_kernel"))
    sms = sorted({sm for library in libraries for sm in library.sms})
    runtimes = (_RUNTIME.match(name) for library in libraries for name in library.needed)
    needed = next((m[1] for m in runtimes if m), None)
    local = _of_version(kernel.version)
    if local is not None and needed in (None, local.partition(".")[0]):
        return local, tuple(sms)
    return needed, tuple(sms)


def _libraries(folder: Path) -> Iterable[Library]:
    # older wheels have one library for all GPUs, newer ones a folder per family (sm90, sm100)
    for path in sorted((*folder.glob("common_ops*.so"), *folder.glob("sm*/common_ops*.so"))):
        library = read_library(path)
        if library is not None:
            yield library


def _of_version(version: str) -> str | None:
    """ "2.9.1+cu128" -> "12.8" """
    local = _LOCAL.search(version)
    return f"{local[1]}.{local[2]}" if local else None
