"""A remedy that serves another checkpoint of the model, with the repository's name: one that is published, that this release
loads, that this GPU has kernels for, and that fits its memory. Data: ``knowledge/checkpoints/``.
"""

from __future__ import annotations

from collections.abc import Iterator

from mtpdoctor.case import Case
from mtpdoctor.facts import UNKNOWN, Fact, Facts, Source
from mtpdoctor.kb.checkpoints import Checkpoint, Checkpoints, Format, Model
from mtpdoctor.kb.conditions import describe, evaluate
from mtpdoctor.kb.types import EditTemplate, Remedy, Safety, Wanted
from mtpdoctor.memory.arguments import Arguments
from mtpdoctor.memory.launch import gpu_memory
from mtpdoctor.records import dataclass, replace
from mtpdoctor.release import Release
from mtpdoctor.sglang.architectures import models_of

SHOWN = 3
SHARE = 0.85  # of a GPU's memory that weights may take: the rest is for the KV cache, graphs and activations
SHARE_WITH_ROOM = 0.7  # ... where the memory was what failed
_NAMES = ("flag.model_path", "arg.model_path", "model.path", "arg.served_model_name")
# Ways of loading that are for one kind of files, which another repository need not have.
_OWN_LOADING = frozenset(("gguf", "bitsandbytes", "sharded_state", "npcache", "pt", "mistral", "layered"))
_OF_FILES = ("model.weights", "model.has_", "model.problems", "model.quantization", "model.path", "model.revision", "model.dtype")  # fmt: skip
_ELSEWHERE = ("flag.kt_", "flag.cpu_offload_gb", "flag.offload_")
_LARGEST = 4096  # GiB of a GPU; more is no GPU's memory
_OFFLINE = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")


@dataclass(frozen=True, slots=True)
class Answer:
    """``remedy``: as it is offered; None where none of these checkpoints can fit. ``case``: for the proof of what it does."""

    remedy: Remedy | None
    case: Case
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Room:
    """The GPUs that a launch has. ``gib``: of each; None where it is not known."""

    ranks: int
    gpus: int
    gib: float | None
    may_grow: bool  # --tp-size may be raised to the GPUs that are there
    heads: int | None = None  # of the model, which the ranks must divide
    free: float | None = None  # GiB of each before the weights, as the log tells; else all of ``gib``

    def ranks_for(self, size: float, share: float = SHARE) -> int | None:
        """The least ranks over which weights of ``size`` GiB fit; None where they do not, or nothing is known."""
        if self.gib is None:
            return None
        ranks = self.ranks
        while size / ranks > self.gib * share:
            ranks *= 2
            if not self.may_grow or ranks > self.gpus or (self.heads or ranks) % ranks:
                return None
        return ranks

    @property
    def words(self) -> str:
        return f"{max(self.gpus, self.ranks)} x {self.gib:.0f} GiB" if self.gib is not None else ""


@dataclass(frozen=True, slots=True)
class Found:
    checkpoint: Checkpoint
    format: Format
    gib: float
    ranks: int | None  # None: the GPUs are not known
    open: str  # what of the GPU is not known and decides

    @property
    def words(self) -> str:
        size = f"{_size(self.gib)} GiB"
        how = size if self.checkpoint.gib is not None else f"about {size} by its parameters"
        return f"{self.checkpoint.id} ({self.format.words}, {how})"


def with_checkpoint(remedy: Remedy, case: Case, facts: Facts, known: Checkpoints) -> Answer:
    """The remedy with the best checkpoint that its ``checkpoints`` ask for."""
    wanted = remedy.checkpoints
    if wanted is None:
        return Answer(remedy, case)
    as_it_is = Answer(None if wanted.smaller else remedy, case)
    named = next((n for path in _paths(case, facts) if (n := known.named(path)) is not None), None)
    if named is None or in_host_memory(facts):
        return as_it_is
    model, room = named.model, room_of(facts)
    current = _format_in_use(named.format, facts, known)
    share = SHARE_WITH_ROOM if wanted.smaller else SHARE
    candidates = list(_candidates(wanted, model, current, case, facts, known))
    fitting = sorted(
        (f for f in (_in(room, one, known, model, facts, share) for one in candidates) if f is not None),
        key=lambda f: _rank(f, wanted, model, known),
    )
    if wanted.smaller and (room.gib is None or not _is_smaller(fitting, model, current, known)):
        return as_it_is
    if not fitting:
        return _none_fits(remedy, wanted, model, candidates, room, case, known)
    best = fitting[0]
    own = tuple(e for e in remedy.edits if not (e.name == "--model-path" and "<" in (e.value or "")))
    edits = (*own, *wanted.edits, *_edits(best, facts, room))
    fits = f"; it fits {room.words}" if room.gib is not None else _wants(best.gib)
    notes = [
        f"known of {_short(model)}: " + "; ".join(f.words for f in _of_each_format(fitting)[:SHOWN]) + fits
    ]
    if best.open:
        notes.append(f"if {best.open}")
    if any(facts.look(f"env.{name}") not in (UNKNOWN, None, "0", "") for name in _OFFLINE):
        notes.append(
            f"this environment is offline: first, where there is a network, hf download {best.checkpoint.id}"
        )
    risk = f"other weights are served than were asked for ({best.format.words}); about {_size(best.gib)} GiB are downloaded"
    title = remedy.title if best.checkpoint.id in remedy.title else f"{remedy.title}: {best.checkpoint.id}"
    offered = replace(
        remedy,
        title=title,
        edits=edits,
        safety=Safety.RISKY,
        risk=f"{remedy.risk}; {risk}" if remedy.risk else risk,
    )
    return Answer(offered, _served(case, best), tuple(notes))


