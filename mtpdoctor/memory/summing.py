"""The memory sum of a launch: what needs how much of each GPU, whether it fits, and what to move.

Pure: everything it knows stands in the case and the model. The arguments should be those in force:
a log's, or resolved as the release would (``kb.resolution``).
"""

from __future__ import annotations

from mtpdoctor.case import Case
from mtpdoctor.memory.advice import WORTH, advise, lowered_fraction, words_for
from mtpdoctor.memory.architecture import is_multimodal
from mtpdoctor.memory.automatic import automatic_fraction
from mtpdoctor.memory.budget import Budget, make_budget
from mtpdoctor.memory.launch import Launch, read_launch
from mtpdoctor.memory.limits import Limits, find_limits
from mtpdoctor.memory.needs import CONTEXT_GIB, nccl_gib
from mtpdoctor.memory.pools import GIB
from mtpdoctor.memory.printed import Printed, read_printed
from mtpdoctor.memory.sanity import senseless
from mtpdoctor.memory.troubles import Trouble, is_sure, others_gib, trouble_foreseen, trouble_seen
from mtpdoctor.memory.types import Count, MemorySum, Term
from mtpdoctor.memory.unfollowed import eased_by, not_followed
from mtpdoctor.model.types import ModelFacts, WeightFacts

_NO_RELEASE = MemorySum("each GPU", None, None, (), (), None, None, missing=("release",))


def memory_sum(
    case: Case, model: ModelFacts | None, draft: ModelFacts | None = None, *, failed: bool = False
) -> MemorySum:
    """``draft`` is the model of --speculative-draft-model-path, where it is known. ``failed``: the log of
    the case shows a failure of memory; the advice is then about that one."""
    launch = read_launch(case, model)
    if launch is None:
        return _NO_RELEASE
    if wrong := senseless(case.facts):
        return MemorySum(
            "each GPU", None, None, (), (), None, None,
            missing=tuple(f"arg.{name}" for name, _ in wrong), notes=tuple(said for _, said in wrong),
        )  # fmt: skip
    seen = read_printed(case.facts)
    weights = weights_of(model)
    budget = make_budget(case, launch, seen, model, weights, draft, weights_of(draft))
    limits = find_limits(budget, model, weights, _automatic(launch, model))
    foreseen = trouble_foreseen(budget, limits, seen)
    trouble = trouble_seen(budget, limits, seen) if failed else foreseen
    missing = _missing(case, budget, model)
    fits = None if foreseen is Trouble.UNKNOWN else foreseen is Trouble.NONE
    words = words_for(trouble, budget, seen)
    unknown = None if failed or fits is None else _undecided(launch, model, fits)
    if unknown is not None:
        fits, words = None, f"Not decided: {unknown}."
    return MemorySum(
        rank="each GPU" if launch.pp == 1 else "the fullest stage",
        total_gib=budget.total,
        free_gib=budget.free,
        terms=tuple(_terms(budget, seen)),
        counts=tuple(_counts(budget, seen)),
        fits=False if failed else fits,
        left_gib=_left(budget, seen, failed),
        advice=advise(trouble, budget, limits, seen),
        missing=missing if fits is None else (),
        notes=tuple(n for n in (words, *_notes(budget, limits, model, weights, fits is True)) if n),
        trouble=trouble.value,
        numbers=_numbers(budget, limits, seen, trouble, is_sure(case, model, budget, limits, seen, foreseen)),
    )


def _left(budget: Budget, seen: Printed, failed: bool) -> float | None:
    """After everything. Of a launch with a log whose pools cannot be computed: what the log prints, else what the
    terms leave, and nothing where one of them is not known."""
    if not failed or budget.pools is not None or budget.remaining is None or budget.remaining < 0:
        return budget.remaining
    if seen.ready is not None:
        return seen.ready
    if seen.kv is None:
        return None
    after = budget.after if budget.after is not None else (budget.before or 0.0) - (budget.weights or 0.0)
    return (
        after
        - seen.kv
        - (seen.draft_kv or 0.0)
        - (seen.state or 0.0)
        - (seen.spec_state or 0.0)
        - budget.outside
    )


def _undecided(launch: Launch, model: ModelFacts | None, fits: bool) -> str | None:
    """Why the sum's answer is none, in words."""
    why = not_followed(launch, model)
    if why is None and not fits and (eased := eased_by(launch)):
        why = f"--{eased[0].replace('_', '-')} keeps a part off the GPU that the sum does not follow"
    return why


