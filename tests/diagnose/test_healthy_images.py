"""Hosts as they should be: each release's own pins, as its image has them, on the GPUs of the day. No finding."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from mtpdoctor.diagnose.host_check import host_findings
from mtpdoctor.host.types import Disk, Gpu, HostFacts, PciGpu, PythonEnvironment
from mtpdoctor.kb.load import load_knowledge
from mtpdoctor.release import parse_release
from mtpdoctor.sglang.releases import release_facts

RELEASES = (
    "0.4.6.post1", "0.4.9.post2", "0.5.2", "0.5.5", "0.5.9", "0.5.10", "0.5.13.post1", "0.5.16", "0.5.20", "0.5.23",
)  # fmt: skip
# name, SM, GiB (None: the system's memory), how many
CARDS = (
    ("NVIDIA H100 80GB HBM3", 90, 79.6, 8),
    ("NVIDIA H200", 90, 140.4, 8),
    ("NVIDIA B200", 100, 179.1, 8),
    ("NVIDIA B300 SXM6 AC", 103, 268.6, 8),
    ("NVIDIA GeForce RTX 5090", 120, 31.8, 2),
    ("NVIDIA RTX PRO 6000 Blackwell Server Edition", 120, 95.6, 4),
    ("NVIDIA GB10", 121, None, 1),
    ("NVIDIA A100-SXM4-80GB", 80, 80.0, 8),
    ("NVIDIA L40S", 89, 45.0, 4),
    ("AMD Instinct MI300X", None, 191.5, 8),
)
CUDA_OF_TORCH = {"2.5.1": "12.4", "2.6.0": "12.4", "2.7.1": "12.6", "2.8.0": "12.9", "2.9.1": "12.9"}


@cache
def knowledge() -> Any:
    return load_knowledge()


def packages(release: str) -> dict[str, str]:
    """The pinned versions; of a range its lower end."""
    out = {"sglang": release}
    for name, spec in release_facts(parse_release(release)).pins.items():
        words = [word.strip() for word in (spec or "").split(",")]
        pinned = [w[2:].strip() for sign in ("==", ">=", "~=") for w in words if w.startswith(sign)]
        if pinned:
            out[name] = pinned[0]
    return out


def healthy(release: str, card: tuple[str, int | None, float | None, int]) -> HostFacts:
    name, sm, gib, count = card
    amd = sm is None
    installed = packages(release)
    cuda = CUDA_OF_TORCH.get(installed["torch"], "13.0")
    if amd:
        keep = {k: v for k, v in installed.items() if not k.startswith(("flashinfer", "nvidia", "sgl"))}
        installed = {
            **keep,
            "sglang": release,
            "torch": installed["torch"] + "+rocm7.0",
            "sgl-kernel": "0.3.21",
        }
    elif cuda == "13.0":
        installed |= {k: f"{v}+cu130" for k, v in installed.items() if k in ("sgl-kernel", "sglang-kernel")}
    sms = () if amd else (80, 86, 89, 90, *((100, 103, 120, 121) if float(cuda) >= 12.8 else ()))
    python = PythonEnvironment(
        "/usr/bin/python3", "3.12.3", "PATH", packages=installed,
        torch_cuda=None if amd else cuda, kernel_cuda=None if amd else cuda[:2], kernel_sms=sms, torch_sms=sms,
    )  # fmt: skip
    gpus = tuple(
        Gpu(
            i, name, sm, gib, gib - 0.6 if gib else None, persistence=True, ecc=True, ecc_errors=0, mig=False,
            links=tuple("X" if i == j else "NV18" for j in range(count)),
            peers=tuple(None if i == j else True for j in range(count)),
            arch="gfx942" if amd else None, reserved_gib=0.5, compute_mode="default",
        )
        for i in range(count)
    )  # fmt: skip
    maker, module = ("AMD", "amdgpu") if amd else ("NVIDIA", "nvidia")
    return HostFacts(
        "rocm" if amd else "cuda", gpus, driver=None if amd else "580.82.07", cuda_driver=None if amd else "13.0",
        ram_gib=1000.0, ram_free_gib=900.0, swap_gib=0.0, shm_gib=64.0, shm_free_gib=63.9, container=True,
        container_kind="docker", packages=installed, pythons=(python,), env={"CUDA_HOME": "/usr/local/cuda"},
        cpus=128, numa_nodes=2, wsl=False, limits={"nofile": 1048576.0, "memlock": None}, nvcc=None if amd else cuda,
        disks=(Disk("/root/.cache", "Hugging Face cache", 800.0, 1800.0),), ports=(),
        machine="aarch64" if sm == 121 else "x86_64",
        pci_gpus=tuple(PciGpu(f"0000:{i:02x}:00.0", maker, "0x2330", module) for i in range(count)),
    )  # fmt: skip


@pytest.mark.parametrize("release", RELEASES)
def test_the_image_of_a_release_on_gpus_it_has_code_for_is_in_order(release: str) -> None:
    cuda = CUDA_OF_TORCH.get(packages(release)["torch"], "13.0")
    for card in CARDS:
        if (card[1] or 0) >= 100 and float(cuda) < 12.8:
            continue  # no code for Blackwell in that image
        found = host_findings(healthy(release, card), knowledge())
        assert [(f.rule, f.title) for f in found] == [], card[0]
