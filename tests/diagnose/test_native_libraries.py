"""A shared library that is not found: what brings it, for the CUDA of this torch."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest
from own_knowledge import own_knowledge

from benchmarks.native_libraries import brought, differences
from mtpdoctor.diagnose.engine import diagnose
from mtpdoctor.log.reading import reading_from_text
from mtpdoctor.paths import releases_folder

TORCH_13 = "torch   2.11.0+cu130\n"
TORCH_12 = "torch   2.9.1+cu128\n"


def fixes(library: str, package: str, before: str = "") -> list[tuple[str, str]]:
    text = (
        f"{before}$ python -m sglang.launch_server --model-path M\nTraceback (most recent call last):\n"
        f'  File "/o/lib/python3.12/site-packages/sglang/srt/x.py", line 29, in <module>\n    import {package}\n'
        f'  File "/o/lib/python3.12/site-packages/{package}/__init__.py", line 2, in <module>\n    from . import _C\n'
        f"ImportError: {library}: cannot open shared object file: No such file or directory\n"
    )
    knowledge = own_knowledge()
    found = diagnose(reading_from_text(text, knowledge.literals), knowledge).diagnoses[0]
    return [(fix.title, " ".join(fix.run)) for fix in found.fixes]


@pytest.mark.parametrize(
    ("library", "package", "before", "wanted"),
    [
        ("libGL.so.1", "cv2", "", "apt-get install -y libgl1 "),
        ("libibverbs.so.1", "warp", "", "ibverbs-providers"),
        ("libglog.so.1", "warp", "", "libgoogle-glog-dev"),
        ("libwebp.so.7", "warp", "", "libwebp-dev"),
        ("libnvshmem_host.so.3", "deep_ep", TORCH_13, "nvidia-nvshmem-cu13"),
        ("libnvshmem_host.so.3", "deep_ep", TORCH_12, "nvidia-nvshmem-cu12"),
        ("libcupti.so.12", "torch", TORCH_12, "nvidia-cuda-cupti-cu12"),
        ("libcufft.so.12", "warp", TORCH_13, "nvidia-cufft"),
        ("libiomp5.so", "warp", "", "intel-openmp"),
    ],
)
def test_what_brings_it_comes_first(library: str, package: str, before: str, wanted: str) -> None:
    title, run = fixes(library, package, before)[0]
    assert library in title
    assert wanted in run


def test_a_package_for_another_cuda_is_replaced_or_gets_its_runtime_beside() -> None:
    first, second = fixes("libcudart.so.12", "flash_attn", TORCH_13)[:2]
    assert first[0].startswith("Install the build of flash-attn for CUDA 13")
    assert "pip install --no-deps nvidia-cuda-runtime-cu12" in second[1]


def test_the_kernel_package_has_its_own_builds() -> None:
    assert "sgl-kernel" in fixes("libcudart.so.12", "sgl_kernel", TORCH_13)[0][1]


def test_a_line_that_names_no_package_speaks_of_the_kernels_builds_first() -> None:
    text = "SGLang version 0.5.9\n[sgl_kernel] CRITICAL: Could not load any common_ops library!\n- ImportError: libcudart.so.12: cannot open shared object file: No such file or directory\n"
    knowledge = own_knowledge()
    found = diagnose(reading_from_text(text, knowledge.literals), knowledge).diagnoses[0]
    assert "kernel package" in found.fixes[0].title


def test_the_version_that_torch_asks_for() -> None:
    assert any("nvidia-cudnn-cu12==9.10.2.21" in run for _, run in fixes("libcudnn.so.9", "warp", TORCH_12))


def test_wheels_are_held_against_the_table(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "nvidia_cuda_runtime_cu12-12.9.79-py3-none-any.whl", "w") as wheel:
        wheel.writestr("nvidia/cuda_runtime/lib/libcudart.so.12", b"")
    with zipfile.ZipFile(tmp_path / "nvidia_cuda_runtime-13.5.37-py3-none-any.whl", "w") as wheel:
        wheel.writestr("nvidia/cu13/lib/libcudart.so.14", b"")
        wheel.writestr("nvidia/cu13/lib/libwarp.so.1", b"")
    table = json.loads((releases_folder() / "native_libraries.json").read_text(encoding="utf-8"))["libraries"]
    said = differences(table, brought(tmp_path))
    assert len(said) == 2
    assert "libcudart.so.14" in said[0]
    assert "libwarp" in said[1]


CHAIN = (
    "$ python -m sglang.launch_server --model-path M\nTraceback (most recent call last):\n"
    '  File "/o/lib/python3.12/site-packages/sglang/srt/x.py", line 9, in load\n    import gguf\n{inner}\n\n'
    "The above exception was the direct cause of the following exception:\n\nTraceback (most recent call last):\n"
    '  File "/o/lib/python3.12/site-packages/sglang/srt/x.py", line 12, in load\n    raise ImportError(\n'
    "ImportError: Please install gguf via `pip install gguf` to use it.\n"
)


def told_to_install(inner: str) -> bool:
    knowledge = own_knowledge()
    found = diagnose(reading_from_text(CHAIN.format(inner=inner), knowledge.literals), knowledge).diagnoses[0]
    assert found.root.body.startswith(inner[:30])
    return any(line.strip() == "pip install gguf" for fix in found.fixes for line in fix.run)


def test_a_package_that_is_there_and_broken_is_not_to_be_installed() -> None:
    assert told_to_install("ModuleNotFoundError: No module named 'gguf'")
    for inner in (
        "ImportError: /o/lib/gguf/eng.so: undefined symbol: _ZN3c104cuda9SetDeviceEab",
        "ImportError: /lib/x86_64-linux-gnu/libstdc++.so.6: version `GLIBCXX_3.4.32' not found (required by /o/lib/gguf/eng.so)",
        "ImportError: libwarp.so.3: cannot open shared object file: No such file or directory",
    ):
        assert not told_to_install(inner)
