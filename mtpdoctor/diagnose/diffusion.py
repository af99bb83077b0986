"""Guesses for the server of image and video models, where no rule knows its failure.

It has other options than the language server, so what ``gated``, ``suspects`` and the kinds of advice offer does not fit. What
goes around a failure there: another attention, one GPU, no compilation, another way of offloading, the checkpoint as it is.
By the frames, the message and the options typed; a guess, never ``safe``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from mtpdoctor.diagnose.components import own_path
from mtpdoctor.diagnose.remedies import fix_of
from mtpdoctor.diagnose.types import Fix
from mtpdoctor.diagnose.unknown import root_traceback
from mtpdoctor.kb.types import EditTemplate, Remedy, Safety
from mtpdoctor.log.types import Frame
from mtpdoctor.patterns import lazy
from mtpdoctor.records import dataclass
from mtpdoctor.sglang.flags import OF_SERVE
from mtpdoctor.sglang.other_parsers import diffusion_flags, diffusion_since

if TYPE_CHECKING:
    from re import Pattern

    from mtpdoctor.case import Case
    from mtpdoctor.diagnose.causality import Cause
    from mtpdoctor.kb.load import Knowledge

NEAR = 8  # innermost frames that tell what failed
MOST = 3
_LOSES = "gives up what the option was for; a guess from where it failed, not known from experience"


@dataclass(frozen=True, slots=True)
class _Feature:
    """Options that turn a feature on, in all spellings; ``told`` is held against paths, functions and message of what failed."""

    title: str
    options: tuple[str, ...]
    told: Pattern[str]


_FEATURES = (
    _Feature(
        "Run without compilation and graphs",
        ("--enable-torch-compile", "--regional-compile", "--enable-breakable-cuda-graph", "--bcg-text-buckets"),
        lazy(r"torch/_(?:dynamo|inductor|functorch)|compile|cuda_?graph|breakable|during CUDA graph capture|(?i:triton)"),
    ),
    _Feature(
        "Run it on one GPU, not split",
        ("--ulysses-degree", "--ring-degree", "--sp-degree", "--tp-size", "--num-gpus", "--enable-cfg-parallel", "--cfg-parallel-size",
         "--use-fsdp-inference", "--hsdp-shard-dim", "--hsdp-replicate-dim", "--dp-size", "--dp", "--data-parallel-size"),
        lazy(r"distributed/|ulysses|usp|ring|all_to_all|all_?gather|all_?reduce|fsdp|sequence_parallel|cfg_parallel|divisible|NCCL|shard"),
    ),
    _Feature(
        "Load the checkpoint as it is, without quantization",
        ("--quantization", "--quantization-ignored-layers", "--kv-cache-quant"),
        lazy(r"quantization/|quant|_scale|fp8|fp4|nunchaku"),
    ),
    _Feature(
        "Run without offloading",
        ("--dit-cpu-offload", "--dit-layerwise-offload", "--text-encoder-cpu-offload", "--image-encoder-cpu-offload",
         "--vae-cpu-offload", "--cpu-offload-components", "--layerwise-offload-components", "--performance-mode"),
        lazy(r"offload|same device|is on cpu|on different devices|pinned"),
    ),
    _Feature(
        "Serve without the adapter",
        ("--lora-path", "--lora-nickname", "--lora-scale", "--lora-weight-name", "--lora-alpha", "--lora-merge-mode"),
        lazy(r"lora"),
    ),
    _Feature("Run without cache-dit", ("--cache-dit-config",), lazy(r"cache_dit|cache-dit")),
)  # fmt: skip
_ATTENTION = lazy(r"layers/attention/|[Aa]ttention backend|flash_attn|sage|sparse_attn|sdpa")
_DEVICES = lazy(r"same device|is on cpu|on different devices")
_KEPT_ATTENTION = frozenset(("torch_sdpa",))
_OFFLOADS = (
    "--dit-cpu-offload",
    "--dit-layerwise-offload",
    "--text-encoder-cpu-offload",
    "--vae-cpu-offload",
)


def diffusion_fixes(cause: Cause, case: Case, knowledge: Knowledge) -> tuple[Fix, ...]:
    """The likeliest first, at most three."""
    traceback = root_traceback(cause)
    if traceback is None and " error: " in cause.root.body:
        return ()  # a parser refuses the words of the command, which tell nothing else
    frames = list(traceback.frames[-NEAR:]) if traceback is not None else []
    message = traceback.message if traceback is not None else cause.root.body
    made = (fix_of(remedy, case, knowledge) for remedy in _remedies(frames, message, case))
    return tuple(fix for fix in made if fix is not None)[:MOST]


def _remedies(frames: Sequence[Frame], message: str, case: Case) -> Iterator[Remedy]:
    typed = {use.name: use for use in case.document.command.flags} if case.document is not None else {}
    failed = "\n".join([*(f"{_below(frame)} {frame.function}" for frame in frames), message])
    for feature in _FEATURES:
        asked = tuple(name for name in feature.options if name in typed)
        if asked and feature.told.search(failed):
            yield Remedy(
                title=f"{feature.title}: leave {', '.join(asked)} out",
                safety=Safety.RISKY,
                why="what failed or its message speaks of it",
                edits=tuple(EditTemplate("remove", name) for name in asked),
                risk=_LOSES,
            )
        elif case.document is None and feature.told.search(failed):
            names = [name for name in feature.options if diffusion_since(name, case.release) is None][:3]
            yield Remedy(
                title=f"{feature.title}: without {', '.join(names)}, where the command has them",
                safety=Safety.MANUAL,
                why="what failed or its message speaks of it; the command is not known here",
                run=(),
                risk=_LOSES,
            )
    backend = typed["--attention-backend"].values if "--attention-backend" in typed else ()
    if _ATTENTION.search(failed) and _KEPT_ATTENTION.isdisjoint(backend) and "torch_sdpa" not in message:
        yield _by_hand(
            "Let PyTorch do the attention: --attention-backend torch_sdpa",
            "the failure lies in an attention backend of the server for images and videos; torch_sdpa needs no package and no "
            "certain GPU" + (f" ({backend[0]} was asked for)" if backend else ""),
            ("--attention-backend torch_sdpa",),
            case,
        )
    if _DEVICES.search(message) and not any(name in typed for name in _OFFLOADS):
        known = [
            name
            for name in _OFFLOADS
            if name in diffusion_flags() and diffusion_since(name, case.release) is None
        ]
        yield _by_hand(
            "Keep all parts on the GPU, without the offloading that is on by default",
            "a part stayed on the CPU where another one on the GPU needed it",
            tuple(f"{name} false" for name in known),
            case,
        )


def _by_hand(title: str, why: str, options: tuple[str, ...], case: Case) -> Remedy:
    """A remedy whose options this server has, and the language server, whose table proves edits, has not."""
    program = case.document.command.program[-1:] if case.document is not None else ()
    verb = "generate" if program == ("generate",) else "serve"
    return Remedy(
        title=title,
        safety=Safety.MANUAL,
        why=why,
        run=(f"sglang {verb} --model-path {{flag.model_path|default:MODEL}} ... {' '.join(options)}",),
        risk="slower, or more memory",
    )


def _below(frame: Frame) -> str:
    return own_path(frame.path) or frame.path


def without_foreign(fixes: Sequence[Fix]) -> tuple[Fix, ...]:
    """The fixes without those of options that only the language server has: what was typed for this one is its own."""
    known = frozenset((*diffusion_flags(), OF_SERVE))
    return tuple(fix for fix in fixes if not _speaks_of_others(fix, known))


def _speaks_of_others(fix: Fix, known: frozenset[str]) -> bool:
    if any(edit.name.startswith("--") and edit.name not in known for edit in fix.edits):
        return True
    named = _OPTION.findall(fix.title)
    return not fix.edits and (
        any(name not in known for name in named) or bool(named and _CHOICES.search(fix.title))
    )


_OPTION = lazy(r"(?<![\w-])--[a-z][a-z0-9-]*[a-z0-9]")
_CHOICES = lazy(r"^Choose among the backends")
