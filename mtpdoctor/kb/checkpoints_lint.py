"""Checks of what remedies ask of published checkpoints. What is wrong in the data itself, reading it says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mtpdoctor.kb.checkpoints import Checkpoints
from mtpdoctor.kb.load import origin_problem
from mtpdoctor.kb.types import Rule
from mtpdoctor.kb.yaml_source import Problem, nearest


def unknown_formats(rules: Sequence[Rule], checkpoints: Checkpoints) -> Iterator[Problem]:
    """Formats and makers that no published checkpoint has."""
    formats = {name for f in checkpoints.formats for name in (f.name, f.family) if name}
    makers = {c.maker for m in checkpoints.models for c in m.checkpoints}
    for rule in rules:
        for wanted in (r.checkpoints for r in rule.remedies if r.checkpoints is not None):
            for name in wanted.formats:
                if name not in formats:
                    yield origin_problem(
                        rule, f"checkpoints: unknown format {name!r}{nearest(name, formats)}"
                    )
            for name in wanted.makers:
                if name not in makers:
                    yield origin_problem(
                        rule, f"checkpoints: {name!r} publishes none that is known{nearest(name, makers)}"
                    )
