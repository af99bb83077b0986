"""Smaller numbers of GPUs to split a layer over, where it does not divide; whole experts where it is one of theirs."""

from __future__ import annotations

from mtpdoctor.case import Case
from mtpdoctor.facts import whole_number
from mtpdoctor.kb.types import EditTemplate, Match, Remedy, Safety
from mtpdoctor.patterns import lazy
from mtpdoctor.sglang.releases import release_facts

# Files, functions and words of the layers of experts.
_EXPERTS = lazy(r"/layers/moe/|fused_moe|_moe(?:_\w+)?\.py|MoEMethod|\bmlp\.experts\b|self\.experts\b")
_SAID = lazy(r"(?i)\bmoe\b|\bexperts?\b|moe_\w+|\bw13\b|\bw13_")
_BLOCK = lazy(r"(?i)(?:divisible by|multiple of|aligned to)[^\d\n]{0,60}?(\d{1,5})\b")
# Who says that it is the split over GPUs which decides, and whose numbers it does not touch.
_DIVIDED = lazy(
    r"(?i)(?:=\s*|:\s*|^)(?P<what>\d{1,7})\)? (?:is not|must be|isn't) (?:evenly )?divisible by [^\d\n]{0,60}?(?P<by>\d{1,5})\b(?!\s*[*%])"
)
_OF_GPUS = lazy(
    r"(?i)(?<![a-z])(?:tp|tensor[ _-](?:model[ _-])?parallel\w*|ranks?|world[ _]size|partition\w*|shard\w*|\w*heads?|experts?|"
    r"tp_size|tp_rank|attn_tp\w*|moe_tp\w*)(?![a-z])|per[ _-](?:gpu|rank)|(?:in|out)put_size_per"
)
_WEIGHTS = lazy(
    r"ensure_divisible|:divide\b|distributed/utils|create_weights|process_weights|load_weights|weight_loader|/layers/(?:linear|moe/|quantization/|vocab)"
)
_ELSEWHERE = lazy(
    r"/(?:mem_cache|multimodal|disaggregation|managers|constrained|entrypoints)/|processor|vit\b|_vit|image|patch"
)
_HEADS = lazy(r"(?i)heads")
_OF_HEADS = lazy(r"(?i)heads|/attention/|_attn\b|attention")
_NEAREST = 4  # frames


def split_remedies(match: Match, case: Case) -> list[Remedy]:
    """A lower --tp-size, and keeping experts whole, which goes first in a layer of experts: whether half as many GPUs
    help is a matter of sizes, and only where they are known is it surer. None for a launch on one GPU."""
    ranks = whole_number(case.facts.look("arg.tp_size")) or 0
    if ranks == 1 or not _of_gpus(match):
        return []
    remedies: list[Remedy] = []
    if ranks > 1:
        expert = _of_experts(match)
        message = match.traceback.message if match.traceback is not None else match.line.body
        heads = not expert and _OF_HEADS.search(f"{message}\n{_code(match)}") is not None
        fewer, sure = _fewer(match, case, ranks, expert)
        whole = [] if heads else _whole_experts(ranks, case)
        on_fewer = [_on_fewer(ranks, fewer, sure)] if fewer is not None else []
        remedies += [*whole, *on_fewer] if expert and not sure else [*on_fewer, *whole]
    remedies.append(
        Remedy(
            title="Use another checkpoint of the model (another quantization, other groups or blocks)",
            safety=Safety.MANUAL,
            why="the width that a split must divide by is that of the quantization's groups, blocks or tiles",
        )
    )
    return remedies


def _of_gpus(match: Match) -> bool:
    """Whether the split over GPUs has a part in what must divide: not so of pages, images or rings."""
    if match.traceback is None:
        return True
    frames = match.traceback.frames[-1:]
    place = "\n".join(f"{frame.path}:{frame.function}" for frame in frames)
    said = match.traceback.message + "\n" + "\n".join(frame.code for frame in frames)
    if _OF_GPUS.search(said) is not None:
        return True
    return bool(not frames or _WEIGHTS.search(place)) and _ELSEWHERE.search(f"{place}\n{said}") is None


