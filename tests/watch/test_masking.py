"""Masking a stream gives what masking its whole lines gives, however it comes in pieces."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtpdoctor.redact import TRIGGERS, mask_secrets
from mtpdoctor.watch.masking import StreamMasker

LINES = st.sampled_from(
    [
        "[2026-11-29 15:20:22 TP0] Load weight begin. avail mem=127.84 GB",
        "server_args=ServerArgs(model_path='m', api_key='abcdefgh-1', port=1)",
        "python -m sglang.launch_server --api-key abcdefgh-1 --tp 2",
        "HF_TOKEN=hf_abcdefghijklmnop1234 python x",
        "Authorization: Bearer abcDEF123456789",
        "http://user:pass1234@host/path?sig=abc&x=1",
        "Decode batch, #running-req: 1, #token: 120, token usage: 0.00",
        "  0%|          | 0/4 [00:00<?, ?it/s]",
        "",
        "\u00e9\u4e2d weights high through",
    ]
)


@given(st.lists(LINES, max_size=12), st.lists(st.integers(1, 200), max_size=12), st.booleans())
def test_pieces_do_not_matter(lines: list[str], cuts: list[int], last_ends: bool) -> None:
    data = "\n".join(lines).encode() + (b"\n" if last_ends else b"")
    masker, out, at = StreamMasker(), b"", 0
    for cut in cuts:
        out += masker.feed(data[at : at + cut])
        at += cut
    out += masker.feed(data[at:]) + masker.flush()
    assert out.decode() == "\n".join(map(mask_secrets, lines)) + ("\n" if last_ends else "")


@given(st.lists(LINES, min_size=1, max_size=6))
def test_a_flood_is_masked_alike(lines: list[str]) -> None:
    text = "\n".join(lines) + "\n"
    times = 1 + (200 << 10) // len(text)
    masked = StreamMasker(["nothing-like-it"]).feed((text * times).encode()).decode()
    assert masked == ("\n".join(map(mask_secrets, lines)) + "\n") * times


def test_known_values_are_masked_in_a_flood_too() -> None:
    data = (b"y" * 79 + b"\n") * 2000 + b"bare Value-Known-1 here\n" + (b"y" * 79 + b"\n") * 2000
    masked = StreamMasker(["Value-Known-1"]).feed(data)
    assert b"Value" not in masked and b"bare <hidden> here" in masked and len(masked) == len(data) - 5


def test_bytes_that_are_no_text_stay() -> None:
    data = bytes(range(256)).replace(b"\r", b"") + b"\xff\xfe --api-key abcdefgh-1\n"
    masked = StreamMasker().feed(data) + StreamMasker().flush()
    assert masked == data.replace(b"abcdefgh-1", b"<hidden>")


@given(st.text(alphabet="abhfsgkxoten_-=:@/?&' 0123456789AKEYTO", max_size=60))
def test_only_texts_with_a_trigger_are_ever_changed(text: str) -> None:
    if mask_secrets(text) != text:
        assert any(trigger in text.lower() for trigger in TRIGGERS)


@pytest.mark.parametrize(
    "secret",
    [
        "ghp_abcdefghijklmnopqrstuv12",
        "sk-abcdefgh12345678XYZ",
        "AKIAABCDEFGHIJKLMNOP",
        "eyJhbGciOi.eyJzdWIiOi.abc",
        "xoxb-1234567890-abc",
        "glpat-abcdefghijklmnop1",
    ],
)
def test_secrets_known_by_their_shape_have_a_trigger(secret: str) -> None:
    assert mask_secrets(secret) != secret
    assert any(trigger in secret.lower() for trigger in TRIGGERS)


def test_figures_of_a_serving_log_hide_no_secret() -> None:
    figures = b"Decode batch. #running-req: 1, #token: 131, token usage: 0.00, gen throughput (token/s): 3.2"
    lines = (figures + b"\n") * 5000 + figures + b", api_key=abcdef1234567\n"
    for piece in (lines, lines[-200:]):
        out = StreamMasker().feed(piece)
        assert b"abcdef1234567" not in out and out.count(b"#token: 131") == piece.count(b"#token: 131")
