"""What is read from commands in their many shapes."""

from __future__ import annotations

import pytest

from mtpdoctor.launch.document import read_launch
from mtpdoctor.launch.flags import NoFlagTable
from mtpdoctor.launch.types import Form, LaunchCommand

from .corpus import FILES, text_of
from .tables import TABLE


def command(text: str, name: str = "command") -> LaunchCommand:
    return read_launch(text, name=name, table=TABLE).command


def from_file(name: str) -> LaunchCommand:
    path = FILES / name
    return read_launch(text_of(path), name=path.name, table=TABLE).command


def test_environment_program_and_flags_of_a_line() -> None:
    got = from_file("shell/continued.txt")
    assert got.env == {"CUDA_VISIBLE_DEVICES": "0,1,2,3", "NCCL_DEBUG": "INFO"}
    assert got.program == ("python3", "-u", "-m", "sglang.launch_server")
    assert got.value("json_model_override_args") == ('{"rope_scaling": {"type": "yarn", "factor": 2.0}}',)
    assert [f.joined for f in got.flags] == [False, True, True, False, False]
    assert got.positionals == ()


@pytest.mark.parametrize(
    "front",
    [
        "",
        "nohup ",
        "time ",
        "exec ",
        "sudo -E ",
        "numactl --cpunodebind=0 --membind=0 ",
        "taskset -c 0-15 ",
        "nsys profile -o out --trace cuda,nvtx ",
        "uv run --with sglang ",
        "conda run -n sgl --no-capture-output ",
        "srun --ntasks=1 --gres=gpu:8 ",
        "env -i PATH=/bin ",
        "cd /x && ",
        "set -x; ",
        "if ! ",
        "( ",
        "docker exec -it sgl ",
        "kubectl exec -it pod -- ",
        "ssh -o StrictHostKeyChecking=no host ",
        "mpirun -np 2 -x LD_LIBRARY_PATH ",
        "$ ",
        "# ",
        "+ ",
        "user@host:~/dir$ ",
        "[root@host dir]# ",
        "(venv) me@host:/x$ ",
    ],
)
@pytest.mark.parametrize("program", ["python -m sglang.launch_server", "/opt/bin/sglang serve"])
def test_whatever_stands_in_front(front: str, program: str) -> None:
    end = {"if ! ": "; then echo no; fi", "( ": " )"}.get(front, "")
    got = command(f"{front}{program} --model-path m --tp 2{end}")
    assert got.program == tuple(program.split())
    assert got.value("tp_size") == ("2",)
    assert got.positionals == ()


@pytest.mark.parametrize(
    "tail",
    [
        "",
        " > log 2>&1 &",
        " 2>&1 | tee -a 'my log'",
        " || true",
        " ; echo done",
        " &> log",
        " >log 2>err </dev/null",
    ],
)
def test_whatever_follows(tail: str) -> None:
    got = command(f"python -m sglang.launch_server --model-path m --trust-remote-code{tail}")
    assert [f.name for f in got.flags] == ["--model-path", "--trust-remote-code"]
    assert got.flags[-1].values == () and got.positionals == ()


def test_aliases_and_abbreviations_are_one_flag() -> None:
    got = command("sglang serve --model m --tensor-para 4 --mem-fraction 0.8")
    assert [f.dest for f in got.flags] == ["model_path", "tp_size", "mem_fraction_static"]
    assert [f.name for f in got.flags] == ["--model", "--tensor-para", "--mem-fraction"]


def test_without_a_table_the_shape_of_words_decides() -> None:
    text = "python -m sglang.launch_server --model-path m --random-seed -1 --cuda-graph-bs 1 2 --new-switch --x=y=z"
    got = read_launch(text, table=NoFlagTable()).command
    assert got.value("random_seed") == ("-1",)
    assert got.value("cuda_graph_bs") == ("1", "2")
    assert got.value("new_switch") == ()
    assert got.value("x") == ("y=z",)


def test_positional_model_of_serve() -> None:
    got = from_file("shell/serve.txt")
    assert got.positionals == ("Qwen/Qwen3-8B",)
    assert got.env == {"HF_TOKEN": "abc def"}
    assert got.value("chat_template") == ('{{ "a\'b" }}\n',)


