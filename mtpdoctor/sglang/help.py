"""Help with a flag or value that a release's parser refused, each with the edits that repair it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from enum import Enum

from mtpdoctor.launch.types import Edit, EditOp
from mtpdoctor.paths import releases_folder
from mtpdoctor.records import dataclass
from mtpdoctor.release import Release
from mtpdoctor.sglang.flags import FlagSpec, FlagTable, flag_table
from mtpdoctor.sglang.options import absence, move, parse_edit, same_option, translate_name
from mtpdoctor.sglang.other_parsers import ROUTER, owner_of
from mtpdoctor.sglang.releases import known_releases
from mtpdoctor.sglang.store import read_table, release_order

_CLOSE = 0.8  # similarity from which a spelling counts as "meant"; below, nothing is guessed


class HelpKind(str, Enum):
    KNOWN = "known"  # the release has it: the message is about something else
    RENAMED = "renamed"
    REPLACED = "replaced"  # one flag became another shape, or nothing is needed any more
    REMOVED = "removed"
    ADDED_LATER = "added-later"
    FOREIGN = "foreign"  # another server's flag
    DASHES = "dashes"  # underscores for dashes, one dash for two, an en dash
    AMBIGUOUS = "ambiguous"  # an abbreviation of several flags
    NEAREST = "nearest"
    CHOICE = "choice"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class FlagHelp:
    """What is wrong with a flag (or its value) and the edits that repair it.

    ``edits`` are complete: they include the removal of the wrong flag; renaming is a removal and a
    ``set`` of the same value. Values may hold placeholders of the knowledge format (``{arg.tp_size}``)
    and ``{value}``, the value the wrong flag had. Empty: a person must decide. ``suggestions`` are
    further spellings or values worth showing, best first. ``sure`` is False for guesses by similarity.
    """

    kind: HelpKind
    text: str  # one sentence
    edits: tuple[Edit, ...] = ()
    suggestions: tuple[str, ...] = ()
    sure: bool = True


def explain_unknown(name: str, release: Release | None, value: str | None = None) -> FlagHelp:
    """Why ``release`` does not accept the flag ``name`` (as typed, without ``=value``), and the repair.

    ``value`` is what the flag was given, where known: some renames depend on it. With ``release`` None
    the newest known release is explained.
    """
    table = flag_table(release or known_releases()[-1])
    assert table.release is not None
    known = table.release
    tidy = _tidy(name)
    if tidy != name and tidy in table:
        return FlagHelp(
            HelpKind.DASHES, f"{name} is spelled {tidy}", _swap(name, table[tidy], tidy), (tidy,), sure=True
        )
    if table.get(name) is not None and table[name].refused is None:
        return FlagHelp(HelpKind.KNOWN, f"SGLang {known} has {name}")
    if name not in table and (short := table.resolve(name)) is not None and short.refused is None:
        return FlagHelp(HelpKind.KNOWN, f"SGLang {known} takes {name} for {short.name}", (), (short.name,))
    foreign = _foreign(tidy, table)
    helped = _from_history(name, tidy, value, table, known)
    if helped is not None:
        return helped
    if foreign is not None:
        return foreign
    elsewhere = _elsewhere(name, tidy, value, known)
    if elsewhere is not None:
        return elsewhere
    candidates = table.beginning(tidy)
    if len({s.name for s in candidates}) > 1:
        names = tuple(dict.fromkeys(s.name for s in candidates))
        return FlagHelp(HelpKind.AMBIGUOUS, f"{name} is short for several flags", (), names)
    return _nearest(name, tidy, table, known)


def _tidy(name: str) -> str:
    """Dashes as argparse wants them: en dashes of pasted text, underscores, a single leading dash."""
    body = name.replace("\u2013", "--").replace("\u2014", "--").replace("\u2212", "-").lstrip("-")
    return "--" + body.replace("_", "-").lower()


def _swap(wrong: str, spec: FlagSpec, right: str, value: str | None = None) -> tuple[Edit, ...]:
    remove = Edit(EditOp.REMOVE, wrong)
    if spec.arity == "switch":
        return (remove, Edit(EditOp.ADD, right))
    return (remove, Edit(EditOp.SET, right, value or "{value}"))


def _from_history(
    name: str, tidy: str, value: str | None, table: FlagTable, known: Release
) -> FlagHelp | None:
    """What other releases know of the flag."""
    for spelling in dict.fromkeys((name, tidy)):
        spec = flag_table(None).resolve(spelling)
        if spec is None:
            continue
        old = spelling if spelling in flag_table(None) else spec.name
        to = translate_name(old, known)
        refused = table[old].refused if old in table else None
        why = absence(old, known) if refused is None else f"SGLang {known} knows {old} only to refuse it"
        if to.name is not None and to.name != name:
            edits = _swap(name, table[to.name], to.name, value)
            return FlagHelp(HelpKind.RENAMED, f"{why}; in {known} it is {to.name}", edits, (to.name,))
        moved = move(old, known, value)
        if moved is not None:
            edits = (Edit(EditOp.REMOVE, name), *(_with_value(e, spec, value) for e in moved.edits))
            return FlagHelp(HelpKind.REPLACED, f"{why}: {moved.why}", edits)
        if "added in" in why:
            return FlagHelp(
                HelpKind.ADDED_LATER,
                f"{why}; SGLang {known} cannot do this yet: leave the flag out, or upgrade",
                (Edit(EditOp.REMOVE, name),),
                sure=False,
            )
        return FlagHelp(HelpKind.REMOVED, why, (Edit(EditOp.REMOVE, name),), sure=False)
    return None


def _with_value(edit: Edit, spec: FlagSpec, value: str | None) -> Edit:
    if edit.value is None or value is None:
        return edit
    return Edit(edit.op, edit.name, edit.value.replace("{flag." + spec.dest + "}", value))


def _foreign(tidy: str, table: FlagTable) -> FlagHelp | None:
    assert table.release is not None
    row = read_table(releases_folder() / "options.json")["foreign"].get(tidy)
    if row is None:
        return None
    edits: list[Edit] = [Edit(EditOp.REMOVE, tidy)]
    for text in row["edits"]:
        edit = parse_edit(text)
        to = translate_name(edit.name, table.release) if edit.name.startswith("--") else None
        if to is not None and to.name is None:
            return FlagHelp(HelpKind.FOREIGN, f"{tidy} is a flag of {row['of']}; {to.reason}", (edits[0],))
        edits.append(Edit(edit.op, to.name if to and to.name else edit.name, edit.value))
    of = "no flag of SGLang" if row["of"] == "often meant" else f"a flag of {row['of']}"
    if of == "no flag of SGLang" and (owner := owner_of(tidy)) is not None:
        of = f"a flag of {owner}, and none of the server for language models"
    names = tuple(e.name for e in edits[1:])
    target = f"; SGLang has {' '.join(names)}" if names else ""
    return FlagHelp(HelpKind.FOREIGN, f"{tidy} is {of}{target}: {row['why']}", tuple(edits), names)


_ROLES = frozenset(("decode", "prefill", "worker", "router"))


def _elsewhere(name: str, tidy: str, value: str | None, known: Release) -> FlagHelp | None:
    """An option of another program of SGLang's; or one, by its value, that only the router could have."""
    owner = owner_of(tidy)
    remove = (Edit(EditOp.REMOVE, name),)
    if owner is not None:
        return FlagHelp(
            HelpKind.FOREIGN, f"{name} is no option of the server but of {owner}: give it there", remove
        )
    if (
        value is not None
        and "://" in value
        and any(word.rstrip("s") in _ROLES for word in tidy[2:].split("-"))
    ):
        text = (
            f"SGLang {known} has no {name}: servers are not told of each other's addresses; the router is "
            f"({ROUTER} --pd-disaggregation --prefill URL --decode URL)"
        )
        return FlagHelp(HelpKind.FOREIGN, text, remove)
    return None


