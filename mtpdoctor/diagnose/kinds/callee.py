"""A call that its callee refuses for its arguments: whose function it is, and whether a later release has it right."""

from __future__ import annotations

from mtpdoctor.case import Case
from mtpdoctor.diagnose.evidence import Refused, refused_call
from mtpdoctor.diagnose.later import outlook_of, own_frames
from mtpdoctor.diagnose.upgrading import later_remedies
from mtpdoctor.kb.types import Match, Remedy, Safety
from mtpdoctor.log.types import Traceback
from mtpdoctor.paths import releases_folder
from mtpdoctor.sglang.members import arguments_of


def callee_remedies(match: Match, case: Case) -> list[Remedy]:
    """The release that mends it where both sides are SGLang's own and differ there; a whole installation where the release has
    it right; else nothing (the package of the callee is to be looked at)."""
    call = _call(match)
    pins = [_PINS] if match.rule.generic else []
    if call is None or not _caller(match):
        return pins
    known = _fits(call, case)
    if known is True:
        return [_whole(case)]
    outlook = outlook_of(match.traceback, match.line.body, case)
    if outlook is not None and (known is False or outlook.concerned):
        return later_remedies(outlook, case) + ([] if known is False else pins)
    return [] if known is False else pins


def of_sglang(match: Match, case: Case) -> bool:
    """Is it SGLang's own function that refuses the call of another one of SGLang's? No package is to blame."""
    call = _call(match)
    return call is not None and bool(_caller(match)) and _fits(call, case) is not None


def callee_said(match: Match, case: Case) -> str:
    """Who calls whom, and what the release's own sources have there."""
    call, caller = _call(match), _caller(match)
    if call is None:
        return ""
    if not caller:
        return f"{call.callee} belongs to another package than SGLang, or is called by one: that package, or SGLang, is not the one the other was made for."
    known = _fits(call, case)
    what = (
        f"{caller} calls {call.callee} with"
        + ("" if call.unexpected else "out")
        + f" {' and '.join(call.names)}"
    )
    if known is False:
        return f"Both are SGLang's own: {what}, which {case.release} itself does not provide for. That is a fault of the release, not of the installation."
    if known is True:
        return f"{what}; in SGLang {case.release} the two fit together, so files of another release are mixed in."
    return f"{what}: SGLang and the package that {call.callee} is of were not made for each other, or SGLang hands on what was meant for a function of its own."


def _call(match: Match) -> Refused | None:
    traceback = match.traceback
    return refused_call(traceback.message if traceback is not None else match.line.body.partition(": ")[2])


def _caller(match: Match) -> str:
    """The function of SGLang's that calls, where it is the last frame."""
    traceback: Traceback | None = match.traceback
    frames = own_frames(traceback)
    if traceback is None or not frames or frames[0] is not traceback.frames[-1]:
        return ""
    file = frames[0].path[frames[0].path.rfind("sglang/") :].removeprefix("sglang/")
    return f"{frames[0].function} ({file})"


def _fits(call: Refused, case: Case) -> bool | None:
    """Does SGLang's own function of that name take the call in this release? None where it is not known, or takes anything: then
    another function of the same name refused."""
    release = case.release
    known = arguments_of(releases_folder(), call.owner, call.function)
    if known is None or release is None:
        return None
    if release not in known[1].releases:
        return False if release < known[1].releases[-1] else None  # between two releases, both sides change
    if not known[1].holds(release):
        return None
    at = known[1].releases.index(release)
    forms = [taken for numbers, taken in known[0] if at in numbers]
    if not forms:
        return None if not case.release_is_certain else False
    if call.unexpected and any(taken.anything for taken in forms):
        return None
    return any(call.suits(taken) for taken in forms)


_PINS = Remedy(
    title="Bring the package of the last frame to the version that this SGLang release pins",
    safety=Safety.MANUAL,
    why="pip check lists what differs from the pins; the pinned set was tested together",
    run=("python -m pip check", 'python -c "import sglang; print(sglang.__version__, sglang.__file__)"'),
)


def _whole(case: Case) -> Remedy:
    return Remedy(
        title=f"Install SGLang {case.release} whole, into a fresh environment",
        safety=Safety.MANUAL,
        why="in the sources of this release caller and callee fit together; here files of two releases are mixed (a checkout over a "
        "wheel, a patched file, two installations on the path)",
        run=(
            'python -c "import sglang; print(sglang.__version__, sglang.__path__)"',
            f"pip install --force-reinstall --no-deps sglang=={case.release}",
        ),
    )
