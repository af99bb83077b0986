"""The option or variable that leads to the code that failed: what is offered where no rule knows the failure."""

from __future__ import annotations

from typing import Any

import pytest

from mtpdoctor.diagnose.engine import Given, diagnose
from mtpdoctor.kb.load import load_knowledge
from mtpdoctor.log.reading import reading_from_text
from mtpdoctor.report.json import to_json

SGLANG = "/opt/venv/lib/python3.12/site-packages/sglang/srt"


def said_of(
    command: str,
    frames: list[tuple[str, str, str]],
    release: str,
    error: str = "KeyError: 'frobnicated'",
    before: str = "",
) -> dict[str, Any]:
    """The diagnosis of a launch that dies with ``error`` in ``frames`` (file, function, line), outermost first."""
    told = [
        f'  File "{SGLANG}/{file}", line 99999, in {function}\n    {code}' for file, function, code in frames
    ]
    log = "\n".join(
        [
            f"$ {command}",
            before,
            "[2026-05-04 10:11:30 TP0] Scheduler hit an exception: Traceback (most recent call last):",
            *told,
            error,
            "",
        ]
    )
    knowledge = load_knowledge()
    report = to_json(diagnose(reading_from_text(log, knowledge.literals), knowledge, Given(release=release)))
    found: dict[str, Any] = report["diagnoses"][0]
    assert found["root"]["text"] == error
    return found


def fixes(
    command: str, frames: list[tuple[str, str, str]], release: str, error: str = "KeyError: 'frobnicated'",
    before: str = "",
) -> list[dict[str, Any]]:  # fmt: skip
    return list(said_of(command, frames, release, error, before)["fixes"])


def edits(fix: dict[str, Any]) -> list[tuple[str, str, str | None]]:
    return [(e["op"], e["name"], e["value"]) for e in fix["edits"]]


LAUNCH = "python -m sglang.launch_server --model-path /m/Q --tp 2"
INIT = ("managers/scheduler.py", "__init__", "self.init_cache()")


def test_what_was_asked_for_goes_first_and_takes_its_partners_along() -> None:
    found = fixes(
        f"{LAUNCH} --enable-hierarchical-cache --hicache-ratio 2",
        [INIT, ("mem_cache/hiradix_cache.py", "write_backup", "self.frobnicate()")],
        "0.5.16",
    )
    assert edits(found[0]) == [
        ("remove", "--enable-hierarchical-cache", None),
        ("remove", "--hicache-ratio", None),
    ]
    assert found[0]["safety"] == "risky" and "--enable-hierarchical-cache" not in found[0]["command"]


def test_without_the_option_there_is_nothing_to_take_out() -> None:
    frames = [INIT, ("mem_cache/hiradix_cache.py", "write_backup", "self.frobnicate()")]
    found = fixes(LAUNCH, frames, "0.5.16")
    assert not any("hierarchical" in name for fix in found for _, name, _ in edits(fix))


def test_a_backend_that_sglang_chose_by_itself_gets_a_name() -> None:
    frames = [INIT, ("layers/attention/attention_registry.py", "create_triton_backend", "frobnicate(runner)")]
    shown = "[2026-05-04 10:11:20] server_args=ServerArgs(model_path='/m/Q', tp_size=2, attention_backend={})"
    found = fixes(LAUNCH, frames, "0.5.15", before=shown.format("'triton'"))
    (other,) = [fix for fix in found if "--attention-backend" in [name for _, name, _ in edits(fix)]]
    assert "which SGLang chose by itself" in other["why"] and edits(other)[0][2] != "triton"
    found = fixes(LAUNCH, frames, "0.5.15", before=shown.format("'fa3'"))
    assert not any("--attention-backend" in name for fix in found for _, name, _ in edits(fix))


def test_a_variable_that_is_on_by_default_is_switched_off() -> None:
    frames = [INIT, ("models/deepseek_v4.py", "hc_pre", "deep_gemm.tf32_hc_prenorm_gemm(")]
    found = fixes(LAUNCH, frames, "0.5.12.post1")
    assert [("env", "SGLANG_OPT_DEEPGEMM_HC_PRENORM", "0")] in [edits(fix) for fix in found]
    found = fixes(f"SGLANG_OPT_DEEPGEMM_HC_PRENORM=0 {LAUNCH}", frames, "0.5.12.post1")
    assert not any(name == "SGLANG_OPT_DEEPGEMM_HC_PRENORM" for fix in found for _, name, _ in edits(fix))


def test_a_role_of_disaggregation_is_no_gate() -> None:
    frames = [INIT, ("disaggregation/decode.py", "process_decode_queue", "self.frobnicate()")]
    found = fixes(f"{LAUNCH} --disaggregation-mode decode", frames, "0.5.16")
    assert not any("runs only with --disaggregation-mode" in fix["why"] for fix in found)