def _nearest(name: str, tidy: str, table: FlagTable, known: Release) -> FlagHelp:
    options = [o for o in table if o.startswith("--") and table[o].refused is None]
    close = [
        o for o in difflib.get_close_matches(tidy, options, n=6, cutoff=0.7) if _like(tidy, o) >= _CLOSE
    ][:4]
    if close:
        best = table[close[0]]
        ratio = _like(tidy, close[0])
        return FlagHelp(
            HelpKind.NEAREST,
            f"SGLang {known} has no {name}; {close[0]} comes closest",
            _swap(name, best, close[0]),
            tuple(dict.fromkeys(close)),
            sure=ratio >= 0.9,
        )
    elsewhere = [o for o in flag_table(None) if o.startswith("--") and o not in table]
    for near in difflib.get_close_matches(tidy, elsewhere, n=1, cutoff=0.85):
        helped = _from_history(near, near, None, table, known)
        if helped is not None:
            edits = tuple(Edit(e.op, name, e.value) if e.name == near else e for e in helped.edits)
            text = f"{name} may be meant for {near}: {helped.text}"
            return FlagHelp(helped.kind, text, edits, (near, *helped.suggestions), sure=False)
    return FlagHelp(
        HelpKind.UNKNOWN, f"no known SGLang release has {name}", (Edit(EditOp.REMOVE, name),), sure=False
    )


def _like(one: str, other: str) -> float:
    """Likeness of two options without their dashes: those and a common first word make any two alike."""
    return difflib.SequenceMatcher(None, one.lstrip("-"), other.lstrip("-")).ratio()


