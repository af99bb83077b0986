"""Ready means generating: what is asked, and what the answers are taken for."""

from __future__ import annotations

import socket
import subprocess
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from standing import HTTP, RECORDED, answering, free_port
from waiting import LONG

from mtpdoctor.launch.document import read_launch
from mtpdoctor.watch.answer import Sample, acceptance, acceptance_warning, noise, sample_of_generate
from mtpdoctor.watch.ready import prove, reachable, target_of
from mtpdoctor.watch.target import Target


def words(warnings: tuple[str, ...]) -> str:
    return " | ".join(warnings)


# -- whom to ask -------------------------------------------------------------------------------------


def test_the_target_is_read_off_the_command() -> None:
    command = read_launch(
        "python -m sglang.launch_server --model-path /m/Qwen --served-model-name qwen --host 0.0.0.0 --port 8123 "
        "--api-key $KEY --speculative-algorithm NEXTN --fastapi-root-path /llm/ --ssl-certfile c.pem --ssl-keyfile k.pem"
    ).command
    target = target_of(command, {"KEY": "s3cret-of-the-shell"})
    assert (target.host, target.port, target.tls) == ("127.0.0.1", 8123, True)
    assert target.url == "https://127.0.0.1:8123"
    assert (target.model, target.base_path, target.speculative) == ("qwen", "/llm", "NEXTN")
    assert target.api_key == "s3cret-of-the-shell"
    assert "s3cret" not in repr(target)


def test_the_log_goes_before_the_command() -> None:
    command = read_launch("sglang serve M --host 0.0.0.0").command
    log = (RECORDED / "ready_mtp2.log").read_text().splitlines()
    target = target_of(command, {}, log)
    assert (target.host, target.port) == ("127.0.0.1", 34000)
    assert target.speculative == "EAGLE"
    assert target.draft_tokens == 4
    assert target.random_weights
    assert target.model == "/models/Qwen3.5-tiny"


def test_a_key_that_the_log_masks_is_the_commands_own() -> None:
    line = (
        "[2026-01-01 00:00:00] server_args=ServerArgs(model_path='M', port=31000, api_key='abc-of-the-log')"
    )
    command = read_launch("sglang serve M --api-key abc-of-the-log").command
    assert target_of(command, {}, [line]).api_key == "abc-of-the-log"
    alone = target_of(None, {}, [line])
    assert alone.api_key is None and alone.key_masked


@pytest.mark.parametrize(
    ("line", "host", "port", "tls"),
    [
        (
            "INFO:     Uvicorn running on http://0.0.0.0:30001 (Press CTRL+C to quit)",
            "127.0.0.1",
            30001,
            False,
        ),
        ("INFO:     Uvicorn running on https://[::]:443 (Press CTRL+C to quit)", "::1", 443, True),
        ("[2026-01-01 00:00:00] Starting Granian HTTP/2 server on 10.0.0.5:8000", "10.0.0.5", 8000, False),
    ],
)
def test_where_it_says_that_it_listens(line: str, host: str, port: int, tls: bool) -> None:
    target = target_of(None, {}, [line])
    assert (target.host, target.port, target.tls) == (host, port, tls)


@given(st.text(max_size=200))
def test_any_line_is_survived(text: str) -> None:
    for line in (text, "server_args=ServerArgs(" + text, "Uvicorn running on " + text):
        assert isinstance(target_of(None, {}, [line]), Target)


# -- asking ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("release", ["0.4.6", "0.5.2", "0.5.9", "0.5.13.post1", "0.5.23"])
def test_generates_with_speculation_in_every_release(release: str) -> None:
    with answering({"release": release, "accept": 2.5}, speculative_algorithm="EAGLE") as target:
        proof = prove(target, LONG)
    assert proof.ok and proof.tokens >= 200
    assert proof.accept_length == pytest.approx(2.5, abs=0.15)
    assert proof.tokens_per_s and proof.seconds
    assert proof.warnings == ()


@pytest.mark.parametrize("release", ["0.4.6", "0.5.13.post1"])
def test_nothing_accepted_is_a_warning(release: str) -> None:
    with answering({"release": release, "accept": 1.0}, speculative_algorithm="EAGLE") as target:
        proof = prove(target, LONG)
    assert proof.ok
    assert proof.accept_length == pytest.approx(1.0, abs=0.05)
    assert "nothing that was drafted is accepted" in words(proof.warnings)


def test_a_model_that_stops_at_once_is_asked_to_go_on() -> None:
    with answering({"accept": 1.0, "stops_at": 3}, speculative_algorithm="EAGLE") as target:
        proof = prove(target, LONG)
    assert "nothing that was drafted is accepted" in words(proof.warnings)


