"""Does a fix fit the accelerator and the server that the launch ran on?

A remedy may name what one make of accelerator alone has (its driver, tools, libraries, images). It is for that make, or where the
make is not known; nobody has to write so into every rule. The server for image and video models has options of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mtpdoctor.diagnose.installs import sglang_asked
from mtpdoctor.launch.types import EditOp
from mtpdoctor.patterns import lazy
from mtpdoctor.release import release_or_none

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mtpdoctor.case import Case
    from mtpdoctor.diagnose.types import Fix
    from mtpdoctor.release import Release

# What only one make has, by the value of host.platform.
_OWN = {
    "cuda": lazy(
        r"\bNVIDIA(?!/)\b|\bnvidia-(?:smi|ctk|fabricmanager|cu\w+)|\bCUDA (?:driver|toolkit|\d\d)|\bCUDA_HOME\b|\bnvcc\b|\bptxas\b|\bXid\b|\bNVLink\b|"
        r"\bNVSwitch\b|\bcu1[23]\d\b|/cuda/compat|\bcuda-compat|\bDeepGEMM\b|\bDEEPGEMM\b|\bdeep_gemm\b|\b(?i:flashinfer)\b|\bFlashMLA\b|"
        r"\bMarlin\b|\bCUTLASS\b|\bcuDNN\b|\bcuBLAS\b|\btrtllm_\w+|lmsysorg/sglang:(?:latest|dev|v[\d.]+(?:post\d)?)(?:-cu\w+)?(?:['\"\s]|$)"
    ),
    "rocm": lazy(
        r"\bROCm\b|\brocm-smi\b|\brocminfo\b|\bamd-smi\b|\bgfx\d|\bAITER\b|\baiter\b|\bSGLANG_USE_AITER\b|\bHIP_\w+|\bRadeon\b|\bInstinct\b|\bAMD\b"
    ),
    "npu": lazy(r"\b[Aa]scend\b|\bnpu-smi\b|\bCANN\b|\btorch_npu\b|\bASCEND_\w+|\bHCCL\w*|\bNPUs?\b"),
    "xpu": lazy(r"\bxpu-smi\b|\bintel_xpu\b|\boneAPI\b|\bXPU\b|\bLevel Zero\b|\bArc\b|\bIntel GPUs?\b"),
    "musa": lazy(r"\bMUSA\b|\bmthreads\b|\bMoore Threads\b"),
    "cpu": lazy(r"\bAMX\b|\bintel_amx\b|\bSGLANG_CPU_OMP_THREADS_BIND\b"),
}  # fmt: skip
# What a remedy adds for one make ("...; on Ascend ...") does not bind the rest of it.
_ASIDE = lazy(r"\bon (?:AMD|ROCm|Ascend|NPUs?|Intel|XPU|NVIDIA|CPU)\b[^;.\n]*")
_EVERYWHERE = lazy(r"(?i)\b(?:on|for) (?:any|every|all|other) (?:GPU|platform|make)")


def fitting(fixes: Sequence[Fix], case: Case) -> tuple[Fix, ...]:
    """The fixes without those for another make of accelerator, with options that this server has not, or that ask for a
    release of SGLang that runs already."""
    if case.release is not None and case.release_is_certain:
        fixes = [fix for fix in fixes if not _is_met(fix, case.release)] or fixes
    platform = case.facts.look("host.platform")
    if isinstance(platform, str) and platform in _OWN:
        kept = [fix for fix in fixes if not _of_another(fix, platform)]
        if fixes and not kept and platform not in ("cuda", "musa"):  # nobody is left with nothing
            from mtpdoctor.diagnose.own_build import own_packages

            kept = [own_packages(platform, case)]
        fixes = kept
    if any(e.op in (EditOp.SET, EditOp.ADD) for fix in fixes for e in fix.edits) and _is_diffusion(case):
        from mtpdoctor.sglang.flags import OF_SERVE
        from mtpdoctor.sglang.other_parsers import diffusion_flags, diffusion_since

        known = frozenset(f for f in diffusion_flags() if diffusion_since(f, case.release) is None) | {
            OF_SERVE
        }
        fixes = [fix for fix in fixes if _has_all(fix, known)]
    return tuple(fixes)


def _is_met(fix: Fix, release: Release) -> bool:
    """Does it only install at least a release that is not newer than the one in use?"""
    least = [release_or_none(release) for sign, release in sglang_asked(fix.run) if sign == ">="]
    return bool(least) and not fix.edits and all(each is not None and each <= release for each in least)


def _of_another(fix: Fix, platform: str) -> bool:
    """Does what the fix does name things of other makes only? Its reason may speak of them for comparison."""
    edits = (
        f"{e.name} {e.value or ''}"
        for e in fix.edits
        if e.op is not EditOp.REMOVE and e.op is not EditOp.UNSET
    )
    text = _ASIDE.sub("", "\n".join((fix.title, *edits, *fix.run)))
    if _OWN[platform].search(text) or _EVERYWHERE.search(text) or _goes_without(fix):
        return False
    if platform != "cuda" and any(e.op is EditOp.GPUS for e in fix.edits):
        return True
    return any(pattern.search(text) for make, pattern in _OWN.items() if make != platform)


def _goes_without(fix: Fix) -> bool:
    """Does it take the other make's thing out of use, or off the machine?"""
    return bool(_WITHOUT.search(fix.title)) or any("uninstall" in line for line in fix.run)


_WITHOUT = lazy(
    r"(?i)\b(?:without|leave|uninstall|remove|switch(?:ed)? off|instead of|not (?:the )?|no longer|do without)\b"
)


def _is_diffusion(case: Case) -> bool:
    from mtpdoctor.diagnose.other_parsers import serves_diffusion

    return serves_diffusion(case)


def _has_all(fix: Fix, known: frozenset[str]) -> bool:
    """Does the server for images and videos have every option that the fix sets? What is a choice of the language
    server's option of the same name is none of its own."""
    from mtpdoctor.sglang.flags import flag_table

    for edit in fix.edits:
        if edit.op not in (EditOp.SET, EditOp.ADD):
            continue
        spec = flag_table(None).get(edit.name)
        if edit.name not in known or (
            spec is not None and edit.value in {str(c) for c in spec.choices or ()}
        ):
            return False
    return True
