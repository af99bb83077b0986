"""Which models a version of transformers knows, read off its wheel or its installed folder.

``model_types``: what ``AutoConfig`` accepts (``CONFIG_MAPPING_NAMES``), with the classes that generate for it. ``classes``: the model classes that the
library offers, and whether SGLang's wrapper can use each (``_supports_attention_backend``). Nothing of the
library is imported or run. Written to ``transformers.json`` beside the facts of SGLang's releases.
"""

from __future__ import annotations

import ast
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mtpdoctor.errors import UserError
from mtpdoctor.patterns import lazy
from mtpdoctor.release import release_or_none
from mtpdoctor.sglang.architectures import TRANSFORMERS_FILE
from mtpdoctor.sglang.store import FORMAT, pack, read_table, sort_releases, unpack, write_table

_VERSION = lazy(r"^__version__\s*=\s*[\"']([^\"']+)[\"']", re.M)
_MODELING = lazy(r"transformers/models/(?:\w+/)+modeling_\w+\.py$")
_CLASS = lazy(r"^class (\w+)\(", re.M)
_ALL = lazy(r"^__all__ = \[(.*?)\]", re.M | re.S)
_QUOTED = lazy(r"[\"'](\w+)[\"']")
_HEADED = lazy(
    r"For[A-Z]\w+$|CausalLM$|LMHeadModel$"
)  # what a config's `architectures` names; no mere layers
_WRAPPED = lazy(r"^\s+_supports_attention_backend\s*(?::\s*bool\s*)?=\s*True", re.M)
_AUTO = "transformers/models/auto/"
_CONFIG_NAMES = "CONFIG_MAPPING_NAMES"
_CLASS_NAMES = lazy(r"MODEL_\w+_NAMES$|MODEL_MAPPING_NAMES$")
# The tables whose classes a server of text would be asked for, by the model's type.
_GENERATING = tuple(
    f"MODEL_FOR_{kind}_MAPPING_NAMES"
    for kind in ("CAUSAL_LM", "IMAGE_TEXT_TO_TEXT", "VISION_2_SEQ", "MULTIMODAL_LM", "SPEECH_SEQ_2_SEQ")
)


@dataclass(slots=True)
class LearnedTransformers:
    version: str
    model_types: dict[str, list[str]] = field(
        default_factory=dict
    )  # -> classes that generate, see _GENERATING
    classes: dict[str, bool] = field(default_factory=dict)  # name -> SGLang's wrapper can use it


def learn_transformers(source: str | Path) -> LearnedTransformers:
    """Learn one version from a wheel, or a folder that holds ``transformers/``. Raises UserError when it is
    none."""
    files = _files(Path(source).expanduser())
    text = files.get("transformers/__init__.py", "")
    found = _VERSION.search(text)
    if found is None or release_or_none(found[1]) is None:
        raise UserError(
            f"{source} holds no transformers", hint="give a wheel or a folder that holds transformers/"
        )
    learned = LearnedTransformers(str(release_or_none(found[1])))
    named: set[str] = set()
    generating: dict[str, set[str]] = {}
    for stem in ("auto_mappings", "configuration_auto", "modeling_auto"):
        for table, key, value in _entries(files.get(f"{_AUTO}{stem}.py", "")):
            if table == _CONFIG_NAMES:
                learned.model_types[key] = []
            elif _CLASS_NAMES.match(table):
                names = [value] if isinstance(value, str) else value
                named.update(names)
                if table in _GENERATING:
                    generating.setdefault(key, set()).update(names)
    if not learned.model_types:
        raise UserError(f"{source}: no {_CONFIG_NAMES} in {_AUTO}", hint="this version keeps it elsewhere")
    for key in learned.model_types:
        learned.model_types[key] = sorted(generating.get(key, ()))
    wrapped: dict[str, bool] = {}
    for name, usable, offered in _defined(files):
        wrapped[name] = usable
        if offered and _HEADED.search(name):
            named.add(name)
    learned.classes = {name: wrapped.get(name, False) for name in sorted(named)}
    return learned


