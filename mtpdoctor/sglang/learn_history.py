"""In which releases the functions of SGLang changed: what a traceback's frames say of an upgrade.

A function's form is a digest of its syntax tree without docstrings, so comments and layout do not count. Written as
``history.json.gz`` (read by ``history``).
"""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mtpdoctor.patterns import lazy
from mtpdoctor.sglang.history import FIRST, HISTORY_FILE, read_group, unwritten
from mtpdoctor.sglang.packed import Packed, open_packed, write_packed
from mtpdoctor.sglang.store import release_order, sort_releases

if TYPE_CHECKING:
    from mtpdoctor.sglang.source import SourceTree

# Neither tests nor other programs of the distribution end a launch of a server.
LEFT_OUT = lazy(
    r"sglang/(?:test|multimodal_gen/(?:test|benchmarks|apps|tools|csrc|third_party)|lang|eval|benchmark|api|(?:jit_kernel|kernels/ops)/(?:flash_att\w+|diffusion)"
    r"|srt/(?:debug_utils|kv_canary|hardware_backend/mlx))/"
    r"|.*/(?:tests?|benchmarks?)/|sglang/(?:bench_|auto_benchmark)|.*/test_\w+\.py$"
)
_KERNELS = lazy(r"sglang/(?:kernels|jit_kernel)/")
_GROUP = 2000  # functions of one member, about
_DEFS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_KERNEL = lazy(r"\b(?:triton|cute|T|tilelang|gluon)\.(?:jit|kernel|heuristics|autotune|prim_func|struct)\b")
_SKIPPED = frozenset({"ctx", "type_comment", "kind", "type_params", "type_ignores"})

Forms = dict[
    str, tuple[str, ...]
]  # bare name (as frames give it) -> forms of each function of that name, in order
_DIGESTS: dict[bytes, str] = {}


def learned_files(source: SourceTree) -> Iterator[str]:
    """The files whose functions and messages are kept."""
    return (p for p in source.files() if p.startswith("sglang/") and not LEFT_OUT.match(p))


