"""The sizes of a split belong together: what a fix makes of one of them has to go with the others of the command, and with
the model's heads where they are known. Pure.

A rule takes a number from its message ("151936 is not divisible by 24") and cannot know that three nodes share it. Where a
number does not go with the rest, the next smaller one that does takes its place; sizes that only follow it are set along
with it; and where no number goes with several nodes, one node serves alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd
from typing import TYPE_CHECKING

from mtpdoctor.facts import whole_number
from mtpdoctor.launch.types import Edit, EditOp
from mtpdoctor.patterns import lazy
from mtpdoctor.records import dataclass, replace
from mtpdoctor.sglang.flags import flag_table

if TYPE_CHECKING:
    from mtpdoctor.case import Case
    from mtpdoctor.facts import Facts

_SIZES = ("tp_size", "pp_size", "dp_size", "ep_size", "nnodes")
_OF_NODES = ("nnodes", "node_rank", "dist_init_addr")
_BILLIONS = lazy(r"(?<![\d.A-Za-z])(?:(?P<times>\d{1,3})x)?(?P<size>\d{1,4}(?:\.\d+)?)[bB](?![a-zA-Z\d])")
_LARGE = 70.0  # billions of parameters of a model whose name tells none
# Ranks that divide the heads of nearly every model up to so many billions of parameters (12, 14, 28, 40, 48, 64, ...).
_ANY = 1 << 16
_COMMON = ((10, 2), (50, 4), (10_000, 8))


@dataclass(frozen=True, slots=True)
class Together:
    """Edits whose sizes go together; ``title`` and ``why`` are "" where nothing had to change."""

    edits: tuple[Edit, ...]
    title: str = ""
    why: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class _Split:
    tp: int
    pp: int
    dp: int
    ep: int
    nodes: int
    shared_attention: bool  # DP attention: --dp-size groups of the tensor parallel ranks

    @property
    def attention(self) -> int:
        return max(self.tp // self.dp, 1) if self.shared_attention and self.dp > 0 else self.tp


def going_together(edits: Sequence[Edit], case: Case, facts: Facts) -> Together | None:
    """The edits, with sizes that go together; None where no size does."""
    kept = Together(tuple(edits))
    before = _before(facts)
    if before is None or case.document is None:
        return kept
    after = _after(before, edits, case)
    if after is None or after.tp == before.tp:
        return kept
    if not 1 <= after.tp <= _ANY:
        return None  # a number of the message that counts no GPUs
    wanted = _followed(after)
    if _divides(wanted, facts):
        return _written(wanted, after, edits, case)
    more = after.tp * after.pp > before.tp * before.pp  # ranks than before: fewer than those are no answer
    for tp in range(after.tp - 1, before.tp if more else 0, -1):
        split = _followed(replace(after, tp=tp))
        if after.tp % tp == 0 and _divides(split, facts):
            why = f"{after.tp} ranks cannot be shared evenly here ({_said(after, facts)})"
            return _written(
                split, after, edits, case, f"Use a smaller tensor parallel size, --tp-size {tp}", why
            )
    return None if more else _on_one_node(before, after, edits, case, facts)


def _on_one_node(
    before: _Split, after: _Split, edits: Sequence[Edit], case: Case, facts: Facts
) -> Together | None:
    if after.nodes < 2 or after.pp > 1:
        return None
    most = min(after.tp, max(before.tp * before.pp // before.nodes, 1), _common(case, facts))
    for tp in range(most, 0, -1):
        split = _followed(replace(after, tp=tp, nodes=1))
        if after.tp % tp == 0 and _divides(split, facts):
            title = f"Serve on one node alone, --tp-size {tp} without --nnodes"
            why = f"no smaller number of ranks can be shared evenly by {after.nodes} nodes"
            return _written(split, after, edits, case, title, why)
    return None


def _common(case: Case, facts: Facts) -> int:
    """The most ranks that heads divide by: of a model whose heads are not known, by its size in its name."""
    if number_of(facts, "model.heads"):
        return _ANY
    size = billions_of(case) or _LARGE
    return next((ranks for billions, ranks in _COMMON if size <= billions), _COMMON[-1][1])


def billions_of(case: Case) -> float | None:
    """The parameters of the model by its name (Qwen3-8B, Mixtral-8x7B), in billions; None where it tells none."""
    name = str(case.facts.look("arg.model_path") or "").rstrip("/").rsplit("/", 1)[-1]
    said = _BILLIONS.search(name)
    return float(said["size"]) * int(said["times"] or 1) if said else None


def _before(facts: Facts) -> _Split | None:
    """As the server has them; None where the number of ranks is not known."""
    tp, *others = (number_of(facts, f"arg.{name}") for name in _SIZES)
    if not tp:
        return None
    pp, dp, ep, nodes = (number or 1 for number in others)
    shared = facts.look("arg.enable_dp_attention") is True or facts.look("flag.enable_dp_attention") is True
    return _Split(tp, pp, dp, ep, nodes, shared)


def _after(before: _Split, edits: Sequence[Edit], case: Case) -> _Split | None:
    """None where an edit sets a size to what is no number."""
    table = flag_table(case.release)
    values = {"tp_size": before.tp, "pp_size": before.pp, "dp_size": before.dp, "ep_size": before.ep, "nnodes": before.nodes}  # fmt: skip
    shared = before.shared_attention
    for edit in edits:
        spec = table.resolve(edit.name) if edit.name else None
        if spec is None:
            continue
        if spec.dest == "enable_dp_attention":
            shared = edit.op is EditOp.ADD
        if spec.dest in values:
            if edit.op is EditOp.REMOVE:
                values[spec.dest] = 1
            elif (size := _whole(edit.value)) is not None:
                values[spec.dest] = size
            else:
                return None
    tp, pp, dp, ep, nodes = (values[name] for name in _SIZES)
    return _Split(tp, pp, dp, ep, nodes, shared)


def _followed(split: _Split) -> _Split:
    """With the sizes that are parts of the tensor parallel one made parts of it."""
    dp = gcd(split.dp, split.tp) if split.shared_attention and split.dp and split.tp % split.dp else split.dp
    ep = gcd(split.ep, split.tp) if split.ep > 1 and split.tp % split.ep else split.ep
    return replace(split, dp=dp, ep=ep)


def _divides(split: _Split, facts: Facts) -> bool:
    return not _said(split, facts)


def _said(split: _Split, facts: Facts) -> str:
    """What does not divide, "" where nothing is known to."""
    if split.nodes > 1 and split.tp * split.pp % split.nodes:
        return f"{split.tp * split.pp} over {split.nodes} nodes"
    heads, groups = number_of(facts, "model.heads"), number_of(facts, "model.kv_heads")
    if heads and heads % split.attention:
        return f"{heads} attention heads"
    if (
        groups
        and facts.look("model.is_mla") is not True
        and groups % split.attention
        and split.attention % groups
    ):
        return f"{groups} key-value heads"
    return ""


def _written(
    split: _Split, after: _Split, edits: Sequence[Edit], case: Case, title: str = "", why: str = ""
) -> Together:
    """The edits with the sizes of ``split`` where they differ from what the edits alone would make."""
    table = flag_table(case.release)
    changed = {
        dest: value
        for dest, value, old in (
            ("tp_size", split.tp, after.tp),
            ("dp_size", split.dp, after.dp),
            ("ep_size", split.ep, after.ep),
        )
        if value != old
    }
    out: list[Edit] = []
    for edit in edits:
        spec = table.resolve(edit.name) if edit.name else None
        dest = spec.dest if spec is not None else ""
        if dest in changed and edit.op is EditOp.SET:
            out.append(replace(edit, value=str(changed.pop(dest))))
        else:
            out.append(edit)
    followed = [dest for dest in changed if dest != "tp_size"]
    uses = case.document.command.flags if case.document is not None else ()
    typed = {spec.dest: use.name for use in uses if (spec := table.resolve(use.name)) is not None}
    for dest in changed:
        spec = table.by_dest(dest)
        if dest in typed or spec is not None:
            out.append(
                Edit(EditOp.SET, typed.get(dest, spec.name if spec is not None else ""), str(changed[dest]))
            )
    if split.nodes == 1 and after.nodes > 1:
        out += [Edit(EditOp.REMOVE, typed[dest]) for dest in _OF_NODES if dest in typed]
    names = " and ".join(typed.get(dest, f"--{dest.replace('_', '-')}") for dest in followed)
    return Together(tuple(out), title, why, f"{names} as well: a part of --tp-size" if names else "")


def number_of(facts: Facts, name: str) -> int | None:
    return _whole(facts.look(name))


def _whole(value: object) -> int | None:
    number = whole_number(value)
    return number if number is None or abs(number) < 10**12 else None  # more counts nothing
