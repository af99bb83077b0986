"""What tools print about a machine into a log becomes facts of the launch."""

from __future__ import annotations

import time
from typing import Any

import pytest

from mtpdoctor.diagnose.given import Given
from mtpdoctor.diagnose.the_case import case_of
from mtpdoctor.log.reading import reading_from_text
from mtpdoctor.log.shown import LITERALS

LAUNCH = "$ python -m sglang.launch_server --model-path M --tp 2\nValueError: warp\n"
ROW = "|   {n}  {name}          On  |   00000000:1B:00.0 Off |                    0 |\n| N/A   30C    P0   70W / 700W |  4MiB / {mib}MiB |      0%      Default |\n"
HEAD = "| NVIDIA-SMI 580.95.05    Driver Version: 580.95.05    CUDA Version: 13.0 |\n"


def table(*rows: tuple[str, int]) -> str:
    return HEAD + "".join(ROW.format(n=n, name=name, mib=mib) for n, (name, mib) in enumerate(rows))


def facts_of(text: str, launch: str = LAUNCH) -> Any:
    reading = reading_from_text(text + launch, LITERALS)
    assert reading.attempt is not None
    return case_of(reading, reading.attempt, Given())[0].facts


H100 = ("NVIDIA H100 80GB HBM3", 81559)
SHOWN = [
    (table(H100, H100), {"host.gpu.count": 2, "host.gpu.memory_gib": 79.65, "host.driver": "580.95.05"}),
    (table(H100, ("NVIDIA L4", 23034)), {"host.gpu.count": 2, "host.gpu.kind_count": 2}),
    ("GPU 0: NVIDIA H20 (UUID: GPU-1)\nGPU 1: NVIDIA H20 (UUID: GPU-2)\n", {"host.gpu.count": 2}),
    ("CUDA available: True\nGPU 0,1,2,3: NVIDIA L40S\nGPU 0,1,2,3 Compute Capability: 8.9\n", {"host.gpu.count": 4, "host.gpu.sm": 89}),
    ("NVCC: Cuda compilation tools, release 12.8, V12.8.93\n", {"host.nvcc": "12.8"}),
    ("Python: 3.12.11 (main, Jun  4 2025, 08:56:18) [GCC 11.4.0]\n", {"host.python.version": "3.12.11"}),
    ("$ python3 --version\nPython 3.10.12\n", {"host.python.version": "3.10.12"}),
    ("shm              64M     0   64M   0% /dev/shm\n", {"host.shm_gib": 0.0625, "host.container": True}),
    ("Filesystem     1K-blocks  Used Available Use% Mounted on\ntmpfs  67108864 1048576 66060288 2% /dev/shm\n", {"host.shm_gib": 64.0, "host.shm_free_gib": 63.0}),
    ("        total   used   free  shared  buff/cache   available\nMem:      503     62    114       3         326         437\nSwap:       0      0      0\n", {"host.ram_gib": 503.0, "host.ram_free_gib": 437.0, "host.swap_gib": 0.0}),
    ("Mem:   121Gi   96Gi   1.9Gi  2.0Gi   23Gi    25Gi\n", {"host.ram_gib": 121.0, "host.ram_free_gib": 25.0}),
    ("MemTotal:       528482304 kB\nMemAvailable:   262144000 kB\n", {"host.ram_gib": 504.0, "host.ram_free_gib": 250.0}),
    ("max locked memory       (kbytes, -l) 64\nopen files                      (-n) 1024\n", {"host.limit.memlock": 65536, "host.limit.nofile": 1024}),
    ("open files           (-n) 1024\nmax locked memory       (kbytes, -l) unlimited\n", {"host.limit.memlock": None}),
    ("$ ulimit -n\n1024\n", {"host.limit.nofile": 1024}),
    ("ulimit soft: 65535\n", {"host.limit.nofile": 65535}),
    ("Architecture:   aarch64\nCPU op-mode(s): 64-bit\nCPU(s):  72\nNUMA node(s):  1\n", {"host.machine": "aarch64", "host.cpus": 72, "host.numa_nodes": 1}),
    ("Linux box 5.15.90.1-microsoft-standard-WSL2 #1 SMP x86_64 x86_64 x86_64 GNU/Linux\n", {"host.wsl": True, "host.machine": "x86_64"}),
    ('            "ShmSize": 67108864,\n', {"host.shm_gib": 0.0625}),
    ("    Limits:\n      cpu:  8\n      nvidia.com/gpu:  4\n    Requests:\n      nvidia.com/gpu:  4\n", {"host.gpu.count": 4}),
    ('$ python -c "import torch; print(torch.__version__, torch.version.cuda)"\n2.9.1+cu128 12.8\n', {"host.torch.cuda": "12.8", "host.package.torch": "2.9.1+cu128"}),
    ("\tlibnuma.so.1 => not found\n\tlibc.so.6 => /lib/libc.so.6 (0x00007f)\n", {"log.library.libnuma.so.1": None, "log.library.libc.so.6": "/lib/libc.so.6"}),
    ("total 8\n-rw-r--r-- 1 a a 135 Jan  1 00:00 model-00001-of-00002.safetensors\n", {"model.weights_pointers": 1, "model.weights_missing": 1, "model.weights_format": "safetensors"}),
    ("-rw-r--r-- 1 a a 0 Jan  1 00:00 model-00002-of-00002.safetensors\n", {"model.weights_empty": 1}),
]  # fmt: skip


