"""A program passes SGLang a keyword, or reads a field of its arguments, that the installed release does not have: which releases do."""

from __future__ import annotations

from mtpdoctor.case import Case
from mtpdoctor.diagnose.kinds.symbol import importer, install, newer_program, ranges_in_words
from mtpdoctor.kb.types import Match, Remedy, Safety
from mtpdoctor.launch.types import EditOp
from mtpdoctor.paths import releases_folder
from mtpdoctor.patterns import lazy
from mtpdoctor.release import Release, release_or_none
from mtpdoctor.sglang.flags import flag_table
from mtpdoctor.sglang.help import HelpKind, explain_unknown
from mtpdoctor.sglang.history import keyword_since
from mtpdoctor.sglang.releases import known_releases
from mtpdoctor.sglang.store import read_table, release_order
from mtpdoctor.sglang.symbols import Held

# A msgspec.Struct, which ServerArgs is from 0.5.20 on, says no name of its own.
_SAID = lazy(
    r"(?P<owner>\w+(?:\.\w+)?)\(\) got an unexpected keyword argument '(?P<keyword>\w+)'"
    r"|\bUnexpected keyword argument '(?P<field>\w+)'"
    r"|'(?P<read>ServerArgs)' object has no attribute '(?P<attribute>\w+)'"
)
_ARGUMENTS = frozenset({"ServerArgs", "ServerArgs.__init__", "Engine", "Engine.__init__"})


def keyword_remedies(match: Match, case: Case) -> list[Remedy]:
    """Read off the message. Nothing where the function is none that programs call, or its keywords are not known."""
    said = _SAID.search(match.line.body)
    if said is None:
        return []
    owner, keyword = said["owner"] or "ServerArgs", said["keyword"] or said["field"] or said["attribute"]
    known = _held(owner, keyword)
    if known is None:
        return []
    program = importer(match.traceback) or "the program"
    of = "ServerArgs" if owner in _ARGUMENTS else owner.removesuffix(".__init__")
    what = f"{keyword} of {of}"
    read = said["read"] is not None
    if read and (not known.ranges or _by_sglang(match)):
        return _one_release(known, keyword, case.release, match)
    if not known.ranges:
        long = _long(keyword, case.release) if of == "ServerArgs" else []
        return [
            *long,
            Remedy(
                title=f"Leave {keyword} out of what {program} passes to {of}",
                safety=Safety.MANUAL,
                why=f"no release from {known_releases()[0]} to {known.newest} has {what}: it is of another program, or of a build of one's own",
            ),
        ]
    release = case.release
    if release is None:
        return [_by_range(known, what, program, read)]
    release = _refusing(known, release, case)
    if known.holds(release):
        return [
            Remedy(
                title="Look which sglang is imported: there must be two copies, or the installed one is not whole",
                safety=Safety.MANUAL,
                why=f"SGLang {release} has {what}, so what was called is not {release}",
                run=('python -c "import sglang; print(sglang.__version__, sglang.__file__)"',),
            )
        ]
    older, newer = known.before(release), known.after(release)
    remedies = []
    if older is not None and of == "ServerArgs" and (name := _now(keyword, release)) is not None:
        remedies.append(
            Remedy(
                title=f"{'Read' if read else 'Pass'} {name} instead of {keyword}, as SGLang {release} calls it",
                safety=Safety.MANUAL,
                why=f"{older} was the last release with {what}",
            )
        )
    if newer is not None:
        why = f"the first release after {release} that has {what}"
        remedies.append(install(newer, why, program, "Upgrade SGLang to"))
        remedies.append(
            Remedy(
                title=f"Or use a version of {program} made for SGLang {release}"
                + ("" if read else f", or leave {keyword} out of what it passes"),
                safety=Safety.MANUAL,
                why=f"{program} is newer than the installed SGLang: {what} is in {ranges_in_words(known)}",
            )
        )
    if older is not None:
        remedies.append(install(older, f"the last release that has {what}", program, "Install SGLang"))
        remedies.append(newer_program(program, what, release, older))
    return remedies


def _refusing(known: Held, release: Release, case: Case) -> Release:
    """Where the log leaves several releases open, the newest of them that does refuse the keyword."""
    if case.release_is_certain or not case.release_range or not known.holds(release):
        return release
    first, _, last = case.release_range.partition(" to ")
    ends = release_or_none(first), release_or_none(last or first)
    if ends[0] is None or ends[1] is None:
        return release
    among = [r for r in known_releases() if ends[0] <= r <= ends[1] and not known.holds(r)]
    return among[-1] if among else release


def _by_sglang(match: Match) -> bool:
    """The code that failed is SGLang's own."""
    frames = match.traceback.frames if match.traceback is not None else ()
    return bool(frames) and "/sglang/srt/" in frames[-1].path


