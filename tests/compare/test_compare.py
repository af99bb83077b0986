"""What differs between a launch that worked and one that did not: the reason stands first."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from pathlib import Path

import jsonschema
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mtpdoctor.cli.main import main
from mtpdoctor.compare.arguments import same_value
from mtpdoctor.compare.compare import compare
from mtpdoctor.compare.launch import Launch, read_launch_log
from mtpdoctor.compare.types import Comparison
from mtpdoctor.diagnose.given import Given
from mtpdoctor.kb import load
from mtpdoctor.kb.load import Knowledge
from mtpdoctor.launch.document import read_launch
from mtpdoctor.log.reading import reading_from_text
from mtpdoctor.report.diff_json import diff_to_json
from mtpdoctor.report.diff_text import render_diff

DATA = Path(__file__).parents[1] / "data"
SCHEMA = json.loads((Path(__file__).parents[2] / "mtpdoctor" / "report" / "diff.schema.json").read_text())
DENSE = "real_logs/ready_dense"
MTP = "real_logs/ready_mtp_accept_len_1"


@lru_cache(maxsize=1)
def load_knowledge() -> Knowledge:
    return load.load_knowledge()


@lru_cache(maxsize=64)
def text_of(name: str) -> str:
    return (DATA / f"{name}.log").read_text(encoding="utf-8", errors="replace")


@lru_cache(maxsize=8)
def launch(text: str) -> Launch:
    knowledge = load_knowledge()
    return read_launch_log(reading_from_text(text, knowledge.literals), knowledge, Given())


def compared(good: str, bad: str) -> Comparison:
    return compare(launch(good), launch(bad), load_knowledge())


@pytest.mark.parametrize(
    ("good", "bad", "first"),
    [
        (MTP, "real_logs/spec_no_buffer_with_radix", "--mamba-scheduler-strategy"),
        (MTP, "real_logs/flag_from_newer_version", "--mamba-radix-cache-strategy"),
        (MTP, "real_logs/spec_steps_without_topk_typeerror", "--speculative-num-steps"),
        (MTP, "real_logs/mamba_extra_buffer_with_disable_radix", "--disable-radix-cache"),
        (DENSE, "real_logs/mem_fraction_static_too_low", "--mem-fraction-static"),
        (DENSE, "real_logs/kv_pool_zero_gpu_filled_by_others", "free before the weights (GiB)"),
        (DENSE, "real_logs/context_length_over_model_max", "--context-length"),
        (DENSE, "real_logs/flag_bad_choice_attention_backend", "--attention-backend"),
        (DENSE, "real_logs/chat_template_missing", "--chat-template"),
        (DENSE, "real_logs/model_path_missing", "--model-path"),
        (DENSE, "real_logs/unknown_model_type", "--model-path"),
        (DENSE, "real_logs/no_gpu_visible_empty_cvd", "CUDA_VISIBLE_DEVICES"),
        (DENSE, "real_logs/port_in_use", "--port"),
        (DENSE, "h200_logs/gloo_ifname", "GLOO_SOCKET_IFNAME"),
        (DENSE, "h200_logs/nccl_ifname", "NCCL_SOCKET_IFNAME"),
        (DENSE, "h200_logs/chunk_page", "--chunked-prefill-size"),
        (DENSE, "h200_logs/int_value", "--tp"),
        (DENSE, "h200_logs/cvd_bad", "CUDA_VISIBLE_DEVICES"),
        ("h200_logs/ready_mtp2", "h200_logs/page48_extra_buffer", "--page-size"),
        ("h200_logs/ready_mtp2", "h200_logs/only_draft_tokens", "--speculative-num-draft-tokens"),
    ],
)  # fmt: skip
def test_the_reason_stands_first(good: str, bad: str, first: str) -> None:
    found = compared(text_of(good), text_of(bad))
    assert found.matters and found.differences[0].name == first
    assert found.differences[0].weight >= 80 and found.differences[0].why


@pytest.mark.parametrize("name", [DENSE, MTP, "h200_logs/tp2_kv_zero", "public_reports/ready_cpu_amx"])
def test_a_log_does_not_differ_from_itself(name: str) -> None:
    found = compared(text_of(name), text_of(name))
    assert found.differences == () and not found.matters


def dressed(text: str, how: str) -> str:
    lines = text.rstrip("\n").split("\n")
    if how == "compose":
        return "\n".join(f"server-1  | {line}" for line in lines)
    if how == "kubernetes":
        return "\n".join(f"[pod/llm-0/server] 2026-11-29T13:47:20.123456789Z {line}" for line in lines)
    if how == "docker json":
        return "\n".join(
            json.dumps({"log": line + "\n", "stream": "stderr", "time": "2026-11-29T13:47:20.1Z"})
            for line in lines
        )
    return "\n".join(f"Nov 29 13:47:20 node7 sglang[4242]: {line}" for line in lines)


@pytest.mark.parametrize("how", ["compose", "kubernetes", "docker json", "journal"])
def test_logs_of_different_transports(how: str) -> None:
    good, bad = text_of(MTP), text_of("real_logs/spec_no_buffer_with_radix")
    plain, other = compared(good, bad), compared(good, dressed(bad, how))
    assert other.differences[0].name == "--mamba-scheduler-strategy"
    same = [(d.name, d.good, d.bad, d.weight) for d in plain.differences if d.area == "arguments"]
    assert [(d.name, d.good, d.bad, d.weight) for d in other.differences if d.area == "arguments"] == same
    assert [d for d in compared(good, dressed(good, how)).differences if d.matters] == []


ARGS = "[2026-01-01 10:00:{s}] server_args=ServerArgs(model_path='/m/Qwen3-8B', tp_size={tp}, mem_fraction_static={fraction}, api_key={key})\n"
READY = "[2026-01-01 10:00:00] server_args=ServerArgs(model_path='/m/Qwen3-8B', tp_size=1)\n[2026-01-01 10:00:05] Load weight begin. avail mem={avail} GB\n[2026-01-01 10:{m}:00] Load weight end. type=Qwen3ForCausalLM, dtype=torch.bfloat16, avail mem=60.00 GB, mem usage=15.30 GB.\n[2026-01-01 10:{m}:10] The server is fired up and ready to roll!\n"


def test_options_of_logs_without_a_command_and_no_secret_shown() -> None:
    good = ARGS.format(s="00", tp=1, fraction=0.8, key="'first-key-123'")
    bad = ARGS.format(s="00", tp=2, fraction=0.9, key="'other-key-456'")
    found = compared(good, bad)
    rows = {d.name: (d.good, d.bad) for d in found.differences}
    assert rows["--tp-size"] == (1, 2) and rows["--mem-fraction-static"] == (0.8, 0.9)
    shown = json.dumps(diff_to_json(found)) + render_diff(found, verbose=True)
    assert "first-key" not in shown and "other-key" not in shown


def test_a_renamed_option_is_one_option() -> None:
    command = "SGLang version: {release}\n$ python -m sglang.launch_server --model-path /m/Qwen3-8B {flag} extra_buffer\n"
    old = command.format(release="0.5.13", flag="--mamba-scheduler-strategy")
    new = command.format(release="0.5.23", flag="--mamba-radix-cache-strategy")
    names = {d.name for d in compared(old, new).differences}
    assert names == {"SGLang"}
    other = compared(old, new.replace("extra_buffer", "no_buffer")).differences
    renamed = next(d for d in other if d.area == "arguments")
    assert (renamed.name, renamed.good, renamed.bad) == (
        "--mamba-radix-cache-strategy",
        "extra_buffer",
        "no_buffer",
    )
    assert renamed.note and "called --mamba-scheduler-strategy in 0.5.13" in renamed.note


def test_a_default_that_was_typed_is_no_difference() -> None:
    command = "SGLang version: 0.5.13\n$ python -m sglang.launch_server --model-path /m/Qwen3-8B{more}\n"
    assert compared(command.format(more=""), command.format(more=" --tp-size 1")).differences == ()
    (only,) = compared(command.format(more=""), command.format(more=" --tp-size 2")).differences
    assert (only.name, only.good, only.bad) == ("--tp-size", 1, "2")


def test_stages_that_took_longer_and_memory_that_was_less() -> None:
    found = compared(READY.format(avail="78.00", m="01"), READY.format(avail="50.00", m="09"))
    stage = next(d for d in found.differences if d.area == "stages")
    assert (stage.name, stage.good, stage.bad) == ("weights took", "65 s", "545 s")
    memory = next(d for d in found.differences if d.area == "memory")
    assert (memory.name, memory.good, memory.bad) == ("free before the weights (GiB)", 78.0, 50.0)
    times = {s.stage: (s.good, s.bad) for s in found.stages}
    assert times["serving"] == (70.0, 550.0)


def test_warnings_that_only_one_launch_printed() -> None:
    warning = "[2026-01-01 10:00:04] WARNING: the link of GPU {n} is slow\n"
    good, bad = READY.format(avail="78.00", m="01"), READY.format(avail="78.00", m="01")
    (only,) = compared(good, warning.format(n=3) + bad).differences
    assert (only.area, only.kind) == ("messages", "added") and "link of GPU 3" in only.name
    assert (
        compared(warning.format(n=1) + good, warning.format(n=3) + bad).differences == ()
    )  # but for its number


@pytest.mark.parametrize(
    "bad", ["real_logs/spec_no_buffer_with_radix", "h200_logs/tp2_kv_zero", "real_logs/port_in_use"]
)
def test_the_document_is_that_of_its_schema(bad: str) -> None:
    document = diff_to_json(compared(text_of(DENSE), text_of(bad)))
    jsonschema.validate(json.loads(json.dumps(document)), SCHEMA)
    weights = [d["weight"] for d in document["differences"]]
    assert weights == sorted(weights, reverse=True)
    assert {d["area"] for d in document["differences"]} >= {"arguments", "stages"}


def test_the_page_is_plain_text_within_its_width() -> None:
    bad = (
        text_of("real_logs/spec_no_buffer_with_radix")
        + "\x1b[31m[2026] WARNING <script>\u202e evil\x1b]0;x\x07\n"
    )
    page = render_diff(compared(text_of(MTP), bad), width=80)
    assert "Likeliest reason" in page and "\x1b" not in page and "\u202e" not in page
    assert all(len(row) <= 80 for row in page.split("\n") if ".log" not in row and "log (" not in row)


def run(*arguments: str) -> int:
    return main(["diff", *arguments])


def test_exit_codes_and_what_is_given_beside_the_logs(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    good = str(DATA / f"{DENSE}.log")
    assert run(good, good) == 0
    assert "No difference that matters" in capsys.readouterr().out
    assert run(good, str(DATA / "real_logs/port_in_use.log"), "--json") == 1
    assert json.loads(capsys.readouterr().out)["matters"] is True
    assert run(good, str(tmp_path / "nothing.log")) == 2
    assert run(good) == 2
    assert run("-", "-") == 2
    capsys.readouterr()
    a, b = tmp_path / "a.log", tmp_path / "b.log"
    a.write_text("[2026-01-01 10:00:00] Load weight begin. avail mem=78.00 GB\n")
    b.write_text(a.read_text())
    command = "python -m sglang.launch_server --model-path Qwen/Qwen3-8B"
    assert (
        run(
            str(a),
            str(b),
            "--good-command",
            command,
            "--bad-command",
            f"NCCL_DEBUG=INFO {command} --tp 4",
            "--json",
        )
        == 1
    )
    names = [d["name"] for d in json.loads(capsys.readouterr().out)["differences"]]
    assert names[:2] == ["--tp", "NCCL_DEBUG"]
    assert run(str(a), str(b), "--good-gpu", "8xsm90@140", "--bad-gpu", "4xsm120@95", "--json") == 1
    names = [d["name"] for d in json.loads(capsys.readouterr().out)["differences"]]
    assert {"host.gpu.sm", "host.gpu.count", "host.gpu.memory_gib"} <= set(names)


@example("NaN")
@given(st.one_of(st.integers(), st.booleans(), st.none(), st.text(max_size=8), st.floats()))
def test_a_value_is_the_same_as_its_spelling(value: object) -> None:
    assert same_value(value, value)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        assert same_value(value, str(value)) and not same_value(value, f"{value}x")
    assert same_value(value, [value]) or isinstance(value, list)


@settings(max_examples=15, deadline=None)
@given(
    st.lists(st.sampled_from(text_of(MTP).split("\n")), max_size=30),
    st.lists(st.sampled_from(text_of("real_logs/port_in_use").split("\n")), max_size=30),
)
def test_any_two_logs_can_be_compared(good: list[str], bad: list[str]) -> None:
    found = compared("x\n" + "\n".join(good), "x\n" + "\n".join(bad))
    jsonschema.validate(json.loads(json.dumps(diff_to_json(found))), SCHEMA)
    assert not re.search("[\x00-\x08\x1b]", render_diff(found, verbose=True))


SHARED = "--disable-piecewise-cuda-graph"  # from 0.5.14 on it sets another field


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        (
            ("0.5.13", SHARED, "disable_piecewise_cuda_graph=True"),
            ("0.5.13", "", "disable_piecewise_cuda_graph=False"),
        ),
        (
            ("0.5.13", "", "disable_piecewise_cuda_graph=False"),
            ("0.5.16", SHARED, "cuda_graph_backend_prefill='disabled'"),
        ),
        (
            ("0.5.16", "", "cuda_graph_backend_prefill=None"),
            ("0.5.13", SHARED, "disable_piecewise_cuda_graph=True"),
        ),
    ],
)
def test_an_option_that_two_fields_share_is_shown_once(
    good: tuple[str, str, str], bad: tuple[str, str, str]
) -> None:
    knowledge = load_knowledge()
    launches = []
    for release, typed, field in (good, bad):
        text = (
            f"[2026-01-01 10:00:00] server_args=ServerArgs(model_path='/m/x', tp_size=1, {field})\n"
            "[2026-01-01 10:00:05] Load weight begin. avail mem=80 GB\n"
        )
        document = read_launch(f"python -m sglang.launch_server --model-path /m/x {typed}".strip())
        given = Given(document=document, release=release, command_where="given")
        launches.append(read_launch_log(reading_from_text(text, knowledge.literals), knowledge, given))
    found = compare(*launches, knowledge)
    (one,) = [d for d in found.differences if d.name == SHARED]
    assert one.matters and "no such option" not in (one.note or "")
    assert one.kind == ("removed" if good[1] else "added")


def test_what_is_no_log_of_sglang_is_refused(tmp_path, capsys):
    for name in ("a", "b"):
        (tmp_path / name).write_text("hello\nworld\n")
    assert main(["diff", str(tmp_path / "a"), str(tmp_path / "b")]) == 2
    assert "no sign of SGLang" in capsys.readouterr().err
