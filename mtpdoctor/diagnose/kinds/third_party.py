"""Ways round a package of another maker, in whose code a failure was raised."""

from __future__ import annotations

from collections.abc import Iterator

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from mtpdoctor.case import Case
from mtpdoctor.diagnose.kinds.backend import LAYERS, backend_of, backend_remedies
from mtpdoctor.diagnose.kinds.package import package_remedies
from mtpdoctor.facts import UNKNOWN
from mtpdoctor.kb.types import EditTemplate, Match, Remedy, Safety
from mtpdoctor.log.types import Frame
from mtpdoctor.patterns import lazy
from mtpdoctor.sglang.flags import flag_table
from mtpdoctor.sglang.packages import Way, package_of
from mtpdoctor.sglang.releases import release_facts

_SITE = lazy(r"(?:site|dist)-packages/([A-Za-z0-9_]+)")
# The package refuses this GPU: in the version that the release asks for as well.
_OF_GPU = lazy(r"(?i)\bSM_?\d{2,3}\w?\b.{0,60}\bnot\b|\bnot supported on\b.{0,40}\bSM_?\d|compute capability")
_NEVER_AT_FAULT = frozenset({"sglang", "torch", "uvloop", "asyncio", "click", "typer"})
_INNERMOST = 6  # frames
_IMPORTED = "<module>"  # the function of a frame in which a module is read, not an operator called


def third_party_remedies(match: Match, case: Case) -> list[Remedy]:
    """The version that the release asks for, where the log shows another; then what keeps SGLang from using the
    package, and its removal where it is for another make of GPU."""
    frames = match.traceback.frames if match.traceback is not None else ()
    package = match.captures.get("package") or next(iter(packages_of(frames)), None)
    if package is None:
        return []
    row = package_of(package)
    remedies: list[Remedy] = []
    pinned = _contradicted(package, case)
    if pinned is not None:
        remedies.append(pinned)
    platform = case.facts.look("host.platform")
    if isinstance(platform, str) and row.only and platform not in row.only:
        remedies.append(_uninstall(package, platform, case))
    remedies += ways_round(match, package, case)
    refuses_gpu = match.traceback is not None and _OF_GPU.search(match.traceback.message) is not None
    if pinned is None and not remedies and row.plugin is None and not refuses_gpu:
        remedies += package_remedies(match, case)
    return remedies


def ways_round(match: Match, package: str, case: Case) -> list[Remedy]:
    """The package's ways round it. A library of kernels serves several layers: what another layer than the failing
    one computes with is left as it is, and the failing layer's own choices come in its place."""
    ways, used = package_of(package).ways, backend_of(match)
    other = [w for w in ways if used is not None and _dest(w) in LAYERS and _dest(w) != used.dest]
    taken = backend_remedies(match, case) if other and used is not None else []
    return [
        *taken,
        *(
            r
            for way in ways
            if way not in other
            and (r := _way(way, package, match.traceback.frames if match.traceback else (), case)) is not None
        ),
    ]


def _dest(way: Way) -> str | None:
    wanted = way.choose or way.choose_if
    return wanted[0] if wanted is not None else way.leave_out


def packages_of(frames: tuple[Frame, ...]) -> Iterator[str]:
    """Import names of the packages of others among the innermost frames, the innermost first."""
    for frame in reversed(frames[-_INNERMOST:]):
        found = _SITE.search(frame.path)
        if found and found[1] not in _NEVER_AT_FAULT:
            yield found[1]


def _contradicted(package: str, case: Case) -> Remedy | None:
    """To install what the release pins, where the log shows that something else was installed."""
    if case.release is None:
        return None
    pins = release_facts(case.release).pins
    for name in package_of(package).distributions:
        here, pin = case.facts.fact(f"host.package.{name}"), pins.get(name)
        if here is None or not pin or _meets(str(here.value), pin):
            continue
        where = f" ({here.where})" if here.where else ""
        return Remedy(
            title=f"Install {name}{pin}: SGLang {case.release} asks for it, and {here.value} is installed{where}",
            safety=Safety.MANUAL,
            why=f"the failure is raised in {package} or where SGLang meets it; this release was written for {name}{pin}",
            run=(f"pip install '{name}{pin}'", "pip check"),
            risk="what else uses this Python may need the other version; use an environment of its own then",
        )
    return None