def _one_release(known: Held, field: str, release: Release | None, match: Match) -> list[Remedy]:
    """A file of SGLang's own reads ``field``, and the installed ``ServerArgs`` has none: which releases have."""
    frames = match.traceback.frames if match.traceback is not None else ()
    file = next((f.path for f in reversed(frames) if "/sglang/srt/" in f.path), None)
    if file is None or frames[-1].path != file or release is None or known.holds(release):
        return []
    name = "srt/" + file.rpartition("/sglang/srt/")[2]
    other = known.after(release) or known.before(release)
    if other is None:
        return []
    newer = other > release
    text = f"{field} is in SGLang {ranges_in_words(known)}; this is {release}, and {name} was written for a {'newer' if newer else 'older'} one"
    return [
        Remedy(
            title=f"Restore {release} as a whole: {name} is of another release, as if files had been copied over",
            safety=Safety.MANUAL,
            why=text,
            run=(
                'python -c "import sglang; print(sglang.__version__, sglang.__file__)"',
                "git -C SGLANG_CHECKOUT status --short   # in a checkout: git checkout -- python/sglang/srt",
                f"pip install --force-reinstall --no-deps sglang=={release}",
            ),
            risk="what the copied files were to bring is gone",
        ),
        Remedy(
            title=f"Or install SGLang {other}{' or later' if newer else ''} as a whole, which has {field}",
            safety=Safety.MANUAL,
            why=text,
            run=(f"pip install sglang=={other}", f"docker pull lmsysorg/sglang:v{other}"),
            risk="options may have changed; check the command for that release",
        ),
    ]


def _long(keyword: str, release: Release | None) -> list[Remedy]:
    """``keyword`` is a short form that only the command line knows (``--tp`` of ``tp_size``), or another server's."""
    option = f"--{keyword.replace('_', '-')}"
    spec = flag_table(release or known_releases()[-1]).resolve(option)
    if spec is not None and spec.refused is None and spec.dest != keyword:
        name, why = spec.dest, f"{option} is a short form that only SGLang's command line knows"
    else:
        name = _now(keyword, release or known_releases()[-1], HelpKind.FOREIGN) or ""
        why = f"{keyword} is what other servers call it"
    if not name:
        return []
    passed = f"--{name.partition('=')[0].replace('_', '-')}"
    return [
        Remedy(
            title=f"Pass {name} instead of {keyword} ({passed}, where the program hands its own options on)",
            safety=Safety.MANUAL,
            why=f"SGLang's field is called so; {why}",
        )
    ]


def _held(owner: str, keyword: str) -> Held | None:
    """The releases with it; without any of them where there is none. None where the owner is not known."""
    releases = known_releases()
    if owner in _ARGUMENTS:  # Engine hands its keywords on to ServerArgs
        spans = read_table(releases_folder() / "flags.json")["fields"].get(keyword, ())
        ranges = tuple((release_order(a), release_order(b) if b else releases[-1]) for a, b, _ in spans)
        return Held(_joined(ranges), releases[-1])
    found = keyword_since(releases_folder(), owner, keyword)
    return None if found is None else Held(found, releases[-1])


def _joined(ranges: tuple[tuple[Release, Release], ...]) -> tuple[tuple[Release, Release], ...]:
    """A field whose default changed is one all the same."""
    order = list(known_releases())
    out: list[tuple[Release, Release]] = []
    for first, last in ranges:
        if out and order.index(first) == order.index(out[-1][1]) + 1:
            out[-1] = (out[-1][0], last)
        else:
            out.append((first, last))
    return tuple(out)


def _now(keyword: str, release: Release, *kinds: HelpKind) -> str | None:
    """What ``release`` takes in its place, as a keyword; with its value where that has to be another."""
    helped = explain_unknown(f"--{keyword.replace('_', '-')}", release)
    if helped.kind not in (kinds or (HelpKind.RENAMED, HelpKind.REPLACED)):
        return None
    out: list[str] = []
    for edit in helped.edits:
        spec = flag_table(release).get(edit.name) if edit.op is not EditOp.REMOVE else None
        if spec is not None and spec.dest != keyword:
            given = spec.arity != "switch" and edit.value and "{" not in edit.value
            out.append(f"{spec.dest}={edit.value!r}" if given else spec.dest)
    return ", ".join(out) or None


def _by_range(known: Held, what: str, program: str, read: bool) -> Remedy:
    return Remedy(
        title=f"Install a release of SGLang that has {what}: {ranges_in_words(known)}",
        safety=Safety.MANUAL,
        why=f"{program} {'reads' if read else 'passes'} it, and the installed release does not {'have' if read else 'take'} it",
        run=("pip show sglang", f"pip install sglang=={known.ranges[-1][1]}"),
        risk="what else uses this Python may need another release",
    )
