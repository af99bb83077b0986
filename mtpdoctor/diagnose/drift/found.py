"""Packages of another version than this SGLang, or another package of the log, asks for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mtpdoctor.case import Case
from mtpdoctor.facts import Source
from mtpdoctor.paths import releases_folder
from mtpdoctor.patterns import lazy
from mtpdoctor.records import dataclass
from mtpdoctor.release import release_or_none
from mtpdoctor.sglang.releases import release_facts
from mtpdoctor.sglang.store import read_table
from mtpdoctor.sglang.torch_versions import anywhere, asked_by_torch

PUBLISHED = ("sglang-kernel", "sgl-kernel")  # on the package index, for NVIDIA's GPUs
KERNELS = (*PUBLISHED, "sgl-kernel-cpu", "sglang-kernel-cpu")
FLASHINFER_PARTS = ("flashinfer-cubin", "flashinfer-jit-cache")
_PACKAGE = "host.package."
_CUBIN = lazy(
    r"""\bpip3? install\b[^#\n]*?(?P<quote>['"]?)\bflashinfer-cubin==(?P<version>[\w.]+)(?P=quote)(?=\s|$)"""
)


@dataclass(frozen=True, slots=True)
class Drift:
    """``name`` is there as ``have`` (``where``: file and line), and ``owner`` asks for ``spec`` (``asked_where``: the log's line,
    None where it is known of the package itself). ``owner`` is a distribution, "sglang" too; ``owner_version`` may be ""."""

    name: str
    have: str
    where: str
    spec: str
    owner: str
    owner_version: str
    asked_where: str | None = None
    why: str = "asks"  # asks | built: the owner was compiled against that version

    @property
    def asker(self) -> str:
        owner = "SGLang" if self.owner == "sglang" else self.owner
        return f"{owner} {self.owner_version}".strip()

    @property
    def far(self) -> bool:
        """More than a repair of the same version lies between: interfaces rarely change in those."""
        parts = 3 if self.have.startswith("0.") else 2
        return self.exact is None or self.have.split(".")[:parts] != self.exact.split(".")[:parts]

    @property
    def exact(self) -> str | None:
        """The one version that is asked for; None where it is a range."""
        return self.spec[2:] if self.spec.startswith("==") and "," not in self.spec else None


def drifts_of(case: Case) -> tuple[Drift, ...]:
    """What the log's own words ask first, then what the packages shown are known to ask, then SGLang's pins."""
    have = packages_shown(case)
    if not have:
        return ()
    found: dict[str, list[Drift]] = {}
    for drift in (
        *_asked_in_log(case, have),
        *_built_for(case, have),
        *_beside_ascend(have),
        *_beside_flashinfer(have),
        *_asked_by_torch(case, have),
        *_pinned(case, have),
    ):
        known = found.setdefault(drift.name, [])
        if all(d.owner != drift.owner for d in known):
            known.append(drift)
    return tuple(d for several in found.values() for d in several)


def packages_shown(case: Case) -> dict[str, tuple[str, str]]:
    """Distribution -> version, and where the log (or the host) shows it."""
    out = {}
    for name in case.facts:
        fact = case.facts.fact(name)
        if name.startswith(_PACKAGE) and fact is not None and isinstance(fact.value, str):
            out[name[len(_PACKAGE) :]] = (
                fact.value,
                _place(fact.where, case) if fact.source is Source.LOG else "",
            )
    return out


def _place(where: str, case: Case) -> str:
    """A place in words; of a single log the line alone."""
    line = where.rpartition(":")[2]
    return f"line {line}" if case.reading is not None and len(case.reading.files) == 1 and line else where


def pins_of(case: Case) -> Mapping[str, str]:
    """Distribution -> specifier that SGLang asks for here: of the release, on this platform. Where the log only narrows the
    release down, what its oldest and newest have in common; nothing for a development state or a fork."""
    release = case.release
    if release is None or release.is_devrelease or _is_fork(case):
        return {}
    facts = release_facts(release)
    if not facts.exact:
        return {}
    pins = {name: spec for name, spec in facts.pins.items() if spec}
    if not case.release_is_certain and case.release_range:
        oldest = release_or_none(case.release_range.partition(" to ")[0])
        other = release_facts(oldest).pins if oldest is not None else {}
        pins = {name: spec for name, spec in pins.items() if other.get(name) == spec}
    if not _is_cuda(case):
        kept = anywhere()
        pins = {name: spec for name, spec in pins.items() if name in kept}
    return pins


def index_of_cubin(line: str) -> str:
    """The command with the index from which flashinfer-cubin comes: from 0.6.14 on it is not on the usual one."""
    found = _CUBIN.search(line)
    if (
        found is None
        or "index-url" in line
        or (found["version"][0].isdigit() and meets(found["version"], "<0.6.14"))
    ):
        return line
    return f"{line[: found.end()]} --extra-index-url https://flashinfer.ai/whl{line[found.end() :]}"


