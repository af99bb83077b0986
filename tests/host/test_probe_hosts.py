"""What is told of a host, from the files that such hosts have."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from machines import ALL, BARE_METAL, DOCKER, KUBERNETES, NO_GPU, ROCM, WSL, Host, NoNvml
from waiting import LONG, with_more_time

from mtpdoctor.host.machine import GIB
from mtpdoctor.host.probe import Wanted, probe_machine
from mtpdoctor.host.types import HostFacts


def probed(host: Host, root: Path, nvml: Any = None, **wanted: str) -> HostFacts:
    return probe_machine(host.at(root, nvml), Wanted(**wanted), limit=LONG)


def test_a_bare_machine(tmp_path: Path) -> None:
    host = probed(BARE_METAL, tmp_path)
    assert (host.name, host.system) == ("gpu-box-7", "Ubuntu 22.04.5 LTS, Linux 6.8.0-45-generic")
    assert (host.container, host.container_kind, host.wsl) == (False, None, False)
    assert (host.ram_gib, host.ram_free_gib, host.swap_gib) == (1007.5, 912.0, 8.0)
    assert host.shm_gib == pytest.approx(503.7) and host.shm_free_gib == pytest.approx(503.0)
    assert (host.cpu, host.cpus, host.numa_nodes) == ("Intel(R) Xeon(R) Platinum 8480C", 224, 2)
    assert host.cpu_features == ("avx2", "avx512f", "avx512_bf16", "amx_tile", "amx_bf16")
    assert (host.cgroup_version, host.cgroup_memory_gib, host.cgroup_cpus) == (2, None, None)
    assert host.limits["nofile"] == 1024 and host.limits["as"] is None
    assert host.limits["memlock"] == 64 * 2**20
    assert (host.nvcc, host.nvcc_path) == ("12.8", "/usr/local/cuda/bin/nvcc")
    assert host.failures == ()


def test_variables_that_matter_are_kept_and_secrets_are_not(tmp_path: Path) -> None:
    env = probed(BARE_METAL, tmp_path).env
    assert env["NCCL_DEBUG"] == "INFO"
    assert env["HF_TOKEN"] == "<hidden>"
    assert "hunter2secret" not in env["https_proxy"] and "proxy:3128" in env["https_proxy"]
    assert "SECRET_OF_NO_CONCERN" not in env and "PATH" not in env


def test_folders_are_found_as_the_libraries_find_them(tmp_path: Path) -> None:
    host = probed(BARE_METAL, tmp_path, model="/mnt/my models/Qwen")
    assert host.disks is not None
    disks = {d.purpose: d for d in host.disks}
    assert disks["Hugging Face cache"].path == "/mnt/my models/hf/hub"
    assert disks["Hugging Face cache"].kind == disks["model"].kind == "nfs4"
    assert disks["model"].free_gib == 1024.0
    assert disks["Triton cache"].path == "/home/alice/.triton/cache"
    assert disks["temporary files"].kind == "ext4" and disks["temporary files"].total_gib == 1800.0


def test_ports_name_who_listens(tmp_path: Path) -> None:
    ports = probed(BARE_METAL, tmp_path).ports
    assert ports is not None
    assert [(p.number, p.address, p.pid) for p in ports] == [
        (22, "0.0.0.0", 12),
        (30000, "0.0.0.0", 900),
        (30000, "::", 900),
    ]
    assert ports[0].command == "sshd"
    assert "sglang.launch_server" in (ports[1].command or "")
    assert "sk-verysecret" not in (ports[1].command or "")


def test_docker_with_limits(tmp_path: Path) -> None:
    host = probed(DOCKER, tmp_path)
    assert (host.container, host.container_kind) == (True, "docker")
    assert (host.cgroup_version, host.cgroup_memory_gib, host.cgroup_cpus) == (2, 64.0, 7.5)
    assert host.cgroup_memory_used_gib == 8.0  # the file cache can be dropped
    assert host.shm_gib == 0.0625 and host.cpus == 8


def test_the_tightest_limit_above_counts(tmp_path: Path) -> None:
    files = {
        **BARE_METAL.files,
        "/sys/fs/cgroup/user.slice/memory.max": f"{100 * GIB}",
        "/sys/fs/cgroup/user.slice/user-1000.slice/memory.max": f"{40 * GIB}",
        "/sys/fs/cgroup/user.slice/cpu.max": "400000 100000",
    }
    host = probed(replace(BARE_METAL, files=files), tmp_path)
    assert (host.cgroup_memory_gib, host.cgroup_cpus) == (40.0, 4.0)


def test_kubernetes_with_cgroup_v1(tmp_path: Path) -> None:
    host = probed(KUBERNETES, tmp_path)
    assert (host.container, host.container_kind) == (True, "kubernetes")
    assert (host.cgroup_version, host.cgroup_memory_gib, host.cgroup_cpus) == (1, 96.0, 16.0)
    assert host.cgroup_memory_used_gib == 80.0


def test_v1_without_a_limit_is_no_limit(tmp_path: Path) -> None:
    files = {
        **KUBERNETES.files,
        "/sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
        "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "-1\n",
    }
    host = probed(replace(KUBERNETES, files=files), tmp_path)
    assert (host.cgroup_version, host.cgroup_memory_gib, host.cgroup_cpus) == (1, None, None)


def test_wsl_is_told(tmp_path: Path) -> None:
    host = probed(WSL, tmp_path)
    assert host.wsl is True and host.container is False


@pytest.mark.parametrize(
    ("files", "environ", "kind"),
    [
        ({"/run/.containerenv": ""}, {}, "podman"),
        ({"/.singularity.d/runscript": ""}, {}, "apptainer"),
        ({}, {"container": "lxc"}, "lxc"),
        ({}, {"container": "systemd-nspawn"}, "systemd-nspawn"),
        ({"/proc/1/environ": "TERM=x\0container=oci\0"}, {}, "container"),
        ({"/proc/1/cgroup": "0::/system.slice/docker-3fa.scope\n"}, {}, "docker"),
        ({"/proc/1/cgroup": "4:memory:/kubepods.slice/kubepods-pod1.slice\n"}, {}, "kubernetes"),
        ({"/var/run/secrets/kubernetes.io/x": ""}, {}, "kubernetes"),
        ({"/proc/1/cgroup": "0::/system.slice/my-dockerish.service\n"}, {}, None),
    ],
)
def test_containers_by_their_signs(
    tmp_path: Path, files: dict[str, str], environ: dict[str, str], kind: str | None
) -> None:
    host = probed(replace(NO_GPU, files={**NO_GPU.files, **files}, environ=environ), tmp_path)
    assert (host.container_kind, host.container) == (kind, kind is not None)


def test_amd_gpus(tmp_path: Path) -> None:
    host = probed(ROCM, tmp_path)
    assert (host.platform, host.rocm, host.driver) == ("rocm", "6.4.1-83", "6.12.12")
    assert host.gpus is not None
    one, two = host.gpus
    assert (one.name, one.arch, one.sm) == ("AMD Instinct MI300X", "gfx942", None)
    assert (two.memory_gib, two.free_gib, two.power_limit_w) == (192.0, 152.0, 750.0)
    assert (one.bus, two.bus) == ("0000:05:00.0", "0000:2d:00.0")
    assert (one.links, two.links) == (("X", "XGMI"), ("XGMI", "X"))
    assert one.processes == ()
    (process,) = two.processes
    assert (process.pid, process.used_gib, process.command) == (77, 39.0, "python3 train.py")
    assert host.pci_gpus is not None and [g.vendor for g in host.pci_gpus] == ["AMD", "AMD"]


def test_amd_gpus_that_are_hidden(tmp_path: Path) -> None:
    host = probed(replace(ROCM, environ={"HIP_VISIBLE_DEVICES": "1"}), tmp_path)
    assert [g.bus for g in host.gpus or ()] == ["0000:2d:00.0"]
    assert [g.bus for g in host.gpus_hidden] == ["0000:05:00.0"]
    assert host.gpus_hidden_by == "HIP_VISIBLE_DEVICES=1"


def test_amd_gpus_that_the_container_was_not_given(tmp_path: Path) -> None:
    files = {n: t for n, t in ROCM.files.items() if n != "/dev/kfd"}
    host = probed(replace(ROCM, files=files), tmp_path)
    assert (host.platform, host.gpus) == ("none", ())
    assert any("--device /dev/kfd" in f.said for f in host.failures)


def test_no_gpu_is_no_failure(tmp_path: Path) -> None:
    host = probed(NO_GPU, tmp_path)
    assert (host.platform, host.gpus, host.failures) == ("none", (), ())


def test_ascend_and_intel_devices(tmp_path: Path) -> None:
    npus = {"/dev/davinci0": "", "/dev/davinci10": "", "/dev/davinci2": "", "/dev/davinci_manager": ""}
    host = probed(replace(NO_GPU, files={**NO_GPU.files, **npus}), tmp_path / "npu")
    assert host.platform == "npu" and [g.index for g in host.gpus or ()] == [0, 2, 10]
    folder = "/sys/class/drm/card1/device"
    xpu = {
        f"{folder}/vendor": "0x8086\n",
        f"{folder}/device": "0xe20b\n",
        f"{folder}/tile0/physical_vram_size_bytes": f"{12 * GIB}\n",
        "/sys/class/drm/card0/device/vendor": "0x8086\n",  # built into the processor
        "/sys/class/drm/card1-DP-1/status": "connected\n",
    }
    host = probed(replace(NO_GPU, files={**NO_GPU.files, **xpu}), tmp_path / "xpu")
    assert host.platform == "xpu" and [g.memory_gib for g in host.gpus or ()] == [12.0]


_NVIDIA_PCI = {
    "/sys/bus/pci/devices/0000:1b:00.0/vendor": "0x10de\n",
    "/sys/bus/pci/devices/0000:1b:00.0/device": "0x2335\n",
    "/sys/bus/pci/devices/0000:1b:00.0/class": "0x030200\n",
    "/sys/bus/pci/devices/0000:00:1f.0/vendor": "0x8086\n",
    "/sys/bus/pci/devices/0000:00:1f.0/class": "0x060100\n",
}


@pytest.mark.parametrize(
    ("code", "said", "advice"),
    [
        (12, "NVML Shared Library Not Found", "--gpus all"),
        (9, "Driver Not Loaded", "modprobe nvidia"),
        (18, "Driver/library version mismatch", "reboot"),
    ],
)
def test_nvidia_hardware_whose_driver_cannot_be_used(
    tmp_path: Path, code: int, said: str, advice: str
) -> None:
    machine = replace(NO_GPU, files={**NO_GPU.files, **_NVIDIA_PCI})
    host = probed(machine, tmp_path, NoNvml(code, said))
    assert (host.platform, host.gpus) == ("none", ())
    (failure,) = host.failures
    assert said in failure.said and advice in failure.said
    assert [(g.vendor, g.device) for g in host.pci_gpus or ()] == [("NVIDIA", "0x2335")]


def test_a_probe_that_breaks_stops_no_other(tmp_path: Path) -> None:
    machine = BARE_METAL.at(tmp_path)

    def broken(kind: str) -> list[Any]:
        raise RuntimeError("no such table")

    machine.psutil.net_connections = broken
    host = probe_machine(machine, limit=LONG)
    (failure,) = host.failures
    assert (failure.probe, failure.said) == ("ports", "RuntimeError: no such table")
    assert host.ports is None and host.ram_gib == 1007.5


def test_a_file_system_that_does_not_answer_is_named_and_the_others_are_told(tmp_path: Path) -> None:
    machine = BARE_METAL.at(tmp_path)
    release, sizes = threading.Event(), machine.sizes

    def hanging(path: str) -> tuple[int, int]:
        if path.startswith("/mnt/my models"):
            release.wait(LONG)
        return sizes(path)

    hangs = replace(machine, sizes=hanging)
    host, _ = with_more_time(
        lambda limit: probe_machine(hangs, limit=limit), lambda h: len(h.failures) == 1 and h.name is not None
    )
    release.set()
    (failure,) = host.failures
    assert failure.probe == "disk of /mnt/my models/hf/hub" and "does not answer" in failure.said
    assert "temporary files" in {d.purpose for d in host.disks or ()}


def test_a_probe_without_an_answer_is_named(tmp_path: Path) -> None:
    release = threading.Event()

    class Hanging(NoNvml):
        def nvmlInit(self) -> None:
            release.wait(LONG)

    machine = BARE_METAL.at(tmp_path, Hanging())
    host, limit = with_more_time(
        lambda limit: probe_machine(machine, limit=limit), lambda h: h.name is not None, (1.5, 6.0, 24.0)
    )
    release.set()
    assert ("GPUs", True) in {(f.probe, f"no answer within {limit:g} s" in f.said) for f in host.failures}
    assert host.gpus is None and host.name == "gpu-box-7"


def test_the_compiler_is_asked_where_no_file_tells_its_release(tmp_path: Path) -> None:
    files = {n: t for n, t in BARE_METAL.files.items() if not n.endswith("version.json")}
    files["/opt/cuda-13/bin/nvcc"] = ""
    environ = {**BARE_METAL.environ, "CUDA_HOME": "/opt/cuda-13"}
    said = "nvcc: NVIDIA (R) Cuda compiler driver\nCuda compilation tools, release 13.0, V13.0.88\n"
    machine = replace(BARE_METAL, files=files, environ=environ).at(tmp_path, run=lambda c, s: said)
    host = probe_machine(machine, limit=LONG)
    assert (host.nvcc, host.nvcc_path) == ("13.0", "/opt/cuda-13/bin/nvcc")


@pytest.mark.parametrize("name", sorted(ALL))
def test_every_host_is_told_without_a_failure(tmp_path: Path, name: str) -> None:
    host = probed(ALL[name], tmp_path)
    assert host.failures == () and host.local and host.gpus is not None