def test_overlap_off_and_silent_speculation_are_warnings() -> None:
    with answering({"overlap_off": True}, speculative_algorithm="EAGLE") as target:
        assert "overlap scheduling is off" in words(prove(target, LONG).warnings)
    with answering({"silent_spec": True}, speculative_algorithm="EAGLE") as target:
        assert "may be off" in words(prove(target, LONG).warnings)
    with answering({"overlap_off": True}) as target:  # nobody asked for speculation
        assert prove(target, LONG).warnings == ()


@pytest.mark.parametrize(
    ("answers", "said"),
    [("noise", "writing systems"), ("repeat", "repeated"), ("broken", "replacement characters")],
)
def test_garbage_counts_as_generating_with_a_warning(answers: str, said: str) -> None:
    with answering({"answers": answers}) as target:
        proof = prove(target, LONG)
        random = prove(replace(target, random_weights=True), LONG)
    assert proof.ok and said in words(proof.warnings)
    assert random.ok and "weights are random" in words(random.warnings) and said not in words(random.warnings)


@pytest.mark.parametrize(
    ("answers", "said"),
    [("empty", "without a single token"), ("error", "device-side assert"), ("abort", "no slot")],
)
def test_an_answer_without_tokens_is_no_proof(answers: str, said: str) -> None:
    with answering({"answers": answers, "only": True}, skip_tokenizer_init=True) as target:
        proof = prove(target, LONG)
    assert not proof.ok and said in proof.said and proof.tokens == 0


def test_other_ways_to_ask() -> None:
    with answering({"no_generate": True}) as target:
        assert prove(target, LONG).ok
    with answering({}, skip_tokenizer_init=True) as target:
        proof = prove(target, LONG)
        assert proof.ok and proof.tokens > 100 and proof.warnings == ()
    with answering({}, disaggregation_mode="decode") as target:
        proof = prove(target, LONG)
        assert proof.ok and "pretended transfer" in words(proof.warnings)
    with answering({"room": 16}) as target:  # a KV pool with hardly any room
        proof = prove(target, LONG)
        assert proof.ok and proof.tokens >= 8


def test_embedding_and_reranking_models() -> None:
    with answering({"embedding": True}) as target:
        proof = prove(target, LONG)
        assert proof.ok and "3 numbers" in proof.said
    with answering({"embedding": True, "rerank": True}) as target:
        assert "/v1/rerank" in prove(target, LONG).said
    with answering({"embedding": True, "vector": [float("nan")] * 3}) as target:
        assert "NaN" in words(prove(target, LONG).warnings)
    with answering({"embedding": True, "vector": [0.0, 0.0]}) as target:
        assert "all zeros" in words(prove(target, LONG).warnings)


def test_key_and_base_path() -> None:
    with answering({"base_path": "/llm"}, api_key="the-right-key") as target:
        right = replace(target, api_key="the-right-key", base_path="/llm")
        assert prove(right, LONG).ok
        none = prove(replace(right, api_key=None), LONG)
        assert not none.ok and "none is known" in none.said
        masked = prove(replace(right, api_key=None, key_masked=True), LONG)
        assert "only its mask" in masked.said
        wrong = prove(replace(right, api_key="another-key-xyz"), LONG)
        assert not wrong.ok and "refuses the API key" in wrong.said and "xyz" not in wrong.said
    with answering({}) as target:  # no proxy cuts the base path off here
        assert prove(replace(target, base_path="/llm"), LONG).ok


def test_proxies_of_the_environment_are_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    with answering({}) as target:
        assert prove(target, LONG).ok


def _has_ipv6() -> bool:
    try:
        free_port(socket.AF_INET6)
    except OSError:
        return False
    return True


@pytest.mark.skipif(not _has_ipv6(), reason="no IPv6 loopback here")
def test_ipv6() -> None:
    family = HTTP.ThreadingHTTPServer.address_family
    try:
        with answering({}, host="::1", port=free_port(socket.AF_INET6)) as target:
            assert target.url.startswith("http://[::1]:")
            assert prove(target, LONG).ok
    finally:
        HTTP.ThreadingHTTPServer.address_family = family


def test_https_with_a_certificate_of_its_own(tmp_path: Path) -> None:
    cert, key = tmp_path / "c.pem", tmp_path / "k.pem"
    made = subprocess.run(
        f"openssl req -x509 -newkey rsa:2048 -nodes -keyout {key} -out {cert} -days 2 -subj /CN=else.where".split(),
        capture_output=True,
    )
    if made.returncode:
        pytest.skip("openssl cannot make a certificate here")
    with answering({}, ssl_certfile=str(cert), ssl_keyfile=str(key)) as target:
        assert target.url.startswith("https://")
        assert prove(target, LONG).ok


