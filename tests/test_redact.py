"""Secrets are masked wherever they stand; everything else stays as it is."""

from __future__ import annotations

import shlex
import string

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mtpdoctor.redact import MASK, mask_secrets, mask_values, secret_values

SECRET = "h4nter2ABCxyz"

PLACES = [
    "python -m sglang.launch_server --api-key {} --port 30000",
    "python -m sglang.launch_server --api-key={} --port 30000",
    "--api-key '{}' --port 30000",
    '--api-key "{}" --port 30000',
    "--api-key='{}'",
    "--admin-api-key {}",
    "--admin-api-key={}",
    "--ssl-keyfile-password {} --ssl-keyfile /etc/key.pem",
    "--api-key \\\n    {} \\\n    --port 1",
    "--hf-token {}",
    'bash -c "python -m sglang.launch_server --api-key {}" --name "x"',
    '["--api-key", "{}", "--port", "1"]',
    '[\\"--api-key\\", \\"{}\\", \\"--port\\", \\"1\\"]',
    "['--admin-api-key', '{}']",
    "  - --api-key\n  - {}\n  - --port",
    "server_args=ServerArgs(model_path='/m', api_key='{}', admin_api_key=None)",
    'ServerArgs(ssl_keyfile_password="{}")',
    "ServerArgs(admin_api_key='{}', tokenizer_path='/m')",
    '{{"api_key": "{}", "port": 1}}',
    "HF_TOKEN={} python -m sglang.launch_server",
    "export HUGGING_FACE_HUB_TOKEN='{}'",
    "docker run -e HF_TOKEN={} --gpus all image",
    "AWS_SECRET_ACCESS_KEY={}",
    "AWS_SESSION_TOKEN={}",
    "WANDB_API_KEY={}",
    "      POSTGRES_PASSWORD: {}",
    "      MY_SECRET: '{}'",
    '"HF_TOKEN": "{}"',
    "- name: HF_TOKEN\n  value: {}",
    '{{"name": "HF_TOKEN", "value": "{}"}}',
    'Environment="HF_TOKEN={}"',
    "Authorization: Bearer {}",
    "'Authorization': 'Bearer {}'",
    '"authorization": "Basic {}"',
    "x-api-key: {}",
    "sent bearer {}",
    "https://user:{}@host.example/path",
    "https://{}@github.com/org/repo.git",
    "http://user:{}@proxy:3128",
    "https://b.s3.amazonaws.com/x?X-Amz-Signature={}&X-Amz-Date=20260101",
    "https://cdn.example/x?Policy=abc&Signature={}&Key-Pair-Id=K1",
    "https://a.blob.core.windows.net/x?sv=2024&sig={}",
    "https://h/x?a=1\\u0026token={}",
    "login password='{}'",
    "password={}",
]

SHAPES = [
    "hf_" + "aBcDeFgHiJkLmNoPqRsTuVwXyZaBcDeFgH",
    "hf_" + "abcdefghijklmnopqrstuvwxyzabcdefgh",
    "sk-" + "proj-Abc123_def-456ghijkl",
    "sk-" + "abcdefghijklmnopqrstuvwx",
    "AKIA" + "IOSFODNN7EXAMPLE",
    "ghp_" + "abcdefghijklmnopqrstuvwxyz0123456789",
    "nvapi-" + "abcdEFGH0123456789abcd",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
]

HARMLESS = [
    "sglang 0.5.13.post1, torch 2.9.1+cu130, shape [1, 4096, 128]",
    "tokenizer_path='/models/x', tokenizer_mode='auto', skip_tokenizer_init=False",
    "max_total_num_tokens=1784892, chunked_prefill_size=8192, max_prefill_tokens=16384",
    "KV Cache is allocated. dtype: torch.bfloat16, #tokens: 1784892, K size: 1.70 GB",
    "Decode batch, #running-req: 1, #token: 40, token usage: 0.00, accept len: 1.00",
    "commit 1524234f0c6f6fdd2b6f11cd5a0f9c6a9a1c7c5a",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "ServerArgs(api_key=None, admin_api_key=None, ssl_keyfile='/etc/key.pem', ssl_keyfile_password=None)",
    "[--api-key API_KEY] [--admin-api-key ADMIN_API_KEY] [--ssl-keyfile-password SSL_KEYFILE_PASSWORD]",
    "launch_server.py: error: argument --api-key: expected one argument",
    "Please set --api-key or --admin-api-key to use this endpoint",
    "--api-key --port 30000",
    "--speculative-token-map /models/map.pt --tokenizer-path /m --speculative-num-draft-tokens 4",
    "special_tokens_map: eos_token='</s>', pad_token=\"<pad>\", image_token='<image>'",
    "docker run -e HF_TOKEN=$HF_TOKEN -e WANDB_API_KEY=${WANDB_API_KEY}",
    "TOKENIZERS_PARALLELISM=false SGLANG_PER_TOKEN_GROUP_QUANT_8BIT=1",
    "HF_TOKEN is not set; a bearer token is required",
    "KeyError: 'model.layers.0.mlp.experts.w13_weight'",
    "ValueError: hf_config.hf_text_config has no attribute hf_overrides",
    "git+ssh://git@github.com/org/repo.git and https://huggingface.co/Qwen/Qwen3-8B/tree/main",
    "http://127.0.0.1:30000/generate?stream=1&n=2",
    "wrong password: try again",
    "KeyboardInterrupt, key_averages(), keys=['a']",
    "task-12345678 disk-ABC12345678 risk-A1234567890",
    "cache_key=abc123, rope_key='q', monkey=3",
    "bytes_per_token=73728 time_per_output_token=0.03 last_token='x'",
]