def forms_of(tree: ast.Module, text: str) -> Forms:
    """The form of every function of one file, by the name that a traceback gives it; ``<module>`` is what the file
    itself runs."""
    lines = text.splitlines()
    out: dict[str, list[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and not is_kernel(node):
            out.setdefault(node.name, []).append(_form(node, lines))
    top = [node for node in tree.body if not isinstance(node, _DEFS)]
    out["<module>"] = [_digest(top)]
    return {name: tuple(forms) for name, forms in out.items()}


def is_kernel(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Compiled for the GPU: no frame of a traceback names it."""
    return any(_KERNEL.search(ast.unparse(d)) for d in node.decorator_list)


def _form(node: ast.FunctionDef | ast.AsyncFunctionDef, lines: list[str]) -> str:
    # Most functions of a changed file are as they were: the same text need not be walked again.
    written = "\n".join(lines[node.lineno - 1 : node.end_lineno]).encode("utf-8", "replace")
    key = hashlib.blake2b(written, digest_size=16).digest()
    if key not in _DIGESTS:
        _DIGESTS[key] = _digest([node])
    return _DIGESTS[key]


def _digest(nodes: Iterable[ast.AST]) -> str:
    """16 bits of the syntax, the same on every Python."""
    parts: list[str] = []
    for node in nodes:
        _walk(node, parts)
    return hashlib.blake2b("\x00".join(parts).encode("utf-8", "replace"), digest_size=2).hexdigest()


def _walk(node: ast.AST, parts: list[str]) -> None:
    parts.append(type(node).__name__)
    for name in node._fields:
        if name in _SKIPPED:
            continue
        value = getattr(node, name, None)
        if isinstance(value, list):
            parts.append("[")
            for at, item in enumerate(value):
                if isinstance(item, ast.AST):
                    if at == 0 and name == "body" and _is_docstring(item):
                        continue
                    _walk(item, parts)
                else:
                    parts.append(repr(item))
            parts.append("]")
        elif isinstance(value, ast.AST):
            _walk(value, parts)
        else:
            parts.append(repr(value))


def _is_docstring(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


# -- keywords of the classes that programs around SGLang call ------------------------------------------------------

_ENTRIES = lazy(
    r"sglang/srt/(?:server_args|entrypoints/(?:engine\w*|http_server_engine|EngineBase)|configs/(?:model_config|load_config|device_config)"
    r"|managers/io_struct|sampling/sampling_params|distributed/parallel_state|model_loader/loader)\.py$"
)
Signatures = dict[str, tuple[str, ...]]  # "ServerArgs.__init__" -> its keywords


def signatures_of(path: str, tree: ast.Module) -> Signatures:
    """What the functions, methods and data classes of an entry module take by keyword; of other files nothing. Functions
    with ``**kwargs`` take everything, and are left out."""
    if not _ENTRIES.match(path):
        return {}
    out: Signatures = {}
    fields: dict[str, tuple[str, ...]] = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            _add_signature(out, node.name, node)
        elif isinstance(node, ast.ClassDef):
            inherited = [name for base in node.bases for name in fields.get(ast.unparse(base), ())]
            own = [
                s.target.id
                for s in node.body
                if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name)
            ]
            fields[node.name] = tuple(dict.fromkeys([*inherited, *own]))
            methods = [s for s in node.body if isinstance(s, ast.FunctionDef | ast.AsyncFunctionDef)]
            for method in methods:
                _add_signature(out, f"{node.name}.{method.name}", method)
            known = all(ast.unparse(b) in (*fields, "ABC", "Enum", "object") for b in node.bases)
            if known and fields[node.name] and all(m.name != "__init__" for m in methods):
                out[f"{node.name}.__init__"] = fields[node.name]
    return out


def _add_signature(out: Signatures, name: str, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    if node.args.kwarg is None:
        arguments = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
        out[name] = tuple(a.arg for a in arguments if a.arg not in ("self", "cls"))


# -- the table -----------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class LearnedHistory:
    """One release: the forms of its functions by file, and the keywords of its entries."""

    files: dict[str, Forms]
    signatures: Signatures


def called_forms(path: str, forms: Forms) -> Forms:
    """Those that a traceback can show: of kernels, the functions that others call."""
    return {name: form for name, form in forms.items() if name[:1] != "_"} if _KERNELS.match(path) else forms


def write_history(folder: Path, learned: Mapping[str, LearnedHistory]) -> tuple[str, ...]:
    """Bring the table up to date; returns the releases that were left as they are.

    The table says where a form begins, not what it is. So a new release is added only where it comes right after the
    newest that is known and that one's source is at hand too; and with the sources of all, the table is made anew.
    """
    table = open_packed(folder / HISTORY_FILE)
    old: list[str] = table.head.get("releases", [])
    given = sort_releases(learned)
    if set(old) <= set(given):
        releases = given
        rows: Rows = {}
        for index in range(len(given)):
            _extend(rows, given, index, learned)
        keywords = _keywords({}, 0, given, learned)
    else:
        new = [r for r in given if release_order(r) > release_order(old[-1])]
        if not new or old[-1] not in learned:
            return tuple(r for r in given if r not in old)
        releases, rows = [*old, *new], _rows(table)
        for index in range(len(old), len(releases)):
            _extend(rows, releases, index, learned)
        known = {
            owner: {k: [list(span) for span in unwritten(text, len(old))] for k, text in of.items()}
            for owner, of in json.loads(table.text("signatures")).items()
        }
        keywords = _keywords(known, len(old), releases, learned)
    _write(folder, releases, rows, keywords)
    return ()


Rows = dict[str, dict[str, tuple[bool, list[list[int]]]]]  # file -> name -> several, spans of forms
Keywords = dict[str, dict[str, list[list[int]]]]


def _extend(rows: Rows, releases: list[str], index: int, learned: Mapping[str, LearnedHistory]) -> None:
    here = learned[releases[index]].files
    before = learned[releases[index - 1]].files if index else {}
    for file, forms in here.items():
        names = rows.setdefault(file, {})
        for name, form in forms.items():
            several, spans = names.get(name, (False, []))
            if spans and spans[-1][1] == index - 1 and before.get(file, {}).get(name) == form:
                spans[-1][1] = index
            else:
                spans.append([index, index])
            names[name] = (several or len(form) > 1, spans)


def _rows(table: Packed) -> Rows:
    count = len(table.head["releases"])
    return {
        file: {name: (several, [list(span) for span in forms]) for name, (several, forms) in names.items()}
        for group, files in table.head["files"].items()
        for file, names in read_group(table.text(group), files, count).items()
    }


def _keywords(
    known: Keywords, start: int, releases: list[str], learned: Mapping[str, LearnedHistory]
) -> Keywords:
    for index in range(start, len(releases)):
        for owner, taken in learned[releases[index]].signatures.items():
            spans_of = known.setdefault(owner, {})
            for keyword in taken:
                spans = spans_of.setdefault(keyword, [])
                if spans and spans[-1][1] == index - 1:
                    spans[-1][1] = index
                else:
                    spans.append([index, index])
    return known


def _write(folder: Path, releases: list[str], rows: Rows, keywords: Keywords) -> None:
    members: dict[str, str] = {}
    files: dict[str, list[str]] = {}
    names: list[str] = []
    histories: list[str] = []
    last = len(releases) - 1

    def close() -> None:
        if names:
            members[f"g{len(members):02}"] = "\n" + "\n".join(names) + "\n\x00" + "\n".join(histories)
            names.clear()
            histories.clear()

    for file in sorted(rows):
        if len(names) > _GROUP:
            close()
        files.setdefault(f"g{len(members):02}", []).append(file)
        there = _written(_together(spans for _, spans in rows[file].values()), last)
        names.append("#")
        histories.append(there)
        for name, (several, spans) in sorted(rows[file].items()):
            text = _written(spans, last)
            names.append(name)
            histories.append(f"{'*' if several else ''}{'' if text == there else text}")
    close()
    members["signatures"] = json.dumps(
        {
            o: {k: _written(spans, last) for k, spans in sorted(of.items())}
            for o, of in sorted(keywords.items())
        },
        separators=(",", ":"),
    )
    write_packed(folder / HISTORY_FILE, {"releases": releases, "files": files}, members)


def _together(found: Iterable[list[list[int]]]) -> list[list[int]]:
    """The releases that any of the spans cover, as spans."""
    covered = sorted({at for spans in found for first, last in spans for at in range(first, last + 1)})
    out: list[list[int]] = []
    for at in covered:
        if out and out[-1][1] == at - 1:
            out[-1][1] = at
        else:
            out.append([at, at])
    return out


def _written(spans: list[list[int]], last: int) -> str:
    text, before = "", -1
    for start, end in spans:
        if before >= 0 and start != before + 1:
            text += "-" + chr(FIRST + before + 1)
        text += chr(FIRST + start)
        before = end
    return text if before == last else text + "-" + chr(FIRST + before + 1)
