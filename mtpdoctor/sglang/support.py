"""Whether one release of SGLang can serve one model: facts ``model.support*`` and ``model.type_*``.

What the release's registry, its pinned transformers and the model's own config say; nothing where one of
them is not known exactly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mtpdoctor.release import Release
from mtpdoctor.sglang.architectures import (
    ModelsOf,
    architecture,
    first_with_type,
    in_transformers,
    models_of,
    transformers_class,
    transformers_pin,
    transformers_type,
    wrappable,
)

WRAPPER = "TransformersForCausalLM"  # SGLang's class that lets transformers compute
NATIVE, WRAPPED, REFUSED, NONE = "native", "transformers", "refused", "none"


def support_facts(
    config: Mapping[str, Any], release: Release | None, transformers: str | None, mistral: bool = False
) -> dict[str, Any]:
    """``config``: the model's config.json. ``transformers``: the installed version, None for the one that the
    release pins. ``mistral``: the folder has Mistral's params.json, which is read in place of config.json.

    ``model.support`` is ``native`` (SGLang has the class), ``transformers`` (it wraps the class of transformers),
    ``refused`` (transformers has a class that cannot be wrapped) or ``none``; ``model.support_from`` the first
    release after this one that has the class, ``model.type_known`` whether config.json can be read at all,
    ``model.type_from`` the first release after this one that reads it; None where there is none.
    """
    models = models_of(release)
    if release is None or models is None or not models.exact or mistral:
        return {}
    version = transformers or transformers_pin(release)
    own = config.get("auto_map")
    code: Mapping[str, Any] = own if isinstance(own, dict) else {}
    values: dict[str, Any] = {}
    names = config.get("architectures")
    if isinstance(names, list) and names and all(isinstance(name, str) for name in names):
        values |= _of_class(names, models, release, version, code)
    kind = config.get("model_type")
    named = isinstance(names, list) and any(models.mentions(str(name)) for name in names)
    if isinstance(kind, str) and kind and "AutoConfig" not in code and not named:
        known = models.registers(kind) or in_transformers(transformers_type(kind), version)
        if known is not None:
            first = None if known else first_with_type(kind, release)
            values |= {"model.type_known": bool(known), "model.type_from": str(first) if first else None}
    return values


def _of_class(
    names: Sequence[str], models: ModelsOf, release: Release, version: str | None, code: Mapping[str, Any]
) -> dict[str, Any]:
    if any(models.module(name) for name in names):
        return {"model.support": NATIVE, "model.support_from": None}
    if any(models.mentions(name) for name in names) or "AutoModel" in code:
        return {}  # another class, or one that the model brings
    later = [found for name in names if (found := architecture(name).first_after(release)) is not None]
    values = {"model.support": NONE, "model.support_from": str(min(later)) if later else None}
    if models.module(WRAPPER) is None:
        return values
    if version is None:
        return {}
    uses = [wrappable(transformers_class(name), version) for name in names]
    if any(uses):
        values["model.support"] = WRAPPED
    elif False in uses:
        values["model.support"] = REFUSED
    return values


def wraps(release: Release) -> bool:
    """Whether the release can let transformers compute a model that it has no class for."""
    models = models_of(release)
    return models is not None and models.module(WRAPPER) is not None
