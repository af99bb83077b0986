"""Showing a launch command: cut into units, wrapped so that it can be pasted, compared with another."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mtpdoctor.launch.types import Edit, EditOp
from mtpdoctor.patterns import lazy
from mtpdoctor.text import width

_WORD = lazy(
    r"""(?:'[^']*(?:'|\Z)|"(?:\\.|[^"\\])*(?:"|\Z)|\$\((?:[^()]|\([^()]*\))*\)|`[^`]*`|\\.|[^\s'"\\`])+""",
    re.DOTALL,
)
_ASSIGNMENT = lazy(r"[A-Za-z_]\w*=")


def words(command: str) -> list[str]:
    """The shell words of ``command`` as they are written, quotes and all; line continuations are gone."""
    return _WORD.findall(command.replace("\\\r\n", " ").replace("\\\n", " "))


def units(command: str) -> list[str]:
    """Words grouped so that a flag stands with its values; assignments and the program are units too."""
    out: list[list[str]] = []
    program_done = False
    for word in words(command):
        is_flag = word.startswith("-") and len(word) > 1 and not word[1].isdigit() and word != "-m"
        program_done = program_done or is_flag
        starts = not out or is_flag
        if not program_done and (_ASSIGNMENT.match(word) or _ASSIGNMENT.match(out[-1][0] if out else "")):
            starts = True
        if starts:
            out.append([word])
        else:
            out[-1].append(word)
    return [" ".join(unit) for unit in out]


def wrapped(command: str, columns: int) -> list[str]:
    """Lines to paste into a shell, broken with a backslash between units (between words where a unit
    alone is too long; a single long word stays whole). A command of several lines that is not one
    continued line is left as it is."""
    if "\n" in command.replace("\\\r\n", "").replace("\\\n", "").strip():
        return command.strip("\n").split("\n")
    lines: list[str] = []
    current = ""
    for unit in units(command):
        for piece in [unit] if width(unit) + 4 <= columns else words(unit):
            if not current:
                current = piece
            elif width(current) + 1 + width(piece) + 2 <= columns:
                current = f"{current} {piece}"
            else:
                lines.append(current + " \\")
                current = "  " + piece
    return [*lines, current] if current else lines


_AROUND = ("docker", "podman", "nerdctl", "srun", "apptainer", "singularity")


def diff(old: str | None, new: str | None, edits: Sequence[Edit]) -> list[tuple[str, str]]:
    """What changes, as ("-" | "+", unit) pairs: old and new of one flag beside each other.

    From the two commands where they are of one form, else from the edits.
    """
    if old and new:
        changes = _compare(units(old), units(new))
        if any(
            sign == "+" and unit.startswith(_AROUND) for sign, unit in changes
        ):  # around the server's own command
            named = {edit.name for edit in edits}
            changes = [c for c in changes if c[1][:2] == "--" and (c[0] == "-" or _name(c[1]) in named)]
        if changes and len(changes) <= 2 * len(edits) + 2:
            return changes
    return [_as_change(edit) for edit in edits]


def _compare(old: list[str], new: list[str]) -> list[tuple[str, str]]:
    before, after = [_normal(u) for u in old], [_normal(u) for u in new]
    removed = [u for u, n in zip(old, before, strict=True) if n not in after]
    added = [u for u, n in zip(new, after, strict=True) if n not in before]
    changes: list[tuple[str, str]] = []
    for unit in removed:
        changes.append(("-", unit))
        for other in added:
            if _name(other) == _name(unit):
                changes.append(("+", other))
                added.remove(other)
                break
    return changes + [("+", unit) for unit in added]


def _name(unit: str) -> str:
    return re.split(r"[=\s]", unit, maxsplit=1)[0]


def _normal(unit: str) -> str:
    """For comparison: quotes gone, ``--flag=value`` as ``--flag value``."""
    bare = re.sub(r"['\"\\]", "", unit)
    return bare.replace("=", " ", 1) if bare.startswith("-") else bare


def _as_change(edit: Edit) -> tuple[str, str]:
    if edit.op in (EditOp.REMOVE, EditOp.UNSET):
        return "-", edit.name
    if edit.op is EditOp.ENV:
        return "+", f"{edit.name}={edit.value or ''}"
    if edit.op in (EditOp.SET, EditOp.ADD):
        return "+", " ".join(p for p in (edit.name, edit.value) if p)
    return "+", str(edit)  # containers: "shm-size 16g"
