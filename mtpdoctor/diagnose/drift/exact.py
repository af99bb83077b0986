"""Names and versions in the commands of fixes, as this SGLang release and the CUDA of its torch have them.

A rule stands for many releases: it says ``pip install sgl-kernel``, ``NAME==PINNED`` or ``pip check``. What the release in use
pins is put in; a package of one CUDA is named as the torch of the log needs it.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from mtpdoctor.diagnose.drift.found import PUBLISHED, index_of_cubin, pins_of
from mtpdoctor.patterns import lazy
from mtpdoctor.records import replace
from mtpdoctor.sglang.packages import moving
from mtpdoctor.sglang.torch_versions import asked_by_torch, cuda_of

if TYPE_CHECKING:
    from mtpdoctor.case import Case
    from mtpdoctor.diagnose.types import Fix

_INSTALL = lazy(r"\bpip3? install\b")
_NEWER = lazy(r"\s(?:--upgrade|-U|--pre)\b")
_WORD = lazy(r"(?<=\s)(['\"]?)([A-Za-z][\w.-]*)(\[[\w,-]*\])?(==(?:PINNED|VERSION|X\.Y\.Z))?\1(?=\s|$)")
_SHELL = lazy(r"((?<=\s)\S*\$\([^)]*\)\S*)")
_COMMENT = lazy(r"\s+#[^\n]*$")
_LOOKS = lazy(r"pip3? (?:check|list|show)\b|importlib\.metadata|^python3? -c|^grep |check_env")
_OF_CUDA = lazy(r"\bnvidia-([a-z-]+?)-cu1[23]\b")
_MEANS_CUDA = lazy(r"\bnvidia-[a-z-]+?-cu1[23]\b|\bCUDA 1[23]\b")
_OPEN_PIN = lazy(r"(?<=\s)(['\"]?)(?P<name>[A-Za-z][\w.-]*)==PINNED\1(?=\s|$)")
_IMAGE = lazy(r":v\d+\.\d+\.\d[\w.]*")
_BARE_TAG_OF_124 = lazy(r"\blmsysorg/sglang:v0\.4\.[0-7](?:\.post\d+)?(?![\w.-])")
_BARE_TAG = lazy(r"\blmsysorg/sglang:v0\.(?:4\.(?:[89]|1\d)|5\.[0-2])(?:\.post\d+)?(?![\w.-])")
_KERNELS = {"sgl-kernel": "sglang-kernel", "sglang-kernel": "sgl-kernel"}
# From CUDA 13 on these have no number in their names.
_PLAIN_IN_13 = frozenset({"cublas", "cuda-runtime", "cuda-nvrtc", "cuda-cupti", "nvjitlink", "cufft", "curand", "cusolver", "cusparse", "nvtx"})  # fmt: skip
# Of a fix that says to bring something to what SGLang asks for: all of them, or those that its title names.
_ASKS = lazy(r"\bpin(?:s|ned)?\b|\basks? for\b|this release|belong")
_ALL = lazy(r"\bthe packages\b|\bas one set\b")
_MEANT = tuple(
    (lazy(pattern), names)
    for pattern, names in (
        (r"\btransformers\b", ("transformers",)),
        (r"\b(?:PyTorch|torch)\b", ("torch",)),
        (r"\bTriton\b", ("triton",)),
        (r"(?i)\bkernel package\b|\bsgl-kernel\b", PUBLISHED),
        (r"(?i)\bflashinfer\b", ("flashinfer-python", "flashinfer-cubin")),
        (r"\bxgrammar\b|\bgrammar package\b", ("xgrammar",)),
        (r"\boutlines\b", ("outlines",)),
        (r"\btokenizers\b", ("tokenizers", "transformers")),
        (r"\bdeep_gemm\b", ("sgl-deep-gemm",)),
        (r"\btvm-ffi\b", ("apache-tvm-ffi", "tilelang")),
        (r"\bcompressed-tensors\b", ("compressed-tensors",)),
    )
)
_FILES = {"flash_attn_2_cuda": "flash-attn"}  # a compiled module, and the distribution that has it
_UNINSTALL = lazy(r"\bpip3? (?:un)?install\b")
_MOST = 6  # packages in a command that is put together


def as_pinned(fixes: Sequence[Fix], blamed: Sequence[str], case: Case) -> tuple[Fix, ...]:
    """The fixes with exact names and versions; ``blamed``: distributions that the failure lies in."""
    return tuple(_within_reach(_tagged(fix)) for fix in _with_versions(fixes, blamed, case))


def _with_versions(fixes: Sequence[Fix], blamed: Sequence[str], case: Case) -> tuple[Fix, ...]:
    if not any(fix.run and not fix.edits for fix in fixes):
        return tuple(fixes)
    pins, cuda = _wider(pins_of(case), case), cuda_major(case)
    if pins or cuda is not None:
        fixes = [_exact(f, pins, cuda, blamed, case) if f.run and not f.edits else f for f in fixes]
    return tuple(_asking(fix) if any("==PINNED" in line for line in fix.run) else fix for fix in fixes)


def _within_reach(fix: Fix) -> Fix:
    """FlashInfer's part that left the usual index comes from its own."""
    run = tuple(index_of_cubin(line) for line in fix.run)
    return fix if run == fix.run else replace(fix, run=run)


