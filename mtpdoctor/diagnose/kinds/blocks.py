"""Which split of a matrix is a multiple of its quantization block, by the sizes that the message gives."""

from __future__ import annotations

from math import lcm

from mtpdoctor.case import Case
from mtpdoctor.diagnose.kinds.upgrade import upgrade_remedies
from mtpdoctor.facts import whole_number
from mtpdoctor.kb.types import EditTemplate, Match, Remedy, Safety
from mtpdoctor.patterns import lazy
from mtpdoctor.records import dataclass, replace
from mtpdoctor.sglang.flags import flag_table

# Of the message: an expert's matrix is cut over the ranks that share one expert, others over all ranks.
_EXPERT = lazy(r"gate's and up's weight|down's weight|quantized MoE models")
_MOE_SIZES = lazy(r"moe_intermediate_size=(\d{1,9}) / moe_tp_size=(\d{1,9})(?!\d)")
_ATTENTION = lazy(r"(?i)attn|attention|\bq(?:kv)?_|\b[kvo]_proj")
_MODEL_FILE = "/models/"
MOST_TIMES = 16  # fewer GPUs: a launch with more is rare
_ASSIGNED = lazy(r"^self\.(\w+) = ")
# Layers that every release quantizes where the checkpoint does: a later one refuses their size just the same.
_ALWAYS_QUANTIZED = {"gate_up_proj", "down_proj", "qkv_proj", "o_proj"}
# Files of models whose shared expert is as wide as one of the others (qwen2_moe.py builds the block of Qwen3-Next).
_SHARED_AS_WIDE = {"qwen3_next.py"}
_SHARED_CUT = "the shared expert is still cut over all ranks (but for DeepEP) and may fail in the same way"
# Their __init__ asserts a single pipeline stage in every release up to 0.5.23.
_ONE_STAGE = {"qwen3_next.py"}