def _of_each_format(found: list[Found]) -> list[Found]:
    """The best of each format before the second of any."""
    first = {f.format.name: f for f in reversed(found)}
    return sorted(found, key=lambda f: first[f.format.name] is not f)


def with_fewer_bits(remedy: Remedy) -> tuple[Remedy, Remedy]:
    """Of a remedy that names a smaller checkpoint among other ways to find room: that one by itself, and the remedy as it stands."""
    alone = replace(
        remedy,
        title="Serve a quantized checkpoint of the model",
        why="its weights leave more room for the rest",
        edits=(),
        run=(),
        risk=None,
        safety=Safety.MANUAL,
    )
    return alone, replace(remedy, checkpoints=None)


def in_host_memory(facts: Facts) -> bool:
    """Are weights kept beside the GPUs? Then their memory says nothing of what fits, and options name the weights' own files."""
    return any(
        name.startswith(_ELSEWHERE) and facts.look(name) not in (UNKNOWN, None, False, "0", 0)
        for name in facts
    )


def _paths(case: Case, facts: Facts) -> Iterator[str]:
    for name in _NAMES:
        value = facts.look(name)
        if isinstance(value, str) and "$" not in value:
            yield value
    raw = case.model.raw.get("_name_or_path") if case.model is not None else None
    if isinstance(raw, str):
        yield raw


def _format_in_use(by_name: str | None, facts: Facts, known: Checkpoints) -> str | None:
    """The format that is served now; what config or command say of the quantization goes before the name."""
    told = known.format(by_name) if by_name is not None else None
    method = facts.look("model.quantization")
    if method is UNKNOWN:
        method = facts.look("arg.quantization")
        method = told.method if told is not None and method in (UNKNOWN, None) else method
    if told is not None and _same_method(told.method, method):
        return by_name
    others = [f.name for f in known.formats if _same_method(f.method, method)]
    return others[0] if len(others) == 1 else None


def _same_method(one: str | None, other: object) -> bool:
    """awq_marlin reads what awq does; modelopt stands for all of its formats."""
    if not isinstance(other, str) or one is None:
        return one is None and other is None
    return one.startswith(other) or other.startswith(one)


def _candidates(
    wanted: Wanted, model: Model, current: str | None, case: Case, facts: Facts, known: Checkpoints
) -> Iterator[Checkpoint]:
    """What the remedy asks for, the release can load, and the GPU is not known to lack kernels for."""
    release = case.release if case.release_is_certain else None
    if not _has_class(model, release):
        return
    path = facts.look("arg.model_path")
    for one in model.checkpoints:
        if wanted.original and one.id != model.base:
            continue
        if wanted.formats and _place(one.format, wanted, known) is None:
            continue
        same = isinstance(path, str) and path.rstrip("/").lower() == one.id.lower()
        if same or (one.format == current and one.maker not in wanted.makers):
            continue
        if "mtp" in one.lacks and _drafts_by_itself(facts):
            continue
        kind = known.format(one.format)
        if kind is None or kind.releases.holds(release) is False:
            continue
        computes = evaluate(kind.when, facts)
        if computes is False or (computes is None and wanted.smaller and not kind.widely):
            continue
        yield one


def _has_class(model: Model, release: Release | None) -> bool:
    models = models_of(release) if release is not None and model.architecture else None
    if models is None or not models.exact or model.architecture is None:
        return True
    return models.module(model.architecture) is not None or models.mentions(model.architecture)


def _drafts_by_itself(facts: Facts) -> bool:
    """Speculative decoding with the model's own layers."""
    if facts.look("arg.speculative_algorithm") not in ("NEXTN", "EAGLE"):
        return False
    draft = facts.look("arg.speculative_draft_model_path")
    return draft in (None, UNKNOWN) or draft == facts.look("arg.model_path")


def _in(
    room: Room, one: Checkpoint, known: Checkpoints, model: Model, facts: Facts, share: float
) -> Found | None:
    kind = known.format(one.format)
    assert kind is not None
    size = known.gib_of(model, one)
    ranks = room.ranks_for(size, share)
    if ranks is None and room.gib is not None:
        return None
    undecided = "" if evaluate(kind.when, facts) is True else kind.needs or describe(kind.when)
    return Found(one, kind, size, ranks, undecided)


def _rank(found: Found, wanted: Wanted, model: Model, known: Checkpoints) -> tuple[int, int, float, int]:
    order = _place(found.checkpoint.format, wanted, known) or 0
    own = found.checkpoint.maker in (model.maker, *wanted.makers)
    return (int(bool(found.open)), order, -found.gib if not wanted.formats else 0.0, int(not own))


