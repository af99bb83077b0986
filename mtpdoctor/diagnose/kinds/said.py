"""Options and variables that an error message names or speaks of, and what it says to do with them."""

from __future__ import annotations

from collections.abc import Iterator

from mtpdoctor.case import Case
from mtpdoctor.diagnose.kinds.asked import Asked, asked
from mtpdoctor.diagnose.kinds.bare_values import value_meant
from mtpdoctor.diagnose.named_options import is_setting, is_word, named_in
from mtpdoctor.facts import UNKNOWN
from mtpdoctor.kb.types import EditTemplate, Match, Remedy, Safety
from mtpdoctor.patterns import lazy
from mtpdoctor.sglang.flags import FlagSpec, FlagTable, flag_table
from mtpdoctor.sglang.help import explain_choice
from mtpdoctor.sglang.options import same_option
from mtpdoctor.sglang.releases import release_facts

MAX_NAMED = 4
_ENV_VALUE = lazy(r"\s*(?:=|to)\s*['\"`]?(?P<value>[A-Za-z0-9_]+)")
_AWAY = lazy(
    r"(?i)\b(?:disabl\w+|remov\w+|without|unset\w*|drop\w*|omit\w*|turn(?:ing)? off|do not (?:use|set|pass)|"
    r"not (?:be )?(?:supported|compatible|allowed|used)|cannot be (?:used|combined|enabled)|"
    r"(?:in|not )compatible|conflicts?|mutually exclusive|(?:does not|doesn't) support|unsupported)\b"
)
_TOWARDS = lazy(
    r"(?i)\b(?:use|using|set|setting|specify|specifying|add|adding|pass|passing|provide|try|enable|switch to|choose|"
    r"require[sd]?|need(?:s|ed)?|must|should|please|consider|increas\w+|reduc\w+|lower\w*|rais\w+|decreas\w+)\b"
)
# What a message calls an option in words, and the fields that the options set.
_SPOKEN = tuple(
    (lazy(rf"(?i)(?<![\w-])(?:{words})(?![\w])"), dests)
    for words, dests in (
        (r"quantization(?: method| config\w*)?|quant_method|quantized", ("quantization",)),
        (
            r"draft(?:er)?(?: model)?|speculat\w+|EAGLE3?|NEXTN|MTP|DFLASH|ngram",
            ("speculative_algorithm", "speculative_draft_model_path"),
        ),
        (r"load[ _-]format", ("load_format",)),
        (r"pipeline[ _-]parallel\w*|pp[ _]size|pp(?= ?[=<>])", ("pp_size",)),
        (r"tensor[ _-](?:model[ _-])?parallel\w*|tp[ _]size|tp(?= ?[=<>])", ("tp_size",)),
        (r"expert[ _-]parallel\w*|ep[ _]size|ep(?= ?[=<>])", ("ep_size",)),
        (r"dp[ _-]attention|data[ _-]parallel attention", ("enable_dp_attention", "dp_size")),
        (r"data[ _-]parallel\w*|dp[ _]size", ("dp_size",)),
        (r"two[ _-]batch[ _-]overlap|tbo", ("enable_two_batch_overlap",)),
        (r"overlap(?:ped)? (?:schedul\w+|worker)", ("disable_overlap_schedule",)),
        (r"radix[ _-]cache|prefix[ _-]cach\w+", ("disable_radix_cache",)),
        (r"hicache|hierarchical[ _-]cach\w+", ("enable_hierarchical_cache", "hicache_size")),
        (r"page[ _-]size", ("page_size",)),
        (r"kv[ _-]cache[ _-]d?type|kv[ _-]cache (?:in )?fp[48]|fp[48] kv[ _-]cache", ("kv_cache_dtype",)),
        (
            r"(?:vision|vit|multi-?modal|mm) attention(?: backend)?|vision\w*attention\w*",
            ("mm_attention_backend",),
        ),
        (r"linear[ _-]attention(?: backend)?|gdn|kda", ("linear_attn_backend",)),
        (r"prefill (?:attention )?backend", ("prefill_attention_backend",)),
        (r"decode (?:attention )?backend", ("decode_attention_backend",)),
        (
            r"(?:decode |prefill )?attention backends?|attn[ _-]backend|flashattention|fmha|mla backend",
            ("attention_backend",),
        ),
        (
            r"moe[ _-](?:runner[ _-])?backends?|MoeRunnerBackend\w*|fused[ _-]?moe|moe (?:kernels?|runner)",
            ("moe_runner_backend",),
        ),
        (r"all[ _-]?to[ _-]?all|a2a|deepep", ("moe_a2a_backend", "deepep_mode")),
        (r"sampling backend", ("sampling_backend",)),
        (r"grammar(?: backend)?|structured output", ("grammar_backend",)),
        (r"mamba\w*(?: strategy| scheduler)?|extra_buffer|no_buffer", ("mamba_scheduler_strategy",)),
        (r"context[ _-]length|max(?:imum)?[ _-]model[ _-]len|max_position_embeddings", ("context_length",)),
        (r"chunked[ _-]prefill(?: size)?", ("chunked_prefill_size",)),
        (r"cuda[ _-]graphs?|capture_bs", ("cuda_graph_max_bs", "disable_cuda_graph")),
        (r"piecewise", ("disable_piecewise_cuda_graph",)),
        (r"torch[ ._-]compile", ("enable_torch_compile",)),
        (r"lora backend", ("lora_backend",)),
        (r"lora\w*|adapters?", ("lora_paths", "enable_lora", "lora_target_modules")),
        (r"disaggregat\w+", ("disaggregation_mode", "disaggregation_transfer_backend")),
        (r"chat[ _-]template", ("chat_template",)),
        (r"tool[ _-]call[ _-]parser", ("tool_call_parser",)),
        (r"reasoning[ _-]parser", ("reasoning_parser",)),
        (r"(?:unknown |torch )?dtype|data type|bfloat16|float16", ("dtype",)),
        (r"custom[ _-]?all[ _-]?reduce", ("disable_custom_all_reduce",)),
        (r"memory[ _-]saver", ("enable_memory_saver",)),
        (r"expert distribution|eplb", ("enable_eplb", "expert_distribution_recorder_mode")),
        (r"trust[ _-]remote[ _-]code|custom code", ("trust_remote_code",)),
        (r"model[ _-]path|repo(?:sitory)? id", ("model_path",)),
        (r"tokenizers?|image processors?|processors?", ("tokenizer_path", "tokenizer_mode")),
        (r"storage backends?|\w* ?store|hf3fs\w*|\w*aibrix\w*", ("hicache_storage_backend",)),
        (r"event publisher", ("kv_events_config",)),
        (r"lay(?:er|out)s? (?:first|page)|mem(?:ory)?[ _-]layout", ("hicache_mem_layout",)),
        (r"host memory", ("hicache_size",)),
        (r"number of nodes|multi[ -]?nodes?|node rank|nnodes", ("nnodes",)),
        (r"max[ _-]running[ _-]requests", ("max_running_requests",)),
        (r"fp8[ _-]gemm", ("fp8_gemm_runner_backend",)),
        (r"fp4[ _-]gemm|nvfp4 gemm", ("fp4_gemm_runner_backend",)),
    )
)
_REFUSES = lazy(
    r"(?i)not (?:yet |currently )?(?:supported|compatible|implemented|allowed|available)|unsupported|incompatible|"
    r"(?:does|do|is|are|can|could)(?:n't| not)\b|cannot|mismatch|only (?:support|available|work|for)|invalid|unknown|requires?|must"
)
_LISTS = lazy(
    r"(?i)\b(?:only|one of|must be|choose|allowed|expected|among)\b|(?<!not )(?<!not currently )(?<!not yet )\bsupported\b"
)
_OF_THE_MODEL = frozenset({"tool_call_parser", "reasoning_parser", "chat_template"})
_NO_VALUE = frozenset({"true", "false", "none", "auto"})
_CHOICE = lazy(r"[\w-]+")
# What a tensor is like, where C++ code stands and who the peer of a connection is, in a message: no settings of the launch.
_TENSOR = lazy(
    r"\[?/[\w./+-]+\.(?:cc|cpp|cuh?|h|hpp):\d+\]?|\[[\da-f.:]+\]:\d+|\b[Tt]ensor(?:<\d+>)?[\[(][^\])]*[\])]|\b(?:device|dtype|shape|strides?)\s?=\s?['\"]?[\w.:<>]+|\bcuda:\d+"
)
_BEFORE = 60  # characters before a name in which a verb speaks of it