def _code(match: Match) -> str:
    """Where it failed, in the nearest frames."""
    frames = match.traceback.frames[-_NEAREST:] if match.traceback is not None else ()
    return "\n".join(f"{frame.path}:{frame.function}\n{frame.code}" for frame in frames)


def _of_experts(match: Match) -> bool:
    if match.traceback is None:
        return _SAID.search(match.line.body) is not None
    nearest = match.traceback.frames[-_NEAREST:]
    return _SAID.search(match.traceback.message) is not None or any(
        _EXPERTS.search(f"{frame.path}:{frame.function}\n{frame.code}") for frame in nearest
    )


def _fewer(match: Match, case: Case, ranks: int, expert: bool) -> tuple[int | None, str]:
    """How many GPUs instead, and the sizes that show that it divides then ("" where they are not known). None where
    they show that no smaller number does."""
    half = next(n for n in range(ranks // 2, 0, -1) if ranks % n == 0)
    message = match.traceback.message if match.traceback is not None else match.line.body
    heads = whole_number(case.facts.look("model.heads")) if _HEADS.search(message) and not expert else None
    if heads:
        whole = next((n for n in range(ranks - 1, 0, -1) if heads % n == 0), 1)
        return whole, f"the model has {heads} attention heads: {heads // whole} a GPU"
    divided = _DIVIDED.search(message)
    if divided is not None and int(divided["by"]) > 0:
        return _of_numbers(int(divided["what"]), int(divided["by"]), ranks)
    said = _BLOCK.search(message)
    width = whole_number(case.facts.look("model.expert_intermediate_size")) if expert else None
    if width is None or said is None or int(said[1]) < 1:
        return half, ""
    block = int(said[1])
    fits = next((n for n in range(half, 0, -1) if ranks % n == 0 and width % (n * block) == 0), None)
    if fits is None:
        return None, ""
    return fits, f"the experts are {width} wide: {width // fits} a GPU is {width // fits // block} x {block}"


def _of_numbers(what: int, by: int, ranks: int) -> tuple[int | None, str]:
    """``what`` is not divisible by ``by``: by the number of ranks itself, or it is one rank's share that does not fill blocks."""
    if by == ranks:
        fits = next(n for n in range(ranks - 1, 0, -1) if what % n == 0)
        return fits, f"{what} = {fits} x {what // fits}"
    whole = what * ranks
    found = next((n for n in range(ranks // 2, 0, -1) if ranks % n == 0 and whole // n % by == 0), None)
    if found is None:
        return None, ""  # fewer GPUs do not help, as far as the message's numbers tell
    return found, f"each GPU then holds {whole // found} = {whole // found // by} x {by} of it"


def _on_fewer(ranks: int, fewer: int, sure: str) -> Remedy:
    return Remedy(
        title=f"Split over fewer GPUs: --tp-size {fewer}",
        safety=Safety.RISKY,
        why=sure or f"each GPU then holds {ranks // fewer} times the columns, which may divide again",
        edits=(EditTemplate("set", "--tp-size", str(fewer)),),
        risk="the weights may not fit in fewer GPUs",
    )


def _whole_experts(ranks: int, case: Case) -> list[Remedy]:
    if (
        "ep_size" not in release_facts(case.release).fields
        or whole_number(case.facts.look("arg.ep_size")) == ranks
    ):
        return []
    return [
        Remedy(
            title=f"Keep each expert whole: --ep-size {ranks}",
            safety=Safety.RISKY,
            why="expert parallelism shares the experts out instead of splitting their matrices",
            edits=(EditTemplate("set", "--ep-size", str(ranks)),),
            risk="helps only where the matrix is an expert's; attention and dense layers stay split",
        )
    ]