def weights_of(model: ModelFacts | None) -> WeightFacts | None:
    """From the model's files where they are at hand and whole, else from its config alone."""
    if model is None:
        return None
    if model.weights is not None and model.weights.groups and model.weights.complete:
        return model.weights
    if not model.raw:
        return None
    from mtpdoctor.model.by_config import weights_by_config

    return weights_by_config(model)


def _automatic(launch: Launch, model: ModelFacts | None) -> float | None:
    """The share that SGLang sets by itself: the one in force, where nothing was typed."""
    if not launch.fraction_typed and launch.fraction is not None:
        return launch.fraction
    return automatic_fraction(
        launch.arguments,
        launch.release,
        launch.gpu_mib,
        launch.chunk,
        launch.decode_batch,
        launch.prefill_graphs,
        model,
        is_multimodal(model, launch.arguments),
        launch.algorithm,
    )


def _missing(case: Case, budget: Budget, model: ModelFacts | None) -> tuple[str, ...]:
    """The facts that would decide it, and are not known."""
    out = []
    if budget.before is None:
        out.append("host.gpu.memory_gib")
    if budget.weights is None or (budget.left is not None and budget.cell is None):
        out.append("model.path" if model is None else "model.architecture")
    if budget.launch.fraction is None and budget.before is not None:
        out.append("arg.mem_fraction_static" if budget.total is not None else "host.gpu.memory_gib")
    return tuple(dict.fromkeys(out))


def _terms(budget: Budget, seen: Printed) -> list[Term]:
    launch, pools = budget.launch, budget.pools
    out = []
    others = others_gib(budget, seen)
    if others is not None and others > 0.3:
        out.append(Term("other processes", others, "held before this launch"))
    context = CONTEXT_GIB + nccl_gib(launch)
    out.append(Term("CUDA context and NCCL", context, "measured, not computed"))
    how = (
        budget.parts.how
        if budget.parts
        else "as the log prints it"
        if budget.weights is not None
        else "not known"
    )
    out.append(Term("weights", budget.weights, how, seen.weights))
    if launch.has_draft:
        how = f"{'inside' if budget.counted else 'beside'} --mem-fraction-static in {launch.release}"
        if budget.draft_copies > 0.01:
            how += f"; {budget.draft_copies:.2f} more until it shares the target's embedding"
        known = bool(budget.draft_weights) or seen.draft_weights is not None
        printed = None if seen.draft_weights is None else max(0.0, seen.draft_weights - budget.draft_copies)
        out.append(Term("draft weights", budget.draft_weights if known else None, how, printed))
    if pools is None:
        out.append(
            Term("KV pool", seen.kv, "as the log prints it" if seen.kv is not None else "not known", seen.kv)
        )
        return [*out, *_beside(budget, seen)]
    assert budget.cell is not None
    tokens = max(pools.tokens, 0)
    two = f", {pools.window_tokens:,} in the window pool" if budget.cell.window_layers else ""
    out.append(Term("KV pool", pools.kv / GIB, f"{budget.cell.how} x {tokens:,} tokens{two}", seen.kv))
    if launch.has_draft and budget.cell.draft:
        out.append(
            Term(
                "draft KV pool",
                pools.draft_kv / GIB,
                f"{budget.cell.draft:,.0f} bytes x {tokens:,} tokens, "
                + ("counted in" if budget.cell.counted else "on top"),
                seen.draft_kv,
            )
        )
    if budget.state is not None and pools.slots is not None:
        printed = None if seen.state is None else seen.state + (seen.spec_state or 0.0)
        spec = f" + {launch.draft_tokens} a draft" if pools.spec_state else ""
        how = f"{max(pools.slots, 0):,} slots x {budget.state.slot / 2**20:.2f} MiB{spec}"
        out.append(Term("linear-attention state", (pools.state + pools.spec_state) / GIB, how, printed))
    out.append(
        Term(
            "index tables",
            pools.request_table / GIB,
            f"{max(pools.requests, 0):,} requests x {budget.context:,} positions x 4 bytes",
        )
    )
    return [*out, *_beside(budget, seen)]