def said_remedies(match: Match, case: Case) -> list[Remedy]:
    """What the message of the exception (or the line) says to set or leave out; else, to look at."""
    text = " ".join(_TENSOR.sub(" ", _message(match)).split())
    table = flag_table(case.release)
    remedies: list[Remedy] = [_ALIKE] if _of_a_pair(match, text) else []
    shown: dict[str, Asked] = {}
    for named in asked(text, table):
        remedy = _edit(named, text, case)
        if remedy is not None and not any(remedy.edits == other.edits for other in remedies):
            remedies.append(remedy)
        shown.setdefault(named.spec.dest, named)
    variables = _variables(text, case)
    remedies += variables[0]
    spoken = list(spoken_of(text, case, table))
    if not remedies and (meant := value_meant(text, spoken, table, case)) is not None:
        edit = EditTemplate("set", meant[0].name, meant[1])
        why = "the message says to use this value, which is one of this option"
        remedies.append(as_the_message_says((edit,), why))
    for spec in spoken:
        shown.setdefault(spec.dest, Asked(spec, None, ""))
        if not remedies and len(shown) <= MAX_NAMED and (remedy := _left_out(spec, text, case)) is not None:
            remedies.append(remedy)
    names = [_here(n.spec, case) for n in shown.values()][:MAX_NAMED] + variables[1]
    if names and len(remedies) < 2:
        remedies.append(
            Remedy(
                title="Look at the settings that the message speaks of: " + ", ".join(names),
                safety=Safety.MANUAL,
                why="SGLang checks them against each other, the model and the GPU; the message says which value is refused",
                run=("python -m sglang.launch_server --help",) if shown else (),
            )
        )
    return remedies


