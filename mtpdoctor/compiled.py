"""Regular expressions as the interpreter compiled them, kept from run to run.

A small ``diagnose`` needs a hundred and thirty patterns, and compiling them would be a tenth of it. Their
compiled code is data: a list of numbers that only this very interpreter understands. It is kept in the user's
cache folder under the interpreter's name, along with what was found out about a pattern (``finding_kept``); the
file names the interpreter in full, and a checksum covers the rest. Whatever is wrong with the file, or with what
the interpreter makes of it, the pattern is compiled as ever.
"""

from __future__ import annotations

import _sre
import contextlib
import importlib
import marshal
import os
import re
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, AnyStr

from mtpdoctor.paths import cache_folder

_FORMAT = 5
_KEPT = 600  # patterns, those used last; several logs' worth, and still read in a fraction of a millisecond

_Key = tuple[str | bytes, int]  # pattern, flags as asked for
_Entry = tuple[int, bytes, int, dict[str, int], tuple[Any, ...]]  # what ``_sre.compile`` takes

_Findings = dict[str, Any]  # by pattern

_kept: tuple[dict[_Key, _Entry], _Findings] | None = None  # of the file; None: not read yet
_used: dict[_Key, re.Pattern[Any]] = {}  # of this run, in order of first use
_found: _Findings = {}  # of this run
_new = False  # something of this run is not in the file


def compile_kept(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """``re.compile``, from what an earlier run kept where there is such. Raises ``re.error`` as that does."""
    global _new
    key = (pattern, int(flags))
    compiled = _used.get(key)
    if compiled is not None:
        return compiled
    entry = _file_content()[0].get(key)
    if entry is not None:
        compiled = _restored(pattern, entry)
    if compiled is None:
        _new = True
        compiled = re.compile(pattern, flags)
    _used[key] = compiled
    return compiled


def finding_kept(pattern: str, find: Callable[[str], Any]) -> Any:
    """What ``find``, always the same function, finds out about a pattern: plain data, as an earlier run kept it or
    anew."""
    global _new
    if pattern not in _found:
        findings = _file_content()[1]
        if pattern in findings:
            _found[pattern] = findings[pattern]
        else:
            _new = True
            _found[pattern] = find(pattern)
    return _found[pattern]


def keep() -> None:
    """Write the file anew where this run has something that is not in it. Raises nothing: it is never needed."""
    if not _new:
        return
    with contextlib.suppress(Exception):  # no folder, a full disk, an interpreter of another make
        kept, findings = _read()  # another run may have written since
        entries = {key: kept.get(key) or _entry(*key) for key in _used}
        _write((_first(entries, kept), _first(_found, findings)))


def _first(own: dict[Any, Any], older: dict[Any, Any]) -> dict[Any, Any]:
    """Those of this run, then older ones, as many as are kept."""
    return dict(list((own | {key: value for key, value in older.items() if key not in own}).items())[:_KEPT])


def _file_content() -> tuple[dict[_Key, _Entry], _Findings]:
    global _kept
    if _kept is None:
        _kept = _read()
    return _kept


def _restored(pattern: AnyStr, entry: _Entry) -> re.Pattern[AnyStr] | None:
    try:
        flags, code, groups, index, names = entry
        made: re.Pattern[AnyStr] = _sre.compile(
            pattern, flags, memoryview(code).cast("I").tolist(), groups, index, names
        )
    except Exception:  # code that this interpreter refuses
        return None
    return made


def _entry(pattern: str | bytes, flags: int) -> _Entry:
    """The compiled form, made in the same steps as in the standard library's ``re._compiler.compile``."""
    moved = sys.version_info >= (3, 11)  # deprecated under the old names since
    parser: Any = importlib.import_module("re._parser" if moved else "sre_parse")
    compiler: Any = importlib.import_module("re._compiler" if moved else "sre_compile")
    tree = parser.parse(pattern, flags)
    code: list[int] = compiler._code(tree, flags)
    state = tree.state
    names = [None] * state.groups
    for name, number in state.groupdict.items():
        names[number] = name
    numbers = b"".join(number.to_bytes(4, sys.byteorder) for number in code)
    return flags | state.flags, numbers, state.groups - 1, dict(state.groupdict), tuple(names)


def _interpreter() -> bytes:
    return f"{_FORMAT} {_sre.MAGIC} {_sre.CODESIZE} {sys.byteorder} {sys.version}".replace("\n", " ").encode()


def _file() -> Path:
    return cache_folder() / f"patterns-{sys.implementation.cache_tag}.bin"


def _read() -> tuple[dict[_Key, _Entry], _Findings]:
    try:
        path = _file()
        if not path.is_file():  # nothing there, or a pipe or device, which never ends
            return {}, {}
        data = path.read_bytes()
        interpreter, checksum, body = data.split(b"\n", 2)
        if interpreter == _interpreter() and int(checksum, 16) == zlib.crc32(body):
            entries, findings = marshal.loads(body)
            if isinstance(entries, dict) and isinstance(findings, dict):
                return entries, findings
    except Exception:  # no file, no folder, a damaged or foreign file
        pass
    return {}, {}


def _write(content: tuple[dict[_Key, _Entry], _Findings]) -> None:
    path = _file()
    body = marshal.dumps(content)
    partial = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_bytes(_interpreter() + b"\n%08x\n" % zlib.crc32(body) + body)
        os.replace(partial, path)
    except OSError:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)
