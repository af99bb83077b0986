"""Smaller numbers of GPUs to split a layer over, where it does not divide."""

from __future__ import annotations

from mtpdoctor.case import Case
from mtpdoctor.kb.types import EditTemplate, Remedy, Safety
from mtpdoctor.sglang.releases import release_facts


def split_remedies(case: Case) -> list[Remedy]:
    """A lower --tp-size, and keeping experts whole. None for a launch on one GPU."""
    tp = case.facts.look("arg.tp_size")
    try:
        ranks = int(str(tp))
    except ValueError:
        ranks = 0
    if ranks == 1:
        return []
    remedies = []
    if ranks > 1:
        fewer = next(n for n in range(ranks // 2, 0, -1) if ranks % n == 0)
        remedies.append(
            Remedy(
                title=f"Split over fewer GPUs: --tp-size {fewer}",
                safety=Safety.RISKY,
                why=f"each GPU then holds {ranks // fewer} times the columns, which may divide again",
                edits=(EditTemplate("set", "--tp-size", str(fewer)),),
                risk="the weights may not fit in fewer GPUs",
            )
        )
        if "ep_size" in release_facts(case.release).fields:
            remedies.append(
                Remedy(
                    title=f"Keep each expert whole: --ep-size {ranks}",
                    safety=Safety.RISKY,
                    why="expert parallelism shares the experts out instead of splitting their matrices",
                    edits=(EditTemplate("set", "--ep-size", str(ranks)),),
                    risk="helps only where the matrix is an expert's; attention and dense layers stay split",
                )
            )
    remedies.append(
        Remedy(
            title="Use another checkpoint of the model (another quantization, other groups or blocks)",
            safety=Safety.MANUAL,
            why="the width that a split must divide by is that of the quantization's groups, blocks or tiles",
        )
    )
    return remedies
