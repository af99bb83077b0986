"""Learning a release from its source, and keeping what was learned.

Static: nothing of SGLang is imported or run. :func:`update` writes ``knowledge/releases/*.json``;
:func:`learn_installed` learns a release that the knowledge does not have into the user's cache.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement

from mtpdoctor.errors import UserError
from mtpdoctor.sglang.learn_env import LearnedEnv, learn_env, rewrites_sgl_prefix
from mtpdoctor.sglang.learn_flags import LearnedFlag, learn_flags
from mtpdoctor.sglang.learn_models import LearnedModels, learn_models, read_models, write_models
from mtpdoctor.sglang.learn_options import write_options
from mtpdoctor.sglang.learn_other import known_diffusion, learn_diffusion, write_diffusion
from mtpdoctor.sglang.source import SourceTree, installed_source, open_source, source_release
from mtpdoctor.sglang.store import FORMAT, pack, read_table, sort_releases, unpack, write_table

PINNED = [
    "torch",
    "torchvision",
    "torchaudio",
    "torchao",
    "torchcodec",
    "torch_memory_saver",
    "transformers",
    "flashinfer_python",
    "flashinfer_cubin",
    "sgl-kernel",
    "sglang-kernel",
    "sgl-deep-gemm",
    "sgl-deep-ep",
    "sgl-flash-mla",
    "kernels",
    "cuda-python",
    "nvidia-cutlass-dsl",
    "quack-kernels",
    "xgrammar",
    "outlines",
    "openai",
    "openai-harmony",
    "llguidance",
    "compressed-tensors",
    "tilelang",
    "apache-tvm-ffi",
    "huggingface_hub",
    "vllm",
    "av",
    "blobfile",
    "decord2",
    "flash-attn-4",
    "grpcio",
    "grpcio-health-checking",
    "grpcio-reflection",
    "humming-kernels",
    "mistral-common",
    "numba",
    "pillow",
    "prometheus-client",
    "pyzmq",
    "sentencepiece",
    "smg-grpc-proto",
    "smg-grpc-servicer",
    "soundfile",
    "timm",
    "tokenizers",
    "tokenspeed-mla",
]
_REQUIRES = re.compile(r"^Requires-Dist:[ \t]*(.+?)[ \t\r]*$", re.M)
_QUOTED = re.compile(
    r"^[ \t]*\"([A-Za-z0-9_.-]+[^\"]*)\",?[ \t]*$", re.M
)  # a dependency line of a pyproject.toml
_RUNTIME_EXTRAS = ("", "srt", "runtime_common", "runtime-common")  # older releases keep the runtime in extras


@dataclass(slots=True)
class LearnedRelease:
    """Everything learned of one release."""

    release: str
    flags: dict[str, LearnedFlag]
    fields: dict[str, Any]  # ServerArgs fields with their defaults; ... where required
    env: dict[str, LearnedEnv]
    pins: dict[str, str]  # distribution -> version specifier, "" when unpinned
    era: str = ""
    sgl_prefix: bool = False  # SGL_X is read as SGLANG_X
    helps: dict[str, str] = field(default_factory=dict)
    models: LearnedModels = field(default_factory=LearnedModels)
    diffusion: frozenset[str] = frozenset()  # options of the server for image and video models


def learn(source: str | Path | SourceTree, release: str | None = None) -> LearnedRelease:
    """Learn one release from a wheel, an unpacked folder, a checkout or an environment.

    Raises UserError when it is none, or says no release (then give ``release``).
    """
    tree = open_source(source) if isinstance(source, (str, Path)) else source
    release = release or source_release(tree)
    if release is None:
        raise UserError(
            f"{tree.origin} does not say which release it is",
            hint="give a wheel, or an installation with metadata",
        )
    args = learn_flags(tree)
    return LearnedRelease(
        release=release,
        flags=args.flags,
        fields=args.fields,
        env=learn_env(tree),
        pins=_pins(tree.metadata()),
        era=args.era,
        sgl_prefix=rewrites_sgl_prefix(tree),
        helps={name: flag.help for name, flag in args.flags.items()},
        models=learn_models(tree),
        diffusion=learn_diffusion(tree),
    )


def _pins(metadata: str) -> dict[str, str]:
    """Version specifiers of the packages a launch depends on most, for a Linux CUDA installation."""
    wanted = {_canonical(name) for name in PINNED}
    out: dict[str, str] = {}
    for line in _REQUIRES.findall(metadata) or _QUOTED.findall(metadata):
        try:
            need = Requirement(line)
        except InvalidRequirement:
            continue
        key = _canonical(need.name)
        here = {"sys_platform": "linux", "platform_machine": "x86_64", "platform_system": "Linux"}
        if key in wanted and any(
            need.marker is None or need.marker.evaluate({**here, "extra": extra}) for extra in _RUNTIME_EXTRAS
        ):
            out.setdefault(key, str(need.specifier))
    return dict(sorted(out.items()))


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


# -- the tables ----------------------------------------------------------------------------------------


def flag_entry(flag: LearnedFlag) -> dict[str, Any]:
    """A flag as stored: attributes that have their usual value are left out."""
    usual = LearnedFlag(flag.name, flag.name.lstrip("-").replace("-", "_"))
    entry = asdict(flag)
    return {
        key: value
        for key, value in entry.items()
        if key not in ("name", "help") and value != getattr(usual, key)
    }


def flag_from_entry(name: str, entry: Mapping[str, Any]) -> LearnedFlag:
    return LearnedFlag(**{"name": name, "dest": name.lstrip("-").replace("-", "_"), **entry})


def env_entry(env: LearnedEnv) -> dict[str, Any]:
    usual = LearnedEnv(env.name)
    return {k: v for k, v in asdict(env).items() if k != "name" and v != getattr(usual, k)}


def load_releases(folder: Path) -> dict[str, LearnedRelease]:
    """Every release of a table folder, expanded; empty when the folder has no tables."""
    if not (folder / "flags.json").is_file():
        return {}
    flags, env, pins = (read_table(folder / f"{name}.json") for name in ("flags", "env", "pins"))
    releases: Sequence[str] = flags["releases"]
    models = read_models(folder)
    diffusion = known_diffusion(folder, releases)
    out = {}
    for index, release in enumerate(releases):
        entries = unpack(flags["flags"], releases, index)
        variables = unpack(env["env"], releases, index)
        out[release] = LearnedRelease(
            release=release,
            flags={name: flag_from_entry(name, entry) for name, entry in entries.items()},
            fields=unpack(flags["fields"], releases, index),
            env={name: LearnedEnv(name, **entry) for name, entry in variables.items()},
            pins=unpack(pins["pins"], releases, index),
            era=unpack({"era": flags["era"]}, releases, index)["era"],
            sgl_prefix=unpack({"prefix": env["sgl_prefix"]}, releases, index).get("prefix", False),
            models=models.get(release, LearnedModels()),
            diffusion=diffusion[release],
        )
    return out


def save_releases(folder: Path, learned: Mapping[str, LearnedRelease]) -> None:
    """Write ``flags.json``, ``env.json``, ``pins.json``, ``options.json`` and ``architectures.json``."""
    releases = sort_releases(learned)
    flags = {r: {n: flag_entry(f) for n, f in learned[r].flags.items()} for r in releases}
    fields = {
        r: {n: {"required": True} if d is ... else d for n, d in learned[r].fields.items()} for r in releases
    }
    env = {r: {n: env_entry(e) for n, e in learned[r].env.items()} for r in releases}
    head = {"format": FORMAT, "releases": releases}
    era = pack({r: {"era": learned[r].era} for r in releases}, releases)["era"]
    prefix = pack({r: {"p": True} if learned[r].sgl_prefix else {} for r in releases}, releases)
    folder.mkdir(parents=True, exist_ok=True)
    write_table(
        folder / "flags.json",
        {**head, "era": era},
        {"flags": pack(flags, releases), "fields": pack(fields, releases)},
    )
    write_table(
        folder / "env.json", {**head, "sgl_prefix": prefix.get("p", [])}, {"env": pack(env, releases)}
    )
    write_options(
        folder, {r: learned[r].flags for r in releases}, {r: list(learned[r].fields) for r in releases}
    )
    write_table(folder / "pins.json", head, {"pins": pack({r: learned[r].pins for r in releases}, releases)})
    write_models(folder, {r: learned[r].models for r in releases})
    write_diffusion(folder, {r: learned[r].diffusion for r in releases})


def update(folder: Path, sources: Iterable[str | Path | SourceTree]) -> list[LearnedRelease]:
    """Learn ``sources`` and write them into the tables of ``folder``; releases already there are replaced.

    Returns what was learned, oldest first.
    """
    new = [learn(source) for source in sources]
    known = load_releases(folder)
    known.update({item.release: item for item in new})
    save_releases(folder, known)
    return sorted(new, key=lambda item: sort_releases(known).index(item.release))


# -- an installed release that the knowledge does not have -------------------------------------------------


def learn_installed(cache: Path, known: Iterable[str]) -> tuple[str, Path | None] | None:
    """Learn the SGLang of this interpreter into ``cache`` when ``known`` lacks it.

    Returns its release and the folder of its tables (None when the release is known already), or None
    when no SGLang is installed.
    """
    tree = installed_source()
    release = source_release(tree) if tree else None
    if tree is None or release is None:
        return None
    if release in set(known):
        return release, None
    return release, learn_tree(tree, release, cache)


def learn_tree(tree: SourceTree, release: str, cache: Path) -> Path:
    """Learn one source tree into a folder of ``cache``, unless it is there already. The folder is keyed by
    the source's argument files and the names of its models, so a changed development checkout is learned anew."""
    digest = hashlib.sha256()
    for path in tree.files():
        if path == "sglang/srt/server_args.py" or path.startswith("sglang/srt/arg_groups/"):
            digest.update((tree.read(path) or "").encode())
        elif path.startswith("sglang/srt/models/"):
            digest.update(path.encode())
    folder = cache / "releases" / f"{release}-{digest.hexdigest()[:12]}"
    if not (folder / "flags.json").is_file():
        save_releases(folder, {release: learn(tree, release)})
        (folder / "origin.json").write_text(json.dumps({"origin": tree.origin, "release": release}))
    return folder