@pytest.mark.parametrize(("text", "wanted"), SHOWN)
def test_what_a_tool_prints_is_a_fact(text: str, wanted: dict[str, object]) -> None:
    for facts in (facts_of(text), facts_of("", LAUNCH + text)):
        found = {name: facts.fact(name).value if facts.fact(name) else "unknown" for name in wanted}
        assert found == wanted


def test_it_says_where() -> None:
    assert facts_of("x\nulimit soft: 65535\n").fact("host.limit.nofile").where == "log:2"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (table(H100, H100) + table(H100), "host.gpu.count"),  # of two machines
        ("$ nvcc --version\nCuda compilation tools, release 12.8, V1\n$ /x/nvcc --version\nCuda compilation tools, release 13.0, V1\n", "host.nvcc"),
        (HEAD + ROW.format(n=3, name="NVIDIA H100 PCIe", mib=81559), "host.gpu.count"),  # a part of the table
        ("Mem:   6000   1   1   1   1   1\n", "host.ram_gib"),  # GiB or MiB
        ("-rw-r--r-- 1 a a 4998 Jan  1 00:00 model-00001-of-00002.safetensors\n", "model.weights_missing"),  # a part of the listing
        ("lrwxrwxrwx 1 a a 76 Jan  1 00:00 model-00001-of-00002.safetensors -> ../../blobs/1\n", "model.weights_pointers"),
        ("CUDA available: True\nGPU 0: AMD Instinct MI300X\nGPU 0 Compute Capability: 9.4\n", "host.gpu.sm"),
    ],
)  # fmt: skip
def test_what_is_not_surely_told_stays_unknown(text: str, name: str) -> None:
    assert facts_of(text).fact(name) is None


def test_a_launch_sees_the_gpus_that_it_may_use() -> None:
    shown = table(H100, H100, H100, H100)
    assert facts_of(shown, "$ CUDA_VISIBLE_DEVICES=0,1 " + LAUNCH[2:])["host.gpu.count"] == 2
    docker = "$ docker run --gpus '\"device=3\"' lmsysorg/sglang:v0.5.9 " + LAUNCH[2:]
    assert facts_of(shown, docker)["host.gpu.count"] == 1
    assert facts_of(shown, docker.replace("'\"device=3\"'", "2"))["host.gpu.count"] == 2
    assert facts_of(shown, docker.replace("'\"device=3\"'", "all"))["host.gpu.count"] == 4


def test_a_container_has_its_own_shared_memory() -> None:
    df = "tmpfs  504G  0  504G  0% /dev/shm\n"
    docker = "$ docker run --gpus all {} lmsysorg/sglang:v0.5.9 " + LAUNCH[2:]
    assert facts_of(df)["host.shm_gib"] == 504
    assert facts_of(df, docker.format("--shm-size 32g"))["host.shm_gib"] == 32
    assert facts_of(df, docker.format(""))["host.shm_gib"] == 0.0625
    assert facts_of(df, docker.format("--ipc=host"))["host.shm_gib"] == 504
    assert "host.shm_gib" not in facts_of("", docker.format("-v /dev/shm:/dev/shm"))


CONFIG = """{
  "architectures": [
    "Qwen3ForCausalLM"
  ],
  "hidden_size": 4096, "model_type": "qwen3", "num_attention_heads": 32, "num_hidden_layers": 36, "num_key_value_heads": 8
}
"""


