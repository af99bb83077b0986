"""The release of SGLang, as somebody asked for it beside the log or wrote it down."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mtpdoctor.log.types import Line, Observation
from mtpdoctor.patterns import lazy

_RELEASE = r"v?(0\.\d+\.\d+(?:\.?(?:post|rc|dev)\d+)?)(?:\+[\w.]+)?"
_SHOW = lazy(r"\bpip3? show ([^|;&]*)(.*)")
_BARE = lazy(rf"^\(?'?{_RELEASE}'?,?\)?\s*$")
_VERSION = lazy(rf"^Version: {_RELEASE}\s*$")
# A person's list of the environment: "- SGLang: 0.5.9 (docker)", "**SGLang version**: v0.5.9", "| sglang | 0.5.9 |".
_LISTED = lazy(
    rf"(?i)^[\s>*•|-]*[*`]{{0,2}}sglang(?: version)?[*`]{{0,2}}(?:\s*[:=|]|\s)[\s*`]*{_RELEASE}[*`]{{0,2}}(?=\s*$|\s*[|(,;])"
)
_ASKS = ("sglang.__version__", "sglang --version", "version('sglang')", 'version("sglang")')


def asked(lines: Sequence[Line]) -> Iterator[Observation]:
    """``pip show sglang`` (or what grep leaves of it), ``sglang.__version__`` and their answers."""
    about: str | None = None  # the distribution that the next "Version:" is of
    bare = False  # a line of nothing but a version answers
    for line in lines:
        body = line.body.strip()
        if (shown := _SHOW.search(body)) is not None:
            names = [word for word in shown[1].split() if not word.startswith("-")]
            about, bare = names[0] if len(names) == 1 else None, "awk" in shown[2] or "cut" in shown[2]
            bare = bare and about == "sglang"
        elif body.startswith("Name: "):
            about = body[6:].strip()
        elif about == "sglang" and (found := _VERSION.match(body)) is not None:
            yield Observation("release", found[1], line)
            about, bare = None, False
        elif any(ask in body for ask in _ASKS):
            about, bare = None, True
        elif bare and (found := _BARE.match(body)) is not None:
            yield Observation("release", found[1], line)
            bare = False
        elif bare and body and "arning" not in body and not body.startswith(("import ", "warnings")):
            bare = False


def listed(lines: Sequence[Line]) -> Iterator[Observation]:
    """A line of an environment that somebody wrote down."""
    for line in lines:
        if "glang" in line.body.lower() and (found := _LISTED.match(line.body)) is not None:
            yield Observation("release", found[1], line)