def _meets(version: str, spec: str) -> bool:
    try:
        return SpecifierSet(spec).contains(Version(version), prereleases=True)
    except (InvalidSpecifier, InvalidVersion):
        return True


def _uninstall(package: str, platform: str, case: Case) -> Remedy:
    names = " ".join(
        name
        for name in package_of(package).distributions
        if package != "flashinfer" or name == "flashinfer-python"
    )
    if package == "flashinfer":
        names += " flashinfer-cubin flashinfer-jit-cache"
    make = {"rocm": "ROCm", "npu": "Ascend", "xpu": "Intel"}.get(platform, platform)
    return Remedy(
        title=f"Uninstall {package}, which does not belong into a {make} environment, or use SGLang's {make} image",
        safety=Safety.MANUAL,
        why=f"{package} is for another make of accelerator; SGLang takes it into use where it finds it",
        run=(f"pip uninstall -y {names}",),
    )


def _way(way: Way, package: str, frames: tuple[Frame, ...], case: Case) -> Remedy | None:
    """A row of the table as a remedy; None where the release has no such setting or nothing would change."""
    words = {"operator": _operator(package, frames)}
    near = frames[-_INNERMOST:]
    if way.path is not None and not any(way.path in f.path for f in near):
        return None
    if any(part in f.path for part in way.elsewhere for f in near):
        return None
    if way.since is not None and case.release is not None and case.release < Version(way.since):
        return None
    edit = _variable(way.env, words, case) if way.env is not None else _option(way, case)
    if edit is None:
        return None
    return Remedy(
        title=way.title.format(**words),
        safety=Safety.RISKY,
        why=f"the failure is raised in the code of {package}, which SGLang then does not call",
        edits=(edit,),
        risk=way.risk,
    )


def _variable(env: tuple[str, str], words: dict[str, str], case: Case) -> EditTemplate | None:
    name, value = env[0], env[1].format(**words)
    if "{operator}" in env[1] and not value:
        return None
    own = name.startswith(("SGLANG_", "SGL_")) and not name.startswith("SGLANG_FL_")
    known = release_facts(case.release).env
    # a release that still reads the old name may declare the new one already, and not look at it
    old = "SGL_" + name.removeprefix("SGLANG_")
    if own and (name not in known or (old != name and old in known)):
        return None
    return EditTemplate("env", name, value) if value else EditTemplate("unset", name)


def _option(way: Way, case: Case) -> EditTemplate | None:
    wanted = way.choose or way.choose_if
    dest = wanted[0] if wanted is not None else way.leave_out
    assert dest is not None
    spec = flag_table(case.release).by_dest(dest)
    typed = case.facts.look(f"flag.{dest}")
    absent = typed in (UNKNOWN, None, False)
    if spec is None or spec.refused is not None or (absent and way.choose is None):
        return None
    if wanted is None:
        return EditTemplate("remove", spec.name)
    if typed == wanted[1] or (spec.choices and wanted[1] not in spec.choices):
        return None
    return EditTemplate("set", spec.name, wanted[1])


def _operator(package: str, frames: tuple[Frame, ...]) -> str:
    """The operator of a plugin that was called: the file under ``ops`` that the outermost of its frames is in."""
    for frame in frames:
        if f"/{package}/" in frame.path and "/ops/" in frame.path and frame.function != _IMPORTED:
            return frame.path.rpartition("/")[2].removesuffix(".py")
    return next((f.function for f in frames if f"/{package}/" in f.path and f.function != _IMPORTED), "")
