"""Which release of SGLang has what a program imports, and in which direction the version has to change."""

from __future__ import annotations

import re

from mtpdoctor.case import Case
from mtpdoctor.kb.types import Match, Remedy, Safety
from mtpdoctor.log.types import Traceback
from mtpdoctor.paths import releases_folder
from mtpdoctor.patterns import lazy
from mtpdoctor.sglang.packages import package_of
from mtpdoctor.sglang.releases import release_facts
from mtpdoctor.sglang.symbols import Held, held, moved_to

_SITE = lazy(r"(?:site|dist)-packages/([A-Za-z0-9_]+)")
_CHECKOUT = lazy(
    r"/(verl|slime|areal|AReaL|openrlhf|trl|roll|rllm|dynamo|lmdeploy|sglang_router|xorbits|xinference|gpustack|skyrl|nemo_rl|specforge|lm_eval|lightrft|evalscope|opencompass|mineru)/"
)
MAX_PLACES = 3


def symbol_remedies(match: Match, case: Case) -> list[Remedy]:
    """Captures: ``module`` (dotted), ``name`` (absent where the whole module is missing)."""
    module, name = match.captures.get("module", ""), match.captures.get("name", "")
    known = held(releases_folder(), module, name)
    what = f"{name} of {module}" if name else module
    who = importer(match.traceback)
    program = who or "the program"
    if known is None:
        return [
            _by_documentation(
                program,
                f"no release from 0.4.6 on has {what}: {program} was written for an older SGLang or for a development state",
            )
        ]
    if case.release is None:
        return [
            Remedy(
                title=f"Install a release of SGLang that has {what}: {ranges_in_words(known)}",
                safety=Safety.MANUAL,
                why=f"{program} imports it, and the installed release has no such name",
                run=("pip show sglang", f"pip install sglang=={_newest(known)}"),
                risk="what else uses this Python may need another release",
            )
        ]
    release = case.release
    if known.holds(release):
        return [
            Remedy(
                title="Look which sglang is imported: there must be two copies, or the installed one is not whole",
                safety=Safety.MANUAL,
                why=f"SGLang {release} has {what}, so what was imported is not {release}, or parts of two releases are mixed",
                run=(
                    'python -c "import sglang; print(sglang.__version__, sglang.__file__)"',
                    f"pip install --force-reinstall --no-deps sglang=={release}",
                ),
            )
        ]
    older, newer = known.before(release), known.after(release)
    remedies = []
    companion = _companion(match.traceback, who)
    if companion is not None and older is not None:
        remedies.append(_newer_companion(companion, what, older, case))
    if newer is not None:
        remedies.append(
            install(newer, f"which is the first after {release} to have {what}", program, "Upgrade SGLang to")
        )
    if older is not None:
        remedies.append(install(older, f"the last release that has {what}", program, "Install SGLang"))
        if companion is None:
            remedies.append(newer_program(program, what, release, older))
    places = [m for m in moved_to(releases_folder(), name, release) if m != module][:MAX_PLACES]
    if places and name:
        remedies.append(
            Remedy(
                title=f"Or import {name} from where SGLang {release} has it: {', '.join(places)}",
                safety=Safety.MANUAL,
                why=f"it moved; {program} has to be changed for it",
            )
        )
    return remedies


def symbol_said(match: Match, case: Case) -> str:
    """What the tables of the releases say of the name."""
    module, name = match.captures.get("module", ""), match.captures.get("name", "")
    known = held(releases_folder(), module, name)
    what = f"{name} of {module}" if name else module
    if known is None:
        return f"No release known here (0.4.6 and later) has {what}."
    return f"{what[0].upper() + what[1:] if not name else what} is in SGLang {ranges_in_words(known)}."


def importer(traceback: Traceback | None) -> str | None:
    """The package whose code imports: of the last frame outside SGLang."""
    if traceback is None:
        return None
    for frame in reversed(traceback.frames):
        if frame.path.startswith("<"):
            continue
        found = _CHECKOUT.search(frame.path) or _SITE.search(frame.path)
        name = found[1] if found else None
        if name in ("sglang", None) and "/sglang/" in frame.path:
            continue
        return name if name != "torch" else None
    return None


def _companion(traceback: Traceback | None, who: str | None) -> str | None:
    """``who`` where SGLang itself calls that package (its gRPC servicer): it goes by SGLang, not SGLang by it."""
    if traceback is None or who is None:
        return None
    for frame in traceback.frames:
        if f"-packages/{who}/" in frame.path:
            return None
        if "/sglang/srt/" in frame.path:
            return who
    return None


def _newer_companion(who: str, what: str, older: object, case: Case) -> Remedy:
    name = package_of(who).distributions[0]
    sure = case.release_is_certain
    wanted = release_facts(case.release).pins.get(name, "") if sure else ""
    here = f"SGLang {case.release}" if sure else "the SGLang that is installed"
    asks = f"asks for {name}{wanted}" if wanted else f"calls {name}, a package of its own"
    return Remedy(
        title=f"Upgrade {name} to a version that goes with {here}",
        safety=Safety.MANUAL,
        why=f"{what} went away after SGLang {older}, and the installed {name} still imports it; {here} {asks}",
        run=(
            f"pip show {name}",
            f"pip install --upgrade '{name}{wanted}'" if wanted else f"pip install --upgrade {name}",
        ),
    )


def install(release: object, why: str, program: str, verb: str) -> Remedy:
    return Remedy(
        title=f"{verb} {release}, {why}",
        safety=Safety.MANUAL,
        why=f"{program} was written for a release that has it",
        run=(
            f"pip install sglang=={release}",
            'python -c "import sglang; print(sglang.__version__, sglang.__file__)"',
        ),
        risk="kernel package, torch and other pins change with the release: let pip resolve them, or take the image of that release",
    )


def newer_program(program: str, what: str, release: object, older: object) -> Remedy:
    return Remedy(
        title=f"Or upgrade {program} to a version made for SGLang {release}",
        safety=Safety.MANUAL,
        why=f"{what} went away after {older}; later versions of {program} do without it",
        run=(f"pip show {program} sglang",)
        if re.fullmatch(r"[A-Za-z0-9_]+", program)
        else ("pip show sglang",),
    )


def _by_documentation(program: str, why: str) -> Remedy:
    return Remedy(
        title=f"Install the SGLang that {program} names in its own requirements (setup.py, requirements, Dockerfile)",
        safety=Safety.MANUAL,
        why=why,
        run=('python -c "import sglang; print(sglang.__version__, sglang.__file__)"',),
    )


def _newest(known: Held) -> str:
    return str(known.ranges[-1][1])


def ranges_in_words(known: Held) -> str:
    parts = []
    for first, last in known.ranges:
        if last == known.newest:
            parts.append(f"{first} and later")
        elif first == last:
            parts.append(str(first))
        else:
            parts.append(f"{first} to {last}")
    return ", ".join(parts)
