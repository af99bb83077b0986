"""What a fix takes out takes along what means nothing without it."""

from __future__ import annotations

import pytest

from mtpdoctor.diagnose.partners import overruled, partners_of, whole_speculation
from mtpdoctor.launch.document import read_launch
from mtpdoctor.launch.types import Edit, EditOp
from mtpdoctor.paths import releases_folder
from mtpdoctor.release import parse_release
from mtpdoctor.sglang.flags import flag_table
from mtpdoctor.sglang.releases import known_releases
from mtpdoctor.sglang.store import read_table

TABLE = read_table(releases_folder() / "partners.json")
GROUPS = TABLE["groups"]


def along(options: str, *removed: str, release: str = "0.5.16") -> list[str]:
    command = read_launch(f"python -m sglang.launch_server --model-path m {options}").command
    edits = [Edit(EditOp.REMOVE, name, None) for name in removed]
    out, why = partners_of(edits, command, parse_release(release))
    assert bool(out) == bool(why)
    return [e.name for e in out]


@pytest.mark.parametrize(
    ("options", "removed", "goes"),
    [
        ("--speculative-algorithm EAGLE --speculative-num-steps 3 --speculative-eagle-topk 1 --tp 2", "--speculative-algorithm", ["--speculative-num-steps", "--speculative-eagle-topk"]),
        ("--tp 8 --dp 8 --enable-dp-attention --enable-dp-lm-head", "--enable-dp-attention", ["--dp", "--enable-dp-lm-head"]),
        ("--moe-a2a-backend deepep --deepep-mode normal --enable-two-batch-overlap", "--moe-a2a-backend", ["--deepep-mode", "--enable-two-batch-overlap"]),
        ("--kt-weight-path w --kt-method LLAMAFILE --kt-num-gpu-experts 16", "--kt-weight-path", ["--kt-method", "--kt-num-gpu-experts"]),
        ("--nnodes 2 --node-rank 1 --dist-init-addr a:1", "--nnodes", ["--node-rank"]),
        ("--enable-hierarchical-cache --hicache-ratio 2 --page-size 64", "--enable-hierarchical-cache", ["--hicache-ratio"]),
        ("--enable-lora --lora-paths a=b --max-lora-rank 8", "--lora-paths", []),
        ("--tp 8 --dp 8", "--tp", []),
        ("--ssl-certfile c --ssl-keyfile k --ssl-ca-certs a", "--ssl-certfile", ["--ssl-keyfile", "--ssl-ca-certs"]),
        ("--elastic-ep-backend mooncake --max-ep-size 16 --elastic-ep-join-mode rejoin", "--elastic-ep-backend", ["--max-ep-size", "--elastic-ep-join-mode"]),
        ("--enable-prefill-cp --cp-strategy zigzag --attn-cp-size 2", "--cp-strategy", ["--enable-prefill-cp"]),
        ("--hicache-storage-backend file --disaggregation-decode-enable-offload-kvcache", "--hicache-storage-backend", ["--disaggregation-decode-enable-offload-kvcache"]),
    ],
)  # fmt: skip
def test_what_goes_along(options: str, removed: str, goes: list[str]) -> None:
    assert along(options, removed) == goes


@pytest.mark.parametrize(
    ("options", "edits", "completed"),
    [
        ("NEXTN", ["set --speculative-eagle-topk 1"], ["set --speculative-num-steps 3", "set --speculative-num-draft-tokens 4"]),
        ("EAGLE", ["set --speculative-num-draft-tokens 6"], ["set --speculative-num-steps 5", "set --speculative-eagle-topk 1"]),
        ("EAGLE --speculative-num-steps 3 --speculative-eagle-topk 4 --speculative-num-draft-tokens 8", ["remove --speculative-num-steps"],
         ["remove --speculative-eagle-topk", "remove --speculative-num-draft-tokens"]),
        ("EAGLE --speculative-num-steps 3 --speculative-num-draft-tokens 8", ["set --speculative-eagle-topk 1"], []),
        ("DFLASH", ["set --speculative-num-draft-tokens 8"], []),
        ("EAGLE --speculative-num-steps 3 --speculative-num-draft-tokens 8", ["set --speculative-algorithm NGRAM", "remove --speculative-num-steps"], []),
    ],
)  # fmt: skip
def test_steps_branches_and_draft_tokens_are_given_together(
    options: str, edits: list[str], completed: list[str]
) -> None:
    command = read_launch(
        f"python -m sglang.launch_server --model-path m --speculative-algorithm {options}"
    ).command
    made = [
        Edit(EditOp(word[0]), word[1], word[2] if len(word) > 2 else None) for word in map(str.split, edits)
    ]
    assert [str(e) for e in whole_speculation(made, command, parse_release("0.5.16"))[0]] == completed


def test_what_the_fix_itself_writes_stays() -> None:
    command = read_launch(
        "python -m sglang.launch_server --model-path m --tp 8 --dp 8 --enable-dp-attention"
    ).command
    edits = [Edit(EditOp.REMOVE, "--enable-dp-attention", None), Edit(EditOp.SET, "--dp-size", "2")]
    assert partners_of(edits, command, parse_release("0.5.16")) == ((), "")


