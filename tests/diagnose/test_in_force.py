"""No remedy asks for what is in force already, or for an option that the release does not have."""

from __future__ import annotations

import pytest

from mtpdoctor.case import build_case
from mtpdoctor.diagnose.engine import diagnose
from mtpdoctor.diagnose.in_force import names_missing_option, without_those_in_force
from mtpdoctor.facts import UNKNOWN, Fact, Facts, Source, make_facts
from mtpdoctor.kb.load import load_knowledge
from mtpdoctor.launch.document import read_launch
from mtpdoctor.launch.types import Edit, EditOp
from mtpdoctor.log.reading import reading_from_text
from mtpdoctor.release import parse_release

RELEASE = parse_release("0.5.13.post1")


def left(edit: Edit, facts: Facts) -> bool:
    return bool(without_those_in_force([edit], facts, RELEASE))


@pytest.mark.parametrize(
    ("edit", "values", "changes"),
    [
        (Edit(EditOp.ENV, "NCCL_DEBUG", "INFO"), {"env.NCCL_DEBUG": "INFO"}, False),
        (Edit(EditOp.ENV, "NCCL_DEBUG", "INFO"), {"env.NCCL_DEBUG": "WARN"}, True),
        (Edit(EditOp.ENV, "SGLANG_USE_AITER", "0"), {"env.SGLANG_USE_AITER": "false"}, False),
        (Edit(EditOp.ENV, "SGLANG_USE_AITER", "0"), {}, True),
        (
            Edit(EditOp.ENV, "PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True"),
            {"env.PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:true"},
            True,
        ),
        (
            Edit(EditOp.ENV, "PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True"),
            {"env.PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"},
            False,
        ),
        (Edit(EditOp.SET, "--attention-backend", "triton"), {"flag.attention_backend": "triton"}, False),
        (Edit(EditOp.SET, "--attention-backend", "triton"), {"flag.attention_backend": "fa3"}, True),
        (Edit(EditOp.ADD, "--disable-cuda-graph", None), {"flag.disable_cuda_graph": True}, False),
        (Edit(EditOp.ADD, "--disable-cuda-graph", None), {"flag.disable_cuda_graph": None}, True),
        (Edit(EditOp.ADD, "--disable-cuda-graph", None), {"flag.disable_cuda_graph": "true"}, True),
        (Edit(EditOp.REMOVE, "--tp-size", None), {"flag.tp_size": "2"}, True),
        (Edit(EditOp.GPUS, "", "all"), {"container.image": "i"}, True),
        (Edit(EditOp.GPUS, "", "all"), {"container.gpus": "all"}, False),
        (Edit(EditOp.GPUS, "", "all"), {"container.runtime": "nvidia"}, False),
        (Edit(EditOp.GPUS, "", "all"), {"container.device": "nvidia.com/gpu=all"}, False),
    ],
)
def test_in_force(edit: Edit, values: dict[str, object], changes: bool) -> None:
    assert left(edit, make_facts(values, Source.COMMAND)) is changes


def test_a_default_of_the_release_is_no_sign() -> None:
    edit = Edit(EditOp.SET, "--attention-backend", "triton")
    known = Facts({"arg.attention_backend": Fact("arg.attention_backend", "triton", Source.RELEASE)})
    shown = Facts({"arg.attention_backend": Fact("arg.attention_backend", "triton", Source.LOG)})
    assert left(edit, known)
    assert not left(edit, shown)


def test_options_of_other_releases() -> None:
    old = parse_release("0.4.8")
    assert names_missing_option("Name the modules in --lora-target-modules", old)
    assert not names_missing_option("Name the modules in --lora-target-modules", RELEASE)
    assert not names_missing_option("Upgrade to a release that has --lora-target-modules", old)
    assert not names_missing_option("docker run --shm-size 32g --ipc=host", old)
    assert not names_missing_option("Name the modules in --lora-target-modules", None)


@pytest.mark.parametrize(
    ("command", "contained"),
    [
        ("docker run --gpus all lmsysorg/sglang:v0.5.9 python3 -m sglang.launch_server --model-path M", True),
        ("python3 -m sglang.launch_server --model-path M", UNKNOWN),
    ],
)
def test_a_command_of_docker_tells_that_the_launch_is_in_a_container(command: str, contained: object) -> None:
    reading = reading_from_text("RuntimeError: x\n", load_knowledge().literals)
    case = build_case(reading=reading, document=read_launch(command), command_where="command")
    assert case.facts.look("host.container") is contained


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("", True),
        ("--cuda-graph-max-bs 512", True),
        ("--cuda-graph-max-bs 8", False),
        ("--cuda-graph-bs 1 2 4", False),
        ("--cuda-graph-bs 1 2 64", True),
    ],
)
def test_fewer_graphs_are_fewer_than_were_asked_for(typed: str, offered: bool) -> None:
    knowledge = load_knowledge()
    text = (
        f"$ python -m sglang.launch_server --model-path /m/q {typed}\nsglang==0.5.9\n"
        "[2026-05-05 10:00:02 TP0] Scheduler hit an exception: Traceback (most recent call last):\n"
        '  File "/x/sglang/srt/model_executor/cuda_graph_runner.py", line 99, in __init__\n'
        "    self.capture()\n"
        "Exception: Capture cuda graph failed: CUDA out of memory\n"
    )
    fixes = diagnose(reading_from_text(text, knowledge.literals), knowledge).diagnoses[0].fixes
    assert any(fix.title == "Capture graphs for fewer batch sizes" for fix in fixes) is offered
    assert any(fix.title == "Serve without CUDA graphs" for fix in fixes)
