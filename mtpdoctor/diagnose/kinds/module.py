"""What to install for a Python module that is missing: its name is often not the package's.

What is known of single modules stands in ``knowledge/releases/packages.json``, what a release pins in the learned tables.
"""

from __future__ import annotations

from mtpdoctor.case import Case
from mtpdoctor.diagnose.kinds.package import install_remedy, usable_name
from mtpdoctor.kb.types import Match, Remedy, Role, Safety
from mtpdoctor.patterns import lazy
from mtpdoctor.release import parse_release
from mtpdoctor.sglang.packages import Missing, module_named, package_of
from mtpdoctor.sglang.releases import ReleaseFacts, release_facts

_ENVIRONMENT = lazy(r"/(?:site|dist)-packages/|/lib/python3|/sglang/|/sgl-workspace/|/usr/(?:local/)?s?bin/")
_PACKAGE = lazy(r"/(?:site|dist)-packages/(?!sglang/)\w+/")
_PIN = lazy(r"\{pin:([\w.-]+)\}")


def module_remedies(match: Match, case: Case) -> list[Remedy]:
    """Captures: ``module``, the import name, dotted or not, or ``package``, the name of what the message itself says to
    be missing: then SGLang's other dependencies are not in question."""
    if match.rule.role is Role.CAUSE and not {"package", "module"} & match.captures.keys():
        return []  # the pattern that matched names none
    named = match.captures.get("package", "")
    module = (named or match.captures.get("module", "")).partition(".")[0]
    if not usable_name(module):
        return [_complete(case)]
    release = release_facts(case.release)
    package = package_of((named and module_named(named)) or module)
    names = package.bringing
    pinned = next((n for n in names if n in release.pins), None)
    known_here = pinned is not None and case.release is not None
    if package.missing is not None and package.missing.holds(case.release):
        first = remedy_of_row(package.missing, release, case)
    else:
        first = install_remedy(module, pinned or names[-1], case)
        if not named and not known_here and not package.known:
            # A compound name is mostly the package's own; one that the release does not ask for is optional.
            optional = case.release is not None and "_" in module
            asked = _asked_elsewhere(match)
            return [first, _complete(case)] if optional or asked else [_complete(case), first]
    # pip's sglang brings packages for CUDA: no help for one that belongs to another platform.
    return [first] if named or package.only else [first, _complete(case)]


def _asked_elsewhere(match: Match) -> bool:
    """Does the program around SGLang import it, from a checkout of its own, or an installed package that is not SGLang?
    SGLang's requirements do not name it then."""
    frames = match.traceback.frames if match.traceback is not None else ()
    last = next((f.path for f in reversed(frames) if not f.path.startswith("<")), "")
    own = last.startswith("/") and _ENVIRONMENT.search(last) is None
    return own or _PACKAGE.search(last) is not None


def remedy_of_row(missing: Missing, release: ReleaseFacts, case: Case) -> Remedy:
    """What the table of packages says to do where the module is missing."""
    return Remedy(
        title=missing.title,
        safety=Safety.MANUAL,
        why=missing.why,
        run=tuple(_filled(line, release, case) for line in missing.run),
    )


def _filled(line: str, release: ReleaseFacts, case: Case) -> str:
    kernel = next((n for n in ("sglang-kernel", "sgl-kernel") if n in release.pins), "sglang-kernel")
    line = line.replace("{release}", str(case.release) if case.release is not None else "RELEASE")
    line = line.replace("{kernel}", _pin(kernel, release, case))
    return _PIN.sub(lambda m: _pin(m[1], release, case), line)


def _pin(name: str, release: ReleaseFacts, case: Case) -> str:
    spec = release.pins.get(name, "") if case.release is not None else ""
    return name + spec if spec.startswith("==") else name


def _complete(case: Case) -> Remedy:
    name = f"sglang=={case.release}" if case.release is not None else "sglang"
    extras = case.release is not None and case.release < parse_release("0.5.3")
    wanted = name.replace("sglang", "sglang[all]", 1) if extras else name
    return Remedy(
        title="Install SGLang with its dependencies",
        safety=Safety.MANUAL,
        why="brings every package that the release asks for, in the version it pins"
        + ("" if case.release is not None else '; before 0.5.3 as "sglang[all]"'),
        run=("python -m pip check", f'pip install "{wanted}"'),
    )
