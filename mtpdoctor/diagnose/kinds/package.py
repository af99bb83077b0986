"""Which version of a package SGLang asks for, where the failure is in that package or at its border."""

from __future__ import annotations

import shlex

from mtpdoctor.case import Case
from mtpdoctor.kb.types import Match, Remedy, Safety
from mtpdoctor.patterns import lazy
from mtpdoctor.sglang.packages import companions, moving, package_of
from mtpdoctor.sglang.releases import ReleaseFacts, release_facts

_OWN = frozenset({"sglang", "srt"})
_NAME = lazy(r"[A-Za-z0-9][A-Za-z0-9._-]*\Z")
_SITE = lazy(r"(?:site|dist)-packages/([A-Za-z0-9_]+)")


def package_remedies(match: Match, case: Case) -> list[Remedy]:
    """What to install. Captures: ``package`` (an import name, dotted or not) or ``file`` (a path under
    site-packages); ``missing`` where the package is not there at all."""
    missing = match.captures.get("missing")
    package = (missing or match.captures.get("package") or _of_path(match) or "").partition(".")[0]
    if not package and "package" not in match.captures and "file" not in match.captures:
        package = _named_beside(match)
        if not package:
            from mtpdoctor.diagnose.kinds.callee import of_sglang

            return [] if of_sglang(match, case) else _pins(release_facts(case.release), case)
    package = "cudnn" if package.lower() == "cudnn" else package
    if not package or package in _OWN or not _NAME.match(package):
        return []
    release = release_facts(case.release)
    row = package_of(package)
    names = row.bringing if missing else row.distributions
    pinned = next((n for n in names if n in release.pins), None)
    if missing:
        return [_install(package, pinned or names[-1], release, case)]
    remedies = []
    if pinned is not None and release.pins[pinned] and case.release is not None:
        remedies.append(_pinned(package, pinned, release, case))
    elif pinned is not None and release.pins[pinned].startswith("==") and case.release is None:
        remedies.append(_asked(package, pinned))
    else:
        remedies.append(_unpinned(package, pinned or names[0], case))
    remedies.append(_whole(case))
    return remedies


_FOREIGN = lazy(
    r"(?i)(?<![a-z])(lmcache|lmc|aiter|mori|nixl|mooncake|torchada|torch_npu|deep_ep|flash_mla)(?=[A-Z_/.\\W]|layer|$)"
)
_FRAMES = 2  # the last ones


def _named_beside(match: Match) -> str:
    """The package that SGLang does not pin, by the name of what was called or the file that calls it."""
    if match.traceback is None:
        return ""
    last = match.traceback.frames[-_FRAMES:]
    for text in (match.traceback.message, *(f"{f.path} {f.code or ''}" for f in reversed(last))):
        found = _FOREIGN.search(text)
        if found:
            name = found[1].lower()
            return "lmcache" if name == "lmc" else name
    return ""


def usable_name(module: str) -> bool:
    """Could the name be one of a package other than SGLang's own?"""
    return bool(module) and module not in _OWN and _NAME.match(module) is not None


def install_remedy(module: str, name: str, case: Case) -> Remedy:
    """To install the distribution ``name``, which brings ``module``, as the release in use asks for it."""
    return _install(module, name, release_facts(case.release), case)


def _pins(release: ReleaseFacts, case: Case) -> list[Remedy]:
    """Where no package is named: those with compiled code or a moving interface, as the release asks for them."""
    wanted = [n for n in moving() if release.pins.get(n, "").startswith("==")]
    if case.release is None or not wanted:
        return [_whole(case)]
    pins = [n + release.pins[n] for n in wanted]
    return [
        Remedy(
            title=f"Bring the packages to what SGLang {case.release} asks for: {', '.join(pins)}",
            safety=Safety.MANUAL,
            why="a call and the function it reaches are of different versions",
            run=("pip check", "pip install " + " ".join(pins)),
            risk="what else uses this Python may need other versions",
        ),
        _whole(case),
    ]


def _of_path(match: Match) -> str | None:
    found = _SITE.search(match.captures.get("file", ""))
    return found[1] if found else None


def _requirement(name: str, spec: str) -> str:
    return shlex.quote(name + spec) if set(spec) & set("<>,!") else name + spec


def _install(package: str, name: str, release: ReleaseFacts, case: Case) -> Remedy:
    spec = release.pins.get(name, "") if case.release is not None else ""
    asks = f"; SGLang {case.release} asks for {name}{spec}" if spec else ""
    return Remedy(
        title=f"Install {name}{spec}, which the module {package} comes from",
        safety=Safety.MANUAL,
        why=f"nothing in this Python has it{asks}",
        run=(f"pip install {_requirement(name, spec)}",),
    )


def _pinned(package: str, name: str, release: ReleaseFacts, case: Case) -> Remedy:
    others = [n for n in companions(name) if release.pins.get(n)]
    wanted = [name + release.pins[name], *(n + release.pins[n] for n in others)]
    run = " ".join(_requirement(n, release.pins[n]) for n in (name, *others))
    with_others = f" (with {', '.join(wanted[1:])})" if others else ""
    comes = "" if package.replace("_", "-") in name else f", which brings the right {package}"
    return Remedy(
        title=f"Install the version that SGLang {case.release} asks for: {wanted[0]}{with_others}",
        safety=Safety.MANUAL,
        why=f"the failure is in {package} or at its border with SGLang, as when their versions differ{comes}",
        run=(f"pip show {name}", f"pip install {run}"),
        risk="what else uses this Python may need another version",
    )


def _asked(package: str, name: str) -> Remedy:
    """Where the release is not known: the version is asked of the SGLang that is installed."""
    return Remedy(
        title=f"Install the {name} that the installed SGLang asks for",
        safety=Safety.MANUAL,
        why=f"the failure is in {package} or at its border with SGLang, as when their versions differ; each release pins one version",
        run=(f"pip show {name} sglang", f'pip install "{name}==PINNED"'),
        risk="what else uses this Python may need another version",
    )


def _unpinned(package: str, name: str, case: Case) -> Remedy:
    release = f"SGLang {case.release}" if case.release is not None else "SGLang"
    origin = package_of(package).origin
    if origin is not None:
        return Remedy(
            title=f"Bring {package} to the version that goes with this SGLang; it comes from {origin.source}",
            safety=Safety.MANUAL,
            why=f"the failure is in {package} or at its border; {release}'s package asks for no certain version of it",
            run=origin.run,
            risk="what else uses this Python may need another version",
        )
    return Remedy(
        title=f"Check {name}, reinstall or upgrade it",
        safety=Safety.MANUAL,
        why=f"the failure is in {package} or at its border; {release} asks for no certain version of it",
        run=(f"pip show {name}", "pip check", f"pip install --upgrade {name}"),
        risk="pip may change what else depends on it; look at pip check again afterwards",
    )


def _whole(case: Case) -> Remedy:
    if case.release is None:
        return Remedy(
            title="Install SGLang into a fresh environment, or use its image",
            safety=Safety.MANUAL,
            why="pip then chooses versions that belong together",
            run=("python -m venv fresh && fresh/bin/pip install sglang",),
        )
    return Remedy(
        title=f"Install SGLang {case.release} into a fresh environment, or use its image",
        safety=Safety.MANUAL,
        why="every package is then of the version that this release was tested with",
        run=(
            f"python -m venv fresh && fresh/bin/pip install sglang=={case.release}",
            f"docker pull lmsysorg/sglang:v{case.release}",
        ),
    )