def _beside(budget: Budget, seen: Printed) -> list[Term]:
    launch = budget.launch
    batch = launch.decode_batch
    graphs = "off" if batch == 0 and not launch.prefill_graphs else f"batches up to {batch}"
    if launch.prefill_graphs:
        graphs += f", {len(launch.prefill_graphs)} sizes of prefill"
    printed = seen.graphs if seen.graphs is not None and seen.graphs >= 0 else None
    chunk = f"estimate: prefill of {launch.chunk:,} tokens" if launch.chunk else "estimate"
    return [
        Term("graph capture", budget.graphs, f"estimate: {graphs}" if printed is None else graphs, printed),
        Term("activations", budget.activations, chunk),
    ]


def _counts(budget: Budget, seen: Printed) -> list[Count]:
    pools = budget.pools
    if pools is None:
        if seen.tokens is None:
            return []
        return [Count("KV tokens", None, "not computed: the model is not known", seen.tokens)]
    assert budget.cell is not None
    how = f"what is left, {max(budget.left or 0, 0):,.2f} GiB, by {budget.cell.sizing:,.0f} bytes a token"
    if pools.profiled > max(pools.tokens, 0) and budget.launch.max_tokens is not None:
        how = f"--max-total-tokens; there would be room for {pools.profiled:,}"
    if budget.state is not None:
        how = "what the state leaves, " + how.removeprefix("what is left, ")
    out = [Count("KV tokens", max(pools.tokens, 0), how, seen.tokens)]
    if budget.cell.window_layers:
        out.append(Count("window tokens", pools.window_tokens, "", seen.window_tokens))
    if pools.slots is not None:
        out.append(Count("state slots", max(pools.slots, 0), "", seen.slots))
    out.append(Count("requests at once", max(pools.requests, 0), "", seen.requests))
    if pools.tokens > 0:
        out.append(
            Count("of full context", int(pools.tokens // budget.context), f"{budget.context:,} tokens each")
        )
    return out


def _notes(
    budget: Budget,
    limits: Limits,
    model: ModelFacts | None,
    weights: WeightFacts | None,
    fits: bool,
) -> list[str]:
    out = []
    if (
        fits
        and limits.context is not None
        and limits.context_saves >= 1
        and budget.pools
        and budget.pools.tokens > 0
    ):
        out.append(
            f"The table of which request holds which token is as long as the context. --context-length "
            f"{limits.context} would save {limits.context_saves:,.1f} GiB and lose nothing: the KV pool holds no "
            "longer request."
        )
    if weights is not None and weights.source == "config" and budget.parts is not None:
        out.append("The weights are worked out from config.json; no weight file was read.")
    if weights is not None and weights.unknown:
        out.append(f"Not in the weights, their size is not known: {', '.join(weights.unknown)}.")
    if budget.launch.has_draft and not budget.draft_weights and budget.launch.draft_path is not None:
        out.append("The draft model is not at hand: its weights are not in the sum.")
    return out


def _numbers(
    budget: Budget,
    limits: Limits,
    seen: Printed,
    trouble: Trouble,
    sure: bool,
) -> dict[str, float | int | str | bool]:
    """The facts ``memory.*``, by their last name; what is not known is absent."""
    values: dict[str, float | int | str | bool | None] = {
        "known": True if budget.before is not None and budget.launch.fraction is not None else None,
        "sure": sure,
        "automatic_works": limits.automatic_works,
        "trouble": trouble.value,
        "fraction": _round(budget.launch.fraction, 6),
        "fraction_least": limits.least,
        "fraction_most": limits.most,
        "fraction_best": limits.best,
        "fraction_lower": lowered_fraction(budget, limits, seen),
        "hopeless": limits.hopeless if limits.least is not None else None,
        "weights_gib": _round(budget.weights, 2),
        "before_gib": _round(budget.before, 2),
        "left_gib": _round(budget.remaining, 2),
        "others_gib": _round(others_gib(budget, seen), 2),
        "kv_tokens": max(budget.pools.tokens, 0) if budget.pools else None,
        "requests": max(budget.pools.requests, 0) if budget.pools else None,
        "max_running_requests": limits.requests,
        "cuda_graph_max_bs": limits.decode_batch,
        "chunked_prefill_size": limits.chunk,
        "context_length": limits.context if limits.context_saves >= WORTH else None,
        "context_saves_gib": round(limits.context_saves, 1) if limits.context_saves >= WORTH else None,
        "table_requests": limits.table_requests,
        "tp_least": limits.tp,
        "fraction_typed": budget.launch.fraction_typed,
    }
    return {name: value for name, value in values.items() if value is not None}


def _round(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)
