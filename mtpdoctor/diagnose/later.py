"""What other releases of SGLang have in the place where a launch dies: whether an upgrade is known to change anything.

From the tables of functions (``sglang.history``) and messages (``sglang.site_table``). A change is never called a fix.
"""

from __future__ import annotations

import re

from mtpdoctor.case import Case
from mtpdoctor.diagnose.evidence import OUTER, Evidence, evidence_of, sure_evidence
from mtpdoctor.diagnose.unknown import deciding_frame, is_own
from mtpdoctor.log.types import Frame, Traceback
from mtpdoctor.paths import releases_folder
from mtpdoctor.patterns import lazy
from mtpdoctor.records import dataclass, replace
from mtpdoctor.release import Release, release_or_none
from mtpdoctor.sglang.guard_facts import OPEN
from mtpdoctor.sglang.history import FunctionHistory, files_with, history_of
from mtpdoctor.sglang.releases import known_releases, nearest_release
from mtpdoctor.sglang.site_table import TableSite, sites_in, sites_saying, with_message
from mtpdoctor.sglang.templates import literal_length, show

# Errors of programming: a form of the code that came lately may have brought them.
INTERNAL = frozenset(
    {
        "AttributeError",
        "TypeError",
        "KeyError",
        "NameError",
        "UnboundLocalError",
        "IndexError",
        "ZeroDivisionError",
    }
    | {"RecursionError", "StopIteration", "ModuleNotFoundError", "ImportError"}
)
FURTHER = 5  # own frames whose calls and names are looked at
FAR = 3  # rank of evidence that says little: it goes behind a change of the function itself
NEAR = 3  # own frames, the last ones: what lies further up every launch goes through
REGRESSION = 8  # releases back that a form may have come with, to be taken for the reason
MAX_NAMED = 4
KEPT = 70  # characters of a long message that are surely kept
ALONE = 24  # characters of fixed text by which a message without a traceback is known


@dataclass(frozen=True, slots=True)
class Outlook:
    """``differs``: the first later release that is known to be another where the launch dies, with ``how``; None where all
    later ones up to the newest known are the same. ``back``: the last release before the form that fails, for errors of
    programming."""

    newest: Release
    differs: Release | None
    how: str
    here: bool  # what differs is the failing function or check itself, not only what is around it
    standing: bool  # the very statement that refuses stands in the newest release too, as it is
    speaks: bool  # SGLang's own words, or an error of programming: its code is to blame, or at least decides
    back: Release | None = None
    back_why: str = ""
    concerned: bool = (
        False  # an error of programming, and ``differs`` changed the very line or name that fails
    )
    between: str = ""  # why the build need not be what the release is
    alike: bool = True  # where nothing differs: nor does what is known of the callers on the stack
    mended: bool = False  # the sources leave no doubt that this failure is not possible from ``differs`` on
    gone: bool = False  # from ``differs`` on there is no such line, check or function
    given: bool = False  # a check of what was given to the launch, which the newest release has too

    @property
    def first(self) -> Release | None:
        """The release to name as the first to try, where what fails is not in it any more. Of 29 labelled launches whose
        mending release is known it was that one, or a later one, in 27; where the place only changed, in 48 of 74."""
        if self.differs is None or not (self.mended or self.gone) or self.differs == self.newest:
            return None
        return next((r for r in known_releases() if r >= self.differs and not r.is_prerelease), None)


def outlook_of(traceback: Traceback | None, said: str, case: Case) -> Outlook | None:
    """``said``: the root line, for messages without a traceback. None where the release or the place is not known."""
    span = releases_here(case)
    if span is None:
        return None
    found = _outlook(traceback, said, case, span)
    return replace(found, between=between_releases(case)) if found is not None else None


def between_releases(case: Case) -> str:
    """In words, where the log's build is a nightly one or a checkout: it may lie before or behind the release it is taken for."""
    if case.release is not None and case.release not in known_releases():
        return f"{case.release} is a state between two releases"
    image = case.facts.look("log.development")
    if isinstance(image, str):
        return f"{image} is built from the development branch: some of {case.release} may be lacking in it, or newer"
    return ""


