"""Machines that are not this one: files of /proc and /sys as such hosts have them, put under a folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from mtpdoctor.host.machine import GIB, Machine


@dataclass(frozen=True)
class Host:
    """``files``: path -> text; ``links``: path -> target; ``sizes``: mount point -> (total, free) in GiB."""

    files: Mapping[str, str]
    links: Mapping[str, str] = field(default_factory=dict)
    environ: Mapping[str, str] = field(default_factory=dict)
    sizes: Mapping[str, tuple[float, float]] = field(default_factory=lambda: {"/": (100.0, 40.0)})
    processes: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    arch: str = "x86_64"

    def at(self, root: Path, nvml: Any = None, run: Callable[..., str] | None = None) -> Machine:
        """Writes the files below ``root`` and gives the machine that is read from there."""
        for name, text in self.files.items():
            path = Path(f"{root}{name}")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            if name.endswith("/nvcc"):
                path.chmod(0o755)
        for name, target in self.links.items():
            path = Path(f"{root}{name}")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.symlink_to(target)
        return Machine(
            root=str(root),
            environ=self.environ,
            sizes=self._size,
            run=run or _no_program,
            nvml=nvml or NoNvml(),
            psutil=FakePsutil(self.processes),
            arch=self.arch,
        )

    def _size(self, path: str) -> tuple[int, int]:
        mount = max((m for m in self.sizes if path == m or path.startswith(m.rstrip("/") + "/")), key=len)
        total, free = self.sizes[mount]
        return int(total * GIB), int(free * GIB)


def _no_program(command: Any, seconds: float) -> str:
    raise OSError(f"{command[0]} cannot be run here")


class NoNvml:
    """No driver: the library is not found."""

    class NVMLError(Exception):
        def __init__(self, value: int, said: str) -> None:
            super().__init__(said)
            self.value = value

    def __init__(self, value: int = 12, said: str = "NVML Shared Library Not Found") -> None:
        self.error = self.NVMLError(value, said)

    def nvmlInit(self) -> None:
        raise self.error


class FakePsutil:
    """The processes that one may see: pid -> cmdline, username, create_time, ppid; and listening sockets."""

    CONN_LISTEN = "LISTEN"

    class Error(Exception):
        pass

    def __init__(self, processes: Mapping[int, Mapping[str, Any]]) -> None:
        self.processes = processes

    def Process(self, pid: int) -> Any:
        if pid not in self.processes:
            raise self.Error(f"no process {pid}")
        return _Process(self.processes[pid], self)

    def net_connections(self, kind: str) -> list[Any]:
        assert kind == "tcp"
        return [
            SimpleNamespace(
                status=status, laddr=SimpleNamespace(ip=address, port=number) if number else (), pid=pid
            )
            for pid, facts in self.processes.items()
            for address, number, status in facts.get("sockets", ())
        ]


class _Process:
    def __init__(self, facts: Mapping[str, Any], psutil: FakePsutil) -> None:
        self.facts = facts
        self.psutil = psutil

    def oneshot(self) -> Any:
        import contextlib

        return contextlib.nullcontext()

    def __getattr__(self, name: str) -> Callable[[], Any]:
        def answer() -> Any:
            if name not in self.facts:
                raise self.psutil.Error("denied")
            return self.facts[name]

        return answer


def meminfo(total: float, available: float, swap: float = 0.0) -> str:
    """GiB."""
    kib = 2**20
    return (
        f"MemTotal:       {int(total * kib)} kB\nMemFree:        {int(available * kib / 2)} kB\n"
        f"MemAvailable:   {int(available * kib)} kB\nSwapTotal:      {int(swap * kib)} kB\n"
        f"SwapFree:       {int(swap * kib)} kB\nHugePages_Total:       0\n"
    )


LIMITS = """\
Limit                     Soft Limit           Hard Limit           Units
Max cpu time              unlimited            unlimited            seconds
Max file size             unlimited            unlimited            bytes
Max data size             unlimited            unlimited            bytes
Max stack size            8388608              unlimited            bytes
Max core file size        0                    unlimited            bytes
Max resident set          unlimited            unlimited            bytes
Max processes             4126963              4126963              processes
Max open files            1024                 1048576              files
Max locked memory         67108864             67108864             bytes
Max address space         unlimited            unlimited            bytes
"""
CPUINFO = """\
processor\t: 0
vendor_id\t: GenuineIntel
model name\t: Intel(R) Xeon(R) Platinum 8480C
flags\t\t: fpu vme avx avx2 avx512f avx512_bf16 amx_bf16 amx_tile amx_int8

