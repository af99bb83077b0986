"""Edits in detail: place, spelling, quoting, containers."""

from __future__ import annotations

import pytest

from mtpdoctor.launch.document import read_launch
from mtpdoctor.launch.types import Edit, EditOp

from .corpus import FILES, text_of
from .tables import TABLE

_OPS = {op.value: op for op in EditOp}


def edit(text: str) -> Edit:
    op, _, rest = text.partition(" ")
    if op == "env":
        name, _, value = rest.partition("=")
        return Edit(EditOp.ENV, name, value)
    if op in ("set", "add", "remove", "unset"):
        name, _, value = rest.partition(" ")
        return Edit(_OPS[op], name, value or None)
    return Edit(_OPS[op], "", rest)


def edited(text: str, *edits: str, name: str = "command") -> str:
    return read_launch(text, name=name, table=TABLE).apply([edit(e) for e in edits]).text


def hunks(name: str, *edits: str) -> list[str]:
    """Changed lines of a file of the corpus, as a diff shows them."""
    path = FILES / name
    document = read_launch(text_of(path), name=path.name, table=TABLE)
    diff = document.diff(document.apply([edit(e) for e in edits]))
    return [line for line in diff.splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")]


P = "python -m sglang.launch_server --model-path m"


@pytest.mark.parametrize(
    ("before", "change", "after"),
    [
        (f"{P} --tp 4 # x", "set --tp-size 8", f"{P} --tp 8 # x"),
        (f"{P} --tp=4", "set --tp-size 8", f"{P} --tp=8"),
        (f'{P} --tp "4"', "set --tp 8", f'{P} --tp "8"'),
        (f"{P} --tensor-para 4", "set --tp 8", f"{P} --tensor-para 8"),
        (f"{P} --tp 2 --host h --tp-size 4", "set --tp 8", f"{P} --host h --tp-size 8"),
        (f"{P} --tp 2 --host h --tp=4", "remove --tp", f"{P} --host h"),
        (f"{P} --cuda-graph-bs 1 2 --tp 4", "set --cuda-graph-bs 1 2 8", f"{P} --cuda-graph-bs 1 2 8 --tp 4"),
        (f"{P} --cuda-graph-bs 1 2 8 --tp 4", "set --cuda-graph-bs 4", f"{P} --cuda-graph-bs 4 --tp 4"),
        (f"{P} | tee log", "add --enable-metrics", f"{P} --enable-metrics | tee log"),
        ("sglang serve --model=m", "set --tp 8", "sglang serve --model=m --tp=8"),
        (f"```bash\n{P}\n```\n", "set --tp 8", f"```bash\n{P} --tp 8\n```\n"),
        (f"$ cd /x\n$ {P}\n", "env A=1", f"$ cd /x\n$ A=1 {P}\n"),
        (f"me@h:~$ cd /x\nme@h:/x$ {P}\n", "env A=1", f"me@h:~$ cd /x\nme@h:/x$ A=1 {P}\n"),
        ("\ufeffmodel-path: m\ntp: 4\n", "set --tp 8", "\ufeffmodel-path: m\ntp: 8\n"),
        (f"{P} --enable-metrics", "add --enable-metrics", f"{P} --enable-metrics"),
        (f"{P} \u2013enable-metrics --tp 2", "remove \u2013enable-metrics", f"{P} --tp 2"),
        (f"{P} \u2014host h --tp 2", "remove \u2014host", f"{P} --tp 2"),
        (f"{P} --enable-metrics=true --tp 2", "add --enable-metrics", f"{P} --enable-metrics --tp 2"),
        (f'{P} "$@"', "set --tp 8", f'{P} --tp 8 "$@"'),
        (f"{P} --json-model-override-args '{{}}'", "remove --json-model-override-args", P),
        (P, 'set --json-model-override-args {"a": 1}', f"{P} --json-model-override-args '{{\"a\": 1}}'"),
        (P, "env A=1", f"A=1 {P}"),
        (f"B=2 {P}", "env A=x y", f"B=2 A='x y' {P}"),
        (f"env B=2 {P}", "env A=1", f"env B=2 A=1 {P}"),
        (f"time {P}", "env A=1", f"time A=1 {P}"),
        (f"cd x && {P}", "env A=1", f"cd x && A=1 {P}"),
        (f"sudo -E {P}", "env A=1", f"sudo -E env A=1 {P}"),
        (f"mpirun -x B=2 {P}", "env A=1", f"mpirun -x B=2 -x A=1 {P}"),
        (f"mpirun -x B=2 -np 1 {P}", "unset B", f"mpirun -np 1 {P}"),
        (f"A=1 B=2 {P}", "unset A", f"B=2 {P}"),
        (f"A=1 \\\n  {P}", "unset A", P),
        (f"export A=1\n{P}\n", "unset A", f"{P}\n"),
        (f"export A=1 B=2\n{P}\n", "unset A", f"export B=2\n{P}\n"),
        (f"A=1\nexport A\n{P}\n", "unset A", f"{P}\n"),
        (f"export A=1 # why\n{P}\n", "env B=2", f"export A=1 # why\nexport B=2\n{P}\n"),
        (f"A=1 {P}", "env A=2", f"A=2 {P}"),
        (f"export A='1'\n{P}", "env A=2", f"export A='2'\n{P}"),
        (f"A=1 {P}", "env A=1", f"A=1 {P}"),
        (f"M=/x\n{P} --served-model-name $M", "set --served-model-name y", f"M=/x\n{P} --served-model-name y"),
        (f"{P} --chat-template $T", "set --served-model-name $T", f'{P} --chat-template $T --served-model-name "$T"'),
        (f'bash -c "{P} --tp 4"', 'set --chat-template a"$b', f'bash -c "{P} --tp 4 --chat-template \'a\\"\\$b\'"'),
        (f"{P} \\\n  --tp 4 \\\n  --host h\n", "remove --tp", f"{P} \\\n  --host h\n"),
        (f"{P} \\\n  --tp 4\n", "set --port 1", f"{P} \\\n  --tp 4 \\\n  --port 1\n"),
        (f"{P} \\\r\n  --tp 4\r\n", "set --port 1", f"{P} \\\r\n  --tp 4 \\\r\n  --port 1\r\n"),
        (f"A=(--tp 4 --dp 2)\n{P} ${{A[@]}}", "remove --tp", f"A=(--dp 2)\n{P} ${{A[@]}}"),
        (f"A=(\n  --tp 4 # t\n  --dp 2 # d\n)\n{P} ${{A[@]}}", "remove --dp", f"A=(\n  --tp 4 # t\n  # d\n)\n{P} ${{A[@]}}"),
    ],
)  # fmt: skip
def test_shell(before: str, change: str, after: str) -> None:
    assert edited(before, change) == after


@pytest.mark.parametrize(
    ("before", "change", "after"),
    [
        (
            f"{P} --json-model-override-args {{'a': 1}} --port 1",
            "remove --json-model-override-args",
            f"{P} --port 1",
        ),
        (
            f"{P} --json-model-override-args {{'a': 1}} --port 1",
            'set --json-model-override-args {"a": 1}',
            f"{P} --json-model-override-args '{{\"a\": 1}}' --port 1",
        ),
        (
            f"{P} --json-model-override-args={{a: {{b: [1, 2]}}}} --port 1",
            'set --json-model-override-args {"a": 1}',
            f"{P} --json-model-override-args='{{\"a\": 1}}' --port 1",
        ),
        # what does not close the value is none of it
        (
            f"{P} --json-model-override-args {{'a': 1 --port 1",
            "remove --json-model-override-args",
            f"{P} 1 --port 1",
        ),
    ],
)
def test_words_that_the_shell_cut_off_a_value_go_with_it(before: str, change: str, after: str) -> None:
    assert edited(before, change) == after


def test_a_spelling_the_release_does_not_have_is_replaced() -> None:
    assert edited(f"{P} --tp_size 4", "set --tp-size 8") == f"{P} --tp-size 8"


def test_every_node_is_edited_alike() -> None:
    assert hunks("kubernetes/lws.yaml", "set --tp 8") == ['-              - "16"', '+              - "8"'] * 2
    assert len(hunks("sbatch/two_nodes.sh", "add --enable-metrics")) == 4
    assert hunks("compose/anchors.yml", "env NCCL_DEBUG=INFO") == [
        '-    NCCL_DEBUG: "WARN"       # quiet',
        '+    NCCL_DEBUG: "INFO"       # quiet',
    ]


def test_a_router_beside_prefill_and_decode_stays() -> None:
    changed = hunks("script/disaggregated.sh", "set --tp 2")
    assert len(changed) == 2 and "prefill" in changed[0]


def test_docker() -> None:
    assert edited(f"docker run -it img:1 {P}", "shm-size 16g") == f"docker run -it --shm-size 16g img:1 {P}"
    assert edited(f"docker run --ipc=host img:1 {P}", "ipc private") == f"docker run --ipc=private img:1 {P}"
    assert edited(f"docker run img {P}", "gpus all", "image-tag v2") == f"docker run --gpus all img:v2 {P}"
    assert edited(f"docker run h:5000/i@sha256:0 {P}", "image-tag v2") == f"docker run h:5000/i:v2 {P}"
    assert edited(f"docker run -e B=1 img {P}", "env A=1") == f"docker run -e B=1 -e A=1 img {P}"
    assert edited(f"docker run -e B=1 --rm img {P}", "unset B") == f"docker run --rm img {P}"
    assert hunks("docker/lines.sh", "env A=b c", "shm-size 8g", "image-tag v1") == [
        "-  --shm-size=64g \\",
        "+  --shm-size=8g \\",
        "+  -e 'A=b c' \\",
        '-  "$IMAGE" \\',
        '+  "lmsysorg/sglang:v1" \\',
    ]


def test_compose() -> None:
    assert hunks(
        "compose/readme.yaml", "set --tp 4", "shm-size 16Gi", "gpus all", "image-tag v1", "env A=1"
    ) == [
        "-    image: lmsysorg/sglang:latest",
        "+    image: lmsysorg/sglang:v1",
        "+    shm_size: 16g",
        "+      A: 1",
        "-      --tp 2",
        "+      --tp 4",
        '-              device_ids: ["0"]',
        "+              count: all",
    ]
    assert hunks("compose/list.yaml", "set --tp 8", "set --host h", "gpus 8", "env A=x") == [
        "-    - '--tp=4'      # the GPUs",
        "+    - '--tp=8'      # the GPUs",
        "+    - --host",
        "+    - h",
        "+      A: x",
        "-          - {driver: nvidia, count: 4, capabilities: [gpu, utility]}",
        "+          - {driver: nvidia, count: 8, capabilities: [gpu, utility]}",
    ]
    assert hunks("compose/anchors.yml", "image-tag v2", "ipc host") == [
        '-  image: "lmsysorg/sglang:${SGLANG_TAG:-v0.5.12}"',
        '+  image: "lmsysorg/sglang:v2"',
        "-  ipc: 'private'",
        "+  ipc: 'host'",
    ]


def test_kubernetes() -> None:
    assert hunks(
        "kubernetes/deployment.yaml", "gpus 8", "shm-size 32g", "ipc host", "env A=1", "env HF_TOKEN=x"
    ) == [
        "-              valueFrom:",
        "-                secretKeyRef: {name: hf, key: token}",
        '+              value: "x"',
        "+            - name: A",
        '+              value: "1"',
        "-              nvidia.com/gpu: 4",
        "+              nvidia.com/gpu: 8",
        "-              nvidia.com/gpu: 4",
        "+              nvidia.com/gpu: 8",
        "-            sizeLimit: 10Gi",
        "+            sizeLimit: 32Gi",
        "+      hostIPC: true",
    ]
    assert hunks("kubernetes/pod.json", "set --port 1", "env B=2", "shm-size 1g")[:2] == [
        '-          "4"',
        '+          "4",',
    ]
    assert hunks("kubernetes/shell.yaml", "shm-size 1g") == [
        "-      - emptyDir: {medium: Memory}",
        '+      - emptyDir: {medium: Memory, sizeLimit: "1Gi"}',
    ]


def test_systemd() -> None:
    assert hunks("systemd/simple.service", "unset NCCL_DEBUG", "env A=5% $x", "set --chat-template a 'b") == [
        '-Environment="NCCL_DEBUG=INFO" "NAME=a b"',
        '+Environment="NAME=a b"',
        '+Environment="A=5%% $$x"',
        "-ExecStart=/opt/sglang/bin/python -m sglang.launch_server --model-path /data/models/m --tp 4"
        " --trust-remote-code",
        "+ExecStart=/opt/sglang/bin/python -m sglang.launch_server --model-path /data/models/m --tp 4"
        ' --trust-remote-code --chat-template "a \'b"',
    ]


def test_sglang_config() -> None:
    assert hunks(
        "sglang-config/comments.yaml", "add --disable-radix-cache", "remove --trust-remote-code"
    ) == [
        "-trust-remote-code: true       # needed",
        "-disable-radix-cache: false",
        "+disable-radix-cache: true",
    ]
    assert hunks(
        "sglang-config/lists.yaml", "set --cuda-graph-bs 1 2", "set --lora-paths c=d e=f", "set --host h"
    ) == [
        "-cuda-graph-bs: [1, 2, 4, 8]",
        "+cuda-graph-bs: [1, 2]",
        "-  - a=/loras/a   # first",
        '-  - "b=/loras/b"',
        "+  - c=d",
        "+  - e=f",
        "+host: h",
    ]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (f"{P} {{}} --tp 2", "command"),
        (f"docker run --gpus all i bash -c '{P} {{}} --tp 2'", "command"),
        (f"services:\n  s:\n    image: i\n    command: {P} {{}} --tp 2\n", "compose.yaml"),
    ],
)
def test_many_options_taken_out_at_once_leave_what_one_by_one_leaves(text: str, name: str) -> None:
    options = [f"--stray-{n}" for n in range(12)]
    before = text.format(" ".join(f"{option} {n}" for n, option in enumerate(options)))
    one_by_one = before
    for option in options:
        one_by_one = edited(one_by_one, f"remove {option}", name=name)
    assert edited(before, *(f"remove {option}" for option in options), name=name) == one_by_one
    assert "--stray" not in one_by_one and "--tp 2" in one_by_one
