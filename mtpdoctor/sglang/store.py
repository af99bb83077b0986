"""The learned facts on disk: changes between releases, not copies.

A table maps a name to spans ``[first, last, value]``: from release ``first`` to release ``last``
(``null``: to the newest known) the value held. Files are written one name a line, so that a new
release shows as a small difference.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from mtpdoctor.errors import UserError
from mtpdoctor.release import Release, parse_release

FORMAT = 1
Spans = list[list[Any]]


# What readers rely on: file -> table -> its own type, and the type of its rows.
_SHAPES: Mapping[str, Mapping[str, tuple[type, type]]] = {
    "architectures.json": {"architectures": (dict, list), "model_types": (dict, list)},
    "backends.json": {"options": (dict, list), "rows": (list, dict), "kinds": (dict, dict)},
    "choice_names.json": {"choices": (dict, dict)},
    "env.json": {"releases": (list, str), "env": (dict, list)},
    "flags.json": {"releases": (list, str), "flags": (dict, list), "fields": (dict, list)},
    "options.json": {"groups": (list, list), "moves": (dict, list), "values": (dict, dict), "foreign": (dict, dict)},
    "other_parsers.json": {"router": (list, str), "diffusion": (dict, list)},
    "native_libraries.json": {"libraries": (dict, dict)},
    "packages.json": {"modules": (dict, dict), "companions": (dict, list), "moving": (list, str)},
    "partners.json": {"groups": (list, dict)},
    "pins.json": {"releases": (list, str), "pins": (dict, list)},
    "torch.json": {"torch": (dict, dict), "anywhere": (list, str)},
    "transformers.json": {"releases": (list, str), "model_types": (dict, list), "classes": (dict, list)},
    "verified.json": {"rules": (dict, dict)},
}  # fmt: skip


def _misshapen(name: str, data: Mapping[str, Any]) -> str | None:
    """The first table of the file that is not as its readers expect it."""
    for key, (kind, row) in _SHAPES.get(name, {}).items():
        if not isinstance(data.get(key), kind):
            return key
        rows = data[key].values() if kind is dict else data[key]
        if not all(isinstance(one, row) for one in rows):
            return key
    return None


@lru_cache(maxsize=256)
def release_order(text: str) -> Release:
    return parse_release(text)


def pack(values: Mapping[str, Mapping[str, Any]], releases: Sequence[str]) -> dict[str, Spans]:
    """``values[release][name]`` as spans over ``releases`` (oldest first)."""
    names = sorted({name for table in values.values() for name in table})
    out: dict[str, Spans] = {}
    missing = object()
    for name in names:
        spans: Spans = []
        previous: Any = missing
        for index, release in enumerate(releases):
            current = values.get(release, {}).get(name, missing)
            if current is not missing:
                # Equal is not enough: False == 0 and 1 == 1.0, and a flag's default may change between them.
                if previous is not missing and _same(previous, current):
                    spans[-1][1] = release
                else:
                    spans.append([release, release, current])
            previous = current
            if index == len(releases) - 1 and current is not missing:
                spans[-1][1] = None
        out[name] = spans
    return out


def _same(left: Any, right: Any) -> bool:
    return json.dumps(left, sort_keys=True) == json.dumps(right, sort_keys=True)


def unpack(table: Mapping[str, Spans], releases: Sequence[str], index: int) -> dict[str, Any]:
    """The values in force in ``releases[index]``."""
    position = {release: i for i, release in enumerate(releases)}
    out = {}
    for name, spans in table.items():
        for first, last, value in spans:
            if position[first] <= index and (last is None or index <= position[last]):
                out[name] = value
                break
    return out


def at_release(releases: Sequence[str], release: Release) -> Callable[[str, str | None], bool]:
    """Whether a span ``(first, last)`` over ``releases`` (oldest first) holds in ``release``.

    Tables have a thousand spans: they are held against numbers, not release against release."""
    position = {text: i for i, text in enumerate(releases)}
    upto = sum(release_order(text) <= release for text in releases)  # that many are not newer
    before = sum(release_order(text) < release for text in releases)

    def holds(first: str, last: str | None) -> bool:
        return position[first] < upto and (last is None or before <= position[last])

    return holds


def write_table(path: Path, head: Mapping[str, Any], tables: Mapping[str, Mapping[str, Any]]) -> None:
    """Write ``head`` entries and ``tables`` (one name a line) as JSON."""
    lines = ["{"]
    lines += [f"{json.dumps(k)}: {_dumps(v)}," for k, v in head.items()]
    for title, table in tables.items():
        lines.append(f"{json.dumps(title)}: {{")
        rows = [f"{json.dumps(name)}: {_dumps(value)}" for name, value in table.items()]
        lines.append(",\n".join(rows))
        lines.append("},")
    lines[-1] = lines[-1].rstrip(",")
    lines.append("}")
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".tmp")
    temporary.write_text("\n".join(lines) + "\n", encoding="utf-8")
    temporary.replace(path)


def _dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


@lru_cache(maxsize=16)
def _read(path: str, stamp: float) -> dict[str, Any]:
    try:
        data = json.loads(Path(path).read_bytes())
    except ValueError as error:
        raise UserError(
            f"{path} is damaged: {error}", hint="restore the file or reinstall mtpdoctor"
        ) from None
    if not isinstance(data, dict) or data.get("format", FORMAT) != FORMAT:
        raise UserError(
            f"{path} has an unknown format", hint="it was written by another version of mtpdoctor"
        )
    wrong = _misshapen(Path(path).name, data)
    if wrong is not None:
        raise UserError(
            f'{path} is damaged: its table "{wrong}" is missing or of another form',
            hint="restore the file or reinstall mtpdoctor",
        )
    return data


def read_table(path: Path) -> dict[str, Any]:
    """A table file, cached until it changes. Raises UserError when it is missing or damaged."""
    try:
        stamp = path.stat().st_mtime
    except OSError:
        raise UserError(f"{path} is missing", hint="reinstall mtpdoctor") from None
    return _read(str(path), stamp)


def sort_releases(releases: Iterable[str]) -> list[str]:
    return sorted(releases, key=release_order)
