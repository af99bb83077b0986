"""Remedies computed from the release data instead of written in a rule (``generate:``).

``unknown-flag`` and ``bad-choice`` have one right answer per flag and release, which the learned
flag tables know and no rule could list.
"""

from __future__ import annotations

import shlex
from difflib import SequenceMatcher

from mtpdoctor.case import Case
from mtpdoctor.diagnose.other_parsers import (
    of_diffusion,
    of_missed_diffusion,
    of_missed_router,
    of_router,
    parser_of,
    starts_a_server,
)
from mtpdoctor.facts import UNKNOWN
from mtpdoctor.kb.templates import literal
from mtpdoctor.kb.types import EditTemplate, Match, Remedy, Safety
from mtpdoctor.launch.types import Edit, EditOp
from mtpdoctor.patterns import lazy
from mtpdoctor.records import replace
from mtpdoctor.release import Release
from mtpdoctor.sglang.flags import flag_table
from mtpdoctor.sglang.help import FlagHelp, HelpKind, explain_choice, explain_unknown, first_release_with
from mtpdoctor.sglang.options import same_option
from mtpdoctor.sglang.releases import known_releases

_TITLES = {
    HelpKind.RENAMED: "Use the name this release has: {names}",
    HelpKind.REPLACED: "Say it the way this release does: {names}",
    HelpKind.FOREIGN: "Use SGLang's own option: {names}",
    HelpKind.DASHES: "Spell it {names}",
    HelpKind.NEAREST: "Write {names}",
    HelpKind.CHOICE: "Use a value this release has: {names}",
}
_KEEPS_MEANING = frozenset(
    {HelpKind.RENAMED, HelpKind.REPLACED, HelpKind.FOREIGN, HelpKind.DASHES, HelpKind.NEAREST}
)
MAX_SHOWN = 12


def generated_remedies(generator: str, match: Match, case: Case) -> list[Remedy]:
    """Remedies for the flag(s) that argparse named, one set of edits for all unknown flags together; for a
    kind of failures, what ``kinds`` computes."""
    captures, release = match.captures, case.release
    if generator == "unknown-flag":
        return _unknown_flags(captures.get("arguments", ""), match, case)
    if generator == "ambiguous-flag":
        return _ambiguous(captures.get("flag", ""), captures.get("candidates", ""), case)
    if generator == "bad-choice":
        listed = listed_choices(match.line.text)
        return _bad_choice(captures.get("flag", ""), captures.get("value", ""), release, listed)
    from mtpdoctor.diagnose.kinds import kind_remedies

    return kind_remedies(generator, match, case)


def unknown_arguments(text: str) -> list[tuple[str, str | None]]:
    """Flags and their values from argparse's ``unrecognized arguments:`` line. Values argparse did not
    recognise belong to the flag before them."""
    try:
        words = shlex.split(text)
    except ValueError:
        words = text.split()
    out: list[tuple[str, str | None]] = []
    for word in words:
        if word.startswith(("-", "\u2013", "\u2014")) and not word.lstrip("-").replace(".", "").isdigit():
            name, equals, value = word.partition("=")
            out.append((name, value if equals else None))
        elif out:
            name, before = out[-1]
            out[-1] = (name, word if before is None else f"{before} {word}")
    return out


_LISTED = lazy(r"\(choose from (?P<all>.+?)\)?\s*$")
_ITEM = lazy(r"'(?P<q>[^']*)'|\"(?P<d>[^\"]*)\"|(?P<w>[^\s,'\"]+)")


def listed_choices(text: str) -> tuple[str, ...]:
    """What argparse's ``(choose from 'a', 'b')`` names, in any Python's way of writing it."""
    found = _LISTED.search(text)
    if found is None:
        return ()
    items = (m["q"] or m["d"] or m["w"] or "" for m in _ITEM.finditer(found["all"]))
    return tuple(dict.fromkeys(i for i in items if i and i not in ("None", "...")))


_PORTS = ("--master-port", "--master_port", "--data-parallel-rpc-port")
_ADDRESS = "--dist-init-addr"


_Helps = list[tuple[str, str | None, FlagHelp]]


def _with_port(helps: _Helps) -> _Helps:
    """An address and a port that were given apart, as the one option that SGLang has for both."""
    port = next((v for name, v, _ in helps if name in _PORTS and v and v.isdigit()), None)
    address = next((v for _, v, h in helps if v and any(e.name == _ADDRESS for e in h.edits)), None)
    if port is None or address is None:
        return helps
    joined = f"{address}:{port}"
    out: _Helps = []
    for name, value, h in helps:
        if name in _PORTS:
            edits = (Edit(EditOp.REMOVE, name), Edit(EditOp.SET, _ADDRESS, joined))
            h = replace(h, kind=HelpKind.FOREIGN, text=f"{name} is the port of {_ADDRESS}", edits=edits)
        else:
            h = replace(
                h, edits=tuple(replace(e, value=joined) if e.name == _ADDRESS else e for e in h.edits)
            )
        out.append((name, value, h))
    return out


