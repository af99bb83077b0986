"""Server arguments of two launches, with what each release sets where nothing is typed, under one name for an option
that was renamed between the releases."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mtpdoctor.case import Case
from mtpdoctor.compare.relevance import Relevance, argument_weight
from mtpdoctor.compare.types import Difference
from mtpdoctor.facts import UNKNOWN, Fact, Source
from mtpdoctor.log.server_args import SECRETS
from mtpdoctor.sglang.arguments import decided_at_start
from mtpdoctor.sglang.flags import flag_table
from mtpdoctor.sglang.options import same_option

_HIDDEN = "***"
_FOLLOWS = {
    "tokenizer_path": "model_path",
    "served_model_name": "model_path",
}  # set from the other where not typed


def argument_differences(good: Case, bad: Case, relevance: Relevance) -> Iterator[Difference]:
    """One for each option: where two fields are set by the same (a switch that a later release lets set another field),
    the one that counts more, else that of the option's own name."""
    found: dict[str, tuple[tuple[int, bool], Difference]] = {}
    for dest, one in _by_field(good, bad, relevance):
        rank = one.weight, one.name == f"--{dest.replace('_', '-')}"
        if one.name not in found or rank > found[one.name][0]:
            found[one.name] = rank, one
    yield from (one for _, one in found.values())


def _by_field(good: Case, bad: Case, relevance: Relevance) -> Iterator[tuple[str, Difference]]:
    typed = [_typed(good), _typed(bad)]
    seen: set[str] = set()
    for name in sorted({n for case in (good, bad) for n in case.facts if n.startswith(("arg.", "flag."))}):
        dest = name.partition(".")[2]
        group = same_option(dest)
        if group[0] in seen or not _is_field(dest, good, bad):
            continue
        seen.update(group)
        found = _compare(group, good, bad, typed, relevance)
        if found is not None:
            yield dest, found


def _typed(case: Case) -> bool:
    """Is it known what was typed?"""
    return case.document is not None and not case.reconstructed


def _is_field(dest: str, good: Case, bad: Case) -> bool:
    """A spelling of a flag (``tp``) is no field of its own."""
    if flag_table(None).by_dest(dest) is not None:
        return True
    return all(
        c.facts.fact(f"arg.{dest}") is not None
        or flag_table(None).resolve(f"--{dest.replace('_', '-')}") is None
        for c in (good, bad)
    ) and any((f := c.facts.fact(f"arg.{dest}")) is not None and f.source is Source.LOG for c in (good, bad))


def _look(case: Case, prefix: str, group: tuple[str, ...]) -> Fact | None:
    for dest in group:
        fact = case.facts.fact(f"{prefix}.{dest}")
        if fact is not None:
            return fact
    return None


def _compare(
    group: tuple[str, ...], good: Case, bad: Case, typed: list[bool], relevance: Relevance
) -> Difference | None:
    sides = (good, bad)
    flags = [_look(case, "flag", group) for case in sides]
    force = [_look(case, "arg", group) for case in sides]
    spelled = (
        _written(group, bad)
        or _written(group, good)
        or _spelled(group, bad)
        or _spelled(group, good)
        or f"--{group[0].replace('_', '-')}"
    )
    logged = [f is not None and f.source is Source.LOG for f in force]
    note = None
    if all(typed) and any(flags):
        values: list[Any] = [f.value if f is not None else None for f in flags]
        where = tuple(f.where if f is not None else "" for f in flags)
        if same_value(values[0], values[1]):
            if (other := _unknown_spelling(group, good, bad, relevance)) is not None:
                return other
            if not all(logged) or same_value(force[0].value, force[1].value):  # type: ignore[union-attr]
                return None
            values, note = [f.value for f in force if f is not None], "typed alike, SGLang made another of it"
        else:
            for i in (0, 1):
                known = force[i]
                if (
                    flags[i] is None
                    and known is not None
                    and known.value is not None
                    and (logged[i] or not _decided(group))
                ):
                    alike = same_value(known.value, values[1 - i])
                    if alike and not _decided(group):
                        return None  # not typed, and the same by default
                    values[i] = known.value
                    chose = "what SGLang chose" if logged[i] else "the default"
                    note = f"not typed in the {('good', 'bad')[i]} launch: {chose}"
                    if alike:  # SGLang takes one that was typed another way than one it chose itself
                        values[i] = None
                        note += f" there too ({known.value})"
    elif all(logged):
        values = [f.value for f in force if f is not None]
        where = tuple(f.where for f in force if f is not None)
        if same_value(values[0], values[1]):
            return None
        note = "nobody typed it: what SGLang chose" if all(typed) else None
    elif all(typed):
        return None  # nobody typed it, and only one log shows what SGLang made of it
    else:
        known_sides = [
            (f is not None)
            and (f.source is not Source.RELEASE or (f.value is not None and not _decided(group)))
            for f in force
        ]
        if any(f is not None and f.source is Source.RELEASE and f.value == "auto" for f in force):
            return None  # SGLang decides when it starts
        if not all(known_sides) or (any(logged) and _decided(group) and not all(flags)):
            return None
        values = [f.value for f in force if f is not None]
        where = tuple(f.where for f in force if f is not None)
        if same_value(values[0], values[1]):
            return None
    if _follows(group, values, sides):
        return None
    names = _spellings(group, good, bad, spelled)
    base = argument_weight(group[0])
    if note and note.startswith("nobody"):
        base = max(base - 15, 2) if str(good.release) == str(bad.release) else max(base - 25, 1)
    weight, why = relevance.weigh((f"arg.{d}" for d in group), base, values[1])
    if SECRETS.search(group[0]):
        values = [_HIDDEN if v not in (None, "") else v for v in values]
    return Difference(
        area="arguments",
        name=spelled,
        good=values[0],
        bad=values[1],
        kind=_kind(values),
        weight=weight,
        why=why,
        note="; ".join(n for n in (names, note) if n) or None,
        where=(where[0], where[1]),
    )


