"""The command-line flags of a release, as its argparse would understand them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from mtpdoctor.paths import releases_folder
from mtpdoctor.records import dataclass
from mtpdoctor.release import Release
from mtpdoctor.sglang.releases import facts_folder
from mtpdoctor.sglang.store import at_release, read_table, release_order

OF_SERVE = "--model-type"  # of ``sglang serve`` itself: which of its servers starts


@dataclass(frozen=True, slots=True)
class FlagSpec:
    """One flag. ``releases`` are the spans in which a flag of this name exists, whatever its details.

    ``arity``: "switch" (no value), "one", "many" (one or more), "optional" (none or one).
    ``const``: what a switch stores into ``dest`` when that is not True (old spellings of a choice).
    ``refused``: the error text of a flag that the parser knows only to refuse it.
    """

    dest: str
    name: str
    aliases: tuple[str, ...] = ()
    arity: str = "one"
    type: str = "str"
    choices: tuple[Any, ...] | None = None
    default: Any = None
    deprecated: bool = False
    replacement: str | None = None  # "--flag" or "--flag=value", as the release itself names it
    releases: tuple[tuple[str, str | None], ...] = ()  # (first, last); None: to the newest known
    required: bool = False
    const: Any = None
    refused: str | None = None
    fallback: Any = None

    @property
    def spellings(self) -> tuple[str, ...]:
        return (self.name, *self.aliases)

    @property
    def first(self) -> str:
        return self.releases[0][0]

    @property
    def last(self) -> str | None:
        """The last release that has it; None when the newest known one does."""
        return self.releases[-1][1]


Row = tuple[Mapping[str, Any], list[Any]]  # a flag's entry in the table, and all its spans


class FlagTable(Mapping[str, FlagSpec]):
    """Flags by every accepted spelling. ``release`` None is the union of all releases.

    A release has some four hundred flags and a launch few of them: a spec is made when it is asked for.
    """

    def __init__(self, rows: dict[str, Row], release: Release | None, note: str | None = None) -> None:
        self.release, self.note = release, note
        self._rows = rows
        self._made: dict[str, FlagSpec] = {}
        self._options: dict[str, str] = {}  # spelling -> name
        for name, (entry, _) in rows.items():
            for option in entry.get("aliases", ()):
                self._options.setdefault(option, name)
        for name in rows:  # a flag's own name beats another one's alias (union tables)
            self._options[name] = name

    def _spec(self, name: str) -> FlagSpec:
        spec = self._made.get(name)
        if spec is None:
            spec = self._made[name] = _spec(name, *self._rows[name])
        return spec

    def __getitem__(self, option: str) -> FlagSpec:
        return self._spec(self._options[option])

    def __iter__(self) -> Iterator[str]:
        return iter(self._options)

    def __len__(self) -> int:
        return len(self._options)

    def __contains__(self, option: object) -> bool:
        return option in self._options

    @property
    def specs(self) -> tuple[FlagSpec, ...]:
        return tuple(map(self._spec, self._rows))

    def defaults(self) -> dict[str, Any]:
        """Default by destination; of several current flags that set one, the first one's."""
        rows = reversed(self._rows.items())
        return {_dest(n, e): e.get("default") for n, (e, _) in rows if not e.get("deprecated", False)}

    def resolve(self, name: str) -> FlagSpec | None:
        """The flag that argparse would take ``name`` for: exact, or an unambiguous beginning of a long
        option. None when there is none or several. A ``=value`` part is ignored."""
        name = name.partition("=")[0]
        if name in self._options:
            return self[name]
        # One option spelled in several ways is no ambiguity; in the union a renamed flag has several specs.
        found = {(spec.name if self.release else spec.dest): spec for spec in self.beginning(name)}
        return next(iter(found.values())) if len(found) == 1 else None

    def beginning(self, name: str) -> tuple[FlagSpec, ...]:
        """Every flag with a long spelling that begins with ``name``."""
        if not name.startswith("--") or len(name) < 3:
            return ()
        at = bisect_left(self._sorted, name)
        if at == len(self._sorted) or not self._sorted[at].startswith(name):
            return ()  # of thousands of unknown names nearly all
        return tuple(self._spec(own) for option, own in self._options.items() if option.startswith(name))

    @cached_property
    def _sorted(self) -> list[str]:
        return sorted(self._options)

    def by_dest(self, dest: str) -> FlagSpec | None:
        """The flag that sets a ``ServerArgs`` field; current spellings before deprecated ones."""
        found = [self._spec(name) for name in self._setting.get(dest, ())]
        found.sort(key=lambda s: (s.deprecated, s.refused is not None))
        return found[0] if found else None

    @cached_property
    def _setting(self) -> Mapping[str, list[str]]:
        """Destination -> the flags that give it their value."""
        out: dict[str, list[str]] = {}
        for name, (entry, _) in self._rows.items():
            if entry.get("const") is None:
                out.setdefault(_dest(name, entry), []).append(name)
        return out


