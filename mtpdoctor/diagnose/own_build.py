"""Fixes as they are for this installation: for a fork, plugin or image of somebody else, and for GPUs other than NVIDIA's.

SGLang's own package over a fork's destroys the fork; NVIDIA's packages and tools are of no use elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence

from mtpdoctor.case import Case
from mtpdoctor.diagnose.causality import Cause
from mtpdoctor.diagnose.types import Fix
from mtpdoctor.diagnose.unknown import root_traceback
from mtpdoctor.kb.types import Safety
from mtpdoctor.patterns import lazy
from mtpdoctor.records import dataclass, replace
from mtpdoctor.release import Release, leads_to, parse_release, release_or_none
from mtpdoctor.sglang.releases import known_releases

# Folders of forks that are known to be such. A checkout or environment is named after the model or the machine as
# often as after a fork, so that no other name tells whose tree it is.
_TREE = lazy(
    r"/(?P<name>sglang[-_](?:miles|slime|jax|npu|ascend|kt|fl|musa|metax|maca|kunlun|xpu|hpu|gaudi|dcu|tpu|mlx|das)"
    r"|(?:ktransformers|miles|slime|flagos|musa|metax|kunlun)[-_]sglang|ktransformers)/(?:[\w.-]+/){0,3}sglang/srt/"
)
_PLUGIN = lazy(
    r"(?:site|dist)-packages/(?P<name>sglang_fl|flag_gems|sglang_kt|kt_kernel|ktransformers|sglang_plugin\w*)/"
)
_IMAGES = lazy(
    r"(?:^|/)(?:nvcr\.io/nvidia/sglang|radixark/miles|slimerl/slime|gpustack/runner)[:@\w.-]*"
    r"|^(?!rocm/sgl-dev|quay\.io/ascend/sglang)(?:gpustack|rocm|radixark|slimerl|intel|ascendai|quay\.io/ascend)/\S+"
)  # rocm/sgl-dev and quay.io/ascend/sglang hold SGLang's own main for AMD and Ascend
_MAC = lazy(r"^/Users/|^/opt/homebrew/|^/Library/Frameworks/|/hardware_backend/mlx/")
_NEWEST_IMAGE = frozenset(("docker pull lmsysorg/sglang:dev", "docker pull lmsysorg/sglang:latest"))
_VARIABLE = lazy(r"\b(?:envs\.)?(SGLANG_[A-Z0-9_]+)")
_OVERWRITES = lazy(
    r"pip3? install\b[^|;&]*\s['\"]?sglang(?:\[\w+\])?(?:['\"\s=<>~@]|$)|docker pull \S*lmsysorg/sglang|fresh/bin/pip install sglang"
)
_PLUGINS = frozenset({"sglang_fl", "flag_gems"})
_COMMANDS = {
    "rocm": {"nvidia-smi topo -m": "rocm-smi --showtopo", "nvidia-smi": "rocm-smi"},
    "npu": {"nvidia-smi topo -m": "npu-smi info -t topo", "nvidia-smi": "npu-smi info"},
    "xpu": {"nvidia-smi topo -m": "xpu-smi topology -m", "nvidia-smi": "xpu-smi discovery"},
}  # fmt: skip
_NVIDIA = lazy(
    r"pip3? install\b[^|;&]*\b(?:sgl-kernel|sglang-kernel|flashinfer\S*|nvidia-\S+|sgl-deep-gemm)|whl/cu1\d\d|nvidia-ctk|\bnvcc\b"
)
# The index's wheels of these, and the images without a platform in their tag, are for NVIDIA's GPUs.
_NVIDIA_WHEEL = lazy(
    r"pip3? install\b(?![^\n]*whl/(?:rocm|xpu|cpu))[^\n|;&]*\s['\"]?(?:torch(?:audio|vision|codec)?|triton)(?:['\"\s=<>~]|$)"
    r"|fresh/bin/pip install sglang|docker pull lmsysorg/sglang:v[\d.]+(?:post\d+|rc\d+|dev\d+)?(?:-cu\d+)?(?:\s|$)"
)
_SGLANG_WHEEL = lazy(r"\bpip3? install\b[^|;&#]*\s['\"]?sglang(?:\[\w+\])?(?:['\"\s=<>~]|$)")
_OLDER_AMD = lazy(
    r"\bMI(?:50|60|1\d\d|2\d\d)X?\b|\bgfx(?:906|908|90a|10\d\d|11\d\d|12\d\d)\b|Radeon[\w ]{0,40}"
)
_ROCM_IMAGE = lazy(r"docker pull lmsysorg/sglang:\S+-rocm\d+-mi3")
_OTHER_WAY = {
    "rocm": "take the release's ROCm image (its tags end in -rocmNNN-mi30x for MI300, -mi35x for MI350) or build from source: "
    "setup_rocm.py of sgl-kernel, then pyproject_other.toml as pyproject.toml, with the extra all_hip",
    "npu": "take the release's Ascend image (quay.io/ascend/sglang) or install from source with pyproject_npu.toml",
    "xpu": "build from source with pyproject_xpu.toml as pyproject.toml, after torch from the XPU index",
    "cpu": "build the image of docker/xeon.Dockerfile, or from source with pyproject_cpu.toml as pyproject.toml",
    "musa": "build from source: setup_musa.py of sgl-kernel, then pyproject_other.toml as pyproject.toml, with the extra all_musa",
    "mps": "build from source: mv python/pyproject_other.toml python/pyproject.toml, then pip install -e \"python[all_mps]\"",
}  # fmt: skip
_UPGRADE = lazy(r"Upgrade (?:SGLang )?(?:from \S+ )?to (?:SGLang )?(\d[\w.]*\w)")
_SGLANG_VERSION = lazy(r"sglang(?:\[\w+\])?[=>]=(\d[\w.]*\w)")
_MAKES = {
    "rocm": "ROCm",
    "npu": "Ascend",
    "xpu": "Intel",
    "cpu": "CPU",
    "musa": "Moore Threads",
    "mps": "Apple",
}
_IMAGES_OF = frozenset({"rocm", "npu"})  # the makes that SGLang publishes images for, besides NVIDIA
# The tags of SGLang's images for AMD's GPUs name ROCm and GPU: ROCm 7.0 first, 7.2 later.
_ROCM_IMAGES_FROM, _ROCM_72_FROM = parse_release("0.5.6"), parse_release("0.5.12.post1")


@dataclass(frozen=True, slots=True)
class Build:
    """Whose SGLang it is, and how that is known."""

    name: str
    why: str


def build_of(case: Case, cause: Cause | None = None) -> Build | None:
    """The fork, plugin or image that the launch runs on; None where nothing says that it is not SGLang's own."""
    said = case.facts.fact("log.build")
    if said is not None:
        return Build(str(said.value), f"the log names it ({said.where})")
    image = case.facts.look("container.image")
    if isinstance(image, str) and _IMAGES.search(image):
        return Build(image, "the image is not SGLang's own")
    traceback = root_traceback(cause) if cause is not None else None
    for frame in traceback.frames if traceback is not None else ():
        tree = _TREE.search(frame.path)
        if tree:
            return Build(tree["name"], f"its code lies in {frame.path.partition('/sglang/srt/')[0]}")
        plugin = _PLUGIN.search(frame.path)
        if plugin:
            return Build(plugin["name"], f"its code is among the frames ({plugin['name']})")
    return _by_variable(case, cause)


