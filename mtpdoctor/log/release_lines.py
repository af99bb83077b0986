"""The release of SGLang as a line names it: packages, wheels, images, files of containers, lists of versions."""

from __future__ import annotations

from mtpdoctor.patterns import lazy

_RELEASE = r"v?(\d+\.\d+\.\d+(?:\.?(?:post|rc|dev)\d+)*)(?![\w.]*\d)"

_RELEASES = tuple(
    lazy(p)
    for p in (
        rf"\bsglang(?:\[[\w,]*\])?\s*==\s*{_RELEASE}",
        rf"\bsglang-{_RELEASE}(?:\+\w+)?\.(?:dist-info|egg-info|tar\.gz)",
        rf"\bsglang-{_RELEASE}-py3",
        rf"lmsysorg/sglang(?:-[a-z0-9]+)*(?::|\S*/sglang:){_RELEASE}",
        rf"(?<!ai-dynamo)/sglang(?:-[a-z0-9]+)*:{_RELEASE}",  # Dynamo counts its images by its own releases
        r"\bsglang(?:[-_][a-z]+)*[-_+:]v?(\d+\.\d+\.\d+(?:\.?(?:post|rc|dev)\d+)?)(?![.]?\d)[\w.+-]*\.(?:sif|sqsh|squashfs|simg|tar)\b",
        rf"(?i)\bsglang[ _]version[:= '\"]+{_RELEASE}",
        rf"^\s*sglang:\s+{_RELEASE}(?:\+[\w.]+)?\s*$",
        rf"^sglang\s+{_RELEASE}(?:\+[\w.]+)?(?:\s|$)",
        rf"(?i)\bInstalled sglang\s+{_RELEASE}",
        rf"Successfully installed .*\bsglang-{_RELEASE}(?:\s|$)",
    )
)


def release_in(text: str) -> str | None:
    """The SGLang release that the text names, None when it names none."""
    for pattern in _RELEASES:
        m = pattern.search(text)
        if m and not m[1].startswith("0.0.0"):  # what a checkout without tags calls itself
            return m[1]
    return None
