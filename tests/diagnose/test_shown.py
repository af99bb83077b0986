"""What a log shows of the machine confirms a cause, and speaks against fixes that would change nothing."""

from __future__ import annotations

from typing import Any

from own_knowledge import own_knowledge

from mtpdoctor.diagnose.engine import diagnose
from mtpdoctor.log.reading import reading_from_text

SHM = "Error while creating shared memory segment /dev/shm/nccl-warp (size 9637888)\n"
NCCL = (
    "[2026-02-02 10:00:00 TP1] Scheduler hit an exception: Traceback (most recent call last):\n"
    '  File "/opt/warp/sglang/srt/managers/scheduler.py", line 2900, in run_scheduler_process\n    s = Scheduler(\n'
    "torch.distributed.DistBackendError: NCCL error in: X.cpp:2251, unhandled system error (run with NCCL_DEBUG=INFO for details)\n"
    "ncclSystemError: System call (e.g. socket, malloc) or external library call failed or device error.\nLast error:\n"
)
LAUNCH = "$ python -m sglang.launch_server --model-path M --tp 2\n"
SERVER = "lmsysorg/sglang:v0.5.9 python3 -m sglang.launch_server --model-path M --tp 2\n"


def first(text: str) -> Any:
    knowledge = own_knowledge()
    return diagnose(reading_from_text(text, knowledge.literals), knowledge).diagnoses[0]


def edits(found: Any) -> list[str]:
    return [f"{e.op.value} {e.value}" for fix in found.fixes for e in fix.edits]


def test_shared_memory_is_made_larger_where_it_is_small() -> None:
    assert edits(first(f"$ docker run --gpus all {SERVER}{NCCL}{SHM}"))[0] == "shm-size 32g"


def test_shared_memory_is_never_made_smaller() -> None:
    for given in ("--shm-size 64g", "--shm-size=32gb", "--ipc=host"):
        found = first(f"$ docker run --gpus all {given} {SERVER}{NCCL}{SHM}")
        assert found.rule == "MTP0520"
        assert "shm-size 32g" not in edits(found)
        assert any("rm -f /dev/shm" in line for fix in found.fixes for line in fix.run)


def test_a_large_dev_shm_that_the_log_shows_is_full_not_small() -> None:
    found = first(
        f"shm  64G  64G  0  100% /dev/shm\n$ python3 -m sglang.launch_server --model-path M --tp 2\n{NCCL}{SHM}"
    )
    assert "shm-size 32g" not in edits(found)
    assert "Remove what ended servers left" in found.fixes[0].title
    assert any("/dev/shm" in line.text and "64G" in line.text for line in found.evidence)


LIST = "Package   Version\n--------- -------\n{name}   1.2.3\nsglang    0.5.9\n"
MISSING = (
    "$ python -m sglang.launch_server --model-path M\nTraceback (most recent call last):\n"
    '  File "/opt/warp/lib/python3.12/site-packages/sglang/launch_server.py", line 29, in <module>\n    import {name}\n'
    "ModuleNotFoundError: No module named '{name}'\n"
)


def test_a_missing_module_that_is_installed_is_another_pythons() -> None:
    found = first(LIST.format(name="partial_json_parser") + MISSING.format(name="partial_json_parser"))
    assert "/opt/warp/bin/python -m pip install" in " ".join(found.fixes[0].run)
    assert "line 3" in found.cause


def test_what_was_taken_away_again_is_not_installed() -> None:
    gone = "$ pip uninstall -y orjson\nUninstalling orjson-1.2.3:\n  Successfully uninstalled orjson-1.2.3\n"
    assert (
        "another Python" not in first(LIST.format(name="orjson") + gone + MISSING.format(name="orjson")).cause
    )
    anew = gone + "Successfully installed orjson-1.2.4\n"
    assert "orjson 1.2.4" in first(anew + MISSING.format(name="orjson")).cause


def test_an_odd_folder_is_quoted_in_the_command() -> None:
    text = LIST.format(name="orjson") + MISSING.format(name="orjson").replace("/opt/warp", "/opt/$(w) x")
    assert all("'/opt/$(w) x/bin/python' -" in line for line in first(text).fixes[0].run)


def test_what_was_installed_behind_the_failure_is_no_sign_of_that() -> None:
    text = MISSING.format(name="orjson") + "$ pip install orjson\nSuccessfully installed orjson-1.2.3\n"
    assert "another Python" not in first(text).cause
    assert any("pip install orjson" in line for line in first(text).fixes[0].run)


def test_a_missing_module_that_no_list_shows_is_installed() -> None:
    found = first(LIST.format(name="tqdm") + MISSING.format(name="orjson"))
    assert any("pip install orjson" in line for line in found.fixes[0].run)


NO_GPU = "RuntimeError: No accelerator (CUDA, XPU, HPU, NPU) is available.\n"


def test_a_torch_without_a_gpu_is_replaced_by_the_one_for_the_releases_cuda() -> None:
    asked = '$ python -c "import torch; print(torch.__version__, torch.version.cuda)"\n2.9.1+cpu None\n'
    for release, index in (("0.5.7", "whl/cu128"), ("0.5.16", "whl/cu130")):
        text = f"SGLang version {release}\n{LAUNCH}{NO_GPU}{asked}"
        assert any(index in line for line in first(text).fixes[0].run)


def test_a_driver_for_cuda_12_sees_no_gpu_with_torch_for_13() -> None:
    smi = "| NVIDIA-SMI 570.195.03     Driver Version: 570.195.03     CUDA Version: 12.8     |\n"
    found = first(f"SGLang version 0.5.16\n{smi}{LAUNCH}RuntimeError: No CUDA GPUs are available\n")
    assert "570.195.03" in found.fixes[0].title
    found = first(f"SGLang version 0.5.9\n{smi}{LAUNCH}RuntimeError: No CUDA GPUs are available\n")
    assert not any("570.195.03" in fix.title for fix in found.fixes)


def test_as_many_gpus_as_ranks_are_shown() -> None:
    ordinal = (
        "[2026-02-02 10:00:00 TP3] Scheduler hit an exception: Traceback (most recent call last):\n"
        '  File "/opt/warp/sglang/srt/model_executor/model_runner.py", line 700, in init_torch_distributed\n    set_device(3)\n'
        "torch.AcceleratorError: CUDA error: invalid device ordinal\n"
    )
    shown = "".join(f"GPU {n}: NVIDIA H20 (UUID: GPU-{n})\n" for n in range(4))
    enough = first(f"{shown}{LAUNCH.replace('--tp 2', '--tp 4')}{ordinal}")
    assert "sees fewer than the 4 GPUs" in enough.fixes[0].title
    assert edits(first(f"{shown}{LAUNCH.replace('--tp 2', '--tp 8')}{ordinal}"))[0] == "set 4"
