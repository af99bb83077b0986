"""Which class a model has by its public name, where its config.json is not at hand.

A name is no proof: only conditions of rules and remedies are weighed by it, and only where nothing else tells the class.
Names that are not known, and those of drafts, adapters and other things made from a model, stay unknown.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from pathlib import Path

from mtpdoctor.facts import UNKNOWN, Fact, Facts, Source
from mtpdoctor.paths import releases_folder

FILE = "model_names.json"
CLASS = "model.architecture"
_WHERE = ("flag.model_path", "arg.model_path", "model.path")


def with_named_class(facts: Facts) -> Facts:
    """``facts`` with ``model.architecture`` by the model's name, where it is not known and no model type is."""
    if facts.look(CLASS) is not UNKNOWN or facts.look("model.model_type") is not UNKNOWN:
        return facts
    path = next((p for name in _WHERE if isinstance(p := facts.look(name), str)), None)
    known = class_of(path) if path is not None else None
    if known is None:
        return facts
    return facts.merged(Facts({CLASS: Fact(CLASS, known, Source.DERIVED, f"the model's name, {path}")}))


def class_of(path: str) -> str | None:
    """The class of a family of public models, by the last part of a path or hub id; None where the name tells nothing."""
    parts = path.rstrip("/").split("/")
    if "snapshots" in parts:  # the hub's cache: models--Qwen--Qwen3-8B/snapshots/<hash>
        parts = parts[: parts.index("snapshots")]
    name = parts[-1].rsplit("--", 1)[-1].lower().replace("_", "-").replace(" ", "-")
    never, families = _table(releases_folder())
    if not name or never.search(name):
        return None
    return next((known for pattern, known in families if pattern.match(name)), None)


@lru_cache(maxsize=4)
def _table(folder: Path) -> tuple[re.Pattern[str], tuple[tuple[re.Pattern[str], str], ...]]:
    written = json.loads((folder / FILE).read_text(encoding="utf-8"))
    families = tuple((re.compile(pattern), known) for pattern, known in written["families"])
    return re.compile(written["never"]), families
