"""Private parts of paths. Every part of a path is judged and replaced by itself, so that a folder and the
files in it still belong together, and what rules read off a path (its depth, its end, the package it lies in)
stays.

Kept are: folders laid out alike everywhere (``/usr/lib``, ``site-packages``), everything below a Python
package folder, names that look like those of published models (``Qwen3-32B``, ``models--org--name``), usual
file names and endings. Everything else is private: ``/data/acme-ft/run7`` is ``/data/redacted-path-1/redacted-path-2``.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from mtpdoctor.anonymise.tokens import PLACEHOLDER, is_placeholder
from mtpdoctor.anonymise.words import ROUTES, is_model_name, is_public_part
from mtpdoctor.patterns import lazy

Part = Callable[[str], str]  # a private part -> its placeholder

# A path begins at the start, behind a delimiter, or behind a line feed that was written as \n (JSON); not
# behind a word ("and/or"), a number ("3/4") or the host of a URL.
_BEGIN = r"(?:(?<![\w./~%+)\]}<-])|(?<=\\[nrt])|(?<==\.)|(?<=[:@]))"
_PART = r"[\w.@+%~=-]+"
_PATH = lazy(rf"{_BEGIN}(?P<root>(?:~[\w.-]*|\.{{1,2}})?/|file:///)(?P<rest>{_PART}(?:/+{_PART})*/?)")
_WORDS = r"(?:(?!\. )[\w.@+%~= -])+"  # folders may have blanks in their names, between quotes
_QUOTED = lazy(rf"(?<=['\"`])(?P<root>/)(?P<rest>{_WORDS}(?:/{_WORDS})+/?)(?=\\*['\"`])")
_WINDOWS = lazy(r"(?<![\w])(?P<root>[A-Za-z]:\\{1,2})(?P<rest>[\w. +-]+(?:\\{1,2}[\w.+-]+)+)")
_BUCKET = lazy(
    r"\b(?P<root>(?:s3|gs|gcs|oss|hdfs|abfss?|wasbs?|r2|cos|obs|az|azure|nfs|ceph|juicefs|swift|minio)://)(?P<rest>[^\s'\"`,;)\]}<>?#\\]+)"
)
_PLACE = lazy(
    r"(?P<head>(?:--(?:[a-z]+-)*(?:model|tokenizer|path|dir|folder|file|root|template|keyfile|certfile|cache|config)|\b\w*(?:_path|_dir|_file|_folder"
    r"|_root|_template|_home|_HOME|_DIR|_PATH|_CACHE))(?:\\*[\"'])?(?:=|:[ \t]*|[ \t]+|,[ \t]*)(?:\\*[\"'])?)(?P<root>/)(?P<rest>[\w.@+%~-]+)(?![\w./@+%~-])"
)
_PACKAGES = frozenset(("site-packages", "dist-packages"))
_SOURCE = lazy(
    r"(?:sglang|sgl_kernel|sgl-kernel|torch|transformers|triton|flashinfer|vllm|uvicorn|fastapi|huggingface_hub|safetensors|ray|xgrammar|aiter|pytorch|nccl|gloo)$"
)
_INSIDE = frozenset(("srt", "jit_kernel", "lang", "python", "layers", "multimodal_gen"))
_CODE = lazy(r"[^.]*(?:\.\w+)*?\.(?:py|pyc|so[\d.]*|cu|cuh|cc|cpp|h|hpp|c|ptx|pyx)(?: \(deleted\))?$")
_PYTHON = lazy(r"python3(?:\.\d+)?t?$")
_ENDING = lazy(r"(?:\.(?:safetensors|index\.json|gguf|json|jsonl|jinja|jinja2|yaml|yml|toml|txt|log|py|sh|bin|pt|pth|pem|key|crt|model|so|csv|parquet"
               r"|tar|gz|zst|zip|db|sock|pid|lock|conf|service|env))+$")  # fmt: skip


def single_parts(text: str) -> set[str]:
    """Folders right below the root that ``text`` uses as paths (``--model-path /llm``): elsewhere ``/llm`` alone
    could as well be a route of an API."""
    return {m["rest"] for m in _PLACE.finditer(text) if m["rest"] not in ROUTES} if "/" in text else set()


def redact_paths(
    text: str, put: Part, hide_models: bool = False, singles: frozenset[str] = frozenset()
) -> str:
    """``text`` with the private parts of its paths replaced. ``singles``: of ``single_parts``."""

    def change(m: re.Match[str]) -> str:
        rest = m["rest"]
        tail = ""
        if rest.endswith((".", "..", "=")) and not rest.endswith("/.."):
            cut = len(rest.rstrip(".="))
            rest, tail = rest[:cut], rest[cut:]
        head = m.groupdict().get("head") or ""
        return f"{head}{m['root']}{_parts(rest, put, hide_models, bool(head) or rest in singles)}{tail}"

    def windows(m: re.Match[str]) -> str:
        parts = re.split(r"(\\+)", m["rest"])
        parts[::2] = _split(parts[::2], put, hide_models)
        return m["root"] + "".join(parts)

    def bucket(m: re.Match[str]) -> str:
        first, slash, rest = m["rest"].partition("/")
        head = first if is_placeholder(first) else put(first)
        return (
            m["root"] + head + slash + ("/".join(_split(rest.split("/"), put, hide_models)) if rest else "")
        )

    if "://" in text:
        text = _BUCKET.sub(bucket, text)
    if "/" in text:
        text = _QUOTED.sub(change, text)
        text = _PATH.sub(change, text)
        text = _PLACE.sub(change, text)
    if ":\\" in text:
        text = _WINDOWS.sub(windows, text)
    return text


def _parts(rest: str, put: Part, hide_models: bool, named: bool) -> str:
    parts = re.split(r"(/+)", rest)
    names = parts[::2]
    if not named and (names[0] in ROUTES or len([n for n in names if n]) < 2):
        return rest  # "/generate" is a route; a single word behind a slash says little
    parts[::2] = _split(names, put, hide_models)
    return "".join(parts)


def _split(names: list[str], put: Part, hide_models: bool) -> list[str]:
    kept = _kept_from(names)
    out = []
    for i, name in enumerate(names):
        if i >= kept or not name or PLACEHOLDER.search(name):
            out.append(name)
        elif is_model_name(name):
            out.append(put(name) if hide_models else name)
        elif is_public_part(name) or (
            "=" in name and i == len(names) - 1
        ):  # E=256,N=64,device_name=... of a kernel's file
            out.append(name)
        else:
            out.append(_private(name, put))
    return out


def _private(name: str, put: Part) -> str:
    """A placeholder, and the name's ending."""
    ending = _ENDING.search(name)
    stem = name[: ending.start()] if ending and ending.start() else name
    return put(stem) + name[len(stem) :]


def _kept_from(names: list[str]) -> int:
    """The index from which on a path is that of a package's own code."""
    for i, name in enumerate(names):
        if name in _PACKAGES:
            return i
        if _PYTHON.match(name) and i and names[i - 1] in ("lib", "lib64"):
            return i
        following = names[i + 1] if i + 1 < len(names) else ""
        if _SOURCE.match(name) and (following in _INSIDE or (following and _CODE.match(names[-1]))):
            return i
        if name in ("csrc", "cpp", "ATen") and following and _CODE.match(names[-1]):
            return i
    return len(names)
