"""The bytes of a model's weights from config.json alone, for when no weight files are at hand."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from mtpdoctor.model.config import text_config
from mtpdoctor.model.shapes import Matrix, Unknown, matrices
from mtpdoctor.model.storage import Storage, storage_of
from mtpdoctor.model.types import ModelFacts, WeightFacts, WeightGroup
from mtpdoctor.model.vision import vision_matrices


def weights_by_config(model: ModelFacts) -> WeightFacts | None:
    """The same groups as ``read_weights`` gives, computed; None where the config does not tell enough.

    ``source`` is "config"; a vision tower whose size the config does not give stands in ``unknown``. Held
    against the published totals in ``tests/model/test_by_config.py``: within 2 %.
    """
    text = text_config(model.raw)
    storage = storage_of(model, text)
    if storage is None:
        return None
    sizes: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
    unknown: tuple[str, ...] = ()
    try:
        _add(sizes, matrices(model, text), storage)
        if model.is_multimodal:
            tower = vision_matrices(model)
            if tower is None:
                unknown = ("vision",)
            else:
                _add(sizes, tower, storage)
    except (Unknown, OverflowError):
        return None
    groups = tuple(
        WeightGroup(part, dtype, size, count) for (part, dtype), (size, count) in sorted(sizes.items())
    )
    mtp = any(g.part == "mtp" for g in groups)
    return WeightFacts(
        files=(),
        total_bytes=sum(g.bytes for g in groups),
        groups=groups,
        has_mtp=mtp,
        source="config",
        mtp_layers=model.mtp_layers if mtp else 0,
        unknown=unknown,
    )


def _add(sizes: Mapping[tuple[str, str], list[int]], found: Iterator[Matrix], storage: Storage) -> None:
    for matrix in found:
        for dtype, size in storage.pieces(matrix):
            entry = sizes[matrix.part, dtype]
            entry[0] += size * matrix.copies
            entry[1] += matrix.copies


def weights_of(model: ModelFacts) -> WeightFacts | None:
    """What the files hold where all of them were read, else what config.json implies."""
    files = model.weights
    if files is not None and files.complete and files.format in ("safetensors", "consolidated"):
        return files
    return weights_by_config(model)


def parameters(model: ModelFacts) -> int | None:
    """Weights of the model (numbers, not bytes), without the scales of a quantization and without MTP."""
    text: Mapping[str, Any] = text_config(model.raw)
    try:
        found = [m for m in matrices(model, text) if not m.part.startswith("mtp")]
        found += list(vision_matrices(model) or ()) if model.is_multimodal else []
    except (Unknown, OverflowError):
        return None
    return sum(m.rows * m.columns * m.copies for m in found)