def _tagged(fix: Fix) -> Fix:
    """The fix with image tags as they were before 0.5.3, when each named its CUDA."""
    if not any("lmsysorg/sglang:v0." in line for line in fix.run):
        return fix
    return replace(
        fix,
        run=tuple(
            _BARE_TAG.sub(r"\g<0>-cu126", _BARE_TAG_OF_124.sub(r"\g<0>-cu124", line)) for line in fix.run
        ),
    )


def _asking(fix: Fix) -> Fix:
    """The fix with a question to the installed SGLang in place of a version that is not known here."""
    return replace(fix, run=tuple(_OPEN_PIN.sub(lambda m: _asked(m["name"]), line) for line in fix.run))


def _asked(name: str) -> str:
    wanted = name.lower().replace("_", "-")
    # With a version, and not the first package whose name begins so: torch is neither torchaudio nor torch-memory-saver.
    names = "|".join(sorted(_KERNELS)) if wanted in _KERNELS else wanted
    pattern = f"(?i)({names})([^a-z0-9._-][^;]*)?[=<>]"
    found = (
        f"next(r.split(';')[0] for r in m.requires('sglang') if re.match('{pattern}', r.replace('_', '-')))"
    )
    return f'"$(python -c "import re, importlib.metadata as m; print({found})")"'


def _wider(pins: Mapping[str, str], case: Case) -> Mapping[str, str]:
    """With what those that are pinned ask for in turn: torch of Triton and its sisters, FlashInfer of its other parts."""
    if not pins:
        return pins
    wider = dict(pins)
    if "torch" in pins:
        torch = case.facts.look("host.package.torch")
        asked = asked_by_torch(torch if isinstance(torch, str) else pins["torch"].removeprefix("=="))
        wider |= {
            name: spec for name, spec in asked.items() if name in ("triton", "torchvision", "torchaudio")
        }
    if "flashinfer-python" in pins:
        for part in ("flashinfer-cubin", "flashinfer-jit-cache"):
            wider.setdefault(part, pins["flashinfer-python"])
    if case.release is not None and case.release_is_certain:
        wider["sglang"] = f"=={case.release}"
    return wider


def cuda_major(case: Case) -> str | None:
    """The major release of CUDA ("12", "13") that torch is built for, where the log shows it: by its version, or by the
    names of NVIDIA's packages beside it."""
    torch = case.facts.look("host.package.torch")
    if isinstance(torch, str) and "+" in torch:
        cuda = cuda_of(torch)
        return cuda.partition(".")[0] if cuda else None
    majors = {
        name[-2:]
        for name in case.facts
        if name.startswith("host.package.nvidia-")
        and name.endswith(("-cu12", "-cu13"))
        and case.facts.look(name)
    }
    return majors.pop() if len(majors) == 1 else None