def _files(path: Path) -> dict[str, str]:
    def wanted(name: str) -> bool:
        return name == "transformers/__init__.py" or name.startswith(_AUTO) or bool(_MODELING.match(name))

    if path.is_file():
        try:
            with zipfile.ZipFile(path) as wheel:
                return {n: wheel.read(n).decode("utf-8", "replace") for n in wheel.namelist() if wanted(n)}
        except (zipfile.BadZipFile, OSError) as error:
            raise UserError(f"{path} cannot be read as a wheel: {error}") from None
    found = {}
    for file in (path / "transformers").rglob("*.py"):
        name = file.relative_to(path).as_posix()
        if wanted(name):
            found[name] = file.read_text(encoding="utf-8", errors="replace")
    return found


def _entries(text: str) -> Iterator[tuple[str, str, Any]]:
    """(table, key, value) of every pair in the tables of names at a module's top level, ``update`` included."""
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError):
        return
    for statement in body:
        if isinstance(statement, (ast.Assign, ast.AnnAssign)) and statement.value is not None:
            target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
            if isinstance(target, ast.Name):
                for key, value in _pairs(statement.value):
                    yield target.id, key, value
        elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            func = statement.value.func
            if isinstance(func, ast.Attribute) and func.attr == "update" and isinstance(func.value, ast.Name):
                for argument in statement.value.args:
                    for key, value in _pairs(argument):
                        yield func.value.id, key, value


def _pairs(node: ast.expr) -> Iterator[tuple[str, Any]]:
    for part in ast.walk(node):
        if isinstance(part, ast.Tuple) and len(part.elts) == 2:
            yield from _pair(part.elts[0], part.elts[1])
        elif isinstance(part, ast.Dict):
            for key, value in zip(part.keys, part.values, strict=True):
                if key is not None:
                    yield from _pair(key, value)


def _pair(key: ast.expr, value: ast.expr) -> Iterator[tuple[str, Any]]:
    try:
        name, names = ast.literal_eval(key), ast.literal_eval(value)
    except ValueError:
        return
    many = isinstance(names, (tuple, list)) and all(isinstance(n, str) for n in names)
    if isinstance(name, str) and (isinstance(names, str) or many):
        yield name, names


def _defined(files: Mapping[str, str]) -> Iterator[tuple[str, bool, bool]]:
    """Every class of the files of models: its name, whether SGLang can wrap it, whether the library offers it."""
    for path, text in files.items():
        if _MODELING.match(path):
            wrapped = _WRAPPED.search(text) is not None
            listed = _ALL.search(text)
            offered = set(_QUOTED.findall(listed[1])) if listed else set()
            for found in _CLASS.finditer(text):
                yield found[1], wrapped, found[1] in offered


# -- the table ----------------------------------------------------------------------------------------------


def update_transformers(folder: Path, sources: Iterable[str | Path]) -> list[LearnedTransformers]:
    """Learn ``sources`` and write them into ``folder``; versions already there are replaced. Returns what was
    learned, oldest first."""
    new = {learned.version: learned for learned in map(learn_transformers, sources)}
    known: dict[str, dict[str, dict[str, Any]]] = {}
    path = folder / TRANSFORMERS_FILE
    if path.is_file():
        data = read_table(path)
        for index, version in enumerate(data["releases"]):
            known[version] = {
                table: unpack(data[table], data["releases"], index) for table in ("model_types", "classes")
            }
    for version, learned in new.items():
        known[version] = {"model_types": dict(learned.model_types), "classes": dict(learned.classes)}
    versions = sort_releases(known)
    folder.mkdir(parents=True, exist_ok=True)
    head = {"format": FORMAT, "package": "transformers", "releases": versions}
    tables = {
        table: pack({v: known[v][table] for v in versions}, versions) for table in ("model_types", "classes")
    }
    write_table(path, head, tables)
    return [new[version] for version in sort_releases(new)]
