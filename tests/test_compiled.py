"""Patterns kept compiled from run to run: the same as compiled anew, and whatever is wrong with the file is no matter."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PATTERNS: list[tuple[str | bytes, int]] = [
    (r"(?P<when>\d+):(?P<rest>.*)", re.S),
    (r"(?i)straße|Größe", 0),
    (rb"[\x00-\x08]+tail$", re.M),
    (r"(?x) a  # remark\n b (?:c|d)+? (?<!x)e", 0),
    (r"\w+(?P<q>['\"]).*?(?P=q)", 0),
]
SHOW = """
import re, sys
from mtpdoctor import compiled
for pattern, flags in {patterns!r}:
    p = compiled.compile_kept(pattern, flags)
    text = {text!r}.encode() if isinstance(pattern, bytes) else {text!r}
    print(p.pattern, p.flags, p.groups, dict(p.groupindex), [m.span() for m in p.finditer(text)])
print(compiled.finding_kept("ab+", len))
print("new" if compiled._new else "kept", file=sys.stderr)
compiled.keep()
"""
TEXT = "12:ab c 'quoted' STRASSE größe\n\x01\x02tail\nabcde"


def start(cache: Path, patterns: list[tuple[str | bytes, int]]) -> subprocess.Popen[str]:
    code = SHOW.format(patterns=[(pattern, int(flags)) for pattern, flags in patterns], text=TEXT)
    environment = {**os.environ, "MTPDOCTOR_CACHE": str(cache)}
    return subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, stdout=-1, stderr=-1, text=True
    )


def show(cache: Path, patterns: list[tuple[str | bytes, int]] = PATTERNS) -> tuple[str, str]:
    """What a process of its own makes of the patterns, and whether all of them were kept."""
    out, how = start(cache, patterns).communicate()
    return out, how.strip()


def kept_file(cache: Path) -> Path:
    (found,) = cache.glob("patterns-*.bin")
    return found


def test_kept_patterns_are_those_compiled_anew(tmp_path: Path) -> None:
    first, how = show(tmp_path)
    assert how == "new"
    again, how = show(tmp_path)
    assert how == "kept"
    assert again == first
    for pattern, flags in PATTERNS:
        text = TEXT.encode() if isinstance(pattern, bytes) else TEXT
        compiled = re.compile(pattern, flags)
        assert f"{[m.span() for m in compiled.finditer(text)]}" in first


@pytest.mark.parametrize("harm", ["half", "empty", "foreign", "other", "flipped", "folder"])
def test_a_file_that_is_not_right_is_made_anew(tmp_path: Path, harm: str) -> None:
    right, _ = show(tmp_path)
    file = kept_file(tmp_path)
    data = file.read_bytes()
    if harm == "half":
        file.write_bytes(data[: len(data) // 2])
    elif harm == "empty":
        file.write_bytes(b"")
    elif harm == "foreign":
        file.write_bytes(b"\x7fELF" + data)
    elif harm == "other":  # of another interpreter
        file.write_bytes(b"9 " + data)
    elif harm == "flipped":
        file.write_bytes(data[:-9] + bytes([data[-9] ^ 0xFF]) + data[-8:])
    elif harm == "folder":
        file.unlink()
        file.mkdir()
    assert show(tmp_path) == (right, "new")
    if harm != "folder":
        assert show(tmp_path) == (right, "kept")


def test_without_a_folder_to_write_to(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert show(tmp_path / "file" / "cache")[1] == "new"


def test_two_processes_at_once_leave_a_whole_file(tmp_path: Path) -> None:
    halves = [PATTERNS[:3], PATTERNS[2:]]
    running = [start(tmp_path, half) for half in halves]
    assert [process.communicate()[1].strip() for process in running] == ["new", "new"]
    assert not list(tmp_path.glob("*.tmp"))
    for half in halves:  # one of them may have overwritten what the other kept; now both are in it
        show(tmp_path, half)
    assert [show(tmp_path, half)[1] for half in halves] == ["kept", "kept"]
