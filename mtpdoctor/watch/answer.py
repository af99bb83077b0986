"""What an answer of the server tells: tokens, acceptance, and whether the text is noise. Pure.

Field names are SGLang's, read off the sources of 0.4.6 to 0.5.23. In ``meta_info`` of an answer of ``/generate``:
``completion_tokens`` in all; ``spec_verify_ct`` (verification steps) in all where speculation is on;
``spec_accept_length`` (completion tokens by steps) and ``spec_accept_rate`` from 0.5.3.post2 on.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

ENOUGH_STEPS = 8  # verification steps below which acceptance is not judged
NOTHING_ACCEPTED = 0.1  # drafts accepted per step, below which speculation does nothing
LITTLE_ACCEPTED = 0.3  # below which checking the drafts likely costs more than they save
ENOUGH_TOKENS = 12  # below which a text is not called noise


@dataclass(frozen=True, slots=True)
class Sample:
    """One answer that generated. ``seconds`` as the client saw it."""

    text: str
    tokens: int
    seconds: float
    token_ids: tuple[int, ...] = ()
    steps: int | None = None  # verification steps
    accept_length: float | None = None  # as the server says
    accept_rate: float | None = None
    past_end: bool = False  # asked to go on after the end-of-text token: not to be judged as text


@dataclass(frozen=True, slots=True)
class Acceptance:
    """``length``: tokens per verification step (1: only the target's own). ``accepted``: drafts taken per step."""

    length: float
    accepted: float
    steps: int | None


def sample_of_generate(data: Any, seconds: float, *, past_end: bool = False) -> Sample | str:
    """An answer of ``/generate``; a text says why it is none that generated."""
    if isinstance(data, list) and data:
        data = data[0]
    if not isinstance(data, Mapping):
        return "the answer is no JSON object"
    meta = data.get("meta_info")
    meta = meta if isinstance(meta, Mapping) else {}
    finish = meta.get("finish_reason")
    if isinstance(finish, Mapping) and finish.get("type") == "abort":
        return f"the request was aborted: {finish.get('message') or 'no reason given'}"
    text = data.get("text")
    ids = data.get("output_ids")
    ids = tuple(i for i in ids if isinstance(i, int)) if isinstance(ids, list) else ()
    tokens = _count(meta.get("completion_tokens")) or len(ids)
    return Sample(
        text=text if isinstance(text, str) else "",
        tokens=tokens,
        seconds=seconds,
        token_ids=ids,
        steps=_count(meta.get("spec_verify_ct")) or None,
        accept_length=_positive(meta.get("spec_accept_length")),
        accept_rate=_fraction(meta.get("spec_accept_rate")),
        past_end=past_end,
    )


def sample_of_openai(data: Any, seconds: float) -> Sample | str:
    """An answer of ``/v1/completions`` or ``/v1/chat/completions``."""
    if not isinstance(data, Mapping):
        return "the answer is no JSON object"
    choices = data.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(choice, Mapping):
        return "the answer holds no choice"
    message = choice.get("message")
    message = message if isinstance(message, Mapping) else {}
    texts = (choice.get("text"), message.get("reasoning_content"), message.get("content"))
    usage = data.get("usage")
    usage = usage if isinstance(usage, Mapping) else {}
    tokens = _count(usage.get("completion_tokens"))
    return Sample("".join(t for t in texts if isinstance(t, str)), tokens, seconds)


def acceptance(samples: Sequence[Sample], average: float | None = None) -> Acceptance | None:
    """Over all samples; ``average`` is the server's own since its start (``avg_spec_accept_length``), used where
    the answers tell nothing. None: not known, or no speculation."""
    counted = [s for s in samples if s.steps]
    if counted:
        steps = sum(s.steps or 0 for s in counted)
        # The first token of each answer comes from the prompt, before any draft.
        drafted = sum(max(s.tokens - 1, 0) for s in counted)
        return Acceptance(
            sum(s.tokens for s in counted) / steps, max(drafted / steps - 1, 0.0) if steps else 0.0, steps
        )
    told = [(s.accept_length, s.tokens) for s in samples if s.accept_length]
    if told:
        weight = sum(tokens for _, tokens in told) or 1
        length = sum((length or 0) * tokens for length, tokens in told) / weight
        return Acceptance(length, max(length - 1, 0.0), None)
    return Acceptance(average, max(average - 1, 0.0), None) if average else None


def acceptance_warning(found: Acceptance | None) -> str | None:
    """What to say of it; None where it is fine or cannot be judged."""
    if found is None or (found.steps is not None and found.steps < ENOUGH_STEPS):
        return None
    told = f"acceptance length {found.length:.2f}"
    if found.accepted < NOTHING_ACCEPTED:
        return (
            f"nothing that was drafted is accepted ({told}): every token pays for drafts that are thrown away; the "
            "draft's weights are missing, random, or another model's"
        )
    if found.accepted < LITTLE_ACCEPTED:
        return (
            f"little of what is drafted is accepted ({told}): compare with --bench whether speculation pays"
        )
    return None


def noise(samples: Sequence[Sample], *, text_expected: bool = True) -> str | None:
    """Why the output looks like garbage; None when it reads like text (or cannot be judged).

    Careful by intent: code, tables, one foreign language and lists are no noise. ``text_expected`` False: the
    server gives token ids only.
    """
    judged = [s for s in samples if not s.past_end]
    if not judged:
        return None
    if text_expected and not any(s.text.strip() for s in judged):
        return "tokens came back, and no text"
    reasons = [reason for s in judged if (reason := _noise_of(s))]
    return reasons[0] if len(reasons) * 2 > len(judged) else None


def _noise_of(sample: Sample) -> str | None:
    if sample.tokens >= ENOUGH_TOKENS and len(sample.token_ids) >= ENOUGH_TOKENS:
        tail = sample.token_ids[2:]
        _, often = Counter(tail).most_common(1)[0]
        if often >= 0.8 * len(tail):
            return "one token is repeated over and over"
    text = sample.text
    letters = [c for c in text if not c.isspace()]
    if len(letters) < ENOUGH_TOKENS:
        return None
    if text.count("\ufffd") >= 3 and text.count("\ufffd") > 0.05 * len(letters):
        return "the text is full of replacement characters (broken UTF-8)"
    words = text.split()
    if len(words) >= ENOUGH_TOKENS and Counter(words).most_common(1)[0][1] >= 0.8 * len(words):
        return "one word is repeated over and over"
    _, often = Counter(letters).most_common(1)[0]
    if len(letters) >= 24 and often >= 0.85 * len(letters):
        return "one character is repeated over and over"
    if len(_scripts(text)) >= 4:
        return "the text mixes many writing systems, as random weights do"
    return None


# Scripts that stand side by side in ordinary text count as one.
_TOGETHER = {"HIRAGANA": "CJK", "KATAKANA": "CJK", "FULLWIDTH": "CJK", "HALFWIDTH": "CJK", "HANGUL": "CJK"}


def _scripts(text: str) -> set[str]:
    found: Counter[str] = Counter()
    for char in text[:4000]:
        if char.isalpha():
            name = unicodedata.name(char, "").split(" ", 1)[0]
            found[_TOGETHER.get(name, name)] += 1
    # Greek letters and other symbols stand in formulas; letters of real words do not come alone.
    return {
        script for script, often in found.items() if often >= 2 and script not in ("GREEK", "MATHEMATICAL")
    }


def _count(value: object) -> int:
    return int(value) if isinstance(value, (int, float)) and 0 < value < 1e9 else 0


def _positive(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) and 0 < value < 1e6 else None


def _fraction(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) and 0 <= value <= 1 else None