def _unknown_flags(text: str, match: Match, case: Case) -> list[Remedy]:
    release = case.release
    arguments = unknown_arguments(text)
    parser = parser_of(match, case)
    if parser != "server":
        return of_router(arguments) if parser == "router" else of_diffusion(arguments, case)
    if missed := of_missed_diffusion(arguments, case):
        return missed
    if case.document is not None:
        from mtpdoctor.diagnose.strays import without_strays

        if not arguments:
            return without_strays(text, case)
    routed = of_missed_router(arguments, match, case)
    # A command with a model was to start a server, which starts without the router's options.
    first = not starts_a_server(match, case)
    remedies: list[Remedy] = list(routed) if first else []
    helps = [(name, value, explain_unknown(name, release, value)) for name, value in arguments]
    helps = [(name, value, _ranged(_fitting(h, value, case), case)) for name, value, h in helps]
    helps = _with_port(helps)
    repairs = [(name, value, h) for name, value, h in helps if h.edits and h.kind is not HelpKind.KNOWN]
    if repairs:
        edits = list(dict.fromkeys(e for name, value, h in repairs for e in _with_value(h, value)))
        sure = all(h.sure and h.kind in _KEEPS_MEANING for _, _, h in repairs)
        lost = [name for name, _, h in repairs if all(e.op is EditOp.REMOVE for e in h.edits)]
        remedies.append(
            Remedy(
                title="; ".join(dict.fromkeys(_title(name, h) for name, _, h in repairs)),
                safety=Safety.SAFE if sure and not lost else Safety.RISKY,
                why="; ".join(h.text for _, _, h in repairs),
                edits=tuple(EditTemplate(e.op.value, e.name, literal(e.value or "") or None) for e in edits),
                risk=_risk(lost, sure),
            )
        )
    if not first:
        remedies += routed
    for name, _, h in helps:
        if h.kind is HelpKind.ADDED_LATER:
            remedies.append(
                Remedy(
                    title=f"Upgrade SGLang to a release that has {name}",
                    safety=Safety.MANUAL,
                    why=h.text,
                    run=(f"pip install sglang=={known_releases()[-1]}",),
                    risk="other options may have changed; check the command again for the new release",
                )
            )
        elif h.kind is HelpKind.KNOWN and release is None:
            remedies.append(_upgrade_for(name, h))
        elif h.kind is HelpKind.KNOWN and not h.suggestions:
            remedies.append(_other_build(name, h))
        elif not h.edits or (h.suggestions and not h.sure):
            shown = ", ".join(h.suggestions[:MAX_SHOWN])
            remedies.append(
                Remedy(
                    title=f"Choose what {name} was meant to be" + (f": {shown}" if shown else ""),
                    safety=Safety.MANUAL,
                    why=h.text,
                )
            )
    return remedies


def _other_build(name: str, known: FlagHelp) -> Remedy:
    """For a flag that the release has, and that its parser refused all the same."""
    return Remedy(
        title=f"Leave {name} out",
        safety=Safety.RISKY,
        why=f"{known.text}, and the SGLang that ran refuses it: it is another release or build",
        edits=(EditTemplate("remove", name, None),),
        risk=f"what {name} asked for is not done",
    )


def _ranged(h: FlagHelp, case: Case) -> FlagHelp:
    """Where the release is one of several, the sentence names them all, not the newest as if it were known."""
    if case.release_is_certain or case.release is None or not case.release_range:
        return h
    return replace(h, text=h.text.replace(f"SGLang {case.release} ", f"SGLang {case.release_range} "))


def _ambiguous(flag: str, candidates: str, case: Case) -> list[Remedy]:
    """For a beginning that fits several flags: the one that the option was called later, with the value that
    was typed; else the person chooses."""
    names = [name for name in _LONG.findall(candidates) if name != flag]
    old = flag_table(None).get(flag)
    same = same_option(old.dest) if old is not None else ()
    union = flag_table(None)
    right = [n for n in names if (spec := union.get(n)) is not None and spec.dest in same]
    typed = next((u for u in case.document.command.flags if u.name == flag), None) if case.document else None
    remedies = []
    if len(right) == 1 and old is not None and typed is not None:
        value = " ".join(map(shlex.quote, typed.values)) if len(typed.values) > 1 else "".join(typed.values)
        add = EditTemplate("set", right[0], value) if typed.values else EditTemplate("add", right[0], None)
        return [
            Remedy(
                title=f"Write {right[0]}",
                safety=Safety.SAFE,
                why=f"{flag} was the old name of {right[0]}",
                edits=(EditTemplate("remove", flag, None), add),
            )
        ]
    if len(right) == 1 and old is not None:
        why = f"{flag} was the old name of {right[0]}"
        remedies.append(Remedy(title=f"Write {right[0]}", safety=Safety.MANUAL, why=why))
    else:
        shown = ", ".join(names[:MAX_SHOWN])
        remedies.append(
            Remedy(
                title="Write the option out" + (f": {shown}" if shown else ""),
                safety=Safety.MANUAL,
                why="argparse accepts a beginning only where it fits one option",
                run=(f"python -m sglang.launch_server --help | grep -e {shlex.quote(flag)}",),
            )
        )
    return remedies