def test_a_config_that_was_pasted_describes_the_model() -> None:
    facts = facts_of("$ cat config.json\n" + CONFIG)
    assert (facts["model.layers"], facts["model.kv_heads"]) == (36, 8)
    assert facts.fact("model.layers").where == "log:3"


@pytest.mark.parametrize(
    "text",
    [
        CONFIG[:60],
        CONFIG + CONFIG.replace("36", "28"),
        CONFIG.replace("Qwen3ForCausalLM", "LlamaForCausalLMEagle3"),
        "{" * 5000 + CONFIG[1:60],
    ],
)
def test_half_a_config_two_or_a_drafts_describe_none(text: str) -> None:
    assert "model.layers" not in facts_of(text)


def test_an_earlier_launch_of_the_same_log_shows_the_machine_too() -> None:
    died = LAUNCH + "[2026-01-01 10:00:00] server_args=ServerArgs(model_path='M', tp_size=2)\n"
    text = table(H100) + "/sgl-workspace/sglang\n" + died
    reading = reading_from_text(text + died, LITERALS)
    assert len(reading.attempts) == 2
    facts = facts_of(text, died)
    assert facts["host.gpu.count"] == 1
    assert "host.container" not in facts


ANSWERS = table(H100, H100)
AWAY = [
    ("me@laptop:~$ nvidia-smi\n" + ANSWERS, "me@server:~$ ", "host.gpu.count"),
    ("$ ssh other nvidia-smi\n" + ANSWERS, "$ ", "host.gpu.count"),
    ("(base) $ python --version\nPython 3.9.1\n", "(warp) $ ", "host.python.version"),
    ("(base) $ pip list\nPackage Version\n------- -------\ntorch        2.5.0\n", "(warp) $ ", "host.package.torch"),
    ("$ cat /m/other/config.json\n" + CONFIG, "$ ", "model.layers"),
    ("$ ls -l /m/other\ntotal 8\n-rw-r--r-- 1 a a 0 Jan  1 00:00 model.safetensors\n", "$ ", "model.weights_empty"),
]  # fmt: skip
MINE = "python -m sglang.launch_server --model-path /m/mine --tp 2\nValueError: warp\n"


@pytest.mark.parametrize(("text", "prompt", "name"), AWAY)
def test_what_is_of_another_machine_python_or_folder_is_none_of_the_launchs(
    text: str, prompt: str, name: str
) -> None:
    assert facts_of(text, prompt + MINE).fact(name) is None
    same = text.replace("laptop", "server").replace("ssh other ", "").replace("(base)", "(warp)")
    assert facts_of(same.replace("/m/other", "/m/mine"), prompt + MINE).fact(name) is not None


def test_a_container_is_on_the_machine_that_it_was_started_on() -> None:
    text = "me@server:~$ nvidia-smi\n" + ANSWERS
    assert facts_of(text, "root@0123456789ab:/# " + MINE)["host.gpu.count"] == 2
    entered = "me@server:~$ docker exec -it x bash\n"
    assert facts_of(text + entered, "root@box:/# " + MINE)["host.gpu.count"] == 2


def test_a_drafts_config_describes_no_model() -> None:
    one = CONFIG.replace("Qwen3ForCausalLM", "LlamaForCausalLM").replace("36", "1")
    draft = MINE.replace("--tp", "--speculative-draft-model-path /m/draft --tp")
    assert "model.layers" not in facts_of("$ cat config.json\n" + one, "$ " + draft)
    assert "model.layers" not in facts_of("$ cat /m/draft/config.json\n" + CONFIG, "$ " + draft)
    assert facts_of("$ cat /m/mine/config.json\n" + CONFIG, "$ " + draft)["model.layers"] == 36


@pytest.mark.parametrize(
    ("head", "size", "gib"),
    [("1G-blocks", 252, 252.0), ("1B-blocks", 67108864, 0.0625), ("512-blocks", 67108864, 32.0), ("1024-blocks", 65536, 0.0625)],
)  # fmt: skip
def test_df_counts_in_the_blocks_that_it_says(head: str, size: int, gib: float) -> None:
    text = f"Filesystem {head} Used Available Use% Mounted on\ntmpfs {size} 0 {size} 0% /dev/shm\n"
    assert facts_of(text)["host.shm_gib"] == gib