def explain_choice(flag: str, value: str, release: Release | None, listed: Sequence[str] = ()) -> FlagHelp:
    """Why ``release`` refuses ``value`` for ``flag``: the choices of this release, and the repair where
    the value was renamed, misspelled, or came in another release.

    ``listed``: the choices that the parser's own message names; they count, whatever the tables say."""
    table = flag_table(release or known_releases()[-1])
    assert table.release is not None
    spec = table.resolve(flag) or flag_table(None).resolve(flag)
    if spec is None or (not listed and table.resolve(flag) is None):
        return _among(flag, value, tuple(listed)) if listed else explain_unknown(flag, release, value)
    accepted = tuple(listed) or spec.choices or _last_choices(spec)
    if accepted is None:
        return FlagHelp(
            HelpKind.KNOWN, f"SGLang {table.release} takes any value of type {spec.type} for {flag}"
        )
    choices = tuple(str(choice) for choice in accepted)
    if value in choices:
        return FlagHelp(HelpKind.KNOWN, f"SGLang {table.release} has {flag} {value}", (), choices)
    whose = "this release" if listed and release is None else f"SGLang {table.release}"
    shown = f"choices of {whose}: {', '.join(choices)}"
    renamed = _renamed_choice(spec.dest, value, choices)
    if renamed is not None:
        text = f"{value} is called {renamed} in {whose.removeprefix('SGLang ')}; {shown}"
        return FlagHelp(HelpKind.RENAMED, text, (Edit(EditOp.SET, spec.name, renamed),), choices)
    has = _releases_with(spec, value)
    when = ""
    if has:
        later = [r for r in has if release is None or r > table.release]
        when = f"{value} came in {later[0]}; " if later else f"{value} was last known in {has[-1]}; "
    near = _near_choice(value, choices)
    if near is not None:
        text = f"{flag} has no {value}; {when}{near} comes closest; {shown}"
        return FlagHelp(HelpKind.CHOICE, text, (Edit(EditOp.SET, spec.name, near),), choices, sure=not has)
    edits = (Edit(EditOp.REMOVE, spec.name),) if not spec.required else ()
    return FlagHelp(HelpKind.CHOICE, f"{flag} has no {value}; {when}{shown}", edits, choices, sure=False)


def _among(flag: str, value: str, listed: tuple[str, ...]) -> FlagHelp:
    """For an option that no table knows: what its parser lists."""
    near = _near_choice(value, listed)
    edits = (Edit(EditOp.SET, flag, near),) if near else ()
    return FlagHelp(HelpKind.CHOICE, f"{flag} takes one of: {', '.join(listed)}", edits, listed, sure=False)


def first_release_with(flag: str, value: str, release: Release | None) -> Release | None:
    """The first release after ``release`` whose ``flag`` takes ``value``; None where none is known, or where
    ``release`` is not known."""
    spec = flag_table(None).resolve(flag)
    if spec is None or release is None:
        return None
    return next((r for r in _releases_with(spec, value) if r > release), None)


def _renamed_choice(dest: str, value: str, choices: tuple[str, ...]) -> str | None:
    exact = {c.lower().replace("-", "_"): c for c in choices}
    key = value.lower().replace("-", "_")
    if key in exact:
        return exact[key]
    named = read_table(releases_folder() / "choice_names.json")["choices"]
    for field in same_option(dest):
        base = field.removeprefix("prefill_").removeprefix("decode_").removeprefix("speculative_draft_")
        for name in (field, base):
            for new in named.get(name, {}).get(value.lower(), ()):
                if new in choices:
                    return str(new)
    return None


def _near_choice(value: str, choices: Iterable[str]) -> str | None:
    """The choice that the value is a misspelling of. Other figures are another thing: llama4 is not
    llama3; a name without any is that of the family."""
    lowered = {c.lower(): c for c in choices}
    found = difflib.get_close_matches(value.lower(), list(lowered), n=3, cutoff=0.8)
    return next((lowered[f] for f in found if _figures(f) in ("", _figures(value))), None)


def _figures(text: str) -> str:
    return "".join(c for c in text if c.isdigit())


def known_choices(spec: FlagSpec) -> tuple[str, ...]:
    """The choices of a flag; those it last had where its release checks the value elsewhere; () for any text."""
    return tuple(map(str, spec.choices or _last_choices(spec) or ()))


def _last_choices(spec: FlagSpec) -> tuple[str, ...] | None:
    """The choices a flag last had, where a later release checks the value itself instead of its parser."""
    spans = read_table(releases_folder() / "flags.json")["flags"].get(spec.name, ())
    listed = [entry["choices"] for _, _, entry in spans if entry.get("choices")]
    return tuple(listed[-1]) if listed else None


def _releases_with(spec: FlagSpec, value: str) -> list[Release]:
    """Known releases whose flag of this name takes ``value``, oldest first."""
    out: list[Release] = []
    releases = known_releases()
    for first, last, entry in read_table(releases_folder() / "flags.json")["flags"].get(spec.name, ()):
        if value in map(str, entry.get("choices") or ()):
            low, high = release_order(first), release_order(last) if last else releases[-1]
            out += [r for r in releases if low <= r <= high]
    return out