def _place(name: str, wanted: Wanted, known: Checkpoints) -> int | None:
    """Where the format stands among those asked for."""
    return next((i for i, asked in enumerate(wanted.formats) if name in known.asked(asked)), None)


def _is_smaller(fitting: list[Found], model: Model, current: str | None, known: Checkpoints) -> bool:
    """Only what takes less than the weights in use helps against a lack of memory."""
    kind = known.format(current) if current is not None else None
    if kind is None:
        return False
    fitting[:] = [f for f in fitting if f.format.bytes < 0.9 * kind.bytes]
    return bool(fitting)


def _none_fits(
    remedy: Remedy,
    wanted: Wanted,
    model: Model,
    candidates: list[Checkpoint],
    room: Room,
    case: Case,
    known: Checkpoints,
) -> Answer:
    kinds = [f for f in known.formats if not wanted.formats or _place(f.name, wanted, known) is not None]
    least = min(known.gib_of(model, Checkpoint("", f.name, "")) for f in kinds)
    if (
        room.gib is not None
        and room.ranks_for(least, 1.0) is None
        and not remedy.edits
        and not wanted.original
    ):
        return Answer(None, case)
    if not candidates:
        said = f"no published checkpoint of {_short(model)} that would do here is known to the doctor"
        return Answer(remedy, case, (said,))
    sizes = ", ".join(f"{one.id} has {_size(known.gib_of(model, one))} GiB" for one in candidates[:SHOWN])
    return Answer(
        remedy, case, (f"no published checkpoint that fits {room.words} is known to the doctor: {sizes}",)
    )


def room_of(facts: Facts) -> Room:
    """The GPUs by what host and log tell."""
    arguments = Arguments(facts)
    nodes = arguments.count("nnodes") or 1
    ranks = (arguments.count("tp_size") or 1) * (arguments.count("pp_size") or 1)
    count = facts.look("host.gpu.count")
    gpus = count * nodes if isinstance(count, int) and not isinstance(count, bool) else ranks
    memory = gpu_memory(facts)
    total, free = (facts.look(f"log.{name}") for name in ("total_mem_gib", "avail_mem_before_load_gib"))
    before = float(free) if isinstance(free, (int, float)) and 0 < free <= _LARGEST else None
    if memory is None:
        seen = float(total) if isinstance(total, (int, float)) else before
        memory = seen * 1024 if seen is not None else None
    gib = memory / 1024 if memory is not None and 0 < memory / 1024 <= _LARGEST else None
    plain = all((arguments.count(name) or 1) == 1 for name in ("pp_size", "dp_size", "ep_size", "nnodes"))
    heads = facts.look("model.heads")
    return Room(
        max(ranks, 1),
        max(gpus, 1),
        gib,
        plain,
        heads if isinstance(heads, int) else None,
        before if before is not None else gib,
    )


def _edits(best: Found, facts: Facts, room: Room) -> Iterator[EditTemplate]:
    """The options that name the weights, and those that go with the old ones only."""
    yield EditTemplate("set", "--model-path", best.checkpoint.id)
    typed = {
        name: value for name in ("quantization", "revision", "load_format", "speculative_draft_model_path")
        if (value := facts.look(f"flag.{name}")) not in (UNKNOWN, None)
    }  # fmt: skip
    if "quantization" in typed and typed["quantization"] != best.format.method:
        yield EditTemplate("remove", "--quantization")
    if "revision" in typed:
        yield EditTemplate("remove", "--revision")
    if typed.get("load_format") in _OWN_LOADING:
        yield EditTemplate("remove", "--load-format")
    draft = typed.get("speculative_draft_model_path")
    if draft is not None and draft == facts.look("flag.model_path"):
        yield EditTemplate("set", "--speculative-draft-model-path", best.checkpoint.id)
    if best.ranks is not None and best.ranks > room.ranks:
        yield EditTemplate("set", "--tp-size", str(best.ranks))


def _served(case: Case, best: Found) -> Case:
    """The case for the proof: what was known of the old files says nothing of the new ones."""
    kept = {n: f for n in case.facts if not n.startswith(_OF_FILES) and (f := case.facts.fact(n))}
    name = "model.quantization"
    kept[name] = Fact(name, best.format.method, Source.DERIVED, best.checkpoint.id)
    return replace(case, facts=Facts(kept, case.facts.contradictions, case.facts.closed), model=None)


def _wants(gib: float) -> str:
    """What weights of that size ask for, where the GPUs are not known."""
    counts = {
        size: next((2**n for n in range(7) if gib <= size * SHARE * 2**n), 0) for size in (80, 141, 288)
    }
    such = " or ".join(f"{count} x {size} GiB" for size, count in counts.items() if count > 1)
    return f"; the GPUs' memory is not known: it takes {gib / SHARE:.0f} GiB of it{f', as {such}' if such else ''}"


def _short(model: Model) -> str:
    return model.base.rpartition("/")[2]


def _size(gib: float) -> str:
    return f"{gib:.0f}" if gib >= 10 else f"{gib:.1f}"