# A prefill and a decode server hold against each other what both were started with.
_BOTH = lazy(r"(?i)(?=.*\bprefill)(?=.*\bdecode)|(?=.*\bsrc)(?=.*\bdst)|(?=.*\blocal)(?=.*\b(?:remote|peer))")
_ALIKE = Remedy(
    title="Start the prefill and the decode server alike - same SGLang, model, --page-size, --kv-cache-dtype and speculation",
    safety=Safety.MANUAL,
    why="each takes over what the other has laid out in memory; their server_args lines show where they differ",
    run=('grep -ho "server_args=.*" PREFILL_LOG DECODE_LOG', "mtpdoctor diff PREFILL_LOG DECODE_LOG"),
)


def _of_a_pair(match: Match, text: str) -> bool:
    frames = match.traceback.frames if match.traceback is not None else ()
    return bool(frames) and "/disaggregation/" in frames[-1].path and _BOTH.match(text) is not None


def spoken_of(text: str, case: Case, table: FlagTable) -> Iterator[FlagSpec]:
    """Options that the message means: by a value that was typed for one, or by what it calls them. Those that
    were typed come first."""
    said = _flat(text)
    found: dict[str, FlagSpec] = {}
    for name in case.facts:
        value = _flat(str(case.facts[name]))
        if (
            name.startswith("flag.")
            and len(value) > 3
            and value not in _NO_VALUE
            and not is_word(value)
            and value in said
        ):
            spec = table.by_dest(name[5:])
            if spec is not None and spec.arity == "one":
                found.setdefault(spec.dest, spec)
    for spec in worded(text, table):
        found.setdefault(spec.dest, spec)
    yield from sorted(found.values(), key=lambda s: not _typed(s, case))


def worded(text: str, table: FlagTable) -> Iterator[FlagSpec]:
    """Options that the message calls by what they are about."""
    for pattern, dests in _SPOKEN:
        if pattern.search(text):
            for dest in dests:
                specs = (table.by_dest(other) for other in same_option(dest))
                spec = next((s for s in specs if s is not None and s.refused is None), None)
                if spec is not None:
                    yield spec


def _flat(text: str) -> str:
    """Without case and punctuation: a message says "TRTLLM MHA" of trtllm_mha."""
    return "".join(c for c in text.lower() if c.isalnum())


def _typed(spec: FlagSpec, case: Case) -> bool:
    return case.facts.look(f"flag.{spec.dest}") not in (UNKNOWN, None, False)


_NEEDED = frozenset(
    {"model_path", "tp_size", "nnodes", "host", "port", "speculative_draft_model_path", "disaggregation_mode"}
)


def _left_out(spec: FlagSpec, text: str, case: Case) -> Remedy | None:
    """Without an option that was typed, where the message refuses what it speaks of."""
    if spec.dest in _NEEDED or not _typed(spec, case) or _REFUSES.search(text) is None:
        return None
    value = case.facts.look(f"flag.{spec.dest}")
    shown = "" if value is True else f" {value}"
    return Remedy(
        title=f"Leave {spec.name}{shown} out"
        + ("" if spec.arity == "switch" else ", so that SGLang decides"),
        safety=Safety.RISKY,
        why="the message refuses what this option asks for",
        edits=(EditTemplate("remove", spec.name),),
        risk="what the option asked for is not done; another setting may be the one to change",
    )


def as_the_message_says(edits: tuple[EditTemplate, ...], why: str) -> Remedy:
    return Remedy(
        title=f"Do as the message says: {', '.join(map(in_short, edits))}",
        safety=Safety.RISKY,
        why=why,
        edits=edits,
        risk="a message can ask for what does not fit this model or GPU; the launch shows it",
    )


def in_short(edit: EditTemplate) -> str:
    """An edit as titles name it."""
    if edit.op == "env":
        return f"{edit.name}={edit.value}"
    if edit.op in ("remove", "unset"):
        return f"without {edit.name}"
    return f"{edit.name} {edit.value or ''}".strip()


