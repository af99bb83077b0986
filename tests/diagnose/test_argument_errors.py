"""What the parser refused: dated by what the log shows, repaired without losing what was typed."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mtpdoctor.diagnose.engine import diagnose
from mtpdoctor.diagnose.remedies import contradictory
from mtpdoctor.diagnose.types import Report
from mtpdoctor.kb.knowledge import Knowledge
from mtpdoctor.kb.load import load_knowledge
from mtpdoctor.launch.document import read_launch
from mtpdoctor.launch.types import EditOp
from mtpdoctor.log.reading import read_logs
from mtpdoctor.release import parse_release as R
from mtpdoctor.sglang.flags import flag_table
from mtpdoctor.sglang.options import translate_name
from mtpdoctor.sglang.releases import known_releases

SERVE = "sglang serve --model-path /m/x"


@cache
def knowledge() -> Knowledge:
    return load_knowledge()


def report_of(text: str) -> Report:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "server.log"
        path.write_text(text)
        return diagnose(read_logs([str(path)], knowledge().literals), knowledge())


def usage(release: str, keep: slice = slice(None), program: str = "sglang serve") -> str:
    names = [s.name for s in flag_table(R(release)).specs if s.refused is None][keep]
    return "\n".join(
        [f"usage: {program} [-h] --model-path MODEL_PATH", *(f"    [{name} X]" for name in names)]
    )


def refused(
    flags: str, release: str = "0.5.13.post1", command: str = SERVE, program: str = "sglang serve"
) -> str:
    return (
        f"+ docker run --rm lmsysorg/sglang:v{release} bash start.sh\n+ {command} {flags}\n"
        f"usage: {program} [-h] --model-path MODEL_PATH\n{program}: error: unrecognized arguments: {flags}\n"
    )


@pytest.mark.parametrize("part", [slice(0, 90), slice(100, 220), slice(0, None, 4)])
def test_a_part_of_a_usage_text_bounds_and_does_not_guess(part: slice) -> None:
    text = f"+ {SERVE} --nosuch 1\n{usage('0.5.21', part)}\nsglang serve: error: unrecognized arguments: --nosuch 1\n"
    report = report_of(text)
    first, _, last = (report.release_range or "").partition(" to ")
    assert R(first) <= R("0.5.21") <= R(last or first)
    assert not any("0.4.6" in note for note in report.notes)
    if last:
        assert report.sglang_version is None and any("one of" in note for note in report.notes)


def test_what_the_parser_refused_narrows_too() -> None:
    listed = usage("0.5.19", slice(0, 100)) + "\n    [--prefill-cp-mode X]"
    text = f"+ {SERVE} --collect-tokens-histogram\n{listed}\nsglang serve: error: unrecognized arguments: --collect-tokens-histogram\n"
    report = report_of(text)
    assert (report.release_range or "").startswith("0.5.20")
    fixes = report.diagnoses[0].fixes
    assert "removed in 0.5.20" in fixes[0].why and not any("pgrade" in f.title for f in fixes)


@pytest.mark.parametrize(
    ("line", "release"),
    [
        ("+ docker run --rm lmsysorg/sglang-rocm:v0.5.20-rocm720-mi30x bash x.sh", "0.5.20"),
        ("+ srun --container-image=/i/lmsysorg+sglang+v0.5.9.sqsh bash x.sh", "0.5.9"),
        ("+ apptainer exec --nv /images/sglang_v0.5.10rc0.sif bash x.sh", "0.5.10rc0"),
        ("+ apptainer exec --nv /images/sglang-0.5.12-cu129.sif bash x.sh", "0.5.12"),
        ("+ enroot create lmsysorg+sglang+v0.5.13.post1-cu130.sqsh", "0.5.13.post1"),
    ],
)
def test_an_image_names_the_release(line: str, release: str) -> None:
    text = f"{line}\n+ {SERVE} --nosuch\nusage: sglang serve [-h]\nsglang serve: error: unrecognized arguments: --nosuch\n"
    assert report_of(text).sglang_version == release


def test_a_usage_text_of_another_release_than_the_image_is_told() -> None:
    text = (
        f"+ docker run lmsysorg/sglang:v0.5.9 bash x.sh\n+ {SERVE} --nosuch\n{usage('0.5.21')}\n"
        "sglang serve: error: unrecognized arguments: --nosuch\n"
    )
    report = report_of(text)
    assert report.sglang_version == "0.5.9"
    assert any("names SGLang 0.5.9, but" in note and "0.5.21" in note for note in report.notes)


@pytest.mark.parametrize(
    ("typed", "value", "right"),
    [
        ("--cuda-graph-max-bs", "32", "--cuda-graph-max-bs-decode"),
        ("--cuda-graph-bs", "1 2 4", "--cuda-graph-bs-decode"),
    ],
)
@pytest.mark.parametrize("image", ["lmsysorg/sglang:v0.5.20", "registry/own:1"])
def test_an_ambiguous_old_name_keeps_its_value(typed: str, value: str, right: str, image: str) -> None:
    other = right.replace("-decode", "-prefill")
    text = (
        f"+ docker run {image} bash x.sh\n+ {SERVE} {typed} {value} --tp 2\n"
        f"sglang serve: error: ambiguous option: {typed} could match {right}, {other}\n"
    )
    (fix, *_) = report_of(text).diagnoses[0].fixes
    assert fix.safety == "safe" and fix.command is not None
    assert f"{right} {value}" in fix.command and f"{typed} {value}" not in fix.command


def test_another_abbreviation_is_the_persons_choice() -> None:
    text = f"+ {SERVE} --speculative-num 3\nsglang serve: error: ambiguous option: --speculative-num could match --speculative-num-steps, --speculative-num-draft-tokens\n"
    (fix, *_) = report_of(text).diagnoses[0].fixes
    assert fix.safety == "manual" and "--speculative-num-steps" in fix.title and not fix.edits


RENAMED = sorted(
    (str(release), name)
    for release in known_releases()[-8:]
    for name in flag_table(None)
    if name.startswith("--")
    and flag_table(release).resolve(name) is None
    and flag_table(None)[name].arity == "one"
    and translate_name(name, release).name is not None
)


@settings(max_examples=12)
@given(st.sampled_from(RENAMED), st.integers(1, 4096))
def test_a_rename_keeps_the_typed_value(pair: tuple[str, str], value: int) -> None:
    release, name = pair
    report = report_of(refused(f"{name} {value}", release))
    for fix in report.diagnoses[0].fixes:
        assert not contradictory(fix.edits)
        if fix.safety == "safe" and fix.document is not None:
            kept = [v for use in fix.document.command.flags for v in use.values]
            assert str(value) in kept, fix


def test_what_else_was_renamed_is_renamed_along() -> None:
    text = (
        f"+ docker run lmsysorg/sglang:v0.5.20 bash x.sh\n+ {SERVE} --cuda-graph-max-bs 8 --mamba-scheduler-strategy extra_buffer\n"
        "sglang serve: error: ambiguous option: --cuda-graph-max-bs could match --cuda-graph-max-bs-decode, --cuda-graph-max-bs-prefill\n"
    )
    (fix, *_) = report_of(text).diagnoses[0].fixes
    assert fix.command is not None and fix.verified == "rules"
    assert (
        "--mamba-radix-cache-strategy extra_buffer" in fix.command
        and "--cuda-graph-max-bs-decode 8" in fix.command
    )


@pytest.mark.parametrize("value", ["http://10.0.0.9:30001", "http://a:1,http://b:2"])
@pytest.mark.parametrize(
    "name", ["--disaggregation-decode-url", "--disaggregation-prefill-urls", "--decode-urls"]
)
def test_addresses_are_the_routers(name: str, value: str) -> None:
    report = report_of(refused(f"--disaggregation-mode prefill {name} {value}".split("prefill ", 1)[1]))
    fixes = report.diagnoses[0].fixes
    assert any("launch_router" in f.why for f in fixes)
    assert not any(e.value and "://" in e.value for f in fixes for e in f.edits)
    assert any(e.op is EditOp.REMOVE and e.name == name for f in fixes for e in f.edits)


@settings(max_examples=12)
@given(st.sampled_from(["--disaggregation-mod", "--attention-backen", "--load-balance-metho", "--tp-sizee", "--dtypes"]),
       st.sampled_from(["http://h:1", "prefill", "3", "x/y"]))  # fmt: skip
def test_a_guess_takes_the_value(name: str, value: str) -> None:
    table = flag_table(R("0.5.13.post1"))
    for fix in report_of(refused(f"{name} {value}")).diagnoses[0].fixes:
        for edit in fix.edits:
            spec = table.get(edit.name)
            if edit.op is EditOp.SET and spec is not None and spec.choices:
                assert edit.value in map(str, spec.choices)


def test_an_option_of_the_router() -> None:
    fixes = report_of(refused("--pd-disaggregation")).diagnoses[0].fixes
    assert "router" in fixes[0].why and fixes[0].title == "Leave --pd-disaggregation out"
    assert any("sglang_router.launch_router --pd-disaggregation" in line for fix in fixes for line in fix.run)


def test_a_server_without_a_model_was_meant_to_be_the_router() -> None:
    command = "python -m sglang.launch_server"
    fixes = report_of(refused("--pd-disaggregation", command=command)).diagnoses[0].fixes
    assert any("sglang_router.launch_router --pd-disaggregation" in line for line in fixes[0].run)


def test_what_was_typed_for_the_router_is_quoted_in_its_command() -> None:
    text = f"+ {SERVE} --worker-urls 'http://a;id'\nlaunch_server.py: error: unrecognized arguments: --worker-urls http://a;id\n"
    commands = [line for fix in report_of(text).diagnoses[0].fixes for line in fix.run]
    assert "python -m sglang_router.launch_router --worker-urls 'http://a;id'" in commands


@pytest.mark.parametrize(
    ("typed", "shown"),
    [("http://a:1 http://b:2", "http://a:1 http://b:2"), ("{flag.model_path}", "'{flag.model_path}'"), ("`id` {x}}", "'`id`' '{x}}'")],
)  # fmt: skip
def test_words_for_the_router_stay_these_words(typed: str, shown: str) -> None:
    text = f"+ {SERVE} --worker-urls {typed}\nlaunch_server.py: error: unrecognized arguments: --worker-urls {typed}\n"
    commands = [line for fix in report_of(text).diagnoses[0].fixes for line in fix.run]
    assert f"python -m sglang_router.launch_router --worker-urls {shown}" in commands


def test_a_folder_is_one_word_in_the_commands_for_image_models() -> None:
    text = (
        "+ python3 -m sglang.launch_server --model-path '/m/a b;id' --ulysses-degree 2 --num-gpus 2\n"
        "launch_server.py: error: unrecognized arguments: --ulysses-degree 2 --num-gpus 2\n"
    )
    commands = [line for fix in report_of(text).diagnoses[0].fixes for line in fix.run]
    assert "ls '/m/a b;id'/model_index.json" in commands
    assert all(";id" not in line or "'/m/a b;id'" in line for line in commands)


def test_the_router_refuses() -> None:
    text = (
        "+ python -m sglang_router.launch_router --worker-url http://a:1 --tp-size 2\n"
        "usage: launch_router.py [-h] [--host HOST] [--worker-urls [WORKER_URLS ...]]\n"
        "launch_router.py: error: unrecognized arguments: --tp-size 2\n"
    )
    report = report_of(text)
    fixes = report.diagnoses[0].fixes if report.diagnoses else ()
    assert fixes and "not to the router" in fixes[0].title


DIFFUSION = (
    "[root@h20-01 ~]# sglang serve --model-path /d/some-video --num-gpus 8 {flags}\n"
    "[08-10 11:02:14] Detected diffusion model (model_index.json found), using sglang.multimodal_gen\n"
    "error: unrecognized arguments: {flags}\n"
)


def test_the_server_for_image_and_video_models_refuses() -> None:
    report = report_of(DIFFUSION.format(flags="--served-model-name h3"))
    diagnosis = report.diagnoses[0]
    assert (
        "no option --served-model-name. The server for image and video models has options" in diagnosis.cause
    )
    assert diagnosis.fixes[0].title == "Leave --served-model-name out"
    assert diagnosis.fixes[0].command == "sglang serve --model-path /d/some-video --num-gpus 8"
    assert any("0.5.18" in fix.title for fix in diagnosis.fixes)


WRAPPERS = [
    "apptainer exec --nv sglang.sif",
    "singularity run --nv -B /a:/b docker://lmsysorg/sglang:v0.5.9",
    "srun --container-image=sglang.sqsh --container-mounts=/a:/a",
    "enroot start --rw --mount /a:/a sglang",
    "podman exec -it srv",
    "nerdctl run --gpus all lmsysorg/sglang:v0.5.9",
    "numactl -N 0",
    "ch-run -w ./img --",
]


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_what_starts_the_server_is_kept(wrapper: str) -> None:
    command = f"{wrapper} python3 -m sglang.launch_server --model-path M --nosuch 1"
    document = read_launch(command)
    assert [use.name for use in document.command.flags] == ["--model-path", "--nosuch"]
    text = f"+ {command}\nlaunch_server.py: error: unrecognized arguments: --nosuch 1\n"
    fixes = [f for f in report_of(text).diagnoses[0].fixes if f.document is not None]
    assert fixes and fixes[0].document is not None
    assert fixes[0].document.text.strip() == command.removesuffix(" --nosuch 1")
    if "podman" not in wrapper and "nerdctl" not in wrapper:
        assert fixes[0].command == command.removesuffix(" --nosuch 1")


def test_a_value_of_the_log_is_no_template() -> None:
    fix = report_of(refused("--max-model-len {flag.model_path}")).diagnoses[0].fixes[0]
    assert [(e.name, e.value) for e in fix.edits if e.value] == [("--context-length", "{flag.model_path}")]
