"""The ``model`` of ``mtpdoctor probe --json``: the fields of ModelFacts, without the config itself."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from mtpdoctor.redact import mask_secrets
from mtpdoctor.text import one_line

if TYPE_CHECKING:
    from mtpdoctor.model.types import ModelFacts, WeightFacts

_LEFT_OUT = ("raw", "weights")


def model_to_json(model: ModelFacts) -> dict[str, Any]:
    """Plain JSON values, every text safe and with secrets masked; ``weights`` null when not at hand."""
    values = {f.name: _plain(getattr(model, f.name)) for f in fields(model) if f.name not in _LEFT_OUT}
    values["weights"] = _weights(model.weights) if model.weights is not None else None
    return values


def _weights(weights: WeightFacts) -> dict[str, Any]:
    values = {f.name: _plain(getattr(weights, f.name)) for f in fields(weights) if f.name != "groups"}
    values["groups"] = [{f.name: _plain(getattr(g, f.name)) for f in fields(g)} for g in weights.groups]
    values["complete"] = weights.complete
    return values


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return mask_secrets(one_line(value))
    if isinstance(value, tuple):
        return [_plain(v) for v in value]
    return value
