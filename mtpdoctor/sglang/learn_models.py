"""Which models a release of SGLang knows, read off its source.

Four things: the architectures that its registry of models finds (``EntryClass`` of every module in
``srt/models``), the file of multimodal processors that holds each of them (``models`` of its classes), the values of
``model_type`` that it registers with transformers itself, and names of architectures that its configuration code
treats in some other way (renames, chooses by hand).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mtpdoctor.patterns import lazy
from mtpdoctor.sglang.architectures import ARCHITECTURES_FILE
from mtpdoctor.sglang.evaluate import Evaluator
from mtpdoctor.sglang.modules import ClassRef, Module, Unresolved
from mtpdoctor.sglang.source import SourceTree
from mtpdoctor.sglang.store import FORMAT, pack, read_table, sort_releases, unpack, write_table

_MODELS = lazy(r"sglang/srt/models/(\w+)\.py$")  # the registry looks into no folder below
_PROCESSORS = lazy(r"sglang/srt/(?:multimodal/processors|managers/multimodal_processors)/(\w+)\.py$")
_CONFIGS = lazy(r"sglang/srt/(?:configs/\w+|(?:utils/)?hf_transformers(?:_utils|/\w+))\.py$")
_CHOOSING = lazy(
    r"sglang/srt/(?:configs/model_config|model_loader/utils|(?:utils/)?hf_transformers(?:_utils|/\w+))\.py$"
)
_ARCHITECTURE = lazy(
    r"[A-Z][A-Za-z0-9_]*(?:CausalLM|ForConditionalGeneration|ForSequenceClassification|Model|LMHeadModel|MTP|NextN)"
    r"[A-Za-z0-9]*$"
)
_NO_ARCHITECTURES = ("AutoModel", "EmbeddingModel", "ForCausalLM")  # parts of names; a class of transformers
_REGISTERS = ("AutoConfig", "CONFIG_MAPPING", "_CONFIG_REGISTRY")


@dataclass(slots=True)
class LearnedModels:
    """What one release knows of models."""

    architectures: dict[str, str] = field(default_factory=dict)  # class name -> module in srt/models
    model_types: set[str] = field(default_factory=set)
    mentioned: set[str] = field(default_factory=set)  # architectures handled without a class of that name
    processors: dict[str, str] = field(default_factory=dict)  # architecture -> file of multimodal processors


def learn_models(source: SourceTree) -> LearnedModels:
    """Read one release. What only running it would tell is left out."""
    evaluator = Evaluator(source)
    learned = LearnedModels()
    for path in source.files():
        found = _MODELS.match(path)
        text = source.read(path) or "" if found or _CONFIGS.match(path) or _CHOOSING.match(path) else ""
        if found and "EntryClass" in text:
            for name in _entry_classes(text, found[1], evaluator):
                learned.architectures.setdefault(name, found[1])
        if shown := _PROCESSORS.match(path):
            for name in _processed(path, evaluator):
                learned.processors[name] = shown[1]  # the last file that has it wins there, too
        if _CONFIGS.match(path) and any(word in text for word in _REGISTERS):
            module = evaluator.module(path.removesuffix(".py").replace("/", "."))
            if module is not None:
                learned.model_types.update(_model_types(module, evaluator))
        if _CHOOSING.match(path):
            learned.mentioned.update(_named(text))
    learned.mentioned -= {*learned.architectures, *_NO_ARCHITECTURES}
    return learned


# -- architectures ------------------------------------------------------------------------------------------


def _entry_classes(text: str, stem: str, evaluator: Evaluator) -> Iterator[str]:
    module = evaluator.module(f"sglang.srt.models.{stem}")
    if module is None:
        return
    for statement in ast.walk(module.tree):
        if isinstance(statement, ast.Assign):
            targets: list[ast.expr] = statement.targets
        elif isinstance(statement, (ast.AnnAssign, ast.AugAssign)) and statement.value is not None:
            targets = [statement.target]
        else:
            continue
        if any(isinstance(t, ast.Name) and t.id == "EntryClass" for t in targets):
            assert statement.value is not None
            yield from _class_names(statement.value, module, evaluator)


def _processed(path: str, evaluator: Evaluator) -> Iterator[str]:
    """Architectures that the classes of a file of multimodal processors take."""
    module = evaluator.module(path.removesuffix(".py").replace("/", "."))
    for owner in ast.walk(module.tree) if module is not None else ():
        for statement in owner.body if isinstance(owner, ast.ClassDef) else ():
            if not isinstance(statement, (ast.Assign, ast.AnnAssign)) or statement.value is None:
                continue
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            if module is not None and any(isinstance(t, ast.Name) and t.id == "models" for t in targets):
                yield from _class_names(statement.value, module, evaluator)


def _class_names(node: ast.expr, module: Module, evaluator: Evaluator) -> Iterator[str]:
    """Names that the classes of an expression bear (``__name__``, not the name they are bound to)."""
    if isinstance(node, (ast.List, ast.Tuple)):
        for element in node.elts:
            yield from _class_names(element, module, evaluator)
    elif isinstance(node, ast.Starred):
        yield from _class_names(node.value, module, evaluator)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        yield from _class_names(node.left, module, evaluator)
        yield from _class_names(node.right, module, evaluator)
    elif isinstance(node, ast.IfExp):
        yield from _class_names(node.body, module, evaluator)
        yield from _class_names(node.orelse, module, evaluator)
    elif isinstance(node, ast.ListComp):  # [m for m in [A, B] if m is not None]
        yield from _class_names(node.generators[0].iter, module, evaluator)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "type":
        if node.args and isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, str):
            yield node.args[0].value
    elif isinstance(node, ast.Name):
        yield from _bound_class(node.id, module, evaluator)
    elif isinstance(node, ast.Attribute):
        yield node.attr


def _bound_class(name: str, module: Module, evaluator: Evaluator) -> Iterator[str]:
    bound = module.bindings.get(name)
    if isinstance(bound, ast.expr):  # another name of a class, or one made by type()
        yield from _class_names(bound, module, evaluator)
    elif isinstance(bound, tuple):
        try:
            value = evaluator.lookup(module, name)
        except Unresolved:
            value = None
        yield value.node.name if isinstance(value, ClassRef) else bound[1] or name
    else:
        yield name


# -- model types --------------------------------------------------------------------------------------------


def _model_types(module: Module, evaluator: Evaluator) -> Iterator[str]:
    for node, loops in _with_loops(module.tree, ()):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner = ast.unparse(node.func.value).split(".")[-1]
            if node.func.attr == "register" and owner in ("AutoConfig", "CONFIG_MAPPING") and node.args:
                yield from _texts(node.args[0], loops, module, evaluator)
            elif node.func.attr == "update" and owner == "_CONFIG_REGISTRY" and node.args:
                yield from _keys(node.args[0], module, evaluator)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(target, ast.Name) and target.id == "_CONFIG_REGISTRY":
                    yield from _keys(node.value, module, evaluator)
                elif isinstance(target, ast.Subscript) and ast.unparse(target.value).split(".")[-1] in (
                    "_CONFIG_REGISTRY",
                    "_extra_content",
                ):
                    yield from _texts(target.slice, loops, module, evaluator)
        elif isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.In, ast.NotIn)):
            # a type whose refusal by transformers is caught: `if not "deepseek_v32" in str(e)`
            left, right = node.left, node.comparators[0]
            text = left.value if isinstance(left, ast.Constant) else None
            message = isinstance(right, ast.Call) and ast.unparse(right.func) == "str"
            if message and isinstance(text, str) and text.isidentifier():
                yield text


def _with_loops(node: ast.AST, loops: tuple[ast.For, ...]) -> Iterator[tuple[ast.AST, tuple[ast.For, ...]]]:
    """Every node below, with the loops around it."""
    for child in ast.iter_child_nodes(node):
        inside = (*loops, child) if isinstance(child, ast.For) else loops
        yield child, inside
        yield from _with_loops(child, inside)


def _keys(node: ast.expr, module: Module, evaluator: Evaluator) -> Iterator[str]:
    """Model types that a dictionary, a list of classes, or a comprehension over one, names."""
    if isinstance(node, ast.Dict):
        for key in node.keys:
            if key is not None:
                yield from _texts(key, (), module, evaluator)
    elif isinstance(node, (ast.List, ast.Tuple)):
        for element in node.elts:
            yield from _type_of(_value(element, module, evaluator), evaluator)
    elif isinstance(node, ast.DictComp):
        source = node.generators[0].iter
        if isinstance(source, (ast.List, ast.Tuple)):
            yield from _keys(source, module, evaluator)
            return
        classes = _value(source, module, evaluator)
        for item in classes if isinstance(classes, list) else ():
            yield from _type_of(item, evaluator)


def _texts(node: ast.expr, loops: tuple[ast.For, ...], module: Module, evaluator: Evaluator) -> Iterator[str]:
    """The texts that an expression can be: a constant, ``Class.model_type``, or what a loop runs over."""
    if isinstance(node, ast.Constant):
        if isinstance(node.value, str):
            yield node.value
        return
    name = node.value if isinstance(node, ast.Attribute) else node
    loop = next((each for each in reversed(loops) if _loop_names(each.target, name)), None)
    if loop is None:
        value = _value(node, module, evaluator)
        if isinstance(value, str):
            yield value
        return
    over = loop.iter
    if isinstance(over, ast.Call) and isinstance(over.func, ast.Attribute) and over.func.attr == "items":
        over = over.func.value
        if isinstance(over, ast.Dict):
            yield from _keys(over, module, evaluator)  # _CONFIG_REGISTRY.items() is read where it is filled
    elif isinstance(over, (ast.Tuple, ast.List)):
        for element in over.elts:
            if isinstance(element, ast.Constant) and isinstance(element.value, str):
                yield element.value
            else:
                yield from _type_of(_value(element, module, evaluator), evaluator)


def _loop_names(target: ast.expr, node: ast.expr) -> bool:
    if not isinstance(node, ast.Name):
        return False
    names = target.elts if isinstance(target, ast.Tuple) else [target]
    return any(isinstance(n, ast.Name) and n.id == node.id for n in names)


def _value(node: ast.expr, module: Module, evaluator: Evaluator) -> Any:
    try:
        return evaluator.value(node, module)
    except Unresolved:
        return None


def _type_of(value: Any, evaluator: Evaluator) -> Iterator[str]:
    if isinstance(value, ClassRef):
        try:
            found = evaluator.attribute(value, "model_type")
        except Unresolved:
            return
        if isinstance(found, str):
            yield found


# -- architectures that are only named ----------------------------------------------------------------------


def _named(text: str) -> Iterator[str]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):  # ValueError: a NUL byte, on older Pythons
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and _ARCHITECTURE.match(node.value):
            yield node.value


# -- the table ----------------------------------------------------------------------------------------------

_TABLES = ("architectures", "model_types", "mentioned", "processors")


def write_models(folder: Path, learned: Mapping[str, LearnedModels]) -> None:
    """Write ``architectures.json``; a release that was not learned for its models is left out of it."""
    entries: dict[str, dict[str, Mapping[str, Any]]] = {
        release: {
            "architectures": models.architectures,
            "model_types": dict.fromkeys(sorted(models.model_types), 1),
            "mentioned": dict.fromkeys(sorted(models.mentioned), 1),
            "processors": models.processors,
        }
        for release, models in learned.items()
        if models.architectures
    }
    releases = sort_releases(entries)
    tables = {table: pack({r: entries[r][table] for r in releases}, releases) for table in _TABLES}
    write_table(folder / ARCHITECTURES_FILE, {"format": FORMAT, "releases": releases}, tables)


def read_models(folder: Path) -> dict[str, LearnedModels]:
    """The table expanded by release; empty when there is none."""
    path = folder / ARCHITECTURES_FILE
    if not path.is_file():
        return {}
    data = read_table(path)
    out = {}
    for index, release in enumerate(data["releases"]):
        at = {table: unpack(data.get(table, {}), data["releases"], index) for table in _TABLES}
        out[release] = LearnedModels(
            at["architectures"], set(at["model_types"]), set(at["mentioned"]), at["processors"]
        )
    return out
