"""What is launched: the words as the form means them, without a shell."""

from __future__ import annotations

import os
import shlex
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtpdoctor.cli.check import as_typed
from mtpdoctor.diagnose.given import Given
from mtpdoctor.errors import UserError
from mtpdoctor.launch.document import read_launch
from mtpdoctor.watch.plan import LaunchPlan, plan_of

START = f"{sys.executable} -m sglang.launch_server"


def planned(text: str, name: str = "command") -> LaunchPlan:
    return plan_of(Given(document=read_launch(text, name=name)))


def words(text: str, name: str = "command") -> list[str]:
    argv = planned(text, name).argv
    assert argv[1:3] == ("-m", "sglang.launch_server")
    return list(argv[3:])


@pytest.fixture(autouse=True)
def _variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODEL_1", "/m/one")
    monkeypatch.setenv("OPTIONS_1", "--tp 2 --dp 3")
    monkeypatch.delenv("UNSET_1", raising=False)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("--model-path M --tp=2", ["--model-path", "M", "--tp=2"]),
        ('--model-path "$MODEL_1/x"', ["--model-path", "/m/one/x"]),
        ("--model-path ${UNSET_1:-/m/two}", ["--model-path", "/m/two"]),
        ("--model-path M $OPTIONS_1", ["--model-path", "M", "--tp", "2", "--dp", "3"]),
        ('--model-path "$OPTIONS_1"', ["--model-path", "--tp 2 --dp 3"]),
        ("--model-path ~/m", ["--model-path", os.path.expanduser("~/m")]),
        ("--model-path '~/m'", ["--model-path", "~/m"]),
        (
            """--model-path M --x '{"a": "$MODEL_1 `x` $(y)"}'""",
            ["--model-path", "M", "--x", '{"a": "$MODEL_1 `x` $(y)"}'],
        ),
    ],
)
def test_words_of_a_shell_line(text: str, expected: list[str]) -> None:
    assert words(f"{START} {text}") == expected


@given(st.lists(st.text(alphabet="ab $`'\"\\(){}~*;&|<>#-=\u00e9", min_size=1, max_size=8), max_size=4))
def test_words_that_were_typed_reach_the_program_as_they_are(values: list[str]) -> None:
    typed = [sys.executable, "-m", "sglang.launch_server", "--model-path", "M", *(f"--x={v}" for v in values)]
    assert list(planned(as_typed(typed)).argv) == typed


def test_a_script_a_unit_and_a_job() -> None:
    script = f'#!/bin/bash\nexport A_1=b\nARGS="--tp 2"\nexec {START} --model-path "$MODEL_1" $ARGS "$@"\n'
    assert words(script, "serve.sh") == ["--model-path", "/m/one", "--tp", "2"]
    assert planned(script, "serve.sh").env["A_1"] == "b"
    unit = f"[Service]\nEnvironment=A_1=c\nExecStart={START} --model-path ${{MODEL_1}} $OPTIONS_1\n"
    assert words(unit, "x.service") == ["--model-path", "/m/one", "--tp", "2", "--dp", "3"]
    assert planned(unit, "x.service").env["A_1"] == "c"
    job = f"#!/bin/bash\n#SBATCH -N 1\nsrun {START} --model-path M\n"
    assert words(job, "x.sbatch") == ["--model-path", "M"]


def test_variables_in_front_are_set_and_shown() -> None:
    plan = planned(f"A_1=\"$MODEL_1\" B_1='$UNSET_1' {START} --model-path M")
    assert plan.env["A_1"] == "/m/one" and plan.env["B_1"] == "$UNSET_1"
    assert "A_1=/m/one" in plan.sets and plan.env["PYTHONUNBUFFERED"] == "1"
    assert "/m/one" not in repr(plan).partition("sets=")[0]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (f"{START} --model-path $UNSET_1", r"\$UNSET_1 in the command is not set"),
        (f"{START} --model-path $(cat x)", "command substitution"),
        (f"{START} --model-path `cat x`", "command substitution"),
        (f"A_1=$(nproc) {START} --model-path M", "A_1 holds a command substitution"),
    ],
)
def test_what_only_a_shell_knows_is_refused(text: str, says: str) -> None:
    with pytest.raises(UserError, match=says):
        planned(text)


@pytest.mark.parametrize(
    ("text", "name", "way"),
    [
        (
            "docker run --gpus all lmsysorg/sglang python3 -m sglang.launch_server --model-path M",
            "x",
            "docker logs -f",
        ),
        (
            "services:\n  s:\n    image: lmsysorg/sglang\n    command: python3 -m sglang.launch_server --model-path M\n",
            "compose.yaml",
            "docker compose logs -f",
        ),
        (
            "apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec:\n  containers:\n  - name: s\n    image: lmsysorg/sglang\n"
            "    command: [python3, -m, sglang.launch_server, --model-path, M]\n",
            "pod.yaml",
            "kubectl logs -f",
        ),
    ],
)
def test_containers_are_started_by_their_own_tools(text: str, name: str, way: str) -> None:
    with pytest.raises(UserError, match="not started by the doctor") as caught:
        planned(text, name)
    assert way in (caught.value.hint or "")


def test_flags_alone_get_sglangs_own_program() -> None:
    plan = planned(as_typed(shlex.split("--model-path M --tp 2")))
    assert plan.argv[1:] == ("-m", "sglang.launch_server", "--model-path", "M", "--tp", "2")
    assert plan.model == "M"


@pytest.mark.parametrize(
    ("before", "kept"),
    [
        ("numactl --cpunodebind=0", ["numactl", "--cpunodebind=0"]),
        ("nice -n 5 taskset -c 0-7", ["nice", "-n", "5", "taskset", "-c", "0-7"]),
        ("uv run", ["uv", "run"]),
        ("env -u X_1 A_1=b", ["env", "-u", "X_1", "A_1=b"]),
        ("conda run -n sgl", ["conda", "run", "--no-capture-output", "-n", "sgl"]),
        ("nohup", []),  # would write to nohup.out
        ("exec -a name", []),
        ("A_1=b time -p nohup nice", ["nice"]),
    ],
)
def test_what_runs_the_program_is_kept(before: str, kept: list[str]) -> None:
    argv = list(planned(f"{before} {START} --model-path M").argv)
    assert argv == [*kept, *shlex.split(START), "--model-path", "M"]


def test_a_program_of_any_name_is_started_as_it_is_written() -> None:
    assert planned("./sgl-python -m sglang.launch_server --model-path M").argv[:2] == ("./sgl-python", "-m")
    assert planned("python -m debugpy -m sglang.launch_server --model-path M").argv[1:3] == ("-m", "debugpy")


@pytest.mark.parametrize(
    "text",
    [
        f"ssh host {START} --model-path M",
        f"ssh host '{START} --model-path M'",
        f"srun --gpus 1 {START} --model-path M",
        f"sudo -u me {START} --model-path M",
        f"tmux new -d '{START} --model-path M'",
    ],
)
def test_what_would_start_it_elsewhere_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="out of the doctor's reach") as caught:
        planned(text)
    assert "mtpdoctor" in (caught.value.hint or "")