def test_a_server_that_is_still_starting_is_waited_for() -> None:
    with answering({"busy_503": 2}) as target:
        assert not reachable(target, LONG)
        assert prove(target, LONG).ok
        assert reachable(target, LONG)


def test_servers_that_cannot_be_asked_say_why() -> None:
    for target in (Target(grpc=True), Target(encoder_only=True), Target(node_rank=1)):
        proof = prove(target, 5)
        assert not proof.ok and proof.said.startswith("not asked")


def test_nobody_listens() -> None:
    target = Target(port=free_port())
    proof = prove(target, 0.4)
    assert not proof.ok and "nobody listens there" in proof.said
    assert not reachable(target)


@pytest.mark.parametrize(
    "reply", [b"", b"SSH-2.0-OpenSSH\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{", None]
)
def test_a_port_that_speaks_something_else(reply: bytes | None) -> None:
    """None: it accepts and never answers. The deadline holds for all of them."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(8)
        kept = []

        def serve() -> None:
            while True:
                try:
                    client, _ = server.accept()
                except OSError:
                    return
                kept.append(client)
                if reply is not None:
                    client.recv(1000)
                    client.sendall(reply)
                    client.close()

        threading.Thread(target=serve, daemon=True).start()
        proof = prove(Target(port=server.getsockname()[1]), 0.6)
        assert not proof.ok and proof.said
        server.shutdown(socket.SHUT_RDWR)
        for client in kept:
            client.close()


def test_the_time_counts_from_the_launch() -> None:
    with answering({}) as target:
        assert prove(target, LONG, started=time.monotonic() - 100).at > 100


# -- judging -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "    return fibonacci(n - 1) + fibonacci(n - 2)\n\nprint([fibonacci(i) for i in range(10)])",
        "twelve, thirteen, fourteen, fifteen, sixteen, seventeen, eighteen, nineteen, twenty",
        "巴黎是法国的首都，也是法国最大的城市。The city is also known as Paris, la Ville Lumière.",
        "東京は日本の首都です。人口は約1400万人で、世界最大の都市圏の一つです。서울",
        "Париж — столица Франции. Москва — столица России.",
        "| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |\n| 5 | 6 |\n",
        "∀ε>0 ∃δ>0: |x−a|<δ ⇒ |f(x)−f(a)|<ε, where α, β and γ are angles",
        "OK",
        "",
    ],
)
def test_ordinary_text_is_no_noise(text: str) -> None:
    sample = Sample(text, max(len(text) // 4, 1), 1.0, tuple(range(len(text) // 4)))
    assert noise([sample, Sample("All is well with this answer.", 6, 1.0)]) is None


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(max_size=20),
        lambda c: (
            st.lists(c)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "text",
                        "output_ids",
                        "meta_info",
                        "completion_tokens",
                        "spec_verify_ct",
                        "finish_reason",
                        "spec_accept_length",
                        "type",
                    ]
                )
                | st.text(max_size=5),
                c,
            )
        ),
        max_leaves=12,
    )
)
@settings(max_examples=150, deadline=None)
def test_any_answer_is_survived(data: object) -> None:
    found = sample_of_generate(data, 0.1)
    if isinstance(found, Sample):
        noise([found])
        acceptance_warning(acceptance([found]))


@given(
    st.lists(st.tuples(st.integers(2, 200), st.floats(1, 5)), min_size=1, max_size=6),
)
def test_acceptance_is_the_mean_over_steps(answers: list[tuple[int, float]]) -> None:
    samples = []
    for tokens, accept in answers:
        steps = max(round((tokens - 1) / accept), 1)
        samples.append(Sample("x", tokens, 1.0, steps=steps))
    found = acceptance(samples)
    assert found is not None and found.steps == sum(s.steps or 0 for s in samples)
    lengths = [s.tokens / (s.steps or 1) for s in samples]
    assert min(lengths) - 1e-9 <= found.length <= max(lengths) + 1e-9
    assert found.accepted >= 0


def test_what_was_answered_is_shown_so_that_a_person_can_judge_it() -> None:
    with answering() as target:
        assert prove(target, LONG).said.startswith('"...')
        assert 'Spain is" -> "' in prove(target, LONG).said
        assert "random weights" in prove(replace(target, random_weights=True), LONG).said
    with answering(skip_tokenizer_init=True) as target:
        assert "no text: --skip-tokenizer-init" in prove(target, LONG).said
