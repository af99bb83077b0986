"""The page and the document of a host."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtpdoctor.diagnose.host_check import HostFinding
from mtpdoctor.diagnose.types import Fix
from mtpdoctor.host.saved import host_from_document
from mtpdoctor.host.types import (
    Disk,
    Gpu,
    GpuProcess,
    HostFacts,
    PciGpu,
    Port,
    ProbeFailure,
    PythonEnvironment,
)
from mtpdoctor.launch.types import Edit, EditOp
from mtpdoctor.report.probe_json import probe_to_json
from mtpdoctor.report.probe_text import render_host
from mtpdoctor.report.rows import age, of, size
from mtpdoctor.text import width as columns_of

SCHEMA = json.loads(
    (Path(__file__).resolve().parents[2] / "mtpdoctor/report/probe.schema.json").read_text(encoding="utf-8")
)
NOW = 1.8e9


def gpu(index: int, free: float, *processes: GpuProcess, links: int = 4, **more: Any) -> Gpu:
    return Gpu(
        index, "NVIDIA H200", 90, 140.4, free, processes, uuid=f"GPU-{index}", utilization=0, power_limit_w=700.0,
        persistence=True, ecc=True, mig=False, numa_node=0, bus=f"0000:{index:02x}:00.0", reserved_gib=0.6,
        links=tuple("X" if i == index else "NV18" for i in range(links)),
        peers=tuple(None if i == index else True for i in range(links)), compute_mode="default", ecc_errors=0,
        **more,
    )  # fmt: skip


LEFT_OVER = GpuProcess(4242, 130.0, "sglang::scheduler_TP0", "alice", NOW - 10_000, 1)
SERVER = GpuProcess(
    4243,
    0.5,
    "python -m sglang.launch_server --model-path /models/Qwen3.5-27B --tp 4 --api-key sk-verysecretkey",
    "alice",
    NOW - 4 * 86400,
    4000,
)
PYTHON = PythonEnvironment(
    "/opt/venv/bin/python",
    "3.12.3",
    "VIRTUAL_ENV",
    packages={"sglang": "0.5.13.post1", "torch": "2.11.0", "sglang-kernel": "0.4.4", "requests": "2"},
    torch_cuda="13.0",
    kernel_cuda="13.0",
)
BIG = HostFacts(
    platform="cuda",
    gpus=(gpu(0, 9.1, LEFT_OVER, SERVER), gpu(1, 139.8), gpu(2, 139.8), gpu(3, 101.0)),
    driver="580.159.04",
    cuda_driver="13.0",
    ram_gib=1007.5,
    ram_free_gib=812.3,
    swap_gib=0.0,
    shm_gib=0.0625,
    shm_free_gib=0.0625,
    container=True,
    container_kind="docker",
    cgroup_version=2,
    cgroup_memory_gib=64.0,
    cgroup_memory_used_gib=60.0,
    cgroup_cpus=8.0,
    packages=dict(PYTHON.packages),
    env={"CUDA_HOME": "/usr/local/cuda", "HF_TOKEN": "<hidden>", "https_proxy": "http://proxy:3128"},
    name="gpu-box-7",
    system="Ubuntu 24.04.1 LTS, Linux 6.8.0-45-generic",
    machine="x86_64",
    cpu="AMD EPYC 9654 96-Core Processor",
    cpus=192,
    numa_nodes=2,
    limits={"nofile": 1024.0, "memlock": None, "stack": 8388608.0},
    nvcc="12.8",
    nvcc_path="/usr/local/cuda/bin/nvcc",
    disks=(
        Disk("/mnt/models/Qwen3.5-27B", "model", 1024.0, 20480.0, "nfs4"),
        Disk("/root/.cache/huggingface/hub", "Hugging Face cache", 2.0, 200.0, "overlay"),
        Disk("/tmp", "temporary files", 2.0, 200.0, "overlay"),
    ),
    ports=(
        Port(22, "0.0.0.0", None, None),
        Port(
            30000, "0.0.0.0", 4243, "python -m sglang.launch_server --model-path /models/Qwen3.5-27B --tp 4"
        ),
        Port(30000, "::", 4243, None),
    ),
    pythons=(PYTHON, PythonEnvironment("/usr/bin/python3", "3.10.12", "PATH")),
    failures=(ProbeFailure("nvcc", "/usr/local/cuda/bin/nvcc --version fails: timed out"),),
    pci_gpus=(PciGpu("0000:00:00.0", "NVIDIA", "0x2335", "nvidia"),),
)
FINDING = HostFinding(
    rule="MTP0900",
    title="Processes that were left over hold the memory of GPU 0",
    cause="Process 4242 holds 130.0 GiB and its parent is gone: a launch cannot have that memory.",
    severity="fatal",
    remedies=(
        Fix(
            "End them",
            "manual",
            "Nobody waits for them any more.",
            "What they do is lost.",
            (),
            ("kill 4242",),
            None,
            "none",
        ),
        Fix(
            "Use others",
            "safe",
            "",
            None,
            (Edit(EditOp.ENV, "CUDA_VISIBLE_DEVICES", "1,2,3"),),
            (),
            None,
            "none",
        ),
    ),
)
SMALL = HostFacts("none", (), ram_gib=31.0, container=False, pythons=(), ports=(), pci_gpus=())
HOSTS = {
    "big": BIG,
    "small": SMALL,
    "unknown": HostFacts(None, None),
    "amd": HostFacts(
        "rocm",
        tuple(Gpu(i, "AMD Instinct MI300X", None, 192.0, 150.0, arch="gfx942", links=("X", "XGMI")) for i in (0, 1)),
        rocm="6.4.1",
    ),
    "hidden": HostFacts("none", (), gpus_hidden=(gpu(0, 139.0, links=1),), gpus_hidden_by="CUDA_VISIBLE_DEVICES=9"),
    "bus": HostFacts("none", (), pci_gpus=(PciGpu("0000:00:00.0", "NVIDIA", "0x2335", None),)),
}  # fmt: skip


def test_golden_pages(golden: Callable[[str, str], None]) -> None:
    golden("probe_big.80.txt", render_host(BIG, (FINDING,), width=80, now=NOW))
    golden("probe_big.80.verbose.txt", render_host(BIG, (FINDING,), width=80, verbose=True, now=NOW))
    golden("probe_small.80.txt", render_host(SMALL, width=80, now=NOW))


@pytest.mark.parametrize("columns", [40, 60, 80, 132])
@pytest.mark.parametrize("verbose", [False, True])
@pytest.mark.parametrize("name", sorted(HOSTS))
def test_rows_fit(name: str, verbose: bool, columns: int) -> None:
    page = render_host(HOSTS[name], (FINDING,), width=columns, verbose=verbose, now=NOW)
    assert [row for row in page.splitlines() if columns_of(row) > columns] == []


def test_who_holds_the_memory_and_how_to_end_it() -> None:
    page = render_host(BIG, (FINDING,), width=100, now=NOW)
    assert (
        "MTP0900 (stops a launch)" in page and "$ kill 4242" in page and "CUDA_VISIBLE_DEVICES=1,2,3" in page
    )
    assert "130.0 GiB  pid 4242 (alice, 3 h, its parent is gone)  sglang::scheduler_TP0" in page
    assert "9.1 of 140.4 GiB free" in page
    assert "38.8 GiB held by processes that are not visible from here" in page
    assert "18 NVLinks between all" in page
    assert page.index("What is wrong") < page.index("GPUs ")


def test_secrets_do_not_show() -> None:
    page = render_host(BIG, width=200, verbose=True, now=NOW)
    assert "sk-verysecretkey" not in page and "<hidden>" in page
    assert "sk-verysecretkey" not in json.dumps(probe_to_json(BIG))


def test_links_that_differ_are_a_table() -> None:
    rows = (("X", "NV4", "SYS"), ("NV4", "X", "SYS"), ("SYS", "SYS", "X"))
    gpus = tuple(
        Gpu(i, "A100", 80, 80.0, 79.0, links=r, peers=(None, True, False)) for i, r in enumerate(rows)
    )
    page = render_host(HostFacts("cuda", gpus), now=NOW)
    assert [line.split() for line in page.splitlines() if "NV4" in line] == [
        ["0", "X", "NV4", "SYS"],
        ["1", "NV4", "X", "SYS"],
    ]
    assert "no direct access (P2P): 0-2, 1-2" in page


def test_a_machine_without_gpus_is_named_plainly() -> None:
    assert "No GPU is here" in render_host(SMALL)
    first = render_host(SMALL).splitlines()[0]
    assert "SGLang is not installed and there is no GPU" in first
    assert "nothing is wrong" not in first
    assert "CUDA_VISIBLE_DEVICES=9 hides 1 GPU" in render_host(HOSTS["hidden"])
    assert "None can be used here, though 1 on the PCI bus (bound to no driver)" in render_host(
        HOSTS["bus"], width=100
    )


def test_plain_pages_are_ascii_and_colour_changes_no_word() -> None:
    plain = render_host(BIG, (FINDING,), plain=True, now=NOW)
    assert plain.isascii()
    import re

    coloured = render_host(BIG, (FINDING,), color=True, now=NOW)
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == render_host(BIG, (FINDING,), now=NOW)


@given(text=st.text(max_size=60), columns=st.integers(40, 120), verbose=st.booleans())
def test_no_text_of_the_machine_breaks_out_of_the_page(text: str, columns: int, verbose: bool) -> None:
    host = HostFacts(
        "cuda",
        (Gpu(0, text, 90, 80.0, 10.0, (GpuProcess(1, 60.0, text, text, 1.0, 1),), links=("X",)),),
        name=text,
        cpu=text,
        env={text: text},
        disks=(Disk(text, text, 1.0, 2.0, "ext4"),),
        ports=(Port(30000, text, 1, text),),
        pythons=(PythonEnvironment(text, text, text, {"sglang": text}),),
        failures=(ProbeFailure(text, text),),
    )
    page = render_host(host, width=columns, verbose=verbose, now=NOW)
    assert "\x1b" not in page and "\r" not in page
    assert [row for row in page.splitlines() if columns_of(row) > columns] == []


@pytest.mark.parametrize("name", sorted(HOSTS))
def test_the_document_follows_its_schema_and_is_a_host(name: str) -> None:
    document = json.loads(json.dumps(probe_to_json(HOSTS[name], (FINDING,), {"path": "/models/x"})))
    jsonschema.validate(document, SCHEMA)
    assert document["findings"][0]["fixes"][0]["run"] == ["kill 4242"]
    back = host_from_document(document, "host.json")
    assert back.gpus is None or [g.index for g in back.gpus] == [g.index for g in HOSTS[name].gpus or ()]
    assert probe_to_json(back, (FINDING,), {"path": "/models/x"}) == document


@pytest.mark.parametrize(
    ("gib", "text"),
    [(9.84, "9.8 GiB"), (0.0625, "64 MiB"), (0.0, "0 GiB"), (20480.0, "20.0 TiB"), (0.0001, "under 1 MiB")],
)
def test_sizes(gib: float, text: str) -> None:
    assert size(gib) == text


def test_parts_and_ages() -> None:
    assert of(9.8, 139.8) == "9.8 of 139.8 GiB"
    assert of(0.5, 139.8) == "512 MiB of 139.8 GiB"
    assert of(0.0, 139.8) == "0 of 139.8 GiB"
    assert [age(s) for s in (5, 600, 10_000, 400_000)] == ["5 s", "10 min", "3 h", "5 days"]


def test_every_field_of_the_schema_is_described() -> None:
    text = (Path(__file__).resolve().parents[2] / "docs/json.md").read_text(encoding="utf-8")
    gpu_fields = SCHEMA["$defs"]["gpu"]["properties"]
    parts = [SCHEMA["properties"], gpu_fields, gpu_fields["processes"]["items"]["properties"]]
    parts += [
        SCHEMA["properties"][n]["items"]["properties"]
        for n in ("disks", "ports", "failures", "findings", "pci_gpus")
    ]
    assert {name for part in parts for name in part if f"`{name}`" not in text} == set()


def test_the_schema_names_every_field_of_a_host() -> None:
    fields = {f.name for f in dataclasses.fields(HostFacts)} - {"local"}
    assert fields <= set(SCHEMA["properties"])
    assert {f.name for f in dataclasses.fields(Gpu)} == set(SCHEMA["$defs"]["gpu"]["properties"])