def _by_variable(case: Case, cause: Cause | None) -> Build | None:
    """The message names a variable of SGLang's that no release has."""
    if cause is None:
        return None
    for found in _VARIABLE.finditer(cause.root.body):
        from mtpdoctor.sglang.releases import (
            known_variable,
        )  # the table of all variables, read for few messages

        if not known_variable(found[1]):
            return Build("a fork or development state of SGLang", f"no release known here has {found[1]}")
    return None


def as_here(fixes: Sequence[Fix], case: Case, cause: Cause) -> tuple[Fix, ...]:
    """The fixes without those that would destroy a fork or are for another make of GPU; what stands in their
    place comes last."""
    build = build_of(case, cause)
    platform = "mps" if _on_apple(case, cause) else case.facts.look("host.platform")
    out: list[Fix] = []
    instead: list[Fix] = []
    for fix in fixes:
        text = "\n".join(fix.run)
        if (
            build is not None
            and not fix.edits
            and (_OVERWRITES.search(text) or fix.title.startswith("Upgrade SGLang"))
        ):
            instead.append(_own(build))
        elif isinstance(platform, str) and platform in _MAKES:
            if not fix.edits and _NVIDIA.search(text):
                instead.append(_image(platform, case))
            elif not fix.edits and _MAKES[platform] not in fix.title and _NVIDIA_WHEEL.search(text):
                needed = _UPGRADE.match(fix.title)
                if needed is not None:  # it says what helps: it keeps its place
                    out.append(own_packages(platform, case, needed[1], fix.why))
                else:
                    instead.append(own_packages(platform, case))
            else:
                out.append(_spelled(fix, platform))
        else:
            out.append(fix)
    for fix in instead:
        if all(f.title != fix.title for f in out):
            out.append(fix)
    return tuple(out)


