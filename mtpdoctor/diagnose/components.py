"""What a frame's code is for, in the words of people who launch servers; for failures that no rule knows.

``knowledge/advice/components.json`` names the parts of SGLang by their paths, the packages that it calls, and the options
that bear on a part.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from mtpdoctor.log.types import Frame
from mtpdoctor.paths import own_knowledge_folder
from mtpdoctor.patterns import lazy

FILE = "advice/components.json"
_TREES = ("sglang/srt/", "sglang/jit_kernel/", "sglang/kernels/", "sglang/multimodal_gen/", "sglang/")
_PACKAGE = lazy(
    r"(?:site|dist)-packages/([A-Za-z0-9_]+)|/([A-Za-z0-9_]+)(?:/[\w.-]+)*/\2(?=/)|/workspace/([a-z]\w+)/"
)
_WORDS = lazy(r"[a-z]+[0-9]*")


def component_of(frame: Frame) -> str:
    """The part of SGLang that the frame lies in; "" for code of others."""
    below = own_path(frame.path)
    words = _by_path(below, "parts")
    if not words:
        return f"SGLang's {below}" if below else ""
    *folders, file = below.split("/")
    name = file.rsplit(".", 1)[0]
    folder = folders[-1] if folders else ""
    return str(words).replace("{name}", folder if name == "__init__" else name).replace("{folder}", folder)


def options_of(frames: Sequence[Frame]) -> Iterator[str]:
    """Destinations of options that bear on what failed: on the part that the innermost frame lies in, and on what the
    functions and files are named after. ``frames``: SGLang's own, the innermost first."""
    if frames:
        yield from _by_path(own_path(frames[0].path), "options") or ()
    known = _table("words")
    for frame in frames:
        file = own_path(frame.path).rsplit("/", 1)[-1].removesuffix(".py")
        for word in _WORDS.findall(f"{frame.function} {file}".lower()):
            yield from known.get(word, ())


def _by_path(below: str, table: str) -> Any:
    found = _table(table)
    part = max((part for part in found if below.startswith(part)), key=len, default="") if below else ""
    return found[part] if part else None


def package_of(frame: Frame) -> str:
    """The package of others that the frame lies in, as it calls itself; "" where the path does not tell."""
    found = _PACKAGE.search(frame.path)
    name = (found[1] or found[2] or found[3]) if found else ""
    return str(_table("packages").get(name, name))


def in_vision(frame: Frame) -> bool:
    """Is the frame in the vision tower, which has an attention and graphs of its own?"""
    return _VISION.search(own_path(frame.path)) is not None


_VISION = lazy(
    r"^srt/(?:layers/attention/vision|multimodal/\w*vit_\w*runner|models/\w*(?:vit|vision|clip|siglip|radio)\w*\.py)"
)


def native_library(text: str) -> str:
    """The library that a line of compiled code names by a file or a word of its own; "" where none is known."""
    return next((str(words) for pattern, words in _table("native").items() if re.search(pattern, text)), "")


def own_path(path: str) -> str:
    """A path below the folder of SGLang's package; "" outside of it."""
    for tree in _TREES:
        at = path.rfind(tree)
        if at >= 0 and "-packages/" not in path[at:]:
            return path[at + len("sglang/") :]
    return ""


@lru_cache(maxsize=4)
def _table(name: str) -> Mapping[str, Any]:
    """Empty where the file is missing or damaged: nothing is named then."""
    try:
        text = (own_knowledge_folder() / FILE).read_text(encoding="utf-8")
        return dict(json.loads(text)[name])
    except (OSError, ValueError, KeyError, TypeError):
        return {}
