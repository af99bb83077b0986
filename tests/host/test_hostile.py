"""Hosts that misbehave: drivers that fail in odd ways, secrets under odd names, environments that are broken."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from machines import Host
from recorded import RecordedNvml
from trees import installed, venv
from waiting import LONG

from mtpdoctor.errors import UserError
from mtpdoctor.host.facts import host_facts
from mtpdoctor.host.here import host_here
from mtpdoctor.host.nvml import gpus_here
from mtpdoctor.host.probe import probe_machine
from mtpdoctor.host.python import given_python, python_environments
from mtpdoctor.host.saved import host_from_document, host_to_json, mask_variable
from mtpdoctor.host.types import Gpu, GpuProcess, HostFacts, PythonEnvironment
from mtpdoctor.report.probe_text import render_host

NOT_SUPPORTED, LOST = {"error": 3, "said": "Not Supported"}, {"error": 15, "said": "GPU is lost"}
UNIFIED = {
    "nvmlDeviceGetCount[]": {"is": 1},
    'nvmlDeviceGetName["h0"]': {"is": "NVIDIA GB10"},
    'nvmlDeviceGetCudaComputeCapability["h0"]': {"is": [12, 1]},
    'nvmlDeviceGetMemoryInfo["h0"]': NOT_SUPPORTED,
    'nvmlDeviceGetMemoryInfo["h0", 33554472]': NOT_SUPPORTED,
}


class Raising:
    """Every call fails with an error of the library, after the first ones that are named."""

    class NVMLError(Exception):
        value = 999

    def __init__(self, *works: str) -> None:
        self.works = works

    def __getattr__(self, name: str) -> Any:
        def call(*_: Any) -> int:
            if name in self.works:
                return 16
            raise self.NVMLError("Unknown Error")

        return call


@pytest.mark.parametrize("works", [(), ("nvmlInit",), ("nvmlInit", "nvmlDeviceGetCount")], ids=str)
def test_a_driver_whose_calls_all_fail_is_told_and_ends_nothing(
    works: tuple[str, ...], tmp_path: Path
) -> None:
    nvml = Raising(*works)
    assert gpus_here(nvml, {}) is None
    found = probe_machine(Host({"/proc/driver/nvidia/version": "NVRM"}).at(tmp_path, nvml), limit=LONG)
    assert found.failures and "Unknown Error" in found.failures[0].said
    assert "could not be looked at" in render_host(found).splitlines()[0] + render_host(found).splitlines()[1]


def test_a_gpu_without_memory_of_its_own_is_a_gpu(tmp_path: Path) -> None:
    nvml = RecordedNvml("nvml_2xh200", UNIFIED)
    light = gpus_here(nvml, {})
    assert light is not None and light.gpus is not None
    assert [(g.name, g.sm, g.memory_gib) for g in light.gpus] == [("NVIDIA GB10", 121, None)]
    meminfo = "MemTotal: 125000000 kB\nMemAvailable: 110000000 kB\n"
    found = probe_machine(Host({"/proc/meminfo": meminfo}).at(tmp_path, nvml), limit=LONG)
    assert found.gpus is not None and found.gpus[0].memory_gib is None
    assert not found.failures
    assert "shares the system's memory" in render_host(found)


def test_a_lost_gpu_does_not_take_the_others_along() -> None:
    changes = {"nvmlDeviceGetHandleByIndex[0]": LOST, 'nvmlDeviceGetMemoryInfo["h0"]': LOST}
    found = gpus_here(RecordedNvml("nvml_2xh200", changes), {})
    assert found is not None and [g.index for g in found.gpus or ()] == [1]
    assert host_here(RecordedNvml("nvml_2xh200", changes), {}) is not None


SECRETS = {
    "SGLANG_AUTH": "xyzzy1",
    "HF_SESSION_KEY": "xyzzy2",
    "SGLANG_COOKIE": "a=b; c=xyzzy3",
    "SGLANG_CREDENTIALS": '{"key": "xyzzy4"}',
    "SGLANG_HOST_PASS": "xyzzy5",
    "OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer xyzzy6,x-api-key=xyzzy7",
    "OTEL_EXPORTER_OTLP_TRACES_HEADERS": "api-key=xyzzy8",
    "http_proxy": "http://bob:xyzzy9@proxy:3128",
    "HF_ENDPOINT": "https://u:xyzzy10@mirror.example/?token=xyzzy11",
    "MC_REDIS_PASSWORD": "xyzzy12",
}


def test_no_secret_of_the_environment_shows_in_text_or_document(tmp_path: Path) -> None:
    found = probe_machine(Host({}, environ=SECRETS).at(tmp_path), limit=LONG)
    assert set(found.env) == set(SECRETS)
    assert "xyzzy" not in render_host(found, verbose=True)
    assert "xyzzy" not in str(host_to_json(found))
    saved = HostFacts("none", (), env=SECRETS)  # made by whatever, masked when it is written
    assert "xyzzy" not in str(host_to_json(saved))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("TOKENIZERS_PARALLELISM", "false"),
        ("SGLANG_REQUIRE_AUTH", "1"),
        ("NCCL_DEBUG", "INFO"),
        ("SGLANG_MAX_TOKENS", "4096"),
        ("CUDA_VISIBLE_DEVICES", "0,1"),
    ],
)
def test_what_is_no_secret_stays(name: str, value: str) -> None:
    assert mask_variable(name, value) == value


def test_a_python_whose_base_is_gone_is_named_as_that(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(tmp_path / "removed" / "python3.11")
    (tmp_path / "pyvenv.cfg").write_text("home = /nowhere\n")
    for named in (tmp_path, tmp_path / "bin" / "python"):
        with pytest.raises(UserError, match=r"removed/python3\.11, which is not there"):
            given_python(str(named))


def test_a_file_that_is_no_program_is_no_python(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("")
    with pytest.raises(UserError, match="is no program"):
        given_python(str(tmp_path / "notes.txt"))
    with pytest.raises(UserError, match="there is no"):
        given_python("")


@pytest.mark.parametrize(
    ("name", "text", "version"),
    [
        ("version.py", '__version__ = "0.5.9"\n', "0.5.9"),
        ("_version.py", "__version__ = version = '0.5.14.dev3+gabc1234'\n", "0.5.14.dev3+gabc1234"),
        ("other.py", "", "unknown"),
    ],
)
def test_a_source_folder_on_the_path_is_an_sglang(tmp_path: Path, name: str, text: str, version: str) -> None:
    site = venv(tmp_path / "env")
    package = tmp_path / "checkout" / "python" / "sglang"
    (package / "srt").mkdir(parents=True)
    (package / "launch_server.py").write_text("")
    (package / "__init__.py").write_text("")
    (package / name).write_text(text)
    python = str(tmp_path / "env" / "bin" / "python")

    def found(**environ: str) -> PythonEnvironment:
        return python_environments(python, environ, cwd=tmp_path, home=tmp_path, running=None, root=tmp_path)[
            0
        ]

    assert "sglang" not in found().packages
    assert found(PYTHONPATH=str(package.parent)).packages["sglang"] == version
    (site / "mine.pth").write_text(f"{package.parent}\n")
    assert found().packages["sglang"] == version
    assert found().shadows == ()
    installed(site, "sglang", "0.5.8")
    assert found().packages["sglang"] == "0.5.8"


def test_a_pipe_among_the_metadata_holds_nothing_up(tmp_path: Path) -> None:
    site = venv(tmp_path / "env")
    installed(site, "torch", "2.9.1")
    os.mkfifo(installed(site, "sglang", "0.5.9") / "direct_url.json")
    got = python_environments(
        str(tmp_path / "env"), {}, cwd=tmp_path, home=tmp_path, running=None, root=tmp_path
    )
    assert got[0].packages["sglang"] == "0.5.9"


def test_secrets_of_a_host_written_by_hand_do_not_show() -> None:
    document = {"schema": 1, "platform": "none", "gpus": [], "env": {"SGLANG_AUTH": "xyzzy"}}
    assert "xyzzy" not in render_host(host_from_document(document, "host.json"), verbose=True)


def test_thousands_of_processes_leave_a_command_that_can_be_pasted() -> None:
    gpus = tuple(
        Gpu(
            i,
            "H100",
            90,
            79.6,
            10.0,
            tuple(GpuProcess(1000 * i + j, 0.1 + j / 1000, "python x") for j in range(300)),
        )
        for i in range(16)
    )
    pids = host_facts(HostFacts("cuda", gpus)).look("host.gpu.other_pids")
    assert isinstance(pids, list) and 8 <= len(pids) <= 100
    assert 299 in pids  # one of those that hold most
