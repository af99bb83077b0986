"""What the text of SGLang's files says of its functions and classes: forms, keywords, lines, gates, changes and members, in one
reading.

A file that is the same in the release before is not read again.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mtpdoctor.patterns import lazy
from mtpdoctor.sglang.gate_lines import FileGates, gates_of
from mtpdoctor.sglang.learn_changes import FileUses, uses_of, write_changes
from mtpdoctor.sglang.learn_gates import LearnedGates, learn_gates, write_gates
from mtpdoctor.sglang.learn_history import (
    Forms,
    LearnedHistory,
    Signatures,
    called_forms,
    forms_of,
    learned_files,
    signatures_of,
    write_history,
)
from mtpdoctor.sglang.learn_lines import Lines, lines_by_function, write_lines
from mtpdoctor.sglang.learn_members import Members, members_of, write_members
from mtpdoctor.sglang.store import sort_releases

if TYPE_CHECKING:
    from mtpdoctor.sglang.source import SourceTree

_NO_SERVER = lazy(r"sglang/(?:test|benchmark|eval|api)/|.*/test")


@dataclass(slots=True)
class FileCode:
    """What is learned of one file."""

    forms: Forms
    signatures: Signatures
    lines: Lines
    gates: FileGates
    uses: FileUses


def code_of(path: str, text: str, dests: frozenset[str]) -> FileCode:
    """Empty for a file that is no Python. ``dests``: the fields of ServerArgs, of all releases."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):  # ValueError: a NUL byte, on older Pythons
        return FileCode({}, {}, {}, FileGates(), {})
    forms = forms_of(tree, text)
    return FileCode(
        called_forms(path, forms),
        signatures_of(path, tree),
        lines_by_function(tree, text, forms),
        gates_of(tree, text, dests),
        uses_of(tree, text),
    )


Known = dict[tuple[str, bytes], FileCode]  # path and digest of the text


def write_code(folder: Path, sources: Mapping[str, SourceTree], dests: frozenset[str]) -> tuple[str, ...]:
    """Bring the tables of functions, lines, gates, changes and members up to date; returns the releases that the history of
    functions could not take (see ``write_history``)."""
    history: dict[str, LearnedHistory] = {}
    lines: dict[str, dict[str, Lines]] = {}
    gates: dict[str, LearnedGates] = {}
    uses: dict[str, dict[str, FileUses]] = {}
    members: dict[str, Members] = {}
    before: Known = {}
    classes: dict[bytes, Members] = {}
    for release in sort_releases(sources):
        files, before = _read(sources[release], dests, before)
        signatures: Signatures = {}
        for code in files.values():
            for owner, taken in code.signatures.items():
                signatures.setdefault(owner, taken)
        history[release] = LearnedHistory({path: code.forms for path, code in files.items()}, signatures)
        lines[release] = {path: code.lines for path, code in files.items()}
        gates[release] = learn_gates({path: code.gates for path, code in files.items()})
        uses[release] = {path: code.uses for path, code in files.items()}
        members[release], classes = _members(sources[release], classes)
    left = write_history(folder, history)
    write_lines(folder, lines)
    write_gates(folder, gates)
    write_changes(folder, uses)
    write_members(folder, members)
    return left


def _read(source: SourceTree, dests: frozenset[str], before: Known) -> tuple[dict[str, FileCode], Known]:
    files: dict[str, FileCode] = {}
    known: Known = {}
    for path in learned_files(source):
        text = source.read(path) or ""
        key = (path, hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=16).digest())
        known[key] = files[path] = before.get(key) or code_of(path, text, dests)
    return files, known


def _members(source: SourceTree, before: dict[bytes, Members]) -> tuple[Members, dict[bytes, Members]]:
    """Of all files of the server and of the one for image and video models. ``before``: by digest of the text."""
    out, known = Members(), {}
    for path in source.files():
        if not path.endswith(".py") or not path.startswith("sglang/") or _NO_SERVER.match(path):
            continue
        text = source.read(path) or ""
        key = hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=16).digest()
        found = before.get(key)
        if found is None:
            try:
                found = members_of(ast.parse(text))
            except (SyntaxError, ValueError):
                found = Members()
        known[key] = found
        out.add(found)
    return out, known
