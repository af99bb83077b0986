"""Text of a failure without what differs from launch to launch: numbers, paths, hosts, ranks, times. Pure."""

from __future__ import annotations

import re

MAX_TEXT = 400  # characters of a message that count

_HEX = r"[0-9a-fA-F]"
_RANK = r"(?:TP|PP|DP|EP|CP|rank|RANK|Rank|GPU|gpu|device|worker|pid|PID|Device|RankID)"  # a number follows
# In this order: what holds colons, slashes and digits goes before plain numbers.
_STEPS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), to)
    for pattern, to in (
        (r"[A-Za-z][A-Za-z0-9+.-]{1,20}://[^\s\"'<>)\]]+", "<url>"),
        (r"\b[\w.+-]+@[\w-]+\.[\w.-]+\b", "<address>"),
        (rf"\b{_HEX}{{8}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{12}}\b", "<id>"),
        (rf"\b(?:{_HEX}{{1,4}}:){{7}}{_HEX}{{1,4}}\b|(?<![\w:])(?:{_HEX}{{1,4}}(?::{_HEX}{{1,4}})*)?::"
         rf"(?:{_HEX}{{1,4}}(?::{_HEX}{{1,4}})*)?(?![\w:])", "<host>"),
        (r"\b\d{1,3}(?:\.\d{1,3}){3}\b", "<host>"),
        (r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?)?", "<time>"),
        (r"\b\d\d:\d\d:\d\d(?:[.,]\d+)?\b", "<time>"),
        (r"\blocalhost\b|\b(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+(?:local|internal|lan|svc|com|net|org|io|cloud|cluster"
         r"|localdomain|corp|intra)\b(?:\.[a-z0-9-]+)*", "<host>"),
        (r"<host>(?:\.(?:local|internal|svc|cluster))+", "<host>"),
        (r"\b[a-z][a-z0-9-]*-[a-f0-9]{8,10}-[a-z0-9]{5}\b", "<host>"),  # a pod of a deployment
        (r"\b(?:ip|gpu|node|host|worker|server|pod|rank|dgx|hgx|n|sn|cn|compute)[-_]?(?:node|host|server|worker)?"
         r"(?:[-_]?\d+)+\b(?:-[a-z0-9]+)*", "<host>"),
        (r"(?<=\[)[A-Za-z][\w.-]*(?=\]:\d)", "<host>"),
        (rf"(?<![\w/])(?!{_RANK}:)[A-Za-z][\w.-]*(?=:\d{{4,5}}\b)", "<host>"),
        (r"\[?<host>\]?(?::\d+)?", "<host>"),
        (r"0x[0-9a-fA-F]+", "#"),
        (rf"\b(?=[a-f]*\d)(?=\d*[a-f]){_HEX}{{7,}}\b", "#"),
        (rf"\b{_RANK}[ :=-]*-?\d+\b", "<rank>"),
        (r"\b(?:cuda|xpu|npu|hip|musa|hpu):\d+", "<rank>"),
        (r"(?:<rank>[ ,]*)+", "<rank> "),
        (r"[-+]?\d+(?:[.,]\d+)*(?:[eE][-+]?\d+)?\s?(?:[KMGTP]i?B|[kMG]?[bB]ytes|bytes|B|ms|us|s|sec|seconds|%)"
         r"(?![\w])", "#"),
        (r"(?<![A-Za-z0-9_])[-+]?\d+(?:[.,]\d+)*(?:[eE][-+]?\d+)?(?![A-Za-z0-9_])", "#"),
        (r"(?<=[.\[(])\d+(?=[.\])])", "#"),  # model.layers.14.mlp
        (r"(?<![A-Za-z0-9])\d+(?=[A-Za-z_])(?!\w*[A-Za-z]\d)", "#"),
        (r"#(?:\s*[x×,]\s*#)+,?", "#"),  # shapes, lists of numbers
        (r"([\[(])\s*#?\s*,?\s*([\])])", r"\1#\2"),
        (r"\(\d+\)", "(#)"),
        (r"\s+", " "),
    )
)  # fmt: skip
# A path is known by two parts at least; its last part says something where it names a kind of file.
_PATH = re.compile(r"(?<![\w<.])(?:~|\.{1,2})?(?:/[\w.@+=%-]+)+/?|(?<![\w])[A-Za-z]:\\[^\s'\"]+")
_TELLING = re.compile(
    r"\.(?:so(?:\.\d+)*|py|json|jinja|safetensors|bin|pt|pth|gguf|model|cu|cuh|cpp|h|yaml|yml|txt|pem|whl)\Z"
)


def normal(text: str) -> str:
    """``text`` with what varies replaced: the same for two launches that failed of the same thing on other
    hosts, ranks, devices, with other sizes, ports, process ids, paths and times. Idempotent."""
    text = text[: 8 * MAX_TEXT]
    for _ in range(4):
        new = _once(text)
        if new == text:
            break
        text = new
    return text[:MAX_TEXT].rstrip()


def _once(text: str) -> str:
    url, rest = _STEPS[0], _STEPS[1:]
    text = _PATH.sub(_path, url[0].sub(url[1], text))
    for pattern, to in rest:
        text = pattern.sub(to, text)
    return text.strip()


def _path(m: re.Match[str]) -> str:
    path = m[0].replace("\\", "/")
    if path.count("/") == 1 and not path.startswith(("~", ".")) and not _TELLING.search(path):
        return m[0]  # "and/or", a request's "/generate"
    last = path.rstrip("/").rpartition("/")[2]
    if not _TELLING.search(last):
        return "<path>"
    return "<path>:" + re.sub(r"\d+(?=[-_.]|$)", "#", last)


_IDENTITY_WORD = re.compile(r"[A-Za-z]")


def normal_capture(name: str, value: str) -> str | None:
    """A capture that tells one failure from another, in a stable form; None where it only varies.

    Flags come without their values, packages without version, layers and experts without number.
    """
    value = value.strip().strip("'\"`.,;: ")
    if name in ("arguments", "required", "flags"):
        flags = re.findall(r"(?<![\w-])--?[A-Za-z][\w-]*", value)
        return " ".join(sorted(dict.fromkeys(flags[:1] if name == "required" else flags))) or None
    if name in ("flag", "option", "argument", "other", "needed"):
        return value.split("/")[0].split("=")[0] or None
    if name in ("package", "module"):
        return re.split(r"[<>=!~\[ ]", value, maxsplit=1)[0] or None
    if name == "library":
        return re.sub(r"\.so(?:\.\d+)*$", ".so", value.rpartition("/")[2]) or None
    if name == "architectures":
        return " ".join(sorted(re.findall(r"\w+", value))) or None
    text = (
        normal(value)
        if not re.fullmatch(r"[\w.:-]{1,60}", value)
        else re.sub(r"(?<=\.)\d+(?=\.)", "#", value)
    )
    return text if _IDENTITY_WORD.search(text.replace("<host>", "").replace("<path>", "")) else None