_LONG = lazy(r"(?<![\w-])--[a-zA-Z][\w-]*")


def _fitting(h: FlagHelp, value: str | None, case: Case) -> FlagHelp:
    """Without a guess that would overwrite what was typed, or whose option cannot take the value."""
    if h.kind is not HelpKind.NEAREST:
        return h
    guess = next((e for e in h.edits if e.op is not EditOp.REMOVE), None)
    spec = flag_table(case.release).get(guess.name) if guess is not None else None
    if spec is None:
        return h
    wrong_shape = (spec.arity == "switch") != (value is None) or (
        spec.type in ("int", "float") and value is not None and not _is_number(value)
    )
    if spec.choices and value is not None and "$" not in value:
        wrong_shape = wrong_shape or any(v not in map(str, spec.choices) for v in value.split())
    if wrong_shape or case.facts.look(f"flag.{spec.dest}") not in (UNKNOWN, None):
        removal = tuple(e for e in h.edits if e.op is EditOp.REMOVE)
        return replace(h, edits=removal, suggestions=(), sure=False, text=h.text.partition(";")[0])
    return h


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return "$" in text
    return True


def _upgrade_for(name: str, known: FlagHelp) -> Remedy:
    """For a flag that the newest release has and the release in use, which the log does not tell, has not."""
    spec = flag_table(None).resolve(name)
    since = spec.first if spec is not None else None
    came = "" if since in (None, str(known_releases()[0])) else f"; it came with {since}"
    return Remedy(
        title=f"Upgrade SGLang, or leave {name} out",
        safety=Safety.MANUAL,
        why=f"{known.text}{came}",
        run=(
            'python -c "import sglang; print(sglang.__version__)"',
            f"pip install sglang=={known_releases()[-1]}",
        ),
    )


# Values whose code imports what only an extra of SGLang brings.
_EXTRAS = {"runai_streamer": "[runai]"}


def _bad_choice(flag: str, value: str, release: Release | None, listed: tuple[str, ...] = ()) -> list[Remedy]:
    h = explain_choice(flag, value, release, listed)
    remedies: list[Remedy] = []
    later = first_release_with(flag, value, release) if h.kind is not HelpKind.RENAMED else None
    if later is not None:
        remedies.append(
            Remedy(
                title=f"Upgrade SGLang to {later} or later, the first release with {flag} {value}",
                safety=Safety.MANUAL,
                why=h.text,
                run=(f'pip install "sglang{_EXTRAS.get(value, "")}>={later}"',),
                risk="other options may have changed; check the command again for the new release",
            )
        )
    names = [e.value for e in h.edits if e.op is EditOp.SET and e.value]
    if names:
        remedies.append(
            Remedy(
                title=f"Use {flag} {names[0]}",
                safety=Safety.SAFE if h.sure and h.kind is HelpKind.RENAMED else Safety.RISKY,
                why=h.text,
                edits=tuple(EditTemplate(e.op.value, e.name, e.value) for e in h.edits),
                risk=None if h.kind is HelpKind.RENAMED else f"chosen for its likeness to {value}",
            )
        )
    if h.suggestions:
        likeliest = sorted(
            h.suggestions, key=lambda s: -SequenceMatcher(None, value.lower(), s.lower()).ratio()
        )
        shown = ", ".join(likeliest[:MAX_SHOWN])
        more = f", ... ({len(likeliest)} in all)" if len(likeliest) > MAX_SHOWN else ""
        remedies.append(
            Remedy(
                title=f"Give {flag} one of: {shown}{more}",
                safety=Safety.MANUAL,
                why=h.text,
            )
        )
    remedies.append(
        Remedy(
            title=f"Leave {flag} out, so that SGLang decides",
            safety=Safety.RISKY,
            why=f"{value} is not to be had in this release",
            edits=(EditTemplate("remove", flag, None),),
            risk="what the option asked for is not done",
        )
    )
    return remedies


def _with_value(h: FlagHelp, value: str | None) -> list[Edit]:
    out = []
    for edit in h.edits:
        if edit.value and "{value}" in edit.value:
            if value is None:
                continue
            edit = Edit(edit.op, edit.name, edit.value.replace("{value}", value))
        out.append(edit)
    return out


def _title(name: str, h: FlagHelp) -> str:
    names = " ".join(f"{e.name} {e.value or ''}".strip() for e in h.edits if e.op is not EditOp.REMOVE)
    names = names.replace("{value}", "").strip()
    if h.kind in _TITLES and names:
        return _TITLES[h.kind].format(names=names)
    return f"Leave {name} out"


def _risk(lost: list[str], sure: bool) -> str | None:
    if lost:
        return f"what {', '.join(lost)} asked for is not done"
    return None if sure else "a guess by likeness; check that it is what was meant"
