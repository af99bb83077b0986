"""A launch command put together from the ``server_args=`` line, where the log shows no command.

The line tells what the server ran with. Every field that differs from the release's default becomes an option, so that
nothing that was asked for is lost; left out is what SGLang fills in alike whatever was typed. Fields that SGLang may have
chosen by itself are named, and so is what no option can say again.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from mtpdoctor.log.server_args import MASK
from mtpdoctor.log.types import Attempt
from mtpdoctor.patterns import lazy
from mtpdoctor.records import dataclass
from mtpdoctor.release import Release
from mtpdoctor.sglang.arguments import decided_at_start, default_arguments
from mtpdoctor.sglang.flags import FlagSpec, FlagTable, flag_table

# What releases fill in where nothing was typed (counted in logs that show command and arguments both).
_FILLED_IN: Mapping[str, tuple[Any, ...]] = {
    "page_size": (1,),
    "device": ("cuda",),
    "load_balance_method": ("round_robin", "follow_bootstrap_room"),
    "speculative_moe_runner_backend": ("auto",),
    "speculative_draft_model_revision": ("main",),
    "mamba_scheduler_strategy": ("no_buffer", "auto"),
    "expert_distribution_recorder_buffer_size": (1000,),
    "mm_process_config": ({},),
    "mm_feature_transport": ("cpu",),
    "schedule_conservativeness": (0.3, 1.0),
    "hicache_write_policy": ("write_through",),
    "flashinfer_allreduce_fusion_backend": ("auto",),
    "enable_lora_overlap_loading": (False,),
    "model_loader_extra_config": ("{}",),
    "json_model_override_args": ("{}",),
}
_WHOLE = 0.8  # of a release's arguments: a line that shows fewer was cut
_NEVER_TYPED = frozenset(
    {"random_seed", "nccl_port", "piecewise_cuda_graph_tokens", "custom_sigquit_handler"}
)
_SAME_AS_MODEL = ("tokenizer_path", "served_model_name")
_MOST_GRAPHS = 4  # a list of sizes that is longer, from 1 on, is the one SGLang makes
_PHASE = lazy(
    r"\b(?P<phase>decode|prefill)=PhaseConfig\(backend=(?:<[^>]*: )?'(?P<backend>\w+)'>?, max_bs=(?P<max>\d+)"
)


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """``open``: options that SGLang may have chosen by itself; ``lost``: fields that no option can say again."""

    command: str
    open: tuple[str, ...]
    lost: tuple[str, ...]


def reconstructed_command(attempt: Attempt, release: Release | None) -> Rebuilt | None:
    """None when the log shows no server arguments. ``release`` is the one whose defaults count."""
    values: dict[str, Any] = {}
    for observation in attempt.observations:
        if observation.name.startswith("arg."):
            values.setdefault(observation.name[4:], observation.value)
    if not values.get("model_path"):
        return None
    table = flag_table(release)
    words = ["python", "-m", "sglang.launch_server", "--model-path", str(values["model_path"])]
    maybe: list[str] = []
    lost: list[str] = []
    for dest, value in _said(values, default_arguments(release)):
        if dest == "cuda_graph_config":
            phases = list(_graph_options(str(value), table))
            words += [word for pair in phases for word in pair]
            maybe += [name for name, _ in phases]
            continue
        spec = table.by_dest(dest)
        if spec is None or spec.refused is not None:
            continue  # no field of the command line
        option = _option(spec, value, table)
        if option is None:
            lost.append(spec.name)
            continue
        words += option
        if option and dest in decided_at_start():
            maybe.append(spec.name)
    known = default_arguments(release)
    shown = sum(dest in values for dest in known)
    if shown < _WHOLE * len(known):
        lost.append(f"{len(known) - shown} arguments that the line leaves out")
    return Rebuilt(shlex.join(words), tuple(maybe), tuple(lost))


def typed_words(rebuilt: Rebuilt) -> str:
    """The command without what SGLang may have chosen by itself: what was surely typed."""
    out: list[str] = []
    skip = False
    for word in shlex.split(rebuilt.command):
        if word.startswith("--"):
            skip = word in rebuilt.open
        if not skip:
            out.append(word)
    return shlex.join(out)


def _said(values: Mapping[str, Any], defaults: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Fields that say something of the launch: not the default, nor what SGLang fills in by itself."""
    for dest, value in values.items():
        if dest == "model_path" or dest in _NEVER_TYPED or dest not in defaults:
            continue
        if value in (None, [], ()) or value == defaults[dest] or value in _FILLED_IN.get(dest, ()):
            continue
        if dest in _SAME_AS_MODEL and value == values["model_path"]:
            continue
        if dest == "piecewise_cuda_graph_max_tokens" and value == values.get("chunked_prefill_size"):
            continue
        if dest == "cuda_graph_bs" and _made(value):
            continue
        if dest == "chunked_prefill_size" and _divided(values):
            yield dest, value * values["dp_size"] if isinstance(value, int) and value > 0 else value
            continue
        yield dest, value


def _made(sizes: Any) -> bool:
    return (
        isinstance(sizes, list)
        and sizes[:2] == [1, 2]
        and (len(sizes) > _MOST_GRAPHS or sizes == [1, 2, 4][: len(sizes)])
    )


def _divided(values: Mapping[str, Any]) -> bool:
    """With attention data parallelism SGLang shares the chunk among the replicas before it prints the arguments."""
    size = values.get("dp_size")
    return bool(values.get("enable_dp_attention")) and isinstance(size, int) and size > 1


def _graph_options(text: str, table: FlagTable) -> Iterator[tuple[str, str]]:
    """Options for what a printed ``CudaGraphConfig`` holds; the sizes follow from the largest."""
    for m in _PHASE.finditer(text):
        for name, value in (
            (f"--cuda-graph-backend-{m['phase']}", m["backend"]),
            (f"--cuda-graph-max-bs-{m['phase']}", m["max"]),
        ):
            if name in table and not (name.startswith("--cuda-graph-max") and m["backend"] == "disabled"):
                yield name, value


def _option(spec: FlagSpec, value: Any, table: FlagTable) -> list[str] | None:
    """The words that give a field this value; None where none can."""
    if value == MASK:
        return None
    if isinstance(value, bool):
        if spec.arity != "switch":
            return [spec.name, str(value).lower()] if spec.type in ("bool", "str") and spec.choices else None
        if value:
            return [spec.name]
        negative = f"--no-{spec.name[2:]}"
        return (
            [negative] if negative in table or (spec.default is True and negative in spec.spellings) else None
        )
    if spec.type.startswith("json") and isinstance(value, (dict, list)):
        return [spec.name, json.dumps(value)]
    if isinstance(value, (list, tuple)):
        if spec.arity != "many" or not all(isinstance(v, (str, int, float)) for v in value):
            return None
        return [spec.name, *map(str, value)]
    if isinstance(value, dict) or (isinstance(value, str) and re.match(r"<|\w+\(.*\)$", value)):
        return None
    if spec.arity == "switch":
        return None
    if spec.choices and str(value) not in {str(c) for c in spec.choices}:
        return None
    return [spec.name, str(value)]