@dataclass(frozen=True, slots=True)
class _Split:
    whole: int  # columns (or rows) of the matrix over all ranks that share it
    ways: int  # ranks that share it
    block: int
    expert: bool
    layer: str  # what the model calls it, "" where no frame says

    def divides(self, ways: int) -> bool:
        return self.whole % ways == 0 and (self.whole // ways) % self.block == 0

    @property
    def fewer(self) -> int | None:
        """The most ranks, fewer than now, over which whole blocks can be shared out."""
        fitting = (n for n in range(self.ways - 1, 0, -1) if self.ways % n == 0 and self.divides(n))
        return next(fitting, None)


def block_remedies(match: Match, case: Case) -> list[Remedy]:
    """Experts kept whole, fewer ranks, pipeline stages - each only where the sizes say that it helps. Nothing
    of that where even the whole matrix is no multiple of the block."""
    split = _split(match, case)
    other = Remedy(
        title="Use a checkpoint of the model with other blocks, or without block quantization",
        safety=Safety.MANUAL,
        why="what has to divide is given by the quantization_config of the checkpoint",
    )
    if split is None:
        return [*_unseen_split(match, case), other]
    if not split.divides(1):
        unquantized = replace(
            other, title="Use a checkpoint that leaves this layer unquantized, or a BF16 one"
        )
        if split.layer in _ALWAYS_QUANTIZED:
            return [
                replace(
                    unquantized,
                    why=f"the matrix is {split.whole} wide as a whole, so neither another --tp-size nor another "
                    f"release helps; weight_block_size in config.json does not fit the sizes beside it",
                )
            ]
        later = [
            replace(
                r,
                why=f"the matrix is {split.whole} wide as a whole, so no --tp-size helps; later releases leave "
                f"more layers unquantized, as the checkpoint has them",
            )
            for r in upgrade_remedies(None, case)
        ]
        return [*later, unquantized]
    whole = _whole_experts(split, case) if split.expert else []
    tp = whole_number(case.facts.look("arg.tp_size"))
    fewer = []
    if split.fewer is not None and tp:
        fewer = _fewer(split, tp, tp * split.fewer // split.ways, _files(match), case)
    if _files(match) & _SHARED_AS_WIDE:
        # The shared expert is cut over all ranks even where the others are kept whole, so it fails next.
        return [*fewer, *(replace(r, risk=f"{r.risk}; {_SHARED_CUT}") for r in whole), other]
    return [*whole, *fewer, other]


def _unseen_split(match: Match, case: Case) -> list[Remedy]:
    """What helps where the log does not show over how many ranks the matrix is cut."""
    block, width = (_size(match, name) for name in ("block", "width"))
    if not block or not width or whole_number(case.facts.look("arg.tp_size")) is not None:
        return []
    times = lcm(block, width) // width
    if not 1 < times <= MOST_TIMES:
        return []
    share = f"a rank then gets {times * width} = {times * width // block} x {block}"
    fewer = Remedy(
        title=f"Split over {times} times fewer GPUs, --tp-size divided by {times}",
        safety=Safety.MANUAL,
        why=f"{share} in place of {width}; where --tp-size is no multiple of {times}, no smaller one helps",
    )
    whole = Remedy(
        title="Keep each expert whole, --ep-size as large as --tp-size",
        safety=Safety.MANUAL,
        why="experts are shared out instead of cut; all GPUs stay in use",
    )
    return [whole, fewer] if _EXPERT.search(match.line.text) is not None else [fewer]


def _whole_experts(split: _Split, case: Case) -> list[Remedy]:
    table, tp = flag_table(case.release), whole_number(case.facts.look("arg.tp_size"))
    out = []
    if tp and tp > 1 and table.by_dest("ep_size") is not None:
        out.append(
            Remedy(
                title=f"Keep each expert whole: --ep-size {tp}",
                safety=Safety.RISKY,
                why=f"experts are shared out instead of cut, and the whole {split.whole} is {split.whole // split.block} "
                f"blocks of {split.block}; all GPUs stay in use",
                edits=(EditTemplate("set", "--ep-size", str(tp)),),
                risk="the load of the ranks depends on which experts are asked for; not every MoE backend has it",
            )
        )
    backend = table.by_dest("moe_runner_backend")
    now = str(case.facts.look("arg.moe_runner_backend"))
    if "mxfp4" in now and backend is not None and "marlin" in {str(c) for c in backend.choices or ()}:
        out.append(
            Remedy(
                title="Let Marlin compute the MXFP4 experts: --moe-runner-backend marlin",
                safety=Safety.RISKY,
                why=f"another layout of the weights; {now} is what asks for the block here",
                edits=(EditTemplate("set", "--moe-runner-backend", "marlin"),),
                risk="slower on GPUs with FP4 of their own; this release may check the same size for it",
            )
        )
    return out


def _fewer(split: _Split, tp: int, fewer: int, files: set[str], case: Case) -> list[Remedy]:
    nodes = whole_number(case.facts.look("arg.nnodes")) or 1
    if fewer < 1 or tp % fewer or fewer % nodes:
        return []  # the message's ranks are not those of the command
    assert split.fewer is not None
    share = f"a rank then gets {split.whole // split.fewer} = {split.whole // split.fewer // split.block} x {split.block}"
    out = [
        Remedy(
            title=f"Split over fewer GPUs: --tp-size {fewer}",
            safety=Safety.RISKY,
            why=share,
            edits=(EditTemplate("set", "--tp-size", str(fewer)),),
            risk=f"the weights then have to fit on {fewer} GPU{'s' if fewer > 1 else ''}",
        )
    ]
    if not split.expert and _ATTENTION.search(split.layer) and fewer < tp:
        out.append(
            Remedy(
                title=f"Attention in {tp // fewer} groups of {fewer} (DP attention), all GPUs in use",
                safety=Safety.RISKY,
                why=share,
                edits=(
                    EditTemplate("add", "--enable-dp-attention"),
                    EditTemplate("set", "--dp-size", str(tp // fewer)),
                ),
                risk="attention weights are held once a group; not every model has DP attention",
            )
        )
    elif nodes == 1 and whole_number(case.facts.look("arg.pp_size")) in (None, 1) and not files & _ONE_STAGE:
        out.append(
            Remedy(
                title=f"--tp-size {fewer} in {tp // fewer} pipeline stages, all GPUs in use",
                safety=Safety.RISKY,
                why=share,
                edits=(
                    EditTemplate("set", "--tp-size", str(fewer)),
                    EditTemplate("set", "--pp-size", str(tp // fewer)),
                ),
                risk="not every model and option goes with pipeline stages",
            )
        )
    return out


def block_said(match: Match, case: Case) -> str:
    """The sizes of the failure in numbers; "" where the message does not give them."""
    split = _split(match, case)
    if split is None:
        return ""
    name = f" ({split.layer})" if split.layer else ""
    cut = f"The matrix{name} is {split.whole} wide, cut {split.ways} ways into {split.whole // split.ways}"
    if not split.divides(1):
        return f"{cut}. Even whole it is no multiple of {split.block}: no --tp-size helps."
    if split.fewer is None:
        return f"{cut}."
    return f"{cut}; it has {split.whole // split.block} blocks, which {split.fewer} ways divide."


def _split(match: Match, case: Case) -> _Split | None:
    text = match.line.text
    block, width = _size(match, "block"), _size(match, "width")
    expert = _EXPERT.search(text) is not None
    if not block:
        return None
    if found := _MOE_SIZES.search(text):
        whole, ways = int(found[1]), int(found[2])
    else:
        ways_now = _ways(case, expert)
        if ways_now is None or not width:
            return None
        whole, ways = width * ways_now, ways_now
    return _Split(whole, ways, block, expert, _layer(match)) if ways > 0 else None


def _size(match: Match, name: str) -> int:
    """A size that the message gives; 0 where it gives none, or what is no size of a matrix."""
    shown = match.captures.get(name, "")
    return int(shown) if shown.isdecimal() and len(shown) < 10 else 0


def _ways(case: Case, expert: bool) -> int | None:
    tp = whole_number(case.facts.look("arg.tp_size"))
    ep = whole_number(case.facts.look("arg.ep_size")) or 1
    if tp is None or (case.facts.look("arg.enable_dp_attention") is True and not expert):
        return None  # attention and other layers are then cut differently
    return tp // ep if expert and tp % ep == 0 else tp


def _layer(match: Match) -> str:
    """The attribute to which the innermost frame in the model's code assigns."""
    if match.traceback is None:
        return ""
    for frame in reversed(match.traceback.frames):
        if _MODEL_FILE in frame.path and (found := _ASSIGNED.match(frame.code.strip())):
            return found[1]
    return ""


def _files(match: Match) -> set[str]:
    """Names of the model files among the frames."""
    frames = match.traceback.frames if match.traceback is not None else ()
    return {f.path.rpartition("/")[2] for f in frames if _MODEL_FILE in f.path}
