"""Which repositories hold the weights of a model, in which formats and of which size (``knowledge/checkpoints/``).

Data only says what was published; which of it a release loads and a host can hold is decided in ``diagnose/published.py``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from mtpdoctor.kb.types import ALWAYS, Condition
from mtpdoctor.records import dataclass, field
from mtpdoctor.release import ReleaseRange

GIB = 2**30
WHOLE = 2.0  # bytes of a parameter in 16 bits
PLAIN = 1.2  # billions of parameters that a quantization leaves in 16 bits (embedding, LM head, norms), of large models ...
PLAIN_SHARE = 0.15  # ... and of small ones


@dataclass(frozen=True, slots=True)
class Format:
    """A way in which weights are stored."""

    name: str  # "fp8-block", as data and rules call it
    words: str  # "FP8 in blocks", as people do
    bytes: float  # of one parameter, scales included
    method: str | None  # SGLang's name of the quantization; None: not quantized
    marks: tuple[str, ...]  # words that stand for it at the end of repository names, in lower case
    family: str = ""  # what rules call it together with others ("fp8")
    when: Condition = ALWAYS  # the GPUs that have kernels for it
    needs: str = ""  # the same in words
    widely: bool = False  # most GPUs have them: a fair guess where the GPU is not known
    releases: ReleaseRange = field(default_factory=lambda: ReleaseRange.parse("*"))  # that load it


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """One repository."""

    id: str
    format: str
    seen: str  # where the id stands
    gib: float | None = None  # of the weights, as published; None: to be worked out from the parameters
    lacks: tuple[str, ...] = ()  # parts of the model that it does not have ("mtp")

    @property
    def maker(self) -> str:
        return self.id.partition("/")[0]

    @property
    def name(self) -> str:
        return self.id.partition("/")[2]


@dataclass(frozen=True, slots=True)
class Model:
    """A model and the repositories of its weights, its maker's own first."""

    base: str
    billions: float  # parameters, all parts
    architecture: str | None
    has: tuple[str, ...]  # "mtp": layers for drafting, "vision"
    checkpoints: tuple[Checkpoint, ...]
    names: tuple[str, ...] = ()  # other names of the base, in lower case

    @property
    def maker(self) -> str:
        return self.base.partition("/")[0]


@dataclass(frozen=True, slots=True)
class Named:
    """What a name tells: the model, and the format where it is known."""

    model: Model
    format: str | None


@dataclass(frozen=True, slots=True)
class Checkpoints:
    formats: tuple[Format, ...] = ()
    models: tuple[Model, ...] = ()
    beside: frozenset[str] = (
        frozenset()
    )  # words beside that for a format in a name, which say nothing of the model

    def asked(self, name: str) -> frozenset[str]:
        """The formats that a rule means by the name of one, or of a family."""
        return frozenset(f.name for f in self.formats if name in (f.name, f.family))

    def format(self, name: str) -> Format | None:
        return next((f for f in self.formats if f.name == name), None)

    def gib_of(self, model: Model, checkpoint: Checkpoint) -> float:
        """Of the weights: published, else parameters times the bytes of the format."""
        if checkpoint.gib is not None:
            return checkpoint.gib
        known = self.format(checkpoint.format)
        size = known.bytes if known else WHOLE
        plain_part = min(PLAIN, PLAIN_SHARE * model.billions)
        return (model.billions * size + plain_part * (WHOLE - size)) * 1e9 / GIB

    def named(self, path: str) -> Named | None:
        """The model of a path or repository id, by its last part. A finetune's name, which says more than a format does, tells nothing."""
        name = last_part(path)
        if not name:
            return None
        for model in self.models:
            for one in model.checkpoints:
                if plain(one.name) == name:
                    return Named(model, one.format)
        marks = {mark: f.name for f in self.formats for mark in f.marks}
        for base, model in sorted(self._names(), key=lambda pair: -len(pair[0])):
            if name == base:
                return Named(model, _own_format(model))
            if name.startswith(base + "-"):
                known, format_name = _as_format(name[len(base) + 1 :], marks, self.beside)
                if known:
                    return Named(model, format_name)
        return None

    def _names(self) -> Iterator[tuple[str, Model]]:
        for model in self.models:
            for name in (plain(model.base.partition("/")[2]), *model.names):
                yield name, model
                if name.endswith("-bf16"):
                    yield name.removesuffix("-bf16"), model


def _own_format(model: Model) -> str | None:
    return next((c.format for c in model.checkpoints if c.id == model.base), None)


def _as_format(rest: str, marks: dict[str, str], beside: frozenset[str]) -> tuple[bool, str | None]:
    """Does the rest of a name only tell a format, and which?"""
    if rest in marks:
        return True, marks[rest]
    words = re.split(r"[-.]", rest)
    if any(word not in marks and word not in beside for word in words):
        return False, None
    told = next((marks[word] for word in words if word in marks), None)
    return told is not None, told


def last_part(path: str) -> str:
    """The name in a path, a repository id or the hub's cache, in lower case."""
    parts = [part for part in path.replace("\\", "/").rstrip("/").split("/") if part]
    if not parts:
        return ""
    if "snapshots" in parts and parts.index("snapshots"):
        parts = parts[: parts.index("snapshots")]
    return plain(parts[-1].rsplit("--", 1)[-1])


def plain(name: str) -> str:
    return re.sub(r"[_\s]+", "-", name.lower())
