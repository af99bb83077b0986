"""Regexes and examples that drafts are made of."""

from __future__ import annotations

import re

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from mtpdoctor.kb.generalise import generalise
from mtpdoctor.kb.literals import required_literal
from mtpdoctor.kb.placeholders import Placeholders

AGAIN = [
    (
        "ValueError: tp_size 6 does not divide the 64 heads of Qwen/Qwen3-8B",
        "ValueError: tp_size 12 does not divide the 40 heads of org/Other-70B",
    ),
    (
        "FileNotFoundError: [Errno 2] No such file or directory: '/home/a/models/x/config.json'",
        "FileNotFoundError: [Errno 2] No such file or directory: '/mnt/b/y.json'",
    ),
    (
        "AttributeError: 'Qwen3ForCausalLM' object has no attribute 'set_embed'",
        "AttributeError: 'LlamaForCausalLM' object has no attribute 'set_embed'",
    ),
    (
        "gpu1:41:51 [0] net_socket.cc:46 NCCL WARN connect to 10.1.2.3<41233> failed",
        "host9:7:8 [3] net_socket.cc:99 NCCL WARN connect to 192.168.0.9<5> failed",
    ),
    (
        "RuntimeError: shapes cannot be multiplied (4x12288 and 15360x5120) for torch.Size([4, 12288])",
        "RuntimeError: shapes cannot be multiplied (1x8 and 9x7) for torch.Size([1])",
    ),
    (
        "RuntimeError: Unsupported torch.bfloat16 at 0x7ffd12ab, free 1.25 GiB",
        "RuntimeError: Unsupported torch.float16 at 0x1f, free 80.00 GiB",
    ),
    (
        "KeyError: 'model.layers.3.mlp.gate_proj.weight_scale'",
        "KeyError: 'model.layers.61.mlp.gate_proj.weight_scale'",
    ),
]
OTHER = [
    (
        "AttributeError: 'A1' object has no attribute 'set_embed'",
        "AttributeError: 'A1' object has no attribute 'embed'",
    ),
    ("OSError: [Errno 28] No space left on device", "OSError: [Errno 2] No space left on device"),
    ("KeyError: 'model.layers.3.mlp.scale'", "KeyError: 'model.layers.3.attn.scale'"),
]


@pytest.mark.parametrize(("seen", "again"), AGAIN)
def test_the_same_message_with_other_values(seen: str, again: str) -> None:
    made = generalise(seen)
    assert regex.search(made, seen) and regex.search(made, again), made
    assert len(required_literal(made)) >= 6


@pytest.mark.parametrize(("seen", "other"), OTHER)
def test_another_message_is_another(seen: str, other: str) -> None:
    assert not regex.search(generalise(seen), other)


def test_names_of_groups_come_from_the_words_before() -> None:
    found = re.search(
        generalise("shared memory, Required: 147456, Hardware limit: 101376"),
        "shared memory, Required: 1, Hardware limit: 2",
    )
    assert found is not None and found.groupdict() == {"required": "1", "limit": "2"}


def test_the_holes_of_a_template_vary_and_nothing_else() -> None:
    made = generalise("ValueError: Unknown backend fa9 for 3 layers", ("Unknown backend ", " for 3 layers"))
    assert regex.search(made, "ValueError: Unknown backend triton for 3 layers")
    assert not regex.search(made, "ValueError: Unknown backend triton for 4 layers")


def test_a_template_that_does_not_fit_is_left_alone() -> None:
    seen = "ValueError: Unknown backend fa9"
    assert generalise(seen, ("Other ", "")) == generalise(seen)


@given(st.text(min_size=1, max_size=300))
def test_every_regex_finds_the_line_it_was_made_of(text: str) -> None:
    line = text.split("\n", 1)[0]
    assert re.search(generalise(text), line)


@given(
    st.text(alphabet=st.sampled_from("ab1/ '.=:[]()x-\"`0"), max_size=120),
    st.lists(st.text(alphabet="ab1 '(", max_size=8), min_size=1, max_size=4),
)
def test_so_does_one_made_of_any_template(text: str, pieces: list[str]) -> None:
    assert re.search(generalise(text, tuple(pieces)), text.split("\n", 1)[0])


def test_stand_ins_are_stable_and_hide() -> None:
    hide = Placeholders()
    first = hide(
        "/home/alice/m/model.safetensors on 10.1.2.3, mail a.b@corp.com, HF_TOKEN=hf_abcdefghij0123456789"
    )
    for secret in ("alice", "10.1.2.3", "corp.com", "hf_abc"):
        assert secret not in first
    assert ".safetensors" in first
    assert hide("/home/alice/m/model.safetensors") == first.split(" ")[0]
    assert hide("/home/bob/m/model.safetensors") != first.split(" ")[0]
    assert hide("127.0.0.1 /dev/shm/x /usr/lib/y") == "127.0.0.1 /dev/shm/x /usr/lib/y"
    code = hide('File "/home/alice/env/lib/python3.12/site-packages/sglang/srt/a.py", line 3')
    assert code == 'File "/opt/site-packages/sglang/srt/a.py", line 3' or code.endswith(
        'sglang/srt/a.py", line 3'
    )
    assert "alice" not in code


@given(st.text(alphabet=st.sampled_from("/abc.1-@ :'\"0\n~"), max_size=80))
def test_stand_ins_hide_once_and_for_all(text: str) -> None:
    hide = Placeholders()
    once = hide(text)
    assert hide(once) == once