processor\t: 1
model name\t: Intel(R) Xeon(R) Platinum 8480C
"""
_UBUNTU = 'NAME="Ubuntu"\nPRETTY_NAME="Ubuntu 22.04.5 LTS"\nID=ubuntu\n'
_COMMON = {
    "/proc/cpuinfo": CPUINFO,
    "/proc/self/limits": LIMITS,
    "/etc/os-release": _UBUNTU,
    "/proc/sys/kernel/hostname": "gpu-box-7\n",
    "/proc/sys/kernel/osrelease": "6.8.0-45-generic\n",
    "/proc/version": "Linux version 6.8.0-45-generic (buildd@lcy02) (gcc 13.2.0) #45-Ubuntu SMP\n",
}

BARE_METAL = Host(
    files={
        **_COMMON,
        "/proc/meminfo": meminfo(1007.5, 912.0, 8.0),
        "/proc/self/status": "Name:\tpython\nCpus_allowed:\tffff\nCpus_allowed_list:\t0-111,224-335\n",
        "/proc/self/cgroup": "0::/user.slice/user-1000.slice/session-3.scope\n",
        "/proc/1/cgroup": "0::/init.scope\n",
        "/proc/self/mountinfo": (
            "22 29 0:21 / /proc rw shared:13 - proc proc rw\n"
            "29 1 259:2 / / rw,relatime shared:1 - ext4 /dev/nvme0n1p2 rw\n"
            "35 23 0:29 / /sys/fs/cgroup rw shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
            "61 29 0:55 / /mnt/my\\040models rw shared:30 - nfs4 10.0.0.3:/export rw\n"
        ),
        "/sys/fs/cgroup/user.slice/user-1000.slice/session-3.scope/memory.max": "max\n",
        "/sys/fs/cgroup/user.slice/user-1000.slice/session-3.scope/cpu.max": "max 100000\n",
        "/sys/devices/system/node/node0/cpulist": "0-55,112-167\n",
        "/sys/devices/system/node/node1/cpulist": "56-111,168-223\n",
        "/sys/devices/system/node/node2/cpulist": "\n",  # memory of a GPU, without processors
        "/usr/local/cuda/bin/nvcc": "",
        "/usr/local/cuda/version.json": '{"cuda": {"version": "12.8.1"}, "cuda_nvcc": {"version": "12.8.93"}}',
    },
    environ={
        "HOME": "/home/alice",
        "USER": "alice",
        "HF_HOME": "/mnt/my models/hf",
        "HF_TOKEN": "hf_abcdefghijklmnop1234",
        "https_proxy": "http://alice:hunter2secret@proxy:3128",
        "NCCL_DEBUG": "INFO",
        "SECRET_OF_NO_CONCERN": "x",
        "PATH": "/usr/bin",
    },
    sizes={"/": (1800.0, 900.0), "/mnt/my models": (20480.0, 1024.0), "/dev/shm": (503.7, 503.0)},
    processes={
        900: {
            "cmdline": [
                "python",
                "-m",
                "sglang.launch_server",
                "--api-key",
                "sk-verysecret",
                "--port",
                "30000",
            ],
            "username": "alice",
            "create_time": 1e9,
            "ppid": 1,
            "sockets": [
                ("0.0.0.0", 30000, "LISTEN"),
                ("0.0.0.0", 30000, "ESTABLISHED"),
                ("::", 30000, "LISTEN"),
            ],
        },
        12: {"name": "sshd", "sockets": [("0.0.0.0", 22, "LISTEN"), ("", 0, "LISTEN")]},
    },
)

DOCKER = Host(
    files={
        **_COMMON,
        "/.dockerenv": "",
        "/proc/meminfo": meminfo(1007.5, 912.0),
        "/proc/self/status": "Cpus_allowed_list:\t0-7\n",
        "/proc/self/cgroup": "0::/\n",
        "/proc/1/cgroup": "0::/\n",
        "/proc/self/mountinfo": (
            "1103 900 0:84 / / rw - overlay overlay rw,lowerdir=/var/lib/docker/overlay2/l/A\n"
            "1110 1109 0:29 / /sys/fs/cgroup ro - cgroup2 cgroup rw,nsdelegate\n"
        ),
        "/sys/fs/cgroup/memory.max": f"{64 * GIB}\n",
        "/sys/fs/cgroup/memory.current": f"{20 * GIB}\n",
        "/sys/fs/cgroup/memory.stat": f"anon 1\nfile 2\ninactive_file {12 * GIB}\n",
        "/sys/fs/cgroup/cpu.max": "750000 100000\n",
    },
    environ={"HOME": "/root", "PATH": "/usr/bin"},
    sizes={"/": (200.0, 5.0), "/dev/shm": (0.0625, 0.0625)},
)

_POD = "/kubepods/burstable/pod12ab/9f8e"
KUBERNETES = Host(
    files={
        **_COMMON,
        "/proc/meminfo": meminfo(503.0, 300.0),
        "/proc/self/status": "Cpus_allowed_list:\t0-63\n",
        "/proc/self/cgroup": f"12:memory:{_POD}\n7:cpu,cpuacct:{_POD}\n1:name=systemd:{_POD}\n",
        "/proc/1/cgroup": f"12:memory:{_POD}\n",
        "/proc/self/mountinfo": (
            f"700 690 0:31 {_POD} /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct\n"
            f"701 690 0:32 {_POD} /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"
        ),
        "/sys/fs/cgroup/memory/memory.limit_in_bytes": f"{96 * GIB}\n",
        "/sys/fs/cgroup/memory/memory.usage_in_bytes": f"{90 * GIB}\n",
        "/sys/fs/cgroup/memory/memory.stat": f"cache 1\ntotal_inactive_file {10 * GIB}\n",
        "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "1600000\n",
        "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
    },
    environ={"KUBERNETES_SERVICE_HOST": "10.96.0.1", "HOME": "/root"},
)

WSL = Host(
    files={
        **_COMMON,
        "/proc/sys/kernel/osrelease": "5.15.153.1-microsoft-standard-WSL2\n",
        "/proc/version": "Linux version 5.15.153.1-microsoft-standard-WSL2 (root@941d701f84f1) (gcc 11.2.0)\n",
        "/proc/meminfo": meminfo(31.2, 29.0, 8.0),
        "/proc/self/cgroup": "0::/init.scope\n",
        "/proc/self/mountinfo": "80 60 0:30 / /sys/fs/cgroup rw - cgroup2 none rw\n",
        "/dev/dxg": "",
    },
    environ={"HOME": "/home/bob"},
)


def _kfd(node: int, gpu: int, minor: int, location: int) -> dict[str, str]:
    folder = f"/sys/class/kfd/kfd/topology/nodes/{node}"
    device = f"/sys/class/drm/renderD{minor}/device"
    return {
        f"{folder}/gpu_id": f"{gpu}\n",
        f"{folder}/name": "ip discovery\n",
        f"{folder}/properties": (
            f"cpu_cores_count 0\nsimd_count 1216\ngfx_target_version 90402\nvendor_id 4098\ndevice_id 29857\n"
            f"location_id {location}\ndomain 0\ndrm_render_minor {minor}\nunique_id {9000000000000000000 + gpu}\n"
        ),
        f"{device}/mem_info_vram_total": f"{192 * GIB}\n",
        f"{device}/mem_info_vram_used": f"{(node - 1) * 40 * GIB}\n",
        f"{device}/numa_node": "0\n",
        f"{device}/gpu_busy_percent": "3\n",
        f"{device}/hwmon/hwmon4/power1_cap": "750000000\n",
        f"/sys/bus/pci/devices/0000:{location >> 8:02x}:00.0/vendor": "0x1002\n",
        f"/sys/bus/pci/devices/0000:{location >> 8:02x}:00.0/device": "0x74a1\n",
        f"/sys/bus/pci/devices/0000:{location >> 8:02x}:00.0/class": "0x120000\n",
    }


ROCM = Host(
    files={
        **_COMMON,
        "/proc/meminfo": meminfo(2267.0, 2200.0),
        "/dev/kfd": "",
        "/opt/rocm/.info/version": "6.4.1-83\n",
        "/sys/module/amdgpu/version": "6.12.12\n",
        "/sys/class/kfd/kfd/topology/nodes/0/properties": "cpu_cores_count 96\nsimd_count 0\n",
        "/sys/class/kfd/kfd/topology/nodes/0/gpu_id": "0\n",
        **_kfd(1, 28851, 128, 1280),
        **_kfd(2, 51499, 136, 11520),
        "/sys/class/kfd/kfd/topology/nodes/1/io_links/0/properties": "type 2\nnode_from 1\nnode_to 0\n",
        "/sys/class/kfd/kfd/topology/nodes/1/io_links/1/properties": "type 11\nnode_from 1\nnode_to 2\n",
        "/sys/class/kfd/kfd/topology/nodes/2/io_links/1/properties": "type 11\nnode_from 2\nnode_to 1\n",
        "/sys/class/kfd/kfd/proc/77/vram_51499": f"{39 * GIB}\n",
        "/sys/class/kfd/kfd/proc/77/vram_28851": "0\n",
    },
    processes={77: {"cmdline": ["python3", "train.py"], "username": "eve", "create_time": 1e9, "ppid": 5}},
    environ={"HOME": "/root"},
)

NO_GPU = Host(
    files={**_COMMON, "/proc/meminfo": meminfo(31.0, 20.0), "/proc/self/mountinfo": ""},
    environ={"HOME": "/home/bob"},
)

ALL = {
    "bare metal": BARE_METAL,
    "docker": DOCKER,
    "kubernetes": KUBERNETES,
    "wsl": WSL,
    "rocm": ROCM,
    "no gpu": NO_GPU,
}
