"""Options of the command after which the failing code is named: ``--enable-two-batch-overlap`` and ``two_batch_overlap.py``.

A gate (``sglang.gates``) tells which options let a line run, where the source shows it. Code that another package or a
plug-in brings, or that is reached by a name made at run time, has none; but it mostly bears the name of what asked for it.
Names alone prove nothing, so this stands behind gates, and before what experience guesses.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mtpdoctor.launch.types import FlagUse
from mtpdoctor.log.types import Frame
from mtpdoctor.patterns import lazy
from mtpdoctor.records import dataclass

NEAR = 8  # innermost frames; what lies further out, every launch goes through
_LEAST = 5  # letters of a single word that is told apart by itself
# Words of options that half of SGLang's code is named after.
_COMMON_WORDS = (
    "algorithm ascend attention backend batch buffer cache chunked config context count cuda custom "
    "decode default device disable disaggregation draft dtype enable engine extra factor fraction graph "
    "group hidden host kernel latency layer length limit linear load loader local logits memory method "
    "model multi nodes number options order overlap params parallel parser path policy prefill process "
    "quantization radix ranks ratio reasoning requests router runner sampling schedule scheduler server "
    "shared size speculative static steps strategy table tensor threshold timeout token tokenizer tokens "
    "torch total triton type version weight weights worker workers world "
)
_COMMON = frozenset(_COMMON_WORDS.split())
_WORDS = lazy(r"[a-z][a-z0-9]*")


@dataclass(frozen=True, slots=True)
class Namesake:
    """``words`` of the option stand in the name of the file or function of ``frame``."""

    use: FlagUse
    frame: Frame
    words: str


def namesakes(uses: Iterable[FlagUse], frames: Iterable[Frame]) -> Iterator[Namesake]:
    """Options, the nearest frame to the failure first. ``frames``: the innermost last."""
    near = [(frame, _named(frame)) for frame in list(frames)[: -NEAR - 1 : -1]]
    phrases = [(use, tuple(_phrases(use))) for use in uses]
    seen: set[str] = set()
    for frame, named in near:
        for use, words in phrases:
            if use.dest in seen:
                continue
            found = next((phrase for phrase in words if f"_{phrase}" in named), None)
            if found is not None:
                seen.add(use.dest)
                yield Namesake(use, frame, found)


def _named(frame: Frame) -> str:
    """The file's name and folder and the function's, words set apart by one underscore."""
    return "_" + "_".join(
        _WORDS.findall(f"{frame.path.lower().removesuffix('.py')} {frame.function.lower()}")
    )


def _phrases(use: FlagUse) -> Iterator[str]:
    """What code for this option would be called, the longest first."""
    if "path" in use.dest:
        return
    words = [word for word in _WORDS.findall(use.dest.lower()) if word not in ("enable", "disable")]
    for length in range(len(words), 1, -1):
        for at in range(len(words) - length + 1):
            part = words[at : at + length]
            if not _COMMON.issuperset(part):
                yield "_".join(part)
    values = [_WORDS.findall(value.lower()) for value in use.values if "/" not in value]
    yield from ("_".join(parts) for parts in values if len(parts) > 1 and not _COMMON.issuperset(parts))
    for word in (*words, *(part for parts in values for part in parts)):
        if len(word) >= _LEAST and word not in _COMMON:
            yield word