def test_the_table_names_fields_that_releases_have() -> None:
    fields = {spec.dest for r in known_releases() for spec in flag_table(r).specs}
    for group in GROUPS:
        assert group["why"] and set(group["heads"]) <= fields
        for name in group["with"]:
            assert any(f.startswith(name[:-1]) if name.endswith("*") else f == name for f in fields), name
    for group in TABLE["overruled"]:
        assert group["why"] and {*group["by"], *group["options"]} <= fields
    for group in TABLE["kept"]:
        assert group["why"] and {*group["heads"], group["option"], group["of"], *group["unless"]} <= fields


def _brought(options: str, *edits: Edit, release: str = "0.5.16") -> list[str]:
    command = read_launch(f"python -m sglang.launch_server --model-path m {options}").command
    return [str(e) for e in partners_of(edits, command, parse_release(release))[0]]


NO_EXCHANGE = Edit(EditOp.REMOVE, "--moe-a2a-backend", None)


@pytest.mark.parametrize(
    ("options", "release", "brings"),
    [
        ("--tp 8 --moe-a2a-backend deepep", "0.5.16", ["set --ep-size 8"]),
        ("--tp-size 8 --moe-a2a-backend deepep --enable-eplb", "0.5.9", ["set --ep-size 8"]),
        ("--tp 8 --ep-size 8 --moe-a2a-backend deepep", "0.5.16", []),
        ("--tp 8 --ep 4 --moe-a2a-backend deepep", "0.5.16", []),
        ("--tp 8 --moe-dp-size 2 --moe-a2a-backend deepep", "0.5.16", []),
        ("--moe-a2a-backend deepep", "0.5.16", []),
        ("--tp 8 --moe-a2a-backend deepep", "0.5.1", []),
        ("--tp 8", "0.5.16", []),
    ],
)
def test_experts_stay_whole_without_the_exchange(options: str, release: str, brings: list[str]) -> None:
    assert _brought(options, NO_EXCHANGE, release=release) == brings


def test_what_the_fix_says_of_the_experts_itself_stays() -> None:
    assert not _brought("--tp 8 --moe-a2a-backend deepep", NO_EXCHANGE, Edit(EditOp.SET, "--ep-size", "4"))
    assert not _brought(
        "--tp 8 --moe-a2a-backend deepep", NO_EXCHANGE, Edit(EditOp.SET, "--moe-a2a-backend", "mooncake")
    )


@pytest.mark.parametrize(
    ("options", "flag", "value", "goes"),
    [
        ("--decode-attention-backend fa3", "--attention-backend", "triton", ["--decode-attention-backend"]),
        ("--attention-backend triton --decode-attention-backend fa3", "--attention-backend", "triton", ["--decode-attention-backend"]),
        ("--prefill-attention-backend triton --decode-attention-backend fa3", "--attention-backend", "triton", ["--decode-attention-backend"]),
        ("--attention-backend fa3", "--attention-backend", "triton", []),
        ("--linear-attn-decode-backend flashinfer", "--linear-attn-backend", "triton", ["--linear-attn-decode-backend"]),
        ("--cuda-graph-bs 1 2 4 256", "--cuda-graph-max-bs", "16", ["--cuda-graph-bs"]),
        ("--cuda-graph-bs 1 2 4 256", "--mem-fraction-static", "0.7", []),
    ],
)  # fmt: skip
def test_what_would_go_before_what_a_fix_sets(options: str, flag: str, value: str, goes: list[str]) -> None:
    command = read_launch(f"python -m sglang.launch_server --model-path m {options}").command
    out, why = overruled([Edit(EditOp.SET, flag, value)], command, parse_release("0.5.13"))
    assert [e.name for e in out] == goes and bool(out) == bool(why)


def test_what_the_fix_writes_for_a_phase_stays() -> None:
    command = read_launch(
        "python -m sglang.launch_server --model-path m --decode-attention-backend fa3"
    ).command
    edits = [
        Edit(EditOp.SET, "--attention-backend", "triton"),
        Edit(EditOp.SET, "--decode-attention-backend", "flashinfer"),
    ]
    assert overruled(edits, command, parse_release("0.5.16")) == ((), "")


def test_what_the_fix_itself_takes_out_does_not_come_in_with_it() -> None:
    command = read_launch(
        "python -m sglang.launch_server --model-path m --tp-size 48 --moe-a2a-backend deepep"
    ).command
    gone = Edit(EditOp.REMOVE, "--moe-a2a-backend", None)
    along, _ = partners_of([gone], command, parse_release("0.5.9"), [gone])
    assert [(e.name, e.value) for e in along] == [("--ep-size", "48")]
    asked = [gone, Edit(EditOp.REMOVE, "--ep-size", None)]
    assert partners_of([gone], command, parse_release("0.5.9"), asked) == ((), "")
