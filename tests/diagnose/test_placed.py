"""A fix is said as it is done where the server runs: in SGLang's image, under Ray, in a pod, on a Mac."""

from __future__ import annotations

from mtpdoctor.diagnose.engine import diagnose
from mtpdoctor.diagnose.given import Given
from mtpdoctor.diagnose.types import Diagnosis, Fix
from mtpdoctor.kb.load import load_knowledge
from mtpdoctor.launch.document import read_launch
from mtpdoctor.log.reading import reading_from_text

FAULT = "AttributeError: 'Widget' object has no attribute 'warp'"
SCHEDULER = "python/sglang/srt/managers/scheduler.py"


def said_of(
    root: str = "/sgl-workspace/sglang/",
    last: str = FAULT,
    prefix: str = "",
    command: str | None = None,
    release: str = "0.5.9",
) -> Diagnosis:
    knowledge = load_knowledge()
    command = command or "python3 -m sglang.launch_server --model-path /models/m"
    lines = [
        f"$ {command}" if not prefix else "",
        f"[2026-05-05 10:00:00] sglang=={release}",
        "[2026-05-05 10:00:02 TP0] Scheduler hit an exception: Traceback (most recent call last):",
        f'  File "{root}{SCHEDULER}", line 99, in run_scheduler_process',
        "    self.widget = Widget().warp",
        last,
        "[2026-05-05 10:00:03] Received sigquit from a child process. It usually means the child failed.",
    ]
    text = "".join(f"{prefix}{line}\n" for line in lines if line)
    return diagnose(reading_from_text(text, knowledge.literals), knowledge).diagnoses[0]


def upgrade(said: Diagnosis) -> Fix:
    return next(fix for fix in said.fixes if fix.title.startswith("Upgrade SGLang"))


def test_in_its_own_image_the_image_of_the_release_goes_first() -> None:
    fix = upgrade(said_of())
    pull, install, *_ = fix.run
    assert pull.startswith("docker pull lmsysorg/sglang:v0.5.") and install.startswith("pip install")
    assert pull.rpartition(":v")[2] in install
    assert any("is gone with it" in note for note in fix.notes)


def test_outside_of_containers_pip_alone_installs() -> None:
    fix = upgrade(said_of(root="/home/user/venv/lib/python3.12/site-packages/../"))
    assert not any("docker" in line for line in fix.run)


def test_another_image_keeps_its_own_ways() -> None:
    command = "docker run --gpus all example/serving:3 python3 -m sglang.launch_server --model-path /models/m"
    assert not any("docker pull lmsysorg" in line for line in upgrade(said_of(command=command)).run)


def test_the_tag_of_the_commands_image_tells_the_make() -> None:
    """The command is given beside a log that shows nothing of the GPU."""
    text = f'[2026-05-05 10:00:02 TP0] Traceback (most recent call last):\n  File "/sgl-workspace/sglang/{SCHEDULER}", line 9, in f\n    x()\n{FAULT}\n'
    knowledge = load_knowledge()
    words = "docker run {}lmsysorg/sglang:v0.5.9{} python3 -m sglang.launch_server --model-path /models/m"
    for options, tag, ending in (("--device /dev/kfd ", "-rocm700-mi30x", "-mi30x"), ("--gpus all ", "", "")):
        given = Given(document=read_launch(words.format(options, tag)))
        said = diagnose(reading_from_text(text, knowledge.literals), knowledge, given).diagnoses[0]
        assert upgrade(said).run[0].endswith(ending), options


def test_actors_of_ray_get_variables_from_the_runtime_environment() -> None:
    last = "nvcc fatal : Unsupported gpu architecture 'compute_120a'"
    said = said_of(last=f"RuntimeError: {last}", prefix="(SGLangEngine pid=4711) ")
    with_variables = [fix for fix in said.fixes if any(line.startswith("export ") for line in fix.run)]
    assert with_variables
    assert all(any("runtime_env" in note for note in fix.notes) for fix in with_variables)


def test_on_a_mac_nothing_is_installed_from_wheels_for_nvidia() -> None:
    command = "SGLANG_USE_MLX=1 python3 -m sglang.launch_server --model-path /models/m"
    said = said_of(root="/opt/sglang/", command=command)
    assert said.fixes and not any(
        "pip install" in line and "sglang" in line for f in said.fixes for line in f.run
    )


def test_a_build_from_source_is_never_asked_of_an_index_or_of_an_image() -> None:
    wanted = "ImportError: cannot import name 'no_such_thing' from 'sglang.srt.utils'"
    for state, instead in (
        ("0.5.9.dev123+g1a2b3c4", "sglang==0.5.9"),
        ("0.9.1.dev7", "pip install -e python"),
    ):
        said = said_of(last=wanted, release=state)
        lines = [line for fix in said.fixes for line in fix.run]
        assert not any(".dev" in line for line in lines)
        assert any(instead in line for line in lines)


def test_a_file_of_a_model_named_as_on_the_hub_is_looked_at_in_the_cache() -> None:
    last = "ValueError: Cannot find any of ['zero_point'] in the model's quantization config."
    for model, file in (
        ("org/m-awq", "~/.cache/huggingface/hub/models--org--m-awq/snapshots/*/config.json"),
        ("/models/m-awq", "/models/m-awq/config.json"),
    ):
        said = said_of(last=last, command=f"python3 -m sglang.launch_server --model-path {model}")
        commands = [line for fix in said.fixes for line in fix.run]
        assert any(line.startswith("grep") and f" {file}" in line for line in commands), commands