def _unknown_spelling(
    group: tuple[str, ...], good: Case, bad: Case, relevance: Relevance
) -> Difference | None:
    """The same option and value, under a name that the bad launch's release does not have."""
    a, b = _written(group, good), _written(group, bad)
    if (
        a is None
        or b is None
        or a == b
        or bad.release is None
        or flag_table(bad.release).resolve(b) is not None
    ):
        return None
    weight, why = relevance.weigh((f"arg.{d}" for d in group), 70)
    note = f"the same option, but SGLang {bad.release} does not know {b}"
    return Difference("arguments", b, a, b, "changed", weight, why, note)


def _decided(group: tuple[str, ...]) -> bool:
    return any(d in decided_at_start() for d in group)


def _kind(values: list[Any]) -> str:
    if values[0] in (None, False) and values[1] not in (None, False):
        return "added"
    return "removed" if values[1] in (None, False) and values[0] not in (None, False) else "changed"


def _follows(group: tuple[str, ...], values: list[Any], sides: tuple[Case, Case]) -> bool:
    other = next((_FOLLOWS[d] for d in group if d in _FOLLOWS), None)
    if other is None:
        return False
    return all(
        v is None or same_value(v, case.facts.look(f"arg.{other}"))
        for v, case in zip(values, sides, strict=True)
    )


def _written(group: tuple[str, ...], case: Case) -> str | None:
    """The flag as the launch command has it."""
    if case.document is None or case.reconstructed:
        return None
    return next((u.name for u in reversed(case.document.command.flags) if u.dest in group), None)


def _spelled(group: tuple[str, ...], case: Case) -> str | None:
    table = flag_table(case.release)
    for dest in group:
        spec = table.by_dest(dest)
        if spec is not None:
            plain = f"--{dest.replace('_', '-')}"
            return plain if table.resolve(plain) is not None else spec.name
    return None


def _spellings(group: tuple[str, ...], good: Case, bad: Case, shown: str) -> str | None:
    a, b = _spelled(group, good), _spelled(group, bad)
    if a == b or good.release is None or bad.release is None:
        return None
    if a is None or b is None:
        case = good if a is None else bad
        # It may have the option and keep its value in another field.
        return (
            f"{case.release} has no such option" if flag_table(case.release).resolve(shown) is None else None
        )
    return f"called {a} in {good.release}"


def same_value(a: Any, b: Any) -> bool:
    """Equal as values of options are: "4" and 4, "true" and True, one value and a list of it, paths with a slash."""
    if a == b:
        return not (isinstance(a, bool) ^ isinstance(b, bool)) or a is b
    if a is UNKNOWN or b is UNKNOWN:
        return False
    return _plain(a) == _plain(b)


def _plain(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return _plain(value[0]) if len(value) == 1 else tuple(_plain(v) for v in value)
    if isinstance(value, bool) or value is None:
        return str(value or False).lower()
    text = str(value).strip()
    try:
        number = float(text)
        return number if number == number else "nan"  # which equals nothing, itself included
    except ValueError:
        low = text.lower()
        return low if low in ("true", "false") else text.rstrip("/") or text