@pytest.mark.parametrize("place", PLACES)
def test_value_in_a_secret_place_is_masked_and_nothing_else(place: str) -> None:
    masked = mask_secrets(place.format(SECRET))
    assert SECRET not in masked
    assert MASK in masked
    for word in (
        "--port",
        "30000",
        "sglang.launch_server",
        "/etc/key.pem",
        "tokenizer_path='/m'",
        "--gpus all",
    ):
        assert (word in masked) == (word in place)


@pytest.mark.parametrize("secret", SHAPES)
@pytest.mark.parametrize("around", ["{}", "token {} is invalid", "('{}',)", "x={}&y", 'url "{}"'])
def test_secret_known_by_its_shape_is_masked_anywhere(secret: str, around: str) -> None:
    assert mask_secrets(around.format(secret)) == around.format(MASK)


@pytest.mark.parametrize("text", HARMLESS)
def test_harmless_text_stays(text: str) -> None:
    assert mask_secrets(text) == text


_TRICKY = [
    "--api-key ",
    "HF_TOKEN=",
    "api_key='",
    '"',
    "'",
    "\\",
    "://",
    "@",
    "Bearer ",
    "password: ",
    "?sig=",
    "$",
]
_TEXT = st.lists(
    st.one_of(st.sampled_from([*_TRICKY, MASK, *SHAPES]), st.text(max_size=12)), max_size=12
).map("".join)


@given(_TEXT)
@example("Authorization: Bearer <hidden>")
def test_masking_twice_is_masking_once(text: str) -> None:
    once = mask_secrets(text)
    assert mask_secrets(once) == once


@given(
    st.text(
        alphabet=string.ascii_letters + string.digits + "._~+=%^@!#&;|<>()[]{}*?$,:/ '\"\\",
        min_size=4,
        max_size=40,
    )
)
@example("\\'00")
def test_any_shell_quoted_key_is_masked(tail: str) -> None:
    key = "k9" + tail
    masked = mask_secrets(f"python -m sglang.launch_server --api-key {shlex.quote(key)} --port 30000")
    assert masked.startswith("python -m sglang.launch_server --api-key ")
    assert masked.endswith(" --port 30000")
    middle = masked.removeprefix("python -m sglang.launch_server --api-key ").removesuffix(" --port 30000")
    assert middle.rstrip(",)]}").strip("'") == MASK


@given(st.text(alphabet=st.characters(exclude_categories=["C"]), min_size=3, max_size=30))
def test_any_key_in_a_server_args_repr_is_masked(tail: str) -> None:
    key = "k9" + tail
    masked = mask_secrets(f"server_args=ServerArgs(model_path='/m', api_key={key!r}, tp_size=4)")
    assert masked in (
        f"server_args=ServerArgs(model_path='/m', api_key='{MASK}', tp_size=4)",
        f"server_args=ServerArgs(model_path='/m', api_key=\"{MASK}\", tp_size=4)",
    )


def test_a_key_named_once_is_masked_where_it_stands_bare() -> None:
    lines = ["python -m sglang.launch_server --api-key my-very-own-key-1", "client sent my-very-own-key-1"]
    found = secret_values(lines)
    assert found == {"my-very-own-key-1"}
    assert mask_values(lines[1], found) == f"client sent {MASK}"


@pytest.mark.parametrize(
    "text", ["a_" * 60_000, "A_" * 60_000, "api-" * 30_000, "://" * 20_000, "--api-key '" + "\\" * 50_000]
)
def test_hostile_lines_are_handled_in_linear_time(text: str) -> None:
    assert mask_secrets(text + " --api-key " + SECRET).count(SECRET) == 0 or text.endswith("\\")
