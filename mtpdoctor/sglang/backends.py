"""What the table of backends (``knowledge/releases/backends.json``) says of GPUs, kinds of models and backends.

The table is written by hand, from the checks of SGLang's releases and what the kernels' libraries are built for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from mtpdoctor.facts import UNKNOWN, Fact, Facts, Source
from mtpdoctor.paths import releases_folder
from mtpdoctor.release import Release, ReleaseRange
from mtpdoctor.sglang.store import read_table


def _table() -> dict[str, Any]:
    return read_table(releases_folder() / "backends.json")


def gpu_facts(facts: Facts) -> Facts:
    """``host.gpu.sm`` and ``host.platform`` by the GPU's name, where the name is known and they are not."""
    name = facts.fact("host.gpu.name")
    found: dict[str, Fact] = {}
    if name is None or not isinstance(name.value, str):
        sm = facts.fact("host.gpu.sm")
        if sm is not None and sm.value and facts.look("host.platform") is UNKNOWN:
            found["host.platform"] = Fact("host.platform", "cuda", sm.source, sm.where)
        return Facts(found)
    row = next((r for r in _table()["gpus"] if _named(r[0], name.value)), None)
    if row is None:
        return Facts({})
    for fact, value in (("host.gpu.sm", row[1]), ("host.platform", row[2])):
        if value is not None and facts.look(fact) is UNKNOWN:
            found[fact] = Fact(fact, value, name.source, name.where)
    return Facts(found)


def _named(part: str, name: str) -> bool:
    """The part stands in the name, and does not go on with a figure that makes it another GPU."""
    return re.search(rf"\b{part}(?!\d{{3}})" if part[-1] == "0" else rf"\b{part}(?!\d)", name) is not None


def kind_facts(facts: Facts) -> Facts:
    """``model.is_dsa`` and its like, where they are not known: by the architecture, else by the model's name."""
    architecture = facts.look("model.architecture")
    found: dict[str, Fact] = {}
    for name, row in _table()["kinds"].items():
        if facts.look(name) is not UNKNOWN:
            continue
        if isinstance(architecture, str) and architecture in row["architectures"]:
            found[name] = Fact(name, True, Source.DERIVED, f"architecture {architecture}")
            continue
        if isinstance(architecture, str):
            continue
        path = next((p for n in ("flag.model_path", "arg.model_path", "model.path")
                     if isinstance(p := facts.look(n), str)), None)  # fmt: skip
        if path is not None and _regex(row["names"]).search(path):
            found[name] = Fact(name, True, Source.DERIVED, f"the model's name, {path}")
    return Facts(found)


@lru_cache(maxsize=16)
def _regex(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def rows_for(field: str, value: str, release: Release | None) -> Iterator[tuple[Any, str]]:
    """Conditions (as written) under which ``value`` of the option ``field`` cannot work, each with the reason."""
    table = _table()
    for row in table["rows"]:
        if value not in row["values"] or field not in row.get("fields", table["options"][row["of"]]):
            continue
        releases = row.get("releases")
        if releases is None or ReleaseRange.parse(releases).holds(release):
            yield row["cannot"], row["why"]
