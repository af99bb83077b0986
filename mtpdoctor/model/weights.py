"""The weight files of a model's folder: what they hold by part and type, and what is wrong with them.

Reads the index and the headers, never the tensors. Which files count follows SGLang's
``_prepare_weights``: ``*.safetensors`` before ``*.bin`` before ``*.pt``; with an index, the files that it
names; Mistral's ``consolidated*.safetensors`` only where nothing else is there.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from mtpdoctor.model.parts import Parts
from mtpdoctor.model.reading import Unreadable, parse_object, read_some
from mtpdoctor.model.safetensors import Empty, Header, Pointer, read_header, threads
from mtpdoctor.model.types import WeightFacts, WeightGroup

INDEX = "model.safetensors.index.json"
_MAX_INDEX = 256 * 1024 * 1024
_MTP_APART = "mtp.safetensors"  # some FP4 checkpoints keep their MTP layers there, unnamed by the index
_SHOWN = 3  # names in one problem
# files of PyTorch that are no weights of the model
_NOT_WEIGHTS = (
    "training_args.bin",
    "optimizer.bin",
    "optimizer.pt",
    "scheduler.pt",
    "scaler.pt",
    "rng_state",
)


def read_weights(folder: Path, parts: Parts | None = None) -> tuple[WeightFacts | None, tuple[str, ...]]:
    """Facts of the weight files in ``folder``, and what is wrong with them in words.

    (None, ...) when there is no weight file and no index. ``parts`` sorts the tensors; without it those of
    MTP layers that are numbered on after the others (DeepSeek, GLM) are not told from them.
    """
    problems: list[str] = []
    names = _names(folder, problems)
    stems = [n for n in names if n.endswith(".safetensors")]
    plain = [n for n in stems if not n.startswith("consolidated")]
    index = _index(folder, INDEX, problems)
    if index is None and not plain and any(n.startswith("consolidated") for n in stems):
        index = _index(folder, "consolidated.safetensors.index.json", problems)
        return _safetensors(folder, stems, index, "consolidated", parts or Parts(), problems)
    if plain or index is not None:
        return _safetensors(folder, plain, index, "safetensors", parts or Parts(), problems)
    for ending, kind in ((".bin", "bin"), (".pt", "bin"), (".pth", "bin"), (".gguf", "gguf")):
        chosen = [n for n in names if n.endswith(ending) and not n.startswith(_NOT_WEIGHTS)]
        if chosen:
            return _opaque(folder, chosen, kind, problems)
    return None, tuple(problems)


def _names(folder: Path, problems: list[str]) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError as e:
        problems.append(f"the folder cannot be listed: {e.strerror or e}")
        return []


def _index(folder: Path, name: str, problems: list[str]) -> dict[str, str] | None:
    """The index: tensor → file. None where there is none that can be used."""
    try:
        data, _ = read_some(folder / name, _MAX_INDEX)
        weight_map = parse_object(data).get("weight_map")
    except FileNotFoundError:
        if os.path.islink(folder / name):
            problems.append(f"{name}: the link leads nowhere (the download is not finished)")
        return None
    except Unreadable as e:
        problems.append(f"{name} {_is(str(e))}")
        return None
    if not isinstance(weight_map, dict) or not all(isinstance(v, str) for v in weight_map.values()):
        problems.append(f"{name}: 'weight_map' must be an object of file names")
        return None
    outside = sorted(v for v in set(weight_map.values()) if not _inside(v))
    if outside:
        problems.append(f"{name} names files outside of the folder: {_list(outside)}")
        return {k: v for k, v in weight_map.items() if v not in outside}
    return weight_map


def _inside(name: str) -> bool:
    return bool(name) and not os.path.isabs(name) and ".." not in Path(name).parts and "\0" not in name


def _safetensors(
    folder: Path,
    present: list[str],
    index: Mapping[str, str] | None,
    kind: str,
    parts: Parts,
    problems: list[str],
) -> tuple[WeightFacts, tuple[str, ...]]:
    files = sorted(set(index.values())) if index else present
    if index and _MTP_APART in present and _MTP_APART not in files:
        files.append(_MTP_APART)
        problems.append(
            f"{_MTP_APART} is not named by the index: SGLang takes it in by itself only for GLM-4.x MoE (0.5.8 on)"
        )
    bad: dict[str, list[str]] = defaultdict(list)
    headers: dict[str, Header] = {}
    for name, found in _read_all(folder, files):
        if isinstance(found, Header):
            headers[name] = found
            if found.size < found.needed:
                bad["truncated"].append(name)
        elif isinstance(found, FileNotFoundError):
            bad["missing"].append(name)
        elif isinstance(found, Pointer):
            bad["lfs_pointers"].append(name)
        elif isinstance(found, Empty):
            bad["empty"].append(name)
        else:
            bad["unreadable"].append(name)
            problems.append(f"{name}: {found}")
    groups, mtp_layers = _grouped(headers.values(), parts)
    problems += _damage(bad, headers, len(files), index is not None)
    if index and not bad:
        problems += _against_index(index, headers)
    lost = bool(bad)
    has_mtp = True if mtp_layers else (None if lost else False)
    facts = WeightFacts(
        files=tuple(files),
        total_bytes=sum(g.bytes for g in groups),
        groups=groups,
        missing=tuple(bad["missing"]),
        truncated=tuple(bad["truncated"]),
        lfs_pointers=tuple(bad["lfs_pointers"]),
        has_mtp=has_mtp,
        format=kind,
        empty=tuple(bad["empty"]),
        unreadable=tuple(bad["unreadable"]),
        mtp_layers=len(mtp_layers) or (None if lost else 0),
    )
    return facts, tuple(problems)


def _read_all(folder: Path, files: list[str]) -> Iterable[tuple[str, Header | Exception]]:
    def read(name: str) -> Header | Exception:
        try:
            return read_header(folder / name)
        except (FileNotFoundError, Unreadable) as e:
            return e

    if len(files) < 3:
        return [(name, read(name)) for name in files]
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(threads(len(files))) as pool:
        return list(zip(files, pool.map(read, files), strict=True))


def _grouped(headers: Iterable[Header], parts: Parts) -> tuple[tuple[WeightGroup, ...], set[str]]:
    sizes: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
    mtp: set[str] = set()
    for header in headers:
        for tensor in header.tensors:
            part = parts.part(tensor.name)
            found = sizes[part, tensor.dtype]
            found[0] += tensor.bytes
            found[1] += 1
            if part.startswith("mtp"):
                layer = parts.layer(tensor.name)
                if part == "mtp" or layer is not None:
                    mtp.add("" if layer is None else str(layer))
    if len(mtp) > 1:
        mtp.discard("")
    groups = (WeightGroup(part, dtype, size, count) for (part, dtype), (size, count) in sorted(sizes.items()))
    return tuple(groups), mtp


def _damage(
    bad: Mapping[str, list[str]], headers: Mapping[str, Header], count: int, indexed: bool
) -> Iterable[str]:
    missing = bad.get("missing")
    if missing:
        named = "that the index names" if indexed else "(links that lead nowhere)"
        yield f"{len(missing)} of {count} weight files {named} are missing: {_list(missing)}"
    pointers = bad.get("lfs_pointers")
    if pointers:
        yield (
            f"{len(pointers)} of {count} weight files are Git LFS pointers, not the weights "
            f"(git lfs pull): {_list(pointers)}"
        )
    for name in bad.get("truncated", ())[:_SHOWN]:
        h = headers[name]
        yield f"{name} is cut off: {h.size:,} bytes of the {h.needed:,} that its header needs"
    if len(bad.get("truncated", ())) > _SHOWN:
        yield f"{len(bad['truncated'])} weight files are cut off in all"
    empty = bad.get("empty")
    if empty:
        yield f"{len(empty)} of {count} weight files are empty (0 bytes): {_list(empty)}"


def _against_index(index: Mapping[str, str], headers: Mapping[str, Header]) -> Iterable[str]:
    held = {t.name for h in headers.values() for t in h.tensors}
    lacking = sorted(name for name in index if name not in held)
    if lacking:
        yield f"{len(lacking)} tensors that the index names are in none of its files: {_list(lacking)}"


def _opaque(
    folder: Path, files: list[str], kind: str, problems: list[str]
) -> tuple[WeightFacts, tuple[str, ...]]:
    """Formats whose content is not read: only the files' size is known."""
    total = 0
    bad: dict[str, list[str]] = defaultdict(list)
    for name in files:
        try:
            data, size = read_some(folder / name, 128, whole=False)
        except FileNotFoundError:
            bad["missing"].append(name)
        except Unreadable as e:
            bad["unreadable"].append(name)
            problems.append(f"{name}: {e}")
        else:
            if not size:
                bad["empty"].append(name)
            elif data.startswith(b"version https://git-lfs"):
                bad["lfs_pointers"].append(name)
            else:
                total += size
    problems += _damage(bad, {}, len(files), False)
    called = {"bin": "PyTorch's pickle format", "gguf": "GGUF"}[kind]
    problems.append(
        f"the weights are in {called} ({len(files)} files, {total / 2**30:,.2f} GiB), not in safetensors: "
        "what they hold is not read"
    )
    facts = WeightFacts(
        files=tuple(files),
        total_bytes=total,
        groups=(WeightGroup("other", "?", total, 0),) if total else (),
        missing=tuple(bad["missing"]),
        lfs_pointers=tuple(bad["lfs_pointers"]),
        format=kind,
        empty=tuple(bad["empty"]),
        unreadable=tuple(bad["unreadable"]),
        unknown=("all",),
    )
    return facts, tuple(problems)


def _list(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def _is(said: str) -> str:
    return said if said.startswith(("is ", "holds ")) else f"cannot be read: {said}"


def sizes(groups: Iterable[WeightGroup]) -> dict[str, int]:
    """Bytes by stored type, largest first."""
    out: dict[str, Any] = defaultdict(int)
    for group in groups:
        out[group.dtype] += group.bytes
    return dict(sorted(out.items(), key=lambda item: -item[1]))