def test_variables_that_the_script_resolves() -> None:
    got = from_file("script/arrays.sh")
    assert got.value("model_path") == ("/models/Qwen3-32B",)
    assert got.value("port") == ("30000",)
    assert got.value("enable_metrics") == ()
    assert got.env == {"NCCL_IB_DISABLE": "1", "SGLANG_LOG": "it's fine"}
    assert got.positionals == ("$@",)


def test_variables_split_into_words() -> None:
    got = from_file("script/strings.sh")
    assert [(f.name, f.values) for f in got.flags] == [
        ("--model-path", ("/data/models/glm-4.5",)),
        ("--tp", ("8",)),
        ("--trust-remote-code", ()),
        ("--mem-fraction-static", ("0.8",)),
        ("--attention-backend", ("triton",)),
        ("--host", ("0.0.0.0",)),
    ]


def test_what_only_a_run_could_tell_stays_as_written() -> None:
    got = command(
        'A=$(cat key) python -m sglang.launch_server --model-path "$MODEL" --port $((30000 + 1)) --tp ${N}'
    )
    assert got.env == {"A": "$(cat key)"}
    assert got.value("model_path") == ("$MODEL",)
    assert got.value("port") == ("$((30000 + 1))",)
    assert got.value("tp_size") == ("${N}",)


def test_defaults_in_expansions() -> None:
    text = 'M=${1:-a/b}\nsglang serve --model-path "$M" --tp ${TP:-4} --host ${HOST-"0.0.0.0"} ${EXTRA:-}'
    got = command(text)
    assert got.value("model_path") == ("a/b",)
    assert got.value("tp_size") == ("4",)
    assert got.value("host") == ("0.0.0.0",)
    assert got.positionals == ()


def test_only_blanks_of_the_shell_separate_words() -> None:
    got = command("python -m sglang.launch_server --model-path a\u00a0b --tp 4")
    assert got.value("model_path") == ("a\u00a0b",) and got.value("tp_size") == ("4",)


def test_a_variable_that_doubles_itself_is_not_followed_forever() -> None:
    text = 'A="x y"\n' + 'A="$A $A"\n' * 60 + "python -m sglang.launch_server --model-path m $A"
    assert command(text).positionals == ("$A",)


def test_set_a_and_files_of_variables() -> None:
    got = command("set -a\n. ./server.env\nX=1\nset +a\nY=2\npython -m sglang.launch_server --model-path m")
    assert got.env == {"X": "1"}
    assert got.env_files == ("./server.env",)


def test_heredocs_and_comments_are_no_commands() -> None:
    got = from_file("sbatch/heredoc.sh")
    assert got.value("model_path") == ("right",)
    assert got.env == {"A": "1", "B": "2"}


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("script/two_nodes.sh", 2),
        ("sbatch/two_nodes.sh", 2),
        ("compose/anchors.yml", 2),
        ("kubernetes/lws.yaml", 2),
    ],
)
def test_nodes_of_one_launch_belong_together(name: str, count: int) -> None:
    path = FILES / name
    document = read_launch(text_of(path), name=path.name, table=TABLE)
    assert document.launches == (tuple(range(count)),)
    assert document.command.value("node_rank") in (("0",), ("$(LWS_WORKER_INDEX)",))


def test_prefill_and_decode_are_two_launches() -> None:
    document = read_launch(text_of(FILES / "script/disaggregated.sh"), table=TABLE)
    assert document.launches == ((0,), (1,))


def test_slurm_options() -> None:
    got = from_file("sbatch/two_nodes.sh")
    assert got.scheduler["nodes"] == "2" and got.scheduler["ntasks-per-node"] == "1"
    assert got.scheduler["gres"] == "gpu:8" and got.scheduler["time"] == "12:00:00"
    assert "partition" not in got.scheduler
    assert from_file("sbatch/container.sbatch").scheduler == {"nodes": "1", "gpus": "4", "account": "abc"}


def test_container_facts_of_docker() -> None:
    got = from_file("docker/lines.sh")
    assert got.form is Form.DOCKER
    assert got.container == {
        "gpus": '"device=0,1"',
        "network": "host",
        "shm_size": "64g",
        "image": "lmsysorg/sglang:v0.5.9-cu129",
    }
    assert got.env == {"NCCL_DEBUG": "WARN", "HF_HUB_OFFLINE": "$HF_HUB_OFFLINE"}
    assert got.env_files == ("./prod.env",)