def torch_of_kernel(name: str, version: str) -> str | None:
    """The torch ("2.9.1") that a version of the kernel package was published for: the one that every release pins which
    pins that kernel; None where they differ or none does."""
    table = read_table(releases_folder() / "pins.json")
    order = {name: place for place, name in enumerate(table["releases"])}
    spans = [
        (order[first], order.get(last, len(order)))
        for first, last, spec in table["pins"].get(name, ())
        if spec == f"=={version.partition('+')[0]}"
    ]
    found = {
        spec
        for first, last, spec in table["pins"]["torch"]
        for begin, end in spans
        if order[first] <= end and begin <= order.get(last, len(order))
    }
    only = found.pop() if len(found) == 1 else None
    return only[2:] if only and only.startswith("==") else None


def meets(version: str, spec: str) -> bool:
    """What cannot be compared counts as met; a local part ("+cu130") does not count."""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet
    from packaging.version import InvalidVersion, Version

    try:
        return SpecifierSet(spec).contains(Version(version.partition("+")[0]), prereleases=True)
    except (InvalidSpecifier, InvalidVersion):
        return True


def _asked_in_log(case: Case, have: Mapping[str, tuple[str, str]]) -> Iterator[Drift]:
    for name in case.facts:
        fact = case.facts.fact(name)
        if not name.startswith("log.ask.") or fact is None:
            continue
        package = name.removeprefix("log.ask.")
        spec, _, owner = str(fact.value).partition(" by ")
        shown = have.get(package)
        if shown is None or meets(shown[0], spec):
            continue  # what was installed later meets it
        asker, _, version = owner.partition(" ")
        plain = asker.lower().replace("_", "-")
        now = have.get(plain)
        if version and now is not None and now[0].partition("+")[0] != version.partition("+")[0]:
            continue  # the one that asked was replaced
        pin = pins_of(case).get(package, "") if plain == "sglang" and not version else ""
        if pin.startswith("==") and meets(pin[2:], spec):
            spec = pin  # it names the least that it works with
        yield Drift(package, *shown, spec, plain, version, _place(fact.where, case))


def _built_for(case: Case, have: Mapping[str, tuple[str, str]]) -> Iterator[Drift]:
    """torch, for a kernel package that was compiled against another."""
    torch = have.get("torch")
    if torch is None:
        return
    built, used = case.facts.fact("log.built"), case.facts.fact("log.built_with.torch")
    if built is not None and used is not None:
        if not meets(torch[0], f"=={str(used.value).partition('+')[0]}"):
            version = have.get(str(built.value), ("", ""))[0]
            yield Drift(
                "torch",
                *torch,
                f"=={used.value}",
                str(built.value),
                version,
                _place(used.where, case),
                "built",
            )
        return
    if not _is_cuda(case):
        return
    for name in PUBLISHED:
        if name in have and (wanted := torch_of_kernel(name, have[name][0])) is not None:
            if not meets(torch[0], f"=={wanted}"):
                yield Drift(
                    "torch", *torch, f"=={wanted}", name, have[name][0], have[name][1] or None, "built"
                )
            return


def _beside_ascend(have: Mapping[str, tuple[str, str]]) -> Iterator[Drift]:
    """torch_npu loads only with the torch of its own number (2.8.0.post2 with 2.8.0)."""
    torch, npu = have.get("torch"), have.get("torch-npu")
    if torch is not None and npu is not None:
        wanted = ".".join(npu[0].split(".")[:3])
        if torch[0].partition("+")[0] != wanted:
            yield Drift("torch", *torch, f"=={wanted}", "torch-npu", npu[0], npu[1] or None)


def _beside_flashinfer(have: Mapping[str, tuple[str, str]]) -> Iterator[Drift]:
    """Its other parts have to be of its version."""
    main = have.get("flashinfer-python")
    for part in FLASHINFER_PARTS:
        if main is not None and part in have and not meets(have[part][0], f"=={main[0].partition('+')[0]}"):
            spec = f"=={main[0].partition('+')[0]}"
            yield Drift(part, *have[part], spec, "flashinfer-python", main[0], main[1] or None)


def _asked_by_torch(case: Case, have: Mapping[str, tuple[str, str]]) -> Iterator[Drift]:
    torch = have.get("torch")
    if torch is None or case.facts.look("host.platform") in ("rocm", "npu", "xpu"):
        return
    for name, spec in asked_by_torch(torch[0]).items():
        if name in have and not meets(have[name][0], spec):
            yield Drift(name, *have[name], spec, "torch", torch[0], torch[1] or None)


def _pinned(case: Case, have: Mapping[str, tuple[str, str]]) -> Iterator[Drift]:
    for name, spec in pins_of(case).items():
        if name in have and not meets(have[name][0], spec) and not _nightly(have[name][0]):
            yield Drift(name, *have[name], spec, "sglang", str(case.release))


def _nightly(version: str) -> bool:
    return "dev" in version or "git" in version


def _is_cuda(case: Case) -> bool:
    """Also where nothing tells: the package index's SGLang is for NVIDIA's GPUs."""
    platform = case.facts.look("host.platform")
    torch = case.facts.look("host.package.torch")
    local = torch.partition("+")[2] if isinstance(torch, str) else ""
    return platform not in ("rocm", "npu", "xpu", "cpu", "musa", "none") and not local.startswith(
        ("rocm", "cpu", "xpu")
    )


def _is_fork(case: Case) -> bool:
    return isinstance(case.facts.look("log.build"), str)
