"""Which releases have a name that a program imports from SGLang."""

from __future__ import annotations

from pathlib import Path

import pytest

from mtpdoctor.paths import releases_folder
from mtpdoctor.release import parse_release
from mtpdoctor.sglang.dangling import fault_of
from mtpdoctor.sglang.learn_dangling import learn_dangling, write_dangling
from mtpdoctor.sglang.learn_symbols import learn_symbols, write_symbols
from mtpdoctor.sglang.source import FolderSource
from mtpdoctor.sglang.symbols import held, moved_to, read_symbols


def tree(base: Path, **files: str) -> FolderSource:
    for name, text in files.items():
        path = base / (name.replace("__", "/") + ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return FolderSource(base, str(base))


def test_names_of_modules_and_packages(tmp_path: Path) -> None:
    package = tmp_path / "sglang" / "srt" / "utils"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(
        "from .common import *\nfrom sglang.srt.other import passed\nimport os\n"
    )
    source = tree(
        tmp_path,
        sglang__srt__utils__common="LIMIT = 3\nWIDTH: int = 4\ndef helper(): pass\ndef _own(): pass\ntry:\n    class Tool: pass\nexcept E:\n    Tool = None\n",
        sglang__srt__broken="def (",
        sglang__srt__models__qwen="class Model: pass\n",
    )
    learned = learn_symbols(source)
    assert learned["sglang.srt.utils.common"] == ["LIMIT", "Tool", "WIDTH", "helper"]
    assert learned["sglang.srt.utils"] == ["*sglang.srt.utils.common", "passed"]
    assert "sglang.srt.models.qwen" not in learned and "sglang.srt.broken" not in learned


def test_what_is_written_is_read(tmp_path: Path) -> None:
    learned = {
        "0.5.1": {"sglang.a": ["gone", "kept"]},
        "0.5.2": {"sglang.a": ["kept"], "sglang.b": ["new"]},
        "0.5.3": {"sglang.a": ["*sglang.b", "kept", "gone"], "sglang.b": ["new"]},
    }
    write_symbols(tmp_path, learned)
    read = read_symbols(tmp_path)
    assert {r: {m: sorted(n) for m, n in of.items()} for r, of in read.items()} == {
        r: {m: sorted(n) for m, n in of.items()} for r, of in learned.items()
    }
    gone = held(tmp_path, "sglang.a", "gone")
    assert gone is not None and [(str(a), str(b)) for a, b in gone.ranges] == [
        ("0.5.1", "0.5.1"),
        ("0.5.3", "0.5.3"),
    ]
    second = parse_release("0.5.2")
    assert not gone.holds(second)
    assert (str(gone.before(second)), str(gone.after(second))) == ("0.5.1", "0.5.3")
    starred = held(tmp_path, "sglang.a", "new")
    assert starred is not None and str(starred.ranges[0][0]) == "0.5.3"
    assert held(tmp_path, "sglang.b", "nothing") is None
    assert moved_to(tmp_path, "new", second) == ("sglang.b",)


@pytest.mark.parametrize(
    ("module", "name", "first", "last"),
    [
        ("sglang.srt.utils", "maybe_set_triton_cache_manager", "0.4.6", "0.4.9.post3"),
        ("sglang.srt.server_args", "ServerArgs", "0.4.6", None),
        ("sglang", "Engine", "0.4.6", None),
    ],
)
def test_facts_of_the_releases(module: str, name: str, first: str, last: str | None) -> None:
    known = held(releases_folder(), module, name)
    assert known is not None
    assert str(known.ranges[0][0]) == first
    assert known.ranges[-1][1] == (parse_release(last) if last else known.newest)


def test_imports_that_a_release_cannot_fulfil(tmp_path: Path) -> None:
    source = tree(
        tmp_path / "src",
        sglang__srt__a="from sglang.srt.b import has, lacks\nfrom .c import thing\nif TYPE_CHECKING:\n    from sglang.srt.gone import T\n",
        sglang__srt__b="from sglang.srt.d import *\ndef has(): pass\n",
        sglang__srt__d="star = 1\n",
        sglang__srt__e="def f():\n    from sglang.srt.b import star\n    from python.sglang.srt.b import has\n    import os\n",
        sglang__srt__dynamic="def __getattr__(name): pass\n",
        sglang__srt__f="from sglang.srt.dynamic import anything\nfrom sglang.srt import b, zzz\n",
        sglang__srt__broken="def (",
    )
    learned = learn_dangling(source)
    assert learned == [
        ("sglang/srt/a.py", "sglang.srt.b", "lacks"),
        ("sglang/srt/a.py", "sglang.srt.c", ""),
        ("sglang/srt/a.py", "sglang.srt.c", "thing"),
        ("sglang/srt/e.py", "python.sglang.srt.b", ""),
        ("sglang/srt/e.py", "python.sglang.srt.b", "has"),
        ("sglang/srt/f.py", "sglang.srt", "zzz"),
    ]
    write_dangling(tmp_path, {"0.5.1": [], "0.5.2": learned, "0.5.3": learned, "0.5.4": []})
    fault = fault_of(tmp_path, "sglang/srt/a.py", "sglang.srt.b", "lacks")
    assert fault is not None and [str(r) for r in fault.releases] == ["0.5.2", "0.5.3"]
    second = parse_release("0.5.2")
    assert (str(fault.before(second)), str(fault.after(second))) == ("0.5.1", "0.5.4")
    assert fault_of(tmp_path, "sglang/srt/e.py", "python") is not None
    assert fault_of(tmp_path, "sglang/srt/a.py", "sglang.srt.c", "thing") is None  # the module is not there
    assert fault_of(tmp_path, "sglang/srt/b.py", "sglang.srt.b", "lacks") is None