def test_the_clients_environment_does_not_reach_the_container() -> None:
    got = command("export A=1\nB=2 docker run -e A -e C=3 img python -m sglang.launch_server --model-path m")
    assert got.env == {"A": "1", "C": "3"}


def test_nested_shells_see_container_and_inner_variables() -> None:
    got = from_file("docker/single_quotes.txt")
    assert got.env == {"SGLANG_X": "1"}
    assert got.value("chat_template") == ("a b",)
    assert got.container and got.container["shm_size"] == "10.24gb"


def test_compose() -> None:
    got = from_file("compose/folded.yaml")
    assert got.value("model_path") == ("Qwen/Qwen3-8B",)
    assert got.value("json_model_override_args") == ('{"a": "its $5"}',)  # as a shell joins 'it''s'
    assert got.env["PRICE"] == "5$" and got.env_files == (".env", "prod.env")
    assert got.container == {"image": "lmsysorg/sglang:v0.5.9", "gpus": "all"}
    assert from_file("compose/anchors.yml").env == {
        "NCCL_DEBUG": "WARN",
        "OMP_NUM_THREADS": "8",
        "EMPTY": "$EMPTY",
    }
    bash = from_file("compose/bash.yaml")
    assert bash.value("model_path") == ("/models/m",)
    assert bash.env == {"MODEL": "/models/m", "LOCAL": "$HOME/x"}


def test_kubernetes() -> None:
    got = from_file("kubernetes/deployment.yaml")
    assert got.env == {"HF_TOKEN": "$HF_TOKEN"}
    assert got.container == {"image": "docker.io/lmsysorg/sglang:latest", "gpus": "4", "shm_size": "10Gi"}
    assert got.scheduler == {"kind": "Deployment", "replicas": "2"}
    shell = from_file("kubernetes/shell.yaml")
    assert shell.value("model_path") == ("/models/r1",)
    assert shell.env == {"MODEL": "/models/r1", "DEBUG": "1"} and shell.env_files == ("configMap/common",)
    assert shell.container == {"image": "lmsysorg/sglang:v0.5.10", "shm_size": "unlimited"}
    assert shell.value("json_model_override_args") == ('{"x": "y: #z"}',)
    lws = from_file("kubernetes/lws.yaml")
    assert lws.container == {"image": "lmsysorg/sglang:v0.5.9", "gpus": "8", "ipc": "host", "network": "host"}


def test_arguments_of_an_image_that_starts_the_server() -> None:
    text = "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - image: my/sglang:1\n    args: [--model-path, m, --tp, '2']\n"
    got = command(text)
    assert got.program == () and got.value("tp_size") == ("2",)


def test_systemd() -> None:
    got = from_file("systemd/continued.service")
    assert got.env == {"MODEL": "/data/m", "TP": "8", "OMP_NUM_THREADS": "8"}
    assert got.value("model_path") == ("/data/m",) and got.value("tp_size") == ("8",)
    assert got.value("json_model_override_args") == ('{"a": "100% b"}',)
    assert got.value("chat_template") == ("it is $5",)
    simple = from_file("systemd/simple.service")
    assert simple.env == {"HF_HOME": "/data/hf", "NCCL_DEBUG": "INFO", "NAME": "a b"}
    assert simple.env_files == ("/etc/default/sglang",)


def test_sglang_config() -> None:
    got = from_file("sglang-config/comments.yaml")
    assert got.value("trust_remote_code") == () and got.value("disable_radix_cache") is None
    lists = from_file("sglang-config/lists.yaml")
    assert lists.value("cuda_graph_bs") == ("1", "2", "4", "8")
    assert lists.value("lora_paths") == ("a=/loras/a", "b=/loras/b")
    mapping = from_file("sglang-config/mapping.yaml")
    assert mapping.value("speculative_draft_model_path") == ("Qwen/Qwen3-8B",)
    assert mapping.value("json_model_override_args") == ('{"rope_scaling": {"factor": 2.0}}',)