def test_odd_numbers_are_none() -> None:
    nines = "9" * 5000
    text = (
        f"ulimit soft: {nines}\nshm 1.2.3G 0 1.2.3G 0% /dev/shm\nMem: 1.2.3 1 1 1 1 1\nMemTotal: {nines} kB\n"
        f'  "ShmSize": {nines},\n  "Memory": {nines},\nCPU op-mode(s): 64\nCPU(s): \u00b2\n'
        + table(("NVIDIA H100", int("9" * 30)))
    )
    facts = facts_of(text)
    names = ("limit.nofile", "shm_gib", "ram_gib", "cpus", "gpu.memory_gib")
    assert not any(f"host.{name}" in facts for name in names)


def test_what_a_request_or_a_source_line_quotes_is_no_fact() -> None:
    up = (
        "[2026-01-01 10:00:00] server_args=ServerArgs(model_path='M', tp_size=2)\n"
        "[2026-01-01 10:00:10] The server is fired up and ready to roll!\n"
    )
    died = 'Traceback (most recent call last):\n  File "w.py", line 1, in <module>\n    "ShmSize": 67108864,\nMemoryError: w\n'
    facts = facts_of("", up + "GPU 0: NVIDIA L4 (UUID: GPU-1)\n" + died)
    assert "host.gpu.count" not in facts and "host.shm_gib" not in facts


def test_a_table_that_the_end_of_the_log_cuts_short_says_nothing_else() -> None:
    text = ("+---+\n" + ANSWERS + "+---+\n") * 3 + table(H100)
    assert facts_of("", LAUNCH + text)["host.gpu.count"] == 2


RELEASES = [
    ("$ pip show sglang\nName: sglang\nVersion: 0.5.12\nSummary: x\n", "0.5.12"),
    ("$ pip show sglang | grep -i version\nVersion: 0.5.12.post1\n", "0.5.12.post1"),
    ("$ uv pip show torch sglang\nName: torch\nVersion: 2.9.1\n---\nName: sglang\nVersion: 0.5.12\n", "0.5.12"),
    ("$ pip show sglang | awk '/^Version/{print $2}'\n0.5.12\n", "0.5.12"),
    ('$ python -c "import sglang; print(sglang.__version__)"\n/usr/lib/x.py:3: UserWarning: a\n0.5.12\n', "0.5.12"),
    (">>> sglang.__version__\n'0.5.12'\n", "0.5.12"),
    ("- SGLang: 0.5.12 (docker image)\n", "0.5.12"),
    ("* **SGLang version:** v0.5.12\n", "0.5.12"),
    ("| sglang | 0.5.12 |\n", "0.5.12"),
    ("SGLang v0.5.12, 8x H20\n", "0.5.12"),
    ("$ pip show sglang torch | grep -i version\nVersion: 0.5.12\nVersion: 2.9.1\n", None),  # in whose order
    ("$ pip show sgl-kernel\nName: sgl-kernel\nVersion: 0.5.12\n", None),
    ("$ (other) pip show torch | grep Version\nVersion: 0.5.12\n", None),
    ("SGLang: >= 0.5.12\nSGLang 0.5.12 or newer is needed\nThis needs SGLang 0.5.12\n", None),
    ("- SGLang: 0.5.12\n- SGLang: 0.5.9\n", None),
]  # fmt: skip


@pytest.mark.parametrize(("text", "release"), RELEASES)
def test_the_release_that_somebody_asked_for_or_wrote_down(text: str, release: str | None) -> None:
    for reading in (reading_from_text(text + LAUNCH, LITERALS), reading_from_text(LAUNCH + text, LITERALS)):
        assert reading.attempt is not None
        found = case_of(reading, reading.attempt, Given())[0].release
        assert (str(found) if found else None) == release


def test_pip_of_another_environment_tells_no_release() -> None:
    text = f"(old) a@box:~$ pip show sglang\nVersion: 0.4.6\n(new) a@box:~$ {LAUNCH[2:]}"
    reading = reading_from_text(text, LITERALS)
    assert reading.attempt is not None
    assert case_of(reading, reading.attempt, Given())[0].release is None


def test_a_long_row_of_blanks_behind_the_name_takes_no_time() -> None:
    reading = reading_from_text(f"SGLang{' ' * 500_000}x\n{LAUNCH}", LITERALS)
    started = time.perf_counter()
    assert reading.attempt is not None
    assert case_of(reading, reading.attempt, Given())[0].release is None
    assert time.perf_counter() - started < 5