@pytest.mark.parametrize(
    ("options", "frame", "error", "title", "cause"),
    [
        (
            "--attention-backend triton",
            ("layers/attention/attention_registry.py", "create_triton_backend", "self.frobs['frob']"),
            "KeyError: 'frob'",
            "The choice of the attention backend fails with --attention-backend triton: 'frob' is not in self.frobs",
            "runs only with --attention-backend triton, which this launch asks for",
        ),
        (
            "--quantization fp8",
            ("models/mllama4.py", "load_scales", "param = params_dict[name]"),
            "KeyError: 'frob'",
            "the weights hold 'frob', for which the model as it is built here has no parameter",
            "Options of this launch that bear on it: --quantization fp8",
        ),
        (
            "--ep-size 2",
            ("models/mllama4.py", "_handle_expert_frobs", "param.data[expert_id] = frob"),
            "IndexError: index 4 is out of bounds for dimension 0 with size 4",
            "The model's class (mllama4.py) fails: index 4 lies outside of a dimension of 4 entries",
            "--ep-size 2",
        ),
    ],
)  # fmt: skip
def test_the_cause_names_the_part_that_failed_and_what_leads_there(
    options: str, frame: tuple[str, str, str], error: str, title: str, cause: str
) -> None:
    said = said_of(f"{LAUNCH} {options}", [INIT, frame], "0.5.16", error)
    assert title in said["title"] and cause in said["cause"]


DIFFUSION = "sglang serve --model-path Wan-AI/Wan2.2-T2V-A14B-Diffusers --num-gpus 4 --ulysses-degree 4"


@pytest.mark.parametrize(
    ("options", "file", "error", "right"),
    [
        ("", "layers/attention/backends/sage_attn.py", "KeyError: 'frob'", "--attention-backend torch_sdpa"),
        ("", "layers/usp.py", "KeyError: 'frob'", "leave --ulysses-degree, --num-gpus out"),
        ("--enable-torch-compile", "cuda_graph.py", "KeyError: 'frob'", "leave --enable-torch-compile out"),
    ],
)  # fmt: skip
def test_the_server_for_images_and_videos_gets_guesses_of_its_own(
    options: str, file: str, error: str, right: str
) -> None:
    frame = (f"../multimodal_gen/runtime/{file}", "frobnicate", "self.frobs['frob']")
    found = fixes(f"{DIFFUSION} {options}", [frame], "0.5.18", error)
    assert right in found[0]["title"]
    assert not any("--disable" in fix["title"] or "--speculative" in fix["title"] for fix in found)


def test_kernels_below_the_vision_tower_lead_to_the_option_of_the_vision_tower() -> None:
    frames = [
        INIT,
        ("layers/attention/vision.py", "forward", "flash_attn_varlen_func("),
        ("../../sgl_kernel/flash_attn.py", "flash_attn_varlen_func", "self.frobs['frob']"),
    ]
    found = fixes(f"{LAUNCH} --attention-backend fa3", frames, "0.5.16")
    named = [name for fix in found for _, name, _ in edits(fix)]
    assert "--mm-attention-backend" in named and "--attention-backend" not in named


def test_a_line_of_compiled_code_is_named_by_its_library() -> None:
    line = "F20260504 10:11:12.345678  4242 rdma_context.cpp:999] Check failed: warp"
    log = f"$ {LAUNCH} --disaggregation-mode prefill\n[2026-05-04 10:11:02] Load weight begin. avail mem=78.0 GB\n{line}\n"
    knowledge = load_knowledge()
    report = to_json(diagnose(reading_from_text(log, knowledge.literals), knowledge, Given(release="0.5.16")))
    found = report["diagnoses"][0]
    assert found["root"]["text"] == line and "Mooncake's transfer engine" in found["title"]
    assert edits(found["fixes"][0]) == [("set", "--disaggregation-transfer-backend", "nixl")]


def test_an_option_that_bears_on_the_part_that_failed_is_worth_a_launch_without_it() -> None:
    frames = [INIT, ("models/mllama4.py", "_handle_expert_frobs", "param.data[expert_id] = frob")]
    found = fixes(
        f"{LAUNCH} --ep-size 2",
        frames,
        "0.5.16",
        "IndexError: index 4 is out of bounds for dimension 0 with size 4",
    )
    without = [fix["title"] for fix in found if ("remove", "--ep-size", None) in edits(fix)]
    assert without == ["Try without --ep-size"]


def test_a_known_failure_names_the_option_that_leads_to_it() -> None:
    """Where the rule's own words name none."""
    said = said_of(
        "python -m sglang.launch_server --model-path M --grammar-backend xgrammar",
        [
            ("managers/scheduler.py", "run_scheduler_process", "scheduler = Scheduler("),
            ("managers/scheduler.py", "__init__", "self.grammar_backend = create_grammar_backend("),
            (
                "constrained/base_grammar_backend.py",
                "create_grammar_backend",
                "from sglang.srt.constrained.xgrammar_backend import (",
            ),
            ("constrained/xgrammar_backend.py", "<module>", "from xgrammar import ("),
        ],
        "0.5.13.post1",
        "ModuleNotFoundError: No module named 'xgrammar'",
    )
    assert said["rule"] == "MTP0160"
    assert "runs only with --grammar-backend xgrammar, which this launch asks for" in said["cause"]