def without_wheels(fixes: Sequence[Fix], case: Case, cause: Cause) -> tuple[Fix, ...]:
    """What later steps have added, without the index's package of SGLang where it is for another make of GPU."""
    platform = "mps" if _on_apple(case, cause) else case.facts.look("host.platform")
    if not isinstance(platform, str) or platform not in _MAKES:
        return tuple(fixes)
    older = _older_amd(case) if platform == "rocm" else None
    out: list[Fix] = []
    for fix in fixes:
        if any(_SGLANG_WHEEL.search(line) for line in fix.run):
            needed = _UPGRADE.match(fix.title)
            if needed is not None and not fix.edits:
                fix = own_packages(platform, case, needed[1], fix.why)
            else:
                fix = _spelled(fix, platform)
        if older is not None:
            fix = _without_rocm_image(fix, older)
        if not any(_alike(one, fix) for one in out):
            out.append(fix)
    return tuple(out)


def _alike(one: Fix, fix: Fix) -> bool:
    """Whether the second says nothing that the first does not: the same title, or the same commands, and the same edits."""
    return one.edits == fix.edits and (one.title == fix.title or (bool(fix.run) and one.run == fix.run))


def _older_amd(case: Case) -> str | None:
    """The AMD GPU that SGLang's images are not built for, by its name or the target that the environment names."""
    for name in (
        "host.gpu.name",
        "host.gpu.arch",
        "env.AMDGPU_TARGET",
        "env.PYTORCH_ROCM_ARCH",
        "env.GPU_ARCHS",
    ):
        value = case.facts.look(name)
        if isinstance(value, str) and (found := _OLDER_AMD.search(value)):
            return found[0]
    return None


def _without_rocm_image(fix: Fix, gpu: str) -> Fix:
    run = tuple(line for line in fix.run if not _ROCM_IMAGE.search(line))
    title = fix.title.replace("Use SGLang's ROCm image", "Build SGLang from source for ROCm").replace(
        "by its ROCm image or sources", "from source for ROCm"
    )
    if run == fix.run and title == fix.title:
        return fix
    note = f"SGLang's images for AMD hold kernels for MI300 to MI355 (gfx942, gfx950), none for {gpu}: build with AMDGPU_TARGET set to its target (gfx90a for MI210 and MI250)"
    return replace(fix, title=title, run=run, notes=(*fix.notes, note))


def _on_apple(case: Case, cause: Cause) -> bool:
    """On a Mac: by the device, the switch for MLX, or the folders that only macOS has."""
    if case.facts.look("arg.device") == "mps" or str(case.facts.look("env.SGLANG_USE_MLX")).lower() in (
        "1",
        "true",
    ):
        return True
    traceback = root_traceback(cause)
    return any(_MAC.search(frame.path) for frame in (traceback.frames if traceback is not None else ()))


