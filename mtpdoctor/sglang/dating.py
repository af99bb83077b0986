"""Which release a log is from, as a range with the reasons, when nothing says it outright."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from mtpdoctor.paths import releases_folder
from mtpdoctor.patterns import lazy
from mtpdoctor.records import dataclass
from mtpdoctor.release import Release, release_or_none
from mtpdoctor.sglang.frames import releases_of_frames
from mtpdoctor.sglang.releases import known_releases
from mtpdoctor.sglang.store import read_table, release_order

# The rest of an image's file name after "sglang", as enroot and apptainer write them
IMAGE_FILE = (
    r"(?:[-_][a-z]+)*[-_+:]v?(?P<v>\d+\.\d+\.\d+(?:\.?(?:post|rc|dev)\d+)?)(?![.]?\d)[\w.+-]*"
    r"\.(?:sif|sqsh|squashfs|simg|tar)\b"
)
# Lines that name the release: pip and image names, server info, package lists, wheel and dist-info paths.
_VERSION_LINES = (
    lazy(r"\bsglang(?:\[[\w,]+\])?\s*==\s*(?P<v>\d+\.\d+[\w.]*)"),
    lazy(r"\bsglang[ -]v?(?P<v>\d+\.\d+\.\d+[\w.]*?)(?=-py3|-cp3|\.dist-info|[\s,)\]'\"]|$)"),
    lazy(r"\bsglang(?:_version|[ _]version)?['\"]?\s*[:=]\s*['\"]?v?(?P<v>\d+\.\d+\.\d+[\w.]*)", re.I),
    lazy(r"\b(?:lmsysorg/)?sglang(?:-[a-z0-9]+)*:v?(?P<v>\d+\.\d+\.\d+(?:\.?(?:post|rc|dev)\d+)?)"),
    lazy(rf"\bsglang{IMAGE_FILE}"),
    lazy(r"\bSGLang\s+v?(?P<v>\d+\.\d+\.\d+(?:\.?(?:post|rc|dev)\d+)?)\b"),
)
_KERNEL = lazy(r"\b(?P<name>sgl[-_]kernel|sglang[-_]kernel)\s*(?:==|-|\s)\s*v?(?P<v>\d+\.\d+[\w.]*)")
# What counts in a line of arguments: whole strings (or one that is cut off), brackets, commas, "=".
_SIGNS = lazy(
    r"""'[^'\\]*(?:\\.[^'\\]*)*'|"[^"\\]*(?:\\.[^"\\]*)*"|['"].*|[(\[{<>}\]),=]""",
    re.S,
)


@dataclass(frozen=True, slots=True)
class Dating:
    """Known releases the evidence allows, oldest first (empty: it decides nothing), and why."""

    releases: tuple[Release, ...]
    reasons: tuple[str, ...]

    @property
    def release(self) -> Release | None:
        """The one release, when only one is left."""
        return self.releases[0] if len(self.releases) == 1 else None

    @property
    def text(self) -> str:
        if not self.releases:
            return "unknown"
        first, last = self.releases[0], self.releases[-1]
        return str(first) if first == last else f"{first} to {last}"


def version_in(text: str) -> Release | None:
    """The SGLang release a line names outright, None when it names none."""
    if "sglang" not in text.lower():
        return None
    for pattern in _VERSION_LINES:
        match = pattern.search(text)
        release = release_or_none(match["v"].rstrip(".")) if match else None
        # 0.0.0.dev13972 is what a checkout without tags calls itself: no release, and none of the oldest.
        if release is not None and release.major == 0 and (release.minor or release.micro):
            return release
    return None


def argument_fields(line: str) -> tuple[tuple[str, ...], bool]:
    """Field names of a ``server_args=ServerArgs(...)`` line, and whether the line is complete.

    Values are skipped as Python literals are written: quotes and brackets inside them do not confuse.
    """
    start = line.find("ServerArgs(")
    if start < 0:
        return (), False
    names: list[str] = []
    depth, token_start = 0, start + len("ServerArgs(")
    for sign in _SIGNS.finditer(line, token_start):
        char = sign[0]
        if char in "([{<":
            depth += 1
        elif char in ")]}>":
            depth -= 1
            if depth < 0:
                return tuple(names), True
        elif depth == 0 and char == ",":
            token_start = sign.end()
        elif depth == 0 and char == "=":
            name = line[token_start : sign.start()].strip()
            if name.isidentifier():
                names.append(name)
    return tuple(names), False


def by_fields(fields: Iterable[str], complete: bool) -> tuple[Release, ...]:
    """Releases whose ``ServerArgs`` has exactly these fields; of those that have them all when the line
    was cut. Where no release fits (a patched build), the ones that come closest."""
    seen = frozenset(fields)
    if len(seen) < 3:
        return ()
    releases = known_releases()
    table = read_table(releases_folder() / "flags.json")["fields"]
    position = {str(release): i for i, release in enumerate(releases)}
    # By how much each release has more than the one before it: fields of the line, and fields that the line lacks.
    shared, extra = [0] * (len(releases) + 1), [0] * (len(releases) + 1)
    for name, spans in table.items():
        if name in seen:
            counted = shared
        elif name not in _HIDDEN:
            counted = extra
        else:
            continue
        for first, last, _ in spans:  # one after the other, never over each other
            counted[position[first]] += 1
            counted[position[last] + 1 if last else -1] -= 1
    cost, has, more = [], 0, 0
    for plus_shared, plus_extra in zip(shared[:-1], extra[:-1], strict=True):
        has, more = has + plus_shared, more + plus_extra
        cost.append((len(seen) - has) * 2 + (more if complete else 0))
    best = min(cost)
    if best > len(seen) // 4:
        return ()
    return tuple(r for r, c in zip(releases, cost, strict=True) if c == best)


# Never printed by ServerArgs.__repr__ (secrets), though fields.
_HIDDEN = frozenset({"watermark_key", "watermark_key_b", "watermark_config"})


def by_packages(packages: Mapping[str, str]) -> tuple[Release, ...]:
    """Releases that pin these versions (distribution -> version; only kernel packages say anything)."""
    pins = read_table(releases_folder() / "pins.json")["pins"]
    allowed = set(known_releases())
    spoke = False
    for name, version in packages.items():
        key = re.sub(r"[-_.]+", "-", name).lower()
        if key not in ("sgl-kernel", "sglang-kernel"):
            continue
        spans = [(s, e) for s, e, spec in pins.get(key, ()) if not version or spec == f"=={version}"]
        if not spans:
            continue
        spoke = True
        allowed = {
            r
            for r in allowed
            if any(release_order(s) <= r and (e is None or r <= release_order(e)) for s, e in spans)
        }
    return tuple(sorted(allowed)) if spoke else ()


def kernel_packages(text: str) -> dict[str, str]:
    """Kernel packages with versions that a line names (``sgl-kernel==0.3.21``)."""
    return {m["name"]: m["v"].rstrip(".") for m in _KERNEL.finditer(text)}


def date_by_frames(frames: Iterable[tuple[str, int, str]]) -> frozenset[str]:
    """Releases in which every frame ``(path, line, function)`` can stand; empty when nothing is known."""
    return releases_of_frames(releases_folder(), frames)[0]


def date(
    *,
    version: Release | None = None,
    server_args: str | None = None,
    frames: Sequence[tuple[str, int, str]] = (),
    packages: Mapping[str, str] | None = None,
    usage: Iterable[str] = (),
    unknown: Sequence[str] = (),
    ambiguous: str | None = None,
) -> Dating:
    """Combine what a log shows. A release named outright decides; else the ``server_args`` line, a usage
    text (its lines), frames and kernel packages narrow the range, each only as far as it leaves something.

    ``unknown``, ``ambiguous``: flags that the parser refused as such; they narrow what a usage text leaves.
    """
    if version is not None:
        return Dating((version,), (f"the log names SGLang {version}",))
    left: tuple[Release, ...] = known_releases()
    reasons: list[str] = []

    def narrow(found: Iterable[Release], reason: str) -> None:
        nonlocal left
        kept = tuple(r for r in left if r in set(found))
        if kept and len(kept) < len(left):
            left = kept
            reasons.append(reason)

    if server_args:
        fields, complete = argument_fields(server_args)
        found = by_fields(fields, complete)
        shown = f"the {len(fields)} fields of server_args"
        narrow(found, f"{shown} are those of {_range(found)}" if found else "")
    if usage:
        from mtpdoctor.sglang.usage import flags_of_usage, releases_of_usage

        listed = flags_of_usage(usage)
        by_usage = releases_of_usage(listed, unknown, ambiguous)
        said = _range(by_usage.releases)
        narrow(
            by_usage.releases,
            f"the {len(listed)} flags of the usage text are those of {said}"
            if by_usage.whole
            else f"of the releases that refuse {', '.join(unknown) or ambiguous}, {said} have the most of the "
            f"{len(listed)} flags that the log shows of the usage text"
            if unknown or ambiguous
            else f"{said} have the {len(listed)} flags that the log shows of the usage text",
        )
    if frames:
        texts, used = releases_of_frames(releases_folder(), frames)
        releases = sorted(map(release_order, texts))
        narrow(releases, f"{', '.join(used[-2:])}: such lines are in {_range(releases)}" if releases else "")
    if packages:
        found = by_packages(packages)
        named = ", ".join(f"{n} {v}".strip() for n, v in packages.items())
        narrow(found, f"{named} is what {_range(found)} asks for" if found else "")
    return Dating(left if reasons else (), tuple(reasons))


def _range(releases: Sequence[Release]) -> str:
    if not releases:
        return ""
    return str(releases[0]) if len(releases) == 1 else f"{releases[0]} to {releases[-1]}"
