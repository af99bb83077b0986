"""With speculation against without: the same prompts, the same server otherwise, and honest numbers.

Measured is what one client on this machine sees: tokens of an answer by the seconds from sending the request to its
last byte (prompt included, so prompts are short), greedy, the same number of tokens in every answer. Medians over
repetitions with the whole range beside them; a first round is thrown away.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from statistics import median
from typing import Any

from mtpdoctor.errors import UserError
from mtpdoctor.launch.document import LaunchDocument
from mtpdoctor.launch.types import Edit, EditOp
from mtpdoctor.watch.answer import Sample, acceptance, sample_of_generate
from mtpdoctor.watch.ask import NoAnswer, ask
from mtpdoctor.watch.ready import PROMPTS, TOKEN_IDS
from mtpdoctor.watch.target import Target

# Launches a document, waits until it is ready, yields where it listens, and ends it when the block is left.
Launcher = Callable[[LaunchDocument], AbstractContextManager[Target]]
Told = Callable[[str], None]  # one line on how far it is
_ALSO = {"enable_multi_layer_eagle"}  # means nothing without speculation


@dataclass(frozen=True, slots=True)
class Plan:
    """What is measured."""

    max_tokens: int = 128
    repetitions: int = 5
    concurrencies: tuple[int, ...] = (1, 4)
    timeout_s: float = 300.0  # of one request


@dataclass(frozen=True, slots=True)
class Spread:
    """Of several repetitions."""

    median: float
    least: float
    most: float

    @staticmethod
    def of(values: Sequence[float]) -> Spread:
        return Spread(median(values), min(values), max(values))


@dataclass(frozen=True, slots=True)
class Measured:
    """Of one server at one concurrency. Tokens per second."""

    concurrency: int
    per_request: Spread  # the median request of each repetition
    total: Spread  # all requests together
    answers: tuple[tuple[str, tuple[int, ...]], ...]  # of every request, in order: what it wrote


@dataclass(frozen=True, slots=True)
class Arm:
    """One server."""

    measured: tuple[Measured, ...]
    accept_length: float | None
    short: int  # answers with fewer tokens than asked for


@dataclass(frozen=True, slots=True)
class Gain:
    """Speed with speculation by speed without, minus 1: 0.3 is 30 % more. ``least`` and ``most`` compare the worst
    repetition of the one with the best of the other."""

    concurrency: int
    median: float
    least: float
    most: float

    @property
    def certain(self) -> bool:
        """Every repetition of the one is faster than every one of the other."""
        return self.least > 0 or self.most < 0


@dataclass(frozen=True, slots=True)
class Comparison:
    plan: Plan
    speculating: Arm
    plain: Arm
    gains: tuple[Gain, ...]  # of the single request, per concurrency
    same_answers: float  # share of greedy answers that are equal in both

    def lines(self) -> tuple[str, ...]:
        """What was found, for people."""
        plan = self.plan
        out = [
            f"Measured from this machine: {plan.repetitions} repetitions of {len(PROMPTS)} short prompts, "
            f"{plan.max_tokens} tokens each, greedy; median (range)."
        ]
        for gain, with_, without in zip(
            self.gains, self.speculating.measured, self.plain.measured, strict=True
        ):
            out.append(
                f"{gain.concurrency} at a time: {_spread(with_.per_request)} tokens/s a request with speculation, "
                f"{_spread(without.per_request)} without: {_percent(gain.median)} "
                f"({_percent(gain.least)} to {_percent(gain.most)}); all together {with_.total.median:.0f} and "
                f"{without.total.median:.0f} tokens/s"
            )
            if not gain.certain:
                out.append(
                    "  the ranges overlap: no difference can be told from the noise of this measurement"
                )
        if self.speculating.accept_length is not None:
            out.append(
                f"Acceptance length {self.speculating.accept_length:.2f} tokens per verification step."
            )
        if self.same_answers < 1:
            out.append(
                f"{self.same_answers:.0%} of the answers are the same in both; batches of another shape round "
                "otherwise, so some differ even where all is well."
            )
        if self.speculating.short or self.plain.short:
            out.append(
                f"{self.speculating.short + self.plain.short} answers were shorter than asked for: the comparison "
                "is of unequal work there."
            )
        return tuple(out)


def without_speculation(document: LaunchDocument) -> LaunchDocument:
    """The same launch with no flag of speculation. Raises UserError when it asks for none."""
    uses = [u for u in document.command.flags if u.dest.startswith("speculative_") or u.dest in _ALSO]
    if not any(u.dest == "speculative_algorithm" for u in uses):
        raise UserError(
            "there is nothing to compare: the launch command asks for no speculation",
            hint="add --speculative-algorithm, or leave --bench out",
        )
    names = dict.fromkeys(u.name for u in uses)
    return document.apply([Edit(EditOp.REMOVE, name) for name in names])


def compare(
    document: LaunchDocument, launcher: Launcher, plan: Plan | None = None, told: Told = lambda line: None
) -> Comparison:
    """Launches ``document`` as it is, measures, ends it; the same without speculation. One after the other: they
    would share the GPUs otherwise. The caller launches again what is to stay.

    Raises UserError when the launch asks for no speculation or a request fails; what ``launcher`` raises goes
    through.
    """
    plan = plan or Plan()
    plain = without_speculation(document)
    told("measuring with speculation")
    with launcher(document) as target:
        first = measure(target, plan, told)
    told("measuring without speculation")
    with launcher(plain) as target:
        second = measure(target, plan, told)
    return judged(first, second, plan)


def judged(speculating: Arm, plain: Arm, plan: Plan) -> Comparison:
    gains = tuple(
        Gain(
            a.concurrency,
            a.per_request.median / b.per_request.median - 1,
            a.per_request.least / b.per_request.most - 1,
            a.per_request.most / b.per_request.least - 1,
        )
        for a, b in zip(speculating.measured, plain.measured, strict=True)
    )
    pairs = [
        (x, y)
        for a, b in zip(speculating.measured, plain.measured, strict=True)
        for x, y in zip(a.answers, b.answers, strict=True)
    ]
    same = sum(x == y for x, y in pairs) / len(pairs) if pairs else 1.0
    return Comparison(plan, speculating, plain, gains, same)


def measure(target: Target, plan: Plan, told: Told = lambda line: None) -> Arm:
    """One server, at every concurrency of the plan. Raises UserError when a request fails."""
    measured, samples = [], []
    for concurrency in plan.concurrencies:
        requests = max(concurrency, len(PROMPTS))
        _round(target, plan, concurrency, requests, turn=-1)  # thrown away: kernels compile, caches fill
        single, together, answers = [], [], []
        for turn in range(plan.repetitions):
            told(f"{concurrency} at a time, repetition {turn + 1} of {plan.repetitions}")
            started = time.monotonic()
            got = _round(target, plan, concurrency, requests, turn)
            took = max(time.monotonic() - started, 1e-9)
            samples += got
            single.append(median(s.tokens / max(s.seconds, 1e-9) for s in got))
            together.append(sum(s.tokens for s in got) / took)
            answers += [(s.text, s.token_ids) for s in got]
        measured.append(Measured(concurrency, Spread.of(single), Spread.of(together), tuple(answers)))
    found = acceptance(samples) if target.speculative else None
    short = sum(s.tokens < plan.max_tokens for s in samples)
    return Arm(tuple(measured), found.length if found else None, short)


def _round(target: Target, plan: Plan, concurrency: int, requests: int, turn: int) -> list[Sample]:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(concurrency) as pool:
        return list(pool.map(lambda i: _one(target, plan, turn, i), range(requests)))


def _one(target: Target, plan: Plan, turn: int, index: int) -> Sample:
    """One request. The numbers in front keep the prefix cache from answering a repetition from the one before."""
    body: dict[str, Any] = {
        "sampling_params": {"temperature": 0, "max_new_tokens": plan.max_tokens, "ignore_eos": True}
    }
    if target.token_ids_only:
        body["input_ids"] = [100 + turn + 1, 200 + index, *TOKEN_IDS]
    else:
        body["text"] = f"({turn + 2}.{index + 1}) {PROMPTS[index % len(PROMPTS)]}"
    try:
        answer = ask(target, "POST", "/generate", body, timeout_s=plan.timeout_s)
    except NoAnswer as error:
        raise UserError(
            f"a request of the measurement failed: {error}", hint="see the server's log"
        ) from None
    found = sample_of_generate(answer.json(), answer.seconds) if answer.ok else answer.message
    if isinstance(found, str) or not found.tokens:
        from mtpdoctor.redact import mask_secrets
        from mtpdoctor.text import one_line

        said = found if isinstance(found, str) else "no tokens"
        raise UserError(
            f"a request of the measurement failed: {one_line(mask_secrets(said))[:200]}",
            hint="see the server's log",
        )
    return found


def _spread(spread: Spread) -> str:
    return f"{spread.median:.1f} ({spread.least:.1f} to {spread.most:.1f})"


def _percent(gain: float) -> str:
    return f"{gain:+.0%}"
