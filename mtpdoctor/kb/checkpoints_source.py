"""Reading ``knowledge/checkpoints/*.yaml`` (docs/checkpoints.md), and its cached form."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mtpdoctor.kb.checkpoints import Checkpoint, Checkpoints, Format, Model, plain
from mtpdoctor.kb.codec import condition_in, condition_out
from mtpdoctor.kb.condition_source import ConditionError, parse_condition
from mtpdoctor.kb.node_reader import NodeReader
from mtpdoctor.kb.types import ALWAYS, Condition
from mtpdoctor.kb.yaml_source import Node, Problem, nearest, parse_yaml
from mtpdoctor.release import ReleaseRange

FOLDER = "checkpoints"
FORMATS_FILE = "formats.yaml"
PARTS = ("mtp", "vision", "audio")
_FILE_KEYS = ("formats", "models", "beside")
_FORMAT_KEYS = ("words", "family", "widely", "bytes", "method", "marks", "when", "needs", "releases")
_MODEL_KEYS = ("base", "names", "billions", "architecture", "has", "checkpoints")
_CHECKPOINT_KEYS = ("id", "format", "gib", "lacks", "seen")
_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*\Z")


def checkpoint_files(folder: Path) -> list[Path]:
    """The files of published checkpoints in a folder of knowledge: the formats first, then sorted; none when it has none."""
    found = sorted((folder / FOLDER).glob("*.yaml"))
    return sorted(found, key=lambda path: path.name != FORMATS_FILE)


def read_checkpoints(files: Iterable[Path], problems: list[Problem], base: Path | None = None) -> Checkpoints:
    """What the files say; what is wrong is appended to ``problems``."""
    formats: dict[str, Format] = {}
    models: list[Model] = []
    taken: dict[str, str] = {}
    beside: set[str] = set()
    for path in files:
        name = str(path.relative_to(base)) if base and path.is_relative_to(base) else str(path)
        root = parse_yaml(path.read_text(encoding="utf-8"), name, problems)
        if root is not None:
            reader = _Reader(name, problems, formats, models, taken)
            reader.whole(root)
            beside.update(reader.beside)
    return Checkpoints(tuple(formats.values()), tuple(models), frozenset(beside))


class _Reader(NodeReader):
    def __init__(
        self,
        file: str,
        problems: list[Problem],
        formats: dict[str, Format],
        models: list[Model],
        taken: dict[str, str],
    ) -> None:
        super().__init__(file, problems)
        self.formats, self.models, self.taken = formats, models, taken
        self.beside: tuple[str, ...] = ()

    def whole(self, root: Node) -> None:
        if not root.is_map:
            self.error(root.line, f"expected `models:` or `formats:`, not {root.kind}")
            return
        self.keys(root, _FILE_KEYS, "a file of checkpoints")
        self.beside = self.texts(root, "beside") if root.value.get("beside") is not None else ()
        formats = root.value.get("formats")
        if formats is not None and not formats.is_map:
            self.error(formats.line, "`formats` is a mapping of names")
        elif formats is not None:
            for name, node in formats.items():
                self.format(name, node)
        for node in self.list(root, "models"):
            self.model(node)

    def format(self, name: str, node: Node) -> None:
        if not node.is_map:
            self.error(node.line, f"a format is a mapping, not {node.kind}")
            return
        self.keys(node, _FORMAT_KEYS, "a format")
        if name in self.formats:
            self.error(node.line, f"format {name!r} stands twice")
        if not self.text(node, "words"):
            self.error(node.line, f"format {name!r} needs `words`")
        when: Condition = ALWAYS
        if "when" in node.value:
            try:
                when = parse_condition(node.value["when"])
            except ConditionError as error:
                self.error(error.line or node.line_of("when"), f"when: {error}")
        self.formats[name] = Format(
            name,
            self.text(node, "words"),
            self.positive(node, "bytes") or 2.0,
            self.text(node, "method") or None,
            tuple(plain(mark) for mark in self.texts(node, "marks")),
            self.text(node, "family"),
            when,
            self.text(node, "needs"),
            self.flag(node, "widely"),
            self.releases(node),
        )

    def model(self, node: Node) -> None:
        if not node.is_map:
            self.error(node.line, f"a model is a mapping, not {node.kind}")
            return
        self.keys(node, _MODEL_KEYS, "a model")
        base = self.text(node, "base")
        if not _ID.match(base):
            self.error(node.line_of("base"), f"base {base!r} is no id of a repository (maker/name)")
        has = self.parts(node, "has")
        found = [one for item in self.list(node, "checkpoints") if (one := self.checkpoint(item)) is not None]
        if not found:
            self.error(node.line, f"{base}: no checkpoint is named")
        self.models.append(
            Model(
                base,
                self.positive(node, "billions") or 0.0,
                self.text(node, "architecture") or None,
                has,
                tuple(found),
                tuple(plain(name) for name in self.texts(node, "names")),
            )
        )

    def checkpoint(self, node: Node) -> Checkpoint | None:
        if not node.is_map:
            self.error(node.line, f"a checkpoint is a mapping, not {node.kind}")
            return None
        self.keys(node, _CHECKPOINT_KEYS, "a checkpoint")
        name, kind, seen = (self.text(node, key) for key in ("id", "format", "seen"))
        if not _ID.match(name):
            self.error(node.line_of("id"), f"id {name!r} is no id of a repository (maker/name)")
        elif (other := self.taken.get(name.lower())) is not None:
            self.error(node.line, f"{name} stands already in {other}")
        self.taken[name.lower()] = f"{self.file}:{node.line}"
        if kind not in self.formats:
            self.error(node.line_of("format"), f"unknown format {kind!r}{nearest(kind, self.formats)}")
        if not seen:
            self.error(node.line, f"{name}: say where the id was seen (`seen:`)")
        gib = self.positive(node, "gib") if "gib" in node.value else None
        return Checkpoint(name, kind, seen, gib, self.parts(node, "lacks"))

    def parts(self, node: Node, key: str) -> tuple[str, ...]:
        found = self.texts(node, key)
        for part in found:
            if part not in PARTS:
                self.error(node.line_of(key), f"{key}: {part!r} is none of {', '.join(PARTS)}")
        return found

    def positive(self, node: Node, key: str) -> float | None:
        value = node.value.get(key)
        number = value.value if value is not None else None
        if isinstance(number, bool) or not isinstance(number, (int, float)) or number <= 0:
            self.error(node.line_of(key), f"`{key}` is a number above 0")
            return None
        return float(number)


def checkpoints_out(found: Checkpoints) -> list[Any]:
    """As plain data; :func:`checkpoints_in` gives it back."""
    return [
        [
            (
                f.name,
                f.words,
                f.bytes,
                f.method,
                list(f.marks),
                f.family,
                condition_out(f.when),
                f.needs,
                f.widely,
                f.releases.text,
            )
            for f in found.formats
        ],
        [
            (
                (m.base, m.billions, m.architecture, list(m.has), list(m.names)),
                [(c.id, c.format, c.seen, c.gib, list(c.lacks)) for c in m.checkpoints],
            )
            for m in found.models
        ],
        sorted(found.beside),
    ]


def checkpoints_in(data: list[Any]) -> Checkpoints:
    formats, models, beside = data
    return Checkpoints(
        tuple(
            Format(
                name,
                words,
                size,
                method,
                tuple(marks),
                family,
                condition_in(when),
                needs,
                widely,
                ReleaseRange.parse(text),
            )
            for name, words, size, method, marks, family, when, needs, widely, text in formats
        ),
        tuple(
            Model(base, billions, architecture, tuple(has), tuple(map(_checkpoint_in, rows)), tuple(names))
            for (base, billions, architecture, has, names), rows in models
        ),
        frozenset(beside),
    )


def _checkpoint_in(row: Any) -> Checkpoint:
    name, kind, seen, gib, lacks = row
    return Checkpoint(name, kind, seen, gib, tuple(lacks))