def _exact(fix: Fix, pins: Mapping[str, str], cuda: str | None, blamed: Sequence[str], case: Case) -> Fix:
    meant = _MEANS_CUDA.search(fix.title) is not None  # the title names the one for a certain CUDA
    run = [_line(line, pins, None if meant else cuda, case) for line in fix.run]
    if not any(_INSTALL.search(line) for line in run) and any("pip check" in line for line in run):
        names = _meant(fix, pins, blamed)
        wanted = [shlex.quote(name + pins[name]) for name in names if name != "sglang"][:_MOST]
        if wanted and case.release is not None:
            run.append(f"pip install {' '.join(wanted)}   # what SGLang {case.release} asks for")
    return fix if tuple(run) == fix.run else replace(fix, run=tuple(run))


def _meant(fix: Fix, pins: Mapping[str, str], blamed: Sequence[str]) -> list[str]:
    """Distributions that a fix which only looks speaks of, where it speaks of what SGLang asks for."""
    if not _ASKS.search(f"{fix.title} {fix.why}"):
        return []
    if _ALL.search(fix.title):
        lying = [name for name in blamed if name in pins]
        return lying or [name for name in ("torch", *moving()) if pins.get(name, "").startswith("==")]
    found = [name for word, names in _MEANT if word.search(fix.title) for name in names if name in pins]
    return list(dict.fromkeys(found))


def _line(line: str, pins: Mapping[str, str], cuda: str | None, case: Case) -> str:
    if _UNINSTALL.search(line):
        for module, name in _FILES.items():
            line = line.replace(module, name)
    if "or the tag of the release in use" in line and case.release is not None and case.release_is_certain:
        return _COMMENT.sub("", _IMAGE.sub(f":v{case.release}", line))
    if not _INSTALL.search(line):
        return line
    if cuda is not None and (renamed := _OF_CUDA.sub(lambda m: _of_cuda(m[1], cuda), line)) != line:
        line = _COMMENT.sub("", renamed)
    elif (
        cuda is not None
        and (m := _OF_CUDA.search(line)) is not None
        and "#" in line
        and "cu1" in line[m.end() :]
    ):
        line = _COMMENT.sub("", line)  # it tells the name for the other CUDA
    if _NEWER.search(line):
        return line
    at = next(_INSTALL.finditer(line)).end()  # what stands before, as an uninstallation, takes no version
    head, tail = line[:at], line[at:]
    code, comment = _split_comment(tail)
    parts = _SHELL.split(code)  # what the shell puts in is left as it is: "x==$(pip show y | ...)"
    parts[::2] = [
        _WORD.sub(lambda m: _pinned(m[1], m[2], m[3] or "", m[4], pins), part) for part in parts[::2]
    ]
    exact = "".join(parts)
    if exact == code:
        return line
    return head + exact + ("" if "pins" in comment or "kernel" in comment else comment)


def _split_comment(text: str) -> tuple[str, str]:
    found = _COMMENT.search(text)
    return (text[: found.start()], text[found.start() :]) if found else (text, "")


def _pinned(quote: str, name: str, extra: str, placeholder: str | None, pins: Mapping[str, str]) -> str:
    wanted = name.lower().replace("_", "-")
    if wanted not in pins and _KERNELS.get(wanted) in pins:
        wanted = _KERNELS[wanted]
    spec = pins.get("nvidia-cutlass-dsl" if wanted.startswith("nvidia-cutlass-dsl-libs") else wanted, "")
    if placeholder and spec and not spec.startswith("=="):
        return shlex.quote(f"{wanted}{extra}{spec}")
    if not spec.startswith("==") or "," in spec:
        return f"{quote}{name}{extra}{placeholder or ''}{quote}"
    return f"{quote}{wanted}{extra}{spec}{quote}"


def _of_cuda(stem: str, cuda: str) -> str:
    return f"nvidia-{stem}" if cuda == "13" and stem in _PLAIN_IN_13 else f"nvidia-{stem}-cu{cuda}"