def _outlook(
    traceback: Traceback | None, said: str, case: Case, span: tuple[Release, Release]
) -> Outlook | None:
    site = site_of(traceback, said, span)
    frames = own_frames(traceback)
    histories = [h for f in frames if (h := history_of(releases_folder(), f.path, f.function)) is not None]
    here = [h for h in histories if h.since(span[1]) is not None]
    if site is not None and any(site.stands_in(r) for r in _between(span)):
        return _of_refusal(site, here, span)
    if not here or not frames or here[0].function != frames[0].function:
        return _of_message(traceback, span)
    return _of_function(here, traceback, span, case)


def releases_here(case: Case) -> tuple[Release, Release] | None:
    """The release, as the oldest and newest that it can be; None where it is not known or newer than all."""
    release = case.release
    known = known_releases()
    if release is None:
        return None
    if release not in known and release < known[-1]:
        release = nearest_release(release)[0]  # the one that it was made from
        return release, release
    first, _, last = (case.release_range or "").partition(" to ")
    low, high = release_or_none(first), release_or_none(last or first)
    if case.release_is_certain or low is None or high is None:
        low = high = release
    return (low, high) if low in known and high in known else None


def site_of(traceback: Traceback | None, said: str, span: tuple[Release, Release] | None) -> TableSite | None:
    """The statement that raised: by its message, of those in the release the one that the traceback ends in."""
    kind = traceback.type if traceback is not None else ""
    frames = own_frames(traceback)
    if traceback is not None and traceback.frames and (not frames or frames[0] is not traceback.frames[-1]):
        return None  # raised in a package of others: its words are not SGLang's
    message = (traceback.message if traceback is not None else "") or _message(said)
    found = sites_saying(releases_folder(), message, kind)
    if span is not None:
        found = tuple(s for s in found if any(s.stands_in(r) for r in _between(span))) or found
    if frames:
        frame = frames[0]
        there = [
            s for s in found if frame.path.endswith(s.file) and s.function.split(".")[-1] == frame.function
        ]
        return there[0] if there else None
    squeezed = len(
        "".join(message.split())
    )  # nothing but the words tells: most of them must be the statement's
    sure = [s for s in found if literal_length(s.pieces) >= max(ALONE, min(squeezed // 2, KEPT))]
    return sure[0] if sure else None


def _message(said: str) -> str:
    text = re.sub(r"^\[[\d :.,-]{8,}[^\]]*\]\s*", "", said.strip())
    found = re.match(r"(?:[A-Za-z_][\w.]*(?:Error|Exception)): ([\s\S]*)$|[\w. -]*: error: ([\s\S]*)$", text)
    return (found[1] or found[2]) if found else text


def own_frames(traceback: Traceback | None, count: int = NEAR) -> list[Frame]:
    """The frames of SGLang's own code that are nearest to the exception, the last first."""
    if traceback is None or not traceback.frames:
        return []
    last = deciding_frame(traceback)
    own = [f for f in traceback.frames if is_own(f.path) and not f.function.startswith("<lambda")]
    if last not in own:
        return []
    return own[::-1][:count]


def outlook_of_message(traceback: Traceback | None, case: Case) -> Outlook | None:
    """What the message alone tells, with no doubt left."""
    span = releases_here(case)
    return _of_message(traceback, span) if span is not None else None


def _between(span: tuple[Release, Release]) -> tuple[Release, ...]:
    return tuple(r for r in known_releases() if span[0] <= r <= span[1])


def _of_refusal(site: TableSite, here: list[FunctionHistory], span: tuple[Release, Release]) -> Outlook:
    """``here``: the functions on the stack, the one that refuses first; empty where the log shows none."""
    releases, high = site.releases, span[1]
    same = with_message(releases_folder(), site.pieces)
    held = frozenset(at for s in same for at in s.held())
    newest = releases[-1]
    at = releases.index(high)
    gone = next((n for n in range(at + 1, len(releases)) if n not in held), None)
    if gone is not None and not any(n in held for n in range(gone, len(releases))):
        how = f"{releases[gone - 1]} is the last release with this message"
        again = _worded_otherwise(site, releases[gone])
        how += f"; from {releases[gone]} on the check " + (
            f'says "{again}"' if again else "is not there in this form"
        )
        return Outlook(newest, releases[gone], how, not again, False, True, gone=not again)
    as_here = frozenset(at for s in same if s.guards == site.guards for at in s.held())
    other = next((n for n in range(at + 1, len(releases)) if n in held and n not in as_here), None)
    if other is not None:
        how = f"{newest} has this message too, but what the check asks differs from {releases[other]} on"
        return Outlook(newest, releases[other], how, True, False, True)
    changed = here[0].later(high) if here else ()
    if changed:
        how = f"{newest} still has this check; the code around it changed in {_listed(changed)}"
        return Outlook(newest, changed[0], how, False, False, True, given=_of_given(site))
    how = f"the line that says so stands unchanged in all releases up to {newest}"
    callers = [h for h in here[1:] if h.function != "<module>" and h.function not in OUTER]
    others = [h for h in callers if h.later(high)]
    how += f"; what calls it differs: {_from_when(others, high)}" if others else ""
    alike = bool(callers) and not others
    return Outlook(newest, None, how, False, True, True, alike=alike, given=_of_given(site, same=True))


def _of_given(site: TableSite, *, same: bool = False) -> bool:
    """Does the check look only at options, variables and the checkpoint's configuration, as far as its place and its words
    tell; where the function is the same too, its conditions? Else one of them may be a list that has grown."""
    if any(part in site.file for part in _OF_ARGUMENTS) or any(_NAMES.search(piece) for piece in site.pieces):
        return True
    return same and bool(site.guards) and not any(_OPEN.search(guard) for guard in site.guards)


_OF_ARGUMENTS = ("srt/server_args.py", "srt/arg_groups/", "srt/environ.py", "/launch_server.py")
_NAMES = lazy(r"(?<![\w-])--[a-z][a-z-]+[a-z]|\bSGLANG_[A-Z]")
_OPEN = lazy(rf"(?<![\w.]){OPEN}(?!\w)")


def _from_when(functions: list[FunctionHistory], release: Release) -> str:
    return " and ".join(dict.fromkeys(f"{h.function} from {h.later(release)[0]} on" for h in functions))


def _worded_otherwise(site: TableSite, release: Release) -> str | None:
    """The message of ``release`` in the same function under the same conditions."""
    if not site.guards:
        return None
    found = sites_in(releases_folder(), site.file, site.function.rsplit(".", 1)[-1])
    like = [
        s for s in found if s.guards == site.guards and s.exception == site.exception and s.stands_in(release)
    ]
    return show(like[0].pieces)[:100] if like else None


def _of_function(
    here: list[FunctionHistory], traceback: Traceback | None, span: tuple[Release, Release], case: Case
) -> Outlook | None:
    history, high = here[0], span[1]
    kind = _kind(traceback)
    if "OutOfMemory" in kind:
        return None
    speaks = _of_programming(traceback)
    newest = history.releases[-1]
    file = history.file.removeprefix("sglang/")
    name = "the module's own code" if history.function == "<module>" else history.function
    place = f"{name} ({file})" if not history.several else f"{name} of {file} (one of several)"
    back, why = _before(history, traceback, span, case)
    changed, gone = history.later(high), history.gone(high)
    said = traceback.message if traceback is not None else ""
    found = evidence_of(own_frames(traceback, FURTHER), said, high, newest)
    known = [e for e in found.best if e.rank < FAR or not changed]
    if known:
        return _of_evidence(known, newest, speaks, back, why)
    same = f"{place}, where it dies, is the same in all releases up to {newest}"
    if found.never and not changed and gone is None:
        return Outlook(newest, None, f"{found.never}; {same}", False, True, speaks, back, why)
    if changed:
        how = f"{place}, where it dies, changed in {_listed(changed)}"
        if found.best:
            how += f"; {found.best[0].how}"
        elif speaks:
            how += ", but in nothing that the failing line names"
        return Outlook(newest, changed[0], how, True, False, speaks, back, why)
    if gone is not None:
        moved = [f for f in files_with(releases_folder(), history.function, gone) if f != history.file]
        last = history.file.rsplit("/", 1)[-1]
        likely = [f for f in moved if f.endswith(f"/{last}")] or moved
        how = f"{file} has no {name} any more from {gone} on"
        if 0 < len(likely) < MAX_NAMED and history.function not in ("<module>", "__init__", "forward"):
            how += f"; {gone} has one of that name in {', '.join(f.removeprefix('sglang/') for f in likely)}"
        return Outlook(newest, gone, how, True, False, speaks, back, why, gone=not likely)
    around = [h for h in here[1:] if history.function != "<module>" and h.later(high)]
    if around:
        first = min(h.later(high)[0] for h in around)
        how = f"{same}; what calls it differs: {_from_when(around, high)}"
        return Outlook(newest, first, how, False, False, speaks, back, why)
    return Outlook(newest, None, same, False, False, speaks, back, why)


def _of_evidence(
    known: list[Evidence], newest: Release, speaks: bool, back: Release | None, why: str
) -> Outlook:
    best = known[0]
    how = best.how
    other = next((e for e in known[1:] if e.rank <= 1 and e.release != best.release), None)
    if other is not None and not best.sure:
        how += f"; {other.how}"
    return Outlook(
        newest, best.release, how, best.rank <= 2, False, speaks or best.sure, back, why,
        concerned=best.sure or (speaks and best.rank <= 1), mended=best.sure, gone=best.gone,
    )  # fmt: skip


def _of_message(traceback: Traceback | None, span: tuple[Release, Release]) -> Outlook | None:
    """Where the table does not have the function: what the message alone tells of SGLang's own classes and functions."""
    if traceback is None or not own_frames(traceback):
        return None
    newest = known_releases()[-1]
    sure = sure_evidence(traceback.message, span[1], newest)
    return _of_evidence(sure, newest, True, None, "") if sure else None


def _of_programming(traceback: Traceback | None) -> bool:
    """An error of programming, an assertion without a word, or a value of another shape than the code takes apart."""
    kind, said = _kind(traceback), traceback.message if traceback is not None else ""
    return (
        kind in INTERNAL
        or (kind == "AssertionError" and not said)
        or (kind == "ValueError" and "values to unpack" in said)
    )


def _kind(traceback: Traceback | None) -> str:
    return (traceback.type if traceback is not None else "").rsplit(".", 1)[-1]


def _before(
    history: FunctionHistory, traceback: Traceback | None, span: tuple[Release, Release], case: Case
) -> tuple[Release | None, str]:
    """The release to go back to, where the form that fails is young and the exception one of programming."""
    kind = _kind(traceback)
    since, back = history.since(span[0]), history.before(span[0])
    if (
        kind not in INTERNAL
        or history.several
        or since is None
        or back is None
        or history.since(span[1]) != since
    ):
        return None, ""
    releases = history.releases
    if releases.index(span[1]) - releases.index(since) > REGRESSION or _lacks(back, case):
        return None, ""
    name = "that code" if history.function == "<module>" else history.function
    return (
        back,
        f"this form of {name} ({history.file.removeprefix('sglang/')}) came with {since}; {back} had another",
    )


def _lacks(release: Release, case: Case) -> bool:
    """Has that release no class for the model, or not the options of the command?"""
    from mtpdoctor.diagnose.exact import flag_problems
    from mtpdoctor.sglang.architectures import architecture

    found = case.facts.look("model.architecture")
    names = [found] if isinstance(found, str) else []
    for name in names:
        known = architecture(name)
        if known.spans and not known.has(release):
            return True
    return case.document is not None and bool(flag_problems(case.document, (release,)))


def _listed(releases: tuple[Release, ...]) -> str:
    shown = ", ".join(map(str, releases[:MAX_NAMED]))
    return shown if len(releases) <= MAX_NAMED else f"{shown} and {len(releases) - MAX_NAMED} later ones"
