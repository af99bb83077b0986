"""Compilers, Python, the driver, torch's build and loadable libraries as their own tools print them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mtpdoctor.log.types import Line, Observation
from mtpdoctor.patterns import lazy

_NVCC = lazy(r"\bCuda compilation tools, release (\d+\.\d+)\b|^CUDA runtime version: (\d+\.\d+)\.\d+\s*$")
_PYTHON = lazy(r"^Python(?: version)?:? (3\.\d{1,2}\.\d{1,2})(?:\s*$| (?:\(|\|))")
_DRIVER = lazy(r"^Nvidia driver version: (\d{3}\.\d+(?:\.\d+)?)\s*$")
_BUILT = lazy(r"^CUDA used to build PyTorch: (\d+\.\d+)\s*$")
_ASKS = ("torch.__version__", "torch.version.cuda")
_TORCH = lazy(r"^\(?'?(2\.\d+\.\d+(?:\+\w+)?(?:\.?dev\d+)?)'?,? '?(None|\d+\.\d+)\b")
_ONLY_TORCH = lazy(r"^(2\.\d+\.\d+(?:\+\w+)?)\s*$")
_LDD = lazy(r"^\s*(lib[\w.+-]+\.so(?:\.\d+)*) => (?:(not found)|(/\S+) \(0x)")
_LDCONFIG = lazy(r"^\s*(lib[\w.+-]+\.so(?:\.\d+)*) \([\w.,-]*\S*(?:, [\w.: ]*)?\) => (/\S+)\s*$")


def versions(lines: Sequence[Line]) -> Iterator[Observation]:
    for line in lines:
        body = line.body
        if (m := _NVCC.search(body)) is not None:
            yield Observation("host.nvcc", m[1] or m[2], line)
        elif body.startswith("Python") and (m := _PYTHON.match(body)) is not None:
            yield Observation("host.python.version", m[1], line)
        elif (m := _DRIVER.match(body)) is not None:
            yield Observation("host.driver", m[1], line)
        elif (m := _BUILT.match(body)) is not None:
            yield Observation("host.torch.cuda", m[1], line)
            yield Observation("host.torch.cuda_major", int(m[1].partition(".")[0]), line)


def asked_of_torch(lines: Sequence[Line]) -> Iterator[Observation]:
    """``python -c "import torch; print(torch.__version__, torch.version.cuda)"`` and its answer."""
    asked = False
    for line in lines:
        body = line.body.strip()
        if _ASKS[0] in body and "print" in body:
            asked = True
        elif asked and ((m := _TORCH.match(body)) or (m := _ONLY_TORCH.match(body))):
            asked = False
            yield Observation("host.package.torch", m[1], line)
            if m.lastindex == 2:
                cuda = m[2] if m[2] != "None" else None  # a build without
                yield Observation("host.torch.cuda", cuda, line)
                yield Observation(
                    "host.torch.cuda_major", int(cuda.partition(".")[0]) if cuda else None, line
                )
        elif body and "Warning" not in body and not body.startswith(("import ", "warnings")):
            asked = False


def libraries(lines: Sequence[Line]) -> Iterator[Observation]:
    """``log.library.SONAME``: where ldd or ldconfig finds it, None where ldd does not."""
    for line in lines:
        if " => " not in line.body:
            continue
        if (m := _LDD.match(line.body)) is not None:
            yield Observation(f"log.library.{m[1]}", m[3], line)
        elif (m := _LDCONFIG.match(line.body)) is not None:
            yield Observation(f"log.library.{m[1]}", m[2], line)
