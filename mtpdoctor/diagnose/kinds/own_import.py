"""A file of SGLang imports what this SGLang does not have: a fault of the release, or parts of two installations."""

from __future__ import annotations

from collections.abc import Iterator

from mtpdoctor.case import Case
from mtpdoctor.facts import UNKNOWN
from mtpdoctor.kb.types import EditTemplate, Match, Remedy, Safety
from mtpdoctor.paths import releases_folder
from mtpdoctor.patterns import lazy
from mtpdoctor.release import Release
from mtpdoctor.sglang.dangling import Fault, fault_of
from mtpdoctor.sglang.flags import flag_table
from mtpdoctor.sglang.symbols import Held, held

_OWN_FILE = lazy(r"(?:^|.*/)(sglang/.*\.py)$")
_WORD = lazy(r"[a-z0-9]+")
# Without these nothing starts, or another model does.
_NEEDED = frozenset(
    {"model_path", "tokenizer_path", "speculative_draft_model_path", "host", "port", "tp_size"}
)
_SAYS_LITTLE = frozenset(
    {"sglang", "srt", "python", "model", "models", "layer", "layers", "utils", "cache", "manager", "managers", "server"}
    | {"args", "config", "configs", "attention", "backend", "auto", "none", "true", "false", "size", "mode", "path", "enable"}
    | {"disable", "core", "base", "common", "memory", "mem", "type", "dtype", "kv", "util", "init", "quantization"}
)  # fmt: skip


def own_import_remedies(match: Match, case: Case) -> list[Remedy]:
    """Captures: ``module`` (dotted) and ``name``, absent where the whole module is missing."""
    module, name = _imported(match)
    file = importing_file(match)
    fault = _fault(match, case)
    if fault is not None:
        return list(_of_fault(fault, match, case))
    known = held(releases_folder(), module, name)
    return [_reinstalled(known, _what(module, name), file, case)]


def own_import_said(match: Match, case: Case) -> str:
    """Which of the two it is, as far as the tables of the releases tell."""
    module, name = _imported(match)
    file, what, release = importing_file(match), _what(module, name), case.release
    fault = _fault(match, case)
    if fault is not None:
        of = ", ".join(map(str, fault.releases[:6])) + (", ..." if len(fault.releases) > 6 else "")
        return f"It is a fault of SGLang itself: in {of} {file} imports {what}, which these releases do not have."
    known = held(releases_folder(), module, name)
    if known is None:
        return f"No release known here (0.4.6 and later) has {what}: the file comes from a development state or a fork."
    if release is not None and case.release_is_certain and known.holds(release):
        return f"SGLang {release} has {what}, so that what lies in the folder is not {release} as a whole."
    here = f"SGLang {release}" if release is not None else "No release known here"
    fault_here = "does not have this fault" if release is not None else "has this fault"
    return f"{here} {fault_here}, so that files of two releases lie in one folder, or two copies of SGLang are found."


def _fault(match: Match, case: Case) -> Fault | None:
    """The fault, where the release in use is known to have it, or is not known."""
    file = importing_file(match)
    fault = fault_of(releases_folder(), file, *_imported(match)) if file else None
    if fault is None or not case.release_is_certain or case.release is None or case.release in fault.releases:
        return fault
    return None


def importing_file(match: Match) -> str:
    """The file of SGLang that imports ("sglang/srt/..."); "" where the innermost frame is not SGLang's."""
    frames = match.traceback.frames if match.traceback is not None else ()
    last = next((f for f in reversed(frames) if not f.path.startswith("<")), None)
    found = _OWN_FILE.match(last.path) if last is not None else None
    return found[1] if found else ""


def _imported(match: Match) -> tuple[str, str]:
    return match.captures.get("module", ""), match.captures.get("name", "")


def _what(module: str, name: str) -> str:
    return f"{name} of {module}" if name else module


def _of_fault(fault: Fault, match: Match, case: Case) -> Iterator[Remedy]:
    """The first later release without the fault, the options that lead to it, the last earlier release."""
    here = case.release if case.release in fault.releases else None
    after = fault.after(here or fault.releases[-1])
    before = fault.before(here or fault.releases[0])
    file = importing_file(match)
    if after is not None:
        yield _install(
            after, f"Upgrade SGLang to {after}, the first release in which {file} does without this import"
        )
    yield from _left_out(match, case)
    if before is not None:
        yield _install(before, f"Go back to SGLang {before}, the last release before this fault")


def _install(release: Release, title: str) -> Remedy:
    return Remedy(
        title=title,
        safety=Safety.MANUAL,
        why="the import fails wherever SGLang comes this way; no option or package of others brings the name back",
        run=(f"pip install sglang=={release}",),
        risk="kernel package, torch and other pins change with the release: let pip resolve them, or take the image of that release",
    )


def _left_out(match: Match, case: Case) -> Iterator[Remedy]:
    """Options of the command that lead to the import, by the words that file, module and name share with them."""
    module, name = _imported(match)
    place = importing_file(match).rpartition("/")[2].removesuffix(".py")
    text = f"{module.rpartition('.')[2]} {name} {place}".lower()
    flat = "".join(_WORD.findall(text))
    table = flag_table(case.release)
    for fact in case.facts:
        dest = fact.removeprefix("flag.")
        spec = table.by_dest(dest) if dest != fact else None
        value = case.facts.look(fact)
        if spec is None or dest in _NEEDED or value in (UNKNOWN, None, False):
            continue
        words = [w for w in _WORD.findall(str(value).lower()) if len(w) > 2 and not w.isdigit()]
        own = "".join(w for w in dest.split("_") if w not in ("enable", "disable"))
        told = any(w in flat for w in words if w not in _SAYS_LITTLE) or (len(own) > 4 and own in flat)
        if told:
            shown = "" if value is True else f" {value}"
            yield Remedy(
                title=f"Leave {spec.name}{shown} out, which leads to the import",
                safety=Safety.RISKY,
                why="the launch then does not come through the code that lacks the name",
                edits=(EditTemplate("remove", spec.name),),
                risk="what the option asked for is not done",
            )


def _reinstalled(known: Held | None, what: str, file: str, case: Case) -> Remedy:
    release = case.release if case.release is not None and case.release_is_certain else None
    wanted = f"sglang=={release}" if release is not None else "sglang"
    if known is None:
        why = f"no release known here has {what}; a whole installation of one release has no such import in {file or 'its files'}"
    elif release is not None and known.holds(release):
        why = f"SGLang {release} has {what}: a file is missing, or is of another release"
    else:
        why = f"{file or 'the importing file'} and the rest of the folder are of different releases"
    return Remedy(
        title="Reinstall SGLang whole, after its folder is gone: files of two releases are mixed, or two copies are found",
        safety=Safety.MANUAL,
        why=why,
        run=(
            'python -c "import sglang; print(sglang.__version__, sglang.__path__)"',
            "pip uninstall -y sglang",
            f"pip install --no-cache-dir {wanted}",
        ),
        risk="changes made to the installed files are lost; of a checkout, see `git status` and pull it whole instead",
    )
