"""What changed from one release to another, and which rules that concerns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from mtpdoctor.sglang.learn import LearnedRelease
from mtpdoctor.sglang.learn_flags import LearnedFlag
from mtpdoctor.sglang.learn_options import option_groups


@dataclass(frozen=True, slots=True)
class ReleaseDiff:
    """Changes between two releases; flags by name, ``renamed`` as (old, new) pairs."""

    old: str
    new: str
    added: tuple[str, ...]
    removed: tuple[str, ...]
    renamed: tuple[tuple[str, str], ...]
    deprecated: tuple[tuple[str, str | None], ...]  # newly so, with what the release names instead
    choices: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]  # flag -> (values new, values gone)
    defaults: Mapping[str, tuple[Any, Any]]
    env_added: tuple[str, ...]
    env_removed: tuple[str, ...]
    env_defaults: Mapping[str, tuple[Any, Any]]
    pins: Mapping[str, tuple[str | None, str | None]]

    def names(self) -> frozenset[str]:
        """Every flag, field and variable that changed, as rules may write them."""
        flags = {
            *self.added,
            *self.removed,
            *(name for pair in self.renamed for name in pair),
            *(name for name, _ in self.deprecated),
            *self.choices,
            *self.defaults,
        }
        fields = {name.lstrip("-").replace("-", "_") for name in flags}
        return frozenset({*flags, *fields, *self.env_added, *self.env_removed, *self.env_defaults})

    def lines(self) -> Iterator[str]:
        """The changes, one a line, for people."""
        for old, new in self.renamed:
            yield f"renamed   {old} -> {new}"
        for name in self.added:
            yield f"new       {name}"
        for name in self.removed:
            yield f"removed   {name}"
        for name, instead in self.deprecated:
            yield f"outdated  {name}" + (f" (use {instead})" if instead else "")
        for name, (came, gone) in self.choices.items():
            yield f"choices   {name}" + "".join(f" +{c}" for c in came) + "".join(f" -{c}" for c in gone)
        for name, (before, after) in self.defaults.items():
            yield f"default   {name}: {before!r} -> {after!r}"
        for name in self.env_added:
            yield f"new       ${name}"
        for name in self.env_removed:
            yield f"removed   ${name}"
        for name, (before, after) in self.env_defaults.items():
            yield f"default   ${name}: {before!r} -> {after!r}"
        for name, (was, now) in self.pins.items():
            yield f"pin       {name} {was or '(none)'} -> {now or '(none)'}"


def diff_releases(old: LearnedRelease, new: LearnedRelease) -> ReleaseDiff:
    """Compare two releases. A flag counts as renamed when the newer parser itself ties the names: an old
    spelling that became an alias, or a deprecated one that gives its value to another flag's field."""
    before, after = _spellings(old.flags), _spellings(new.flags)
    gone = [n for n in old.flags if n not in after]
    came = [n for n in new.flags if n not in before]
    renamed = list(_renamed(old, new, gone, came))
    paired = {name for pair in renamed for name in pair}
    both = [(old.flags[n], new.flags[n]) for n in new.flags if n in old.flags]
    return ReleaseDiff(
        old=old.release,
        new=new.release,
        added=tuple(n for n in came if n not in paired),
        removed=tuple(n for n in gone if n not in paired),
        renamed=tuple(renamed),
        deprecated=tuple((b.name, b.replacement) for a, b in both if b.deprecated and not a.deprecated),
        choices={b.name: c for a, b in both if any(c := _choices(a, b))},
        defaults={b.name: (a.default, b.default) for a, b in both if _differ(a.default, b.default)},
        env_added=tuple(sorted(new.env.keys() - old.env.keys())),
        env_removed=tuple(sorted(old.env.keys() - new.env.keys())),
        env_defaults={
            n: (old.env[n].default, e.default)
            for n, e in new.env.items()
            if n in old.env and _differ(old.env[n].default, e.default)
        },
        pins={
            n: (old.pins.get(n), new.pins.get(n))
            for n in sorted(old.pins.keys() | new.pins.keys())
            if old.pins.get(n) != new.pins.get(n)
        },
    )


def _spellings(flags: Mapping[str, LearnedFlag]) -> set[str]:
    return {option for flag in flags.values() for option in (flag.name, *flag.aliases)}


def _renamed(
    old: LearnedRelease, new: LearnedRelease, gone: Iterable[str], came: Iterable[str]
) -> Iterator[tuple[str, str]]:
    flags = {old.release: old.flags, new.release: new.flags}
    fields = {old.release: list(old.fields), new.release: list(new.fields)}
    groups = {dest: set(group) for group in option_groups(flags, fields) for dest in group}
    for name in came:
        flag = new.flags[name]
        if flag.deprecated:
            continue
        same = groups.get(flag.dest, {flag.dest})
        for before in old.flags.values():
            if (
                before.dest in same
                and before.name != name
                and not before.deprecated
                and before.dest != flag.dest
            ):
                yield before.name, name


def _choices(old: LearnedFlag, new: LearnedFlag) -> tuple[tuple[str, ...], tuple[str, ...]]:
    a, b = [str(c) for c in old.choices or ()], [str(c) for c in new.choices or ()]
    if not a or not b:
        return (), ()
    return tuple(c for c in b if c not in a), tuple(c for c in a if c not in b)


def _differ(left: Any, right: Any) -> bool:
    return type(left) is not type(right) or left != right


def affected_rules(diff: ReleaseDiff, rules: Iterable[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    """Rules, given as (id, whole text), that mention something that changed: id -> the names."""
    names = diff.names()
    out = {}
    for rule_id, text in rules:
        words = set(re.findall(r"--[a-z][\w-]*|[A-Za-z_]\w+", text))
        found = tuple(sorted(names & words))
        if found:
            out[rule_id] = found
    return out