def flag_table(release: Release | None) -> FlagTable:
    """Flags of a release (of the nearest known one for others: see ``FlagTable.note``); None: the union
    of all releases, each flag as the newest release that has it declares it."""
    if release is None:
        return _union(releases_folder())
    folder, known, note = facts_folder(release)
    return _table(folder, known, note)


@lru_cache(maxsize=128)  # every release: lint holds each edit against all of its own
def _table(folder: Path, known: Release, note: str | None) -> FlagTable:
    rows: dict[str, Row] = {}
    table = read_table(folder / "flags.json")
    holds = at_release(table["releases"], known)
    for name, spans in table["flags"].items():
        for first, last, entry in spans:
            if holds(first, last):
                rows[name] = entry, spans
                break
    return FlagTable(rows, known, note)


@lru_cache(maxsize=4)
def _union(folder: Path) -> FlagTable:
    table = read_table(folder / "flags.json")
    position = {text: i for i, text in enumerate(table["releases"])}

    def age(row: tuple[str, list[Any]]) -> tuple[bool, int]:
        first, last, _ = row[1][-1]
        return last is None, position[last or first]

    newest_first = sorted(table["flags"].items(), key=age, reverse=True)
    return FlagTable({name: (spans[-1][2], spans) for name, spans in newest_first}, None)


def _spec(name: str, entry: Mapping[str, Any], spans: list[Any]) -> FlagSpec:
    get = entry.get
    choices = get("choices")
    return FlagSpec(
        dest=_dest(name, entry),
        name=name,
        aliases=tuple(get("aliases", ())),
        arity=get("arity", "one"),
        type=get("type", "str"),
        choices=None if choices is None else tuple(choices),
        default=get("default"),
        deprecated=get("deprecated", False),
        replacement=get("replacement"),
        releases=_joined(spans),
        required=get("required", False),
        const=get("const"),
        refused=get("refused"),
        fallback=get("fallback"),
    )


def _dest(name: str, entry: Mapping[str, Any]) -> str:
    return entry.get("dest") or name.lstrip("-").replace("-", "_")


def _joined(spans: list[Any]) -> tuple[tuple[str, str | None], ...]:
    """Spans of a name with neighbours joined: details may change, the flag stays."""
    out = [(spans[0][0], spans[0][1])]
    if len(spans) > 1:
        from mtpdoctor.sglang.releases import known_releases

        position = {r: i for i, r in enumerate(known_releases())}
        for first, last, _ in spans[1:]:
            end = out[-1][1]
            if (
                end is not None
                and position.get(release_order(first), 0) - position.get(release_order(end), 0) == 1
            ):
                out[-1] = (out[-1][0], last)
            else:
                out.append((first, last))
    return tuple(out)


def known_flag(name: str) -> bool:
    """Whether any known release accepts this exact spelling."""
    return name.partition("=")[0] in _union(releases_folder())


@dataclass(frozen=True, slots=True)
class Translation:
    """A flag's spelling in another release: ``name`` None when there is none; ``reason`` says why it is
    what it is ("" when nothing changed)."""

    name: str | None
    reason: str = ""


def translate(name: str, release: Release | None) -> Translation:
    """The spelling of ``name`` that is right in ``release`` (None: not known, the name is kept).

    Follows renames both ways. A flag that still parses but is deprecated there becomes its successor
    of the same shape.
    """
    from mtpdoctor.sglang.options import translate_name

    return translate_name(name, release)
