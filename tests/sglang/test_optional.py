"""Names that a file has only where a package is there, read from sources and looked up by release."""

from __future__ import annotations

from pathlib import Path

from mtpdoctor.paths import releases_folder
from mtpdoctor.release import parse_release
from mtpdoctor.sglang.learn_optional import learn_optional, write_optional
from mtpdoctor.sglang.optional import optional_in
from mtpdoctor.sglang.source import open_source

TEXT = """\
import os
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    import typed
if _is_cuda or _is_hip:
    from kernels import on_gpu
else:
    import other
try:
    import lazy_one as short
except ImportError as e:
    short = e
try:
    from strict import thing
except ImportError:
    raise RuntimeError
try:
    from fast import op
except Exception:
    def op(): ...
both = None
try:
    from maybe import both
except ImportError:
    pass
"""


def test_what_is_there_under_a_condition(tmp_path: Path) -> None:
    file = tmp_path / "src" / "sglang" / "srt" / "a.py"
    file.parent.mkdir(parents=True)
    file.write_text(TEXT)
    (file.parent / "server_args.py").write_text("")
    (tmp_path / "src" / "sglang" / "version.py").write_text('__version__ = "0.5.2"\n')
    learned = learn_optional(open_source(str(tmp_path / "src")))
    assert learned == [
        ("sglang/srt/a.py", "both", "maybe|try"),
        ("sglang/srt/a.py", "on_gpu", "kernels|_is_cuda _is_hip"),
        ("sglang/srt/a.py", "other", "other|not__is_cuda not__is_hip"),
        ("sglang/srt/a.py", "short", "lazy_one|try"),
    ]
    write_optional(tmp_path, {"0.5.1": [], "0.5.2": learned})
    found = optional_in(tmp_path, "sglang/srt/a.py", "short", parse_release("0.5.2"))
    assert found is not None and found.tried and found.package == "lazy_one"
    assert optional_in(tmp_path, "sglang/srt/a.py", "short", parse_release("0.5.1")) is None
    assert optional_in(tmp_path, "sglang/srt/a.py", "short", None) == found
    assert optional_in(tmp_path, "sglang/srt/a.py", "thing", None) is None


def test_facts_of_the_releases() -> None:
    file = "sglang/srt/layers/attention/nsa/nsa_indexer.py"
    found = optional_in(releases_folder(), file, "deep_gemm", parse_release("0.5.9"))
    assert (
        found is not None and found.package == "deep_gemm" and found.tried and "_is_cuda" in found.conditions
    )