def _own(build: Build) -> Fix:
    plugin = build.name in _PLUGINS
    what = "the plugin" if plugin else "this build"
    run = ("pip install --upgrade sglang-kt",) if build.name in ("sglang-kt", "sglang_kt") else ()
    return _manual(
        f"Look for a newer release or issue of {build.name}, whose code this is; do not install SGLang's own package over it"
        if not plugin
        else f"Look for a newer release or issue of {build.name}, and for the SGLang release that it is made for",
        f"{build.why}; SGLang's own package or image would replace {what}, and what it adds would be gone",
        run,
    )


def _release_or_newer(case: Case) -> str:
    """As a part of a title; of a build from source the release that it leads to."""
    return f" of SGLang {leads_to(case.release)} or a newer release" if case.release is not None else ""


def _image(platform: str, case: Case) -> Fix:
    make = _MAKES[platform]
    release = _release_or_newer(case)
    return _manual(
        f"Use SGLang's {make} image{release}, or build its kernel package from source for {make}"
        if platform in _IMAGES_OF
        else f"Build SGLang{release} and its kernel package from source for {make}",
        "the wheels on the package index are for NVIDIA GPUs; a newer release may do without what is missing here",
        _rocm_image(case.release) if platform == "rocm" else (),
    )


def _rocm_image(release: Release | None) -> tuple[str, ...]:
    """The command for the image of a release for AMD's GPUs, or of the newest where it has none that is known."""
    published = [r for r in known_releases() if r >= _ROCM_IMAGES_FROM and not r.is_prerelease]
    release = leads_to(release) if release is not None else None
    wanted = release if release in published else published[-1]
    tag = f"v{wanted}-rocm{'720' if wanted >= _ROCM_72_FROM else '700'}-mi3"
    return (f"docker pull lmsysorg/sglang:{tag}5x   # MI300 and MI325: {tag}0x",)


def own_packages(platform: str, case: Case, needed: str | None = None, why: str | None = None) -> Fix:
    """The image or sources for ``platform`` (one of ``_MAKES``): of the release in use, or of the release ``needed``."""
    make = _MAKES[platform]
    release = _release_or_newer(case)
    if needed is not None:
        return _manual(
            f"Upgrade SGLang to {needed} or later, "
            + (f"by its {make} image or sources" if platform in _IMAGES_OF else f"from source for {make}"),
            f"{(why or '').rstrip('.')}. For {make}, {_OTHER_WAY[platform]}".lstrip(". "),
            _rocm_image(release_or_none(needed)) if platform == "rocm" else (),
        )
    return _manual(
        f"Use SGLang's {make} image{release}, whose packages belong together"
        if platform in _IMAGES_OF
        else f"Install SGLang{release} from source for {make}, into a fresh environment",
        f"the package index's torch and triton, and the images without a platform in their tag, are for NVIDIA GPUs; {_OTHER_WAY[platform]}",
        _rocm_image(case.release) if platform == "rocm" else (),
    )


def _without_wheel(line: str) -> str:
    """The line without those of its commands (joined by &&) that install SGLang's wheel, which is for NVIDIA's GPUs."""
    return " && ".join(part for part in line.split(" && ") if not _SGLANG_WHEEL.search(part))


def _spelled(fix: Fix, platform: str) -> Fix:
    run = [left for line in fix.run if (left := _without_wheel(line))]
    if run != list(fix.run):
        if platform == "rocm" and not any("docker pull" in line for line in run):
            asked = next((m[1] for line in fix.run if (m := _SGLANG_VERSION.search(line))), None)
            run += _rocm_image(release_or_none(asked))
        fix = replace(fix, why=f"{fix.why}; for {_MAKES[platform]}, {_OTHER_WAY[platform]}", run=tuple(run))
    title = fix.title
    for old, new in _COMMANDS.get(platform, {}).items():
        run = [line.replace(old, new) for line in run]
        title = title.replace(old, new)
    if platform == "rocm":
        run = [each for line in run for each in (_rocm_image(None) if line in _NEWEST_IMAGE else (line,))]
    return fix if tuple(run) == fix.run and title == fix.title else replace(fix, run=tuple(run), title=title)


def _manual(title: str, why: str, run: tuple[str, ...]) -> Fix:
    return Fix(
        title=title,
        safety=Safety.MANUAL.value,
        why=why,
        risk=None,
        edits=(),
        run=run,
        command=None,
        verified="none",
    )