def _message(match: Match) -> str:
    if match.traceback is not None and match.traceback.message:
        return match.traceback.message
    return match.line.body


def _verb(text: str, at: int) -> str:
    before = text[max(0, at - _BEFORE) : at]
    last = before.rpartition(". ")[2]
    away = [m.end() for m in _AWAY.finditer(last)]
    towards = [m.end() for m in _TOWARDS.finditer(last)]
    if not away and not towards:
        return ""
    return "away" if max(away, default=-1) >= max(towards, default=-1) else "towards"


def _edit(named: Asked, text: str, case: Case) -> Remedy | None:
    spec, typed = named.spec, case.facts.look(f"flag.{named.spec.dest}")
    switch = spec.arity == "switch"
    if named.verb == "away" and named.how == "subject":
        return None  # what it needs comes first; giving it up is no more than a guess
    if named.verb == "away":
        if typed in (UNKNOWN, None, False) or spec.dest in _NEEDED - {"disaggregation_mode"}:
            return None
        if named.value is not None and str(typed) != named.value and spec.choices:
            return None  # another value than the one that was typed
        return Remedy(
            title=f"Leave {spec.name} out",
            safety=Safety.RISKY,
            why="the message says that it cannot be used so",
            edits=(EditTemplate("remove", spec.name),),
            risk="what the option asked for is not done",
        )
    if named.verb == "" and not spec.choices:
        return None
    if (
        (not named.value or str(typed) == named.value)
        and spec.choices
        and spec.arity == "one"
        and (value := _listed(spec, text, case)) is not None
    ):
        return Remedy(
            title=f"Take a value that the message lists: {spec.name} {value}",
            safety=Safety.RISKY,
            why="the message lists what can be used here",
            edits=(EditTemplate("set", spec.name, value),),
            risk="another of the values listed may suit this model better",
        )
    in_force = {str(typed), str(case.facts.look(f"arg.{spec.dest}"))}
    if named.verb == "towards" and (
        named.value not in in_force if named.value else switch and typed is not True
    ):
        edit = EditTemplate("add", spec.name) if switch else EditTemplate("set", spec.name, named.value)
        return as_the_message_says((edit,), "the message names this setting")
    return None


def _listed(spec: FlagSpec, text: str, case: Case) -> str | None:
    """The choice to take of those that a message lists, other than the one in force: what the typed one is called here or
    comes closest to it, else the first. What a model decides (parsers) by the model's name, else none."""
    if _LISTS.search(text) is None:
        return None
    words = set(_CHOICE.findall(text))
    listed = [str(c) for c in spec.choices or () if str(c) in words and str(c) != "auto"]
    typed = case.facts.look(f"flag.{spec.dest}")
    now = {str(typed), str(case.facts.look(f"arg.{spec.dest}"))}
    free = [c for c in listed if c not in now]
    if len(listed) < 2 or not free:
        return None
    if typed not in (UNKNOWN, None, True, False) and str(typed) not in listed:
        meant = explain_choice(spec.name, str(typed), case.release, free).edits
        if meant and meant[0].value in free:
            return meant[0].value
    if spec.dest in _OF_THE_MODEL:
        return next((c for c in free if _is_of_model(c, case)), None)
    return free[0]


def _is_of_model(choice: str, case: Case) -> bool:
    """Does the model's name begin as a parser's does ("qwen3" of Qwen/Qwen3-8B)?"""
    path = case.facts.look("arg.model_path")
    name = _flat(str(path).rstrip("/").rpartition("/")[2]) if path not in (UNKNOWN, None) else ""
    return len(choice) > 3 and name.startswith(_flat(choice))


def _here(spec: FlagSpec, case: Case) -> str:
    fact = case.facts.fact(f"arg.{spec.dest}")
    if fact is None:
        return spec.name
    return f"{spec.name} (here {'not set' if fact.value is None else fact.value})"


def _variables(text: str, case: Case) -> tuple[list[Remedy], list[str]]:
    remedies, names = [], []
    known = release_facts(case.release).env
    for found in named_in(text, flag_table(case.release)):
        name = found.variable
        if not name or not is_setting(name):
            continue
        value = _ENV_VALUE.match(text, found.end)
        asked = value is not None and _verb(text, found.start) == "towards"  # a fork's own are asked for too
        if name in names or (name.startswith("SGLANG_") and name not in known and not asked):
            continue
        names.append(name)
        if value is not None and asked:
            remedies.append(
                Remedy(
                    title=f"Do as the message says: {name}={value['value'].rstrip('.,:')}",
                    safety=Safety.RISKY,
                    why="the message names this variable",
                    edits=(EditTemplate("env", name, value["value"].rstrip(".,:")),),
                    risk="it may only help to see more, or switch a check off",
                )
            )
    return remedies, names[:MAX_NAMED]
