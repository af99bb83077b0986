"""Proof that a launched server generates: real requests, and what the server's own answers say.

``/health`` proves little: it answers while the first request would fail, and with ``--skip-server-warmup`` nothing
has ever been generated. Here a few prompts must come back as tokens. What is asked, and of whom, is in docs/ready.md.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mtpdoctor.redact import mask_secrets
from mtpdoctor.text import one_line
from mtpdoctor.watch.answer import (
    Sample,
    acceptance,
    acceptance_warning,
    noise,
    sample_of_generate,
    sample_of_openai,
)
from mtpdoctor.watch.ask import Answer, NoAnswer, ask
from mtpdoctor.watch.target import Target, target_of
from mtpdoctor.watch.types import Generated

__all__ = ["PROMPTS", "Target", "prove", "reachable", "target_of"]

# Texts that go on for long, of unlike kinds: drafts are accepted unlike often in prose, code and lists.
PROMPTS = (
    "The capital city of France is Paris. The capital city of Italy is Rome. The capital city of Spain is",
    "def fibonacci(n):\n    if n < 2:\n        return n\n",
    "Once upon a time there was a small village at the foot of a mountain, and in it lived",
    "One, two, three, four, five, six, seven, eight, nine, ten, eleven,",
)
TOKENS = 64  # of each answer
FEW_TOKENS = 8  # what is asked for where the server has no room for more
TOKEN_IDS = (10, 11, 12, 13)  # a prompt of SGLang's own warm-up, for servers without a tokenizer
# SGLang's own name for "pretend the transfer between prefill and decode" (disaggregation/utils.py)
PRETENDED_BOOTSTRAP = "2.2.2.2"
_PAUSE_S = 0.25
_ASKED = 32  # characters of the prompt that are shown
_WAIT_LISTEN_S = 30.0  # it says that it is ready, so it listens, or it never will


def reachable(target: Target, timeout_s: float = 1.0) -> bool:
    """Whether it answers HTTP, and not with "still starting". For servers that do not log that they are up
    (``--log-level warning``)."""
    try:
        return _info(target, time.monotonic() + timeout_s).status not in (502, 503)
    except NoAnswer:
        return False


def prove(target: Target, timeout_s: float = 120.0, *, started: float | None = None) -> Generated:
    """Ask until tokens came back or ``timeout_s`` is over. Never raises for what a server does.

    Blocks: call it in a thread. ``started`` is the ``time.monotonic()`` of the launch; ``Generated.at`` counts
    from there (from the call, where it is None).
    """
    began = time.monotonic()
    proof = _Proof(target, began + timeout_s)
    found = proof.run()
    return Generated(
        at=time.monotonic() - (began if started is None else started),
        ok=found.ok,
        said=_shown(found.said, target),
        tokens=found.tokens,
        seconds=found.seconds,
        tokens_per_s=found.tokens_per_s,
        accept_length=found.accept_length,
        warnings=tuple(_shown(w, target, 400) for w in found.warnings),
    )


@dataclass(frozen=True, slots=True)
class _Found:
    ok: bool
    said: str
    tokens: int = 0
    seconds: float | None = None
    tokens_per_s: float | None = None
    accept_length: float | None = None
    warnings: tuple[str, ...] = ()


@dataclass(slots=True)
class _Proof:
    target: Target
    deadline: float
    failed: str = ""  # what the last answer that was none said
    warnings: list[str] = field(default_factory=list)

    def run(self) -> _Found:
        refused = _not_askable(self.target)
        if refused:
            return _Found(False, refused)
        try:
            info = self._listening()
        except NoAnswer as error:
            return _Found(False, f"{error} at {self.target.url}")
        if info.status in (401, 403):
            return _Found(False, _locked(self.target, info.status))
        about = info.json()
        about = about if isinstance(about, Mapping) else {}
        if self.target.embedding or about.get("is_generation") is False:
            return self._embeds()
        return self._generates()

    def _left(self) -> float:
        return self.deadline - time.monotonic()

    def _listening(self) -> Answer:
        """``/model_info`` as soon as somebody answers. Raises NoAnswer."""
        give_up = min(self.deadline, time.monotonic() + _WAIT_LISTEN_S)
        told: NoAnswer | None = None
        while True:
            try:
                answer = _info(self.target, self.deadline)
                if answer.status not in (502, 503) or time.monotonic() > give_up:
                    return answer
            except NoAnswer as error:
                # what kept it from answering tells more than that there was no time left to ask again
                told = told if told is not None and error.timed_out else error
                if time.monotonic() + _PAUSE_S > give_up:
                    raise told from None
            time.sleep(_PAUSE_S)

    # -- models that generate ------------------------------------------------------------------------

    def _generates(self) -> _Found:
        samples: list[Sample] = []
        way = None
        for prompt in PROMPTS:
            if samples and self._left() < 2 * samples[-1].seconds:
                break
            if way is None:
                way, sample = self._first(prompt)
                if sample is None:
                    return _Found(False, self.failed or "no tokens came back")
            else:
                sample = self._sample(way, prompt, TOKENS)
                if sample is None:
                    self.warnings.append(f"a request after the first failed: {self.failed}")
                    break
            samples.append(sample)
        if self._needs_more(samples, way):
            samples += self._past_the_end(samples)
        return self._judged(samples, way or "/generate")

    def _first(self, prompt: str) -> tuple[str | None, Sample | None]:
        """The endpoint that generates, and its first answer. A smaller request where there is no room."""
        ways = (
            ("/generate",)
            if self._only_generate
            else ("/generate", "/v1/completions", "/v1/chat/completions")
        )
        told = ""
        for tokens in (TOKENS, FEW_TOKENS):
            for way in ways:
                if self._left() <= 0:
                    break
                sample = self._sample(way, prompt, tokens)
                if sample is not None:
                    return way, sample
                told = told or self.failed
        self.failed = told or "no answer in time"
        return None, None

    @property
    def _only_generate(self) -> bool:
        return self.target.token_ids_only or self.target.disaggregation is not None

    def _sample(self, way: str, prompt: str, tokens: int, *, past_end: bool = False) -> Sample | None:
        """One answer with at least one token; None with ``failed`` set."""
        try:
            answer = ask(
                self.target, "POST", way, self._request(way, prompt, tokens, past_end), timeout_s=self._left()
            )
        except NoAnswer as error:
            self.failed = f"{way}: {error}"
            return None
        if not answer.ok:
            locked = _locked(self.target, answer.status) if answer.status in (401, 403) else ""
            self.failed = locked or f"{way} answered {answer.status}: {answer.message}"
            return None
        if way == "/generate":
            found = sample_of_generate(answer.json(), answer.seconds, past_end=past_end)
        else:
            found = sample_of_openai(answer.json(), answer.seconds)
        if isinstance(found, str):
            self.failed = f"{way}: {found}"
            return None
        if found.tokens == 0 and not found.text:
            self.failed = f"{way} answered without a single token"
            return None
        return found

    def _request(self, way: str, prompt: str, tokens: int, past_end: bool) -> dict[str, Any]:
        if way == "/generate":
            sampling = {"temperature": 0, "max_new_tokens": tokens}
            body: dict[str, Any] = {"sampling_params": sampling}
            if past_end:
                body["sampling_params"] = {**sampling, "ignore_eos": True}
            if self.target.token_ids_only:
                body["input_ids"] = list(TOKEN_IDS)
            else:
                body["text"] = prompt
            if self.target.disaggregation:
                body |= {"bootstrap_host": PRETENDED_BOOTSTRAP, "bootstrap_room": 0}
            return body
        body = {"model": self.target.model or "default", "max_tokens": tokens, "temperature": 0}
        if way == "/v1/completions":
            return {**body, "prompt": prompt}
        return {**body, "messages": [{"role": "user", "content": f"Continue this text: {prompt}"}]}

    def _needs_more(self, samples: list[Sample], way: str | None) -> bool:
        """Whether the model stopped so soon that acceptance cannot be told."""
        steps = sum(s.steps or 0 for s in samples)
        return bool(self.target.speculative) and way == "/generate" and 0 < steps < 16

    def _past_the_end(self, samples: list[Sample]) -> list[Sample]:
        more = []
        for prompt in PROMPTS[:2]:
            if self._left() > 8 * samples[-1].seconds + 1:
                sample = self._sample("/generate", prompt, TOKENS, past_end=True)
                more += [sample] if sample else []
        return more

    def _judged(self, samples: list[Sample], way: str) -> _Found:
        target = self.target
        server = self._server_info() if target.speculative else {}
        found = acceptance(samples, server.get("average")) if target.speculative else None
        random = target.random_weights or server.get("load_format") == "dummy"
        garbage = noise(samples, text_expected=not target.token_ids_only)
        if random:
            self.warnings.append("the weights are random (--load-format dummy): the text means nothing")
        elif garbage:
            self.warnings.append(f"the output looks like garbage: {garbage}")
        if target.speculative:
            told = acceptance_warning(found)
            if told:
                self.warnings.append(told)
            elif found is None and way != "/generate":
                self.warnings.append(f"the acceptance length is not known: {way} does not tell it")
            elif found is None and target.disaggregation != "prefill":
                self.warnings.append(
                    "speculation was asked for, and the answers tell of no verification step: it may be off"
                )
            if server.get("overlap_off"):
                self.warnings.append(
                    "overlap scheduling is off beside speculation: the CPU's part of every step is waited for"
                )
        if target.disaggregation:
            self.warnings.append(
                f"proven with a pretended transfer: the {target.disaggregation} side alone, without its other half"
            )
        timed = samples[1:] or samples  # the first answer may have waited for kernels to be compiled
        tokens, seconds = sum(s.tokens for s in timed), sum(s.seconds for s in timed)
        return _Found(
            True,
            _words(samples, random=random, ids_only=target.token_ids_only),
            tokens=sum(s.tokens for s in samples),
            seconds=sum(s.seconds for s in samples),
            tokens_per_s=tokens / seconds if seconds > 0 and tokens else None,
            accept_length=found.length if found else None,
            warnings=tuple(self.warnings),
        )

    def _server_info(self) -> dict[str, Any]:
        """What ``/server_info`` says of overlap, acceptance and weights; {} where it says nothing. It holds the
        API key too, so nothing else is taken from it."""
        data = None
        for path in ("/server_info", "/get_server_info"):  # the first from 0.5.6 on
            try:
                answer = ask(self.target, "GET", path, timeout_s=max(min(self._left(), 10.0), 1.0))
            except NoAnswer:
                return {}
            if answer.ok:
                data = answer.json()
                break
        if not isinstance(data, Mapping):
            return {}
        inner = data.get("internal_states")
        states = [s for s in (inner if isinstance(inner, list) else [inner]) if isinstance(s, Mapping)]
        averages = [s["avg_spec_accept_length"] for s in states if s.get("avg_spec_accept_length")]
        averages = [float(a) for a in averages if isinstance(a, (int, float))]
        # The scheduler's own arguments (internal_states) are the ones in force.
        off = [s["disable_overlap_schedule"] for s in states if "disable_overlap_schedule" in s]
        return {
            "average": sum(averages) / len(averages) if averages else None,
            "overlap_off": any(off) if off else data.get("disable_overlap_schedule") is True,
            "load_format": data.get("load_format"),
        }

    # -- models that do not generate -----------------------------------------------------------------

    def _embeds(self) -> _Found:
        """Embedding, reward, classification and reranking models: the first of their endpoints that answers."""
        model = self.target.model or "default"
        text = PROMPTS[0]
        given: dict[str, Any] = (
            {"input_ids": list(TOKEN_IDS)} if self.target.token_ids_only else {"text": text}
        )
        ways: list[tuple[str, dict[str, Any]]] = [("/encode", given)]
        if not self.target.token_ids_only:
            ways = [
                ("/v1/embeddings", {"model": model, "input": text}),
                ("/v1/rerank", {"model": model, "query": "capital of France", "documents": [text, "A cat."]}),
                ("/v1/classify", {"model": model, "input": text}),
                *ways,
                ("/classify", given),
            ]
        told = ""
        for way, body in ways:
            try:
                answer = ask(self.target, "POST", way, body, timeout_s=max(self._left(), 0.001))
            except NoAnswer as error:
                told = told or f"{way}: {error}"
                break
            numbers = _numbers(answer.json()) if answer.ok else []
            if numbers:
                if not all(n == n and abs(n) != float("inf") for n in numbers):
                    self.warnings.append("the answer holds NaN or infinite numbers")
                elif len(numbers) > 1 and not any(numbers):
                    self.warnings.append("the answer is all zeros")
                if self.target.random_weights:
                    self.warnings.append(
                        "the weights are random (--load-format dummy): the numbers mean nothing"
                    )
                said = f"{way} answered with {len(numbers)} number{'s' * (len(numbers) != 1)}"
                return _Found(True, said, seconds=answer.seconds, warnings=tuple(self.warnings))
            told = told or f"{way} answered {answer.status}: {answer.message}"
        return _Found(False, told or "no numbers came back")


def _words(samples: list[Sample], *, random: bool, ids_only: bool) -> str:
    """The first answer that a person can read, with the end of what was asked; else its tokens."""
    ids = next((s.token_ids for s in samples if s.token_ids), ())
    tokens = f"token ids {', '.join(map(str, ids[:8]))} ..." if ids else "token ids"
    if ids_only:
        return f"{tokens} (no text: --skip-tokenizer-init)"
    for prompt, sample in zip(PROMPTS, samples, strict=False):
        text = " ".join(one_line(sample.text).split())
        if text:
            asked = " ".join(prompt.split())[-_ASKED:]
            return ("(random weights) " if random else "") + f'"...{asked}" -> "{text}"'
    return "nothing to be read: blanks and special tokens" + (f" ({tokens})" if ids else "")


def _info(target: Target, deadline: float) -> Answer:
    """``/model_info``, or as it was called before 0.5.6. Raises NoAnswer."""
    answer = ask(target, "GET", "/model_info", timeout_s=deadline - time.monotonic())
    if answer.status in (404, 405):
        answer = ask(target, "GET", "/get_model_info", timeout_s=deadline - time.monotonic())
    return answer


def _not_askable(target: Target) -> str:
    if target.grpc:
        return "not asked: this server speaks gRPC only; send it a request through its router"
    if target.encoder_only:
        return "not asked: an encoder-only server generates nothing by itself"
    if target.node_rank > 0:
        return f"not asked: this is node {target.node_rank}; node 0 answers requests"
    return ""


def _locked(target: Target, status: int) -> str:
    if target.api_key:
        return f"the server refuses the API key of its own launch command ({status})"
    if target.key_masked:
        return f"the server asks for an API key ({status}), and only its mask is at hand: give the launch command"
    return f"the server asks for an API key ({status}), and none is known"


def _numbers(data: Any, depth: int = 0) -> list[float]:
    """The vector or scores of an answer, wherever its endpoint puts them."""
    if isinstance(data, list):
        if data and all(isinstance(n, (int, float)) and not isinstance(n, bool) for n in data):
            return [float(n) for n in data]
        return [n for item in data[:4] for n in _numbers(item, depth + 1)] if depth < 6 else []
    if isinstance(data, Mapping) and depth < 6:
        for name in ("embedding", "data", "score", "scores", "probs", "results"):
            value = data.get(name)
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                return [float(value)]
            if value is not None and (found := _numbers(value, depth + 1)):
                return found
    return []


def _shown(text: str, target: Target, most: int = 160) -> str:
    """Text of the server made fit to show: one line, safe, masked, short."""
    for secret in (target.api_key, target.admin_key):
        if secret:
            text = text.replace(secret, "<hidden>")
    text = " ".join(one_line(mask_secrets(text)).split())
    return text if len(text) <= most else text[: most - 1] + "…"
