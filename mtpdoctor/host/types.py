"""Facts of a host, real or pretended."""

from __future__ import annotations

from collections.abc import Mapping

from mtpdoctor.records import dataclass, field


@dataclass(frozen=True, slots=True)
class GpuProcess:
    """A process that holds memory of a GPU."""

    pid: int
    used_gib: float  # 0 where the driver does not tell (WSL2, MIG, vGPU)
    command: str  # "" where the process is not visible here: another container's, or another user's
    user: str | None = None
    started: float | None = None  # seconds since the epoch
    parent: int | None = None  # pid; 1 where the process that launched it is gone


@dataclass(frozen=True, slots=True)
class Gpu:
    index: int
    name: str
    sm: int | None  # compute capability as SM number: 90, 100, 120
    memory_gib: float | None
    free_gib: float | None = None
    processes: tuple[GpuProcess, ...] = ()
    uuid: str | None = None
    utilization: int | None = None  # percent, the last sample's
    power_limit_w: float | None = None
    persistence: bool | None = None
    ecc: bool | None = None
    mig: bool | None = None
    numa_node: int | None = None
    links: tuple[
        str, ...
    ] = ()  # to every GPU in order of index: "NV18", "PIX", "PXB", "PHB", "NODE", "SYS", "XGMI", "X" itself
    peers: tuple[bool | None, ...] = ()  # direct access (P2P) to every GPU in order of index; None: not known
    arch: str | None = None  # where there is no SM number: "gfx942"
    bus: str | None = None  # PCI address, "0000:1b:00.0"
    reserved_gib: float | None = None  # kept by the driver itself, in use without any process
    ecc_errors: int | None = None  # uncorrected, since the driver was loaded
    compute_mode: str | None = None  # "default", "exclusive" (one process at a time), "prohibited"


@dataclass(frozen=True, slots=True)
class PciGpu:
    """A GPU or accelerator on the PCI bus, whether or not a driver answers for it."""

    address: str
    vendor: str  # "NVIDIA", "AMD", "Intel", "Huawei"
    device: str  # PCI device id, "0x2335"
    driver: str | None = None  # kernel driver bound to it: "nvidia", "amdgpu", "vfio-pci"


@dataclass(frozen=True, slots=True)
class Disk:
    """The file system that holds a folder which a launch needs. Sizes in GiB."""

    path: str
    purpose: str  # "model", "Hugging Face cache", "temporary files", ...
    free_gib: float
    total_gib: float
    kind: str | None = None  # file system type: "ext4", "overlay", "nfs4"


@dataclass(frozen=True, slots=True)
class Port:
    """A TCP port that somebody listens on."""

    number: int
    address: str
    pid: int | None = None
    command: str | None = None


@dataclass(frozen=True, slots=True)
class PythonEnvironment:
    """A Python installation and the distributions in it, read from their metadata. Nothing is imported."""

    executable: str
    version: str | None
    origin: str  # "--python", "running interpreter", "VIRTUAL_ENV", "conda", "PATH", ...
    packages: Mapping[str, str] = field(default_factory=dict)  # distribution (normal form) -> version
    duplicates: Mapping[str, tuple[str, ...]] = field(
        default_factory=dict
    )  # found in several folders: versions
    folders: tuple[str, ...] = ()  # where the distributions lie
    torch_cuda: str | None = None  # CUDA release that torch was built for
    kernel_cuda: str | None = None  # the same of sgl-kernel / sglang-kernel
    kernel_sms: tuple[int, ...] = ()  # GPU architectures that the kernel wheel has code for; () not known
    torch_sms: tuple[int, ...] = ()  # the same of torch's own kernels
    duplicate_folders: Mapping[str, tuple[str, ...]] = field(
        default_factory=dict
    )  # where the copies lie, in the order of ``duplicates``
    shadows: tuple[str, ...] = ()  # folders named sglang that an import finds before the installed one
    requires: Mapping[str, Mapping[str, str]] = field(
        default_factory=dict
    )  # distribution -> what its metadata requires: distribution -> version specifier ("" for any)
    requires_python: str | None = None  # of the installed SGLang, a version specifier


@dataclass(frozen=True, slots=True)
class ProbeFailure:
    """A probe that failed or ran out of time: a finding, never the end of the others."""

    probe: str
    said: str


@dataclass(frozen=True, slots=True)
class HostFacts:
    """What is known of a host; None or absent means not known. Sizes in GiB.

    ``gpus`` are those that a launch from here would see, in its order; ``gpus_hidden`` the others.
    ``packages`` are those of the environment that holds SGLang (``python``), the first of ``pythons``.
    """

    platform: str | None  # "cuda", "rocm", "npu", "xpu", "cpu", "none"
    gpus: tuple[Gpu, ...] | None
    driver: str | None = None
    cuda_driver: str | None = None
    ram_gib: float | None = None
    shm_gib: float | None = None
    container: bool | None = None
    packages: Mapping[str, str] = field(default_factory=dict)  # distribution -> version
    env: Mapping[str, str] = field(default_factory=dict)
    pretended: bool = False
    local: bool = False  # this very machine, not a saved one
    name: str | None = None  # host name
    system: str | None = None  # "Ubuntu 24.04.1 LTS, Linux 6.8.0-45-generic"
    cpu: str | None = None  # model name
    cpus: int | None = None  # logical CPUs that a process may use here
    ram_free_gib: float | None = None  # available, as the kernel counts it
    swap_gib: float | None = None
    shm_free_gib: float | None = None
    cgroup_memory_gib: float | None = None  # limit of the container or unit; None: none or not known
    cgroup_cpus: float | None = None
    numa_nodes: int | None = None
    wsl: bool | None = None
    limits: Mapping[str, float | None] = field(
        default_factory=dict
    )  # ulimits: "nofile", "memlock" ...; None: unlimited
    nvcc: str | None = None  # CUDA release of the compiler on PATH or in CUDA_HOME
    disks: tuple[Disk, ...] | None = None
    ports: tuple[Port, ...] | None = None
    pythons: tuple[PythonEnvironment, ...] | None = None
    failures: tuple[ProbeFailure, ...] = ()
    machine: str | None = None  # "x86_64", "aarch64"
    cpu_features: tuple[
        str, ...
    ] = ()  # those that kernels for the CPU ask for: "avx2", "avx512f", "amx_tile"
    container_kind: str | None = None  # "docker", "kubernetes", "podman", "lxc", "apptainer", ...
    cgroup_version: int | None = None  # 1 or 2
    cgroup_memory_used_gib: float | None = None
    nvcc_path: str | None = None
    rocm: str | None = None  # release of ROCm
    gpus_hidden: tuple[Gpu, ...] = ()  # there, but not visible to a launch from here (CUDA_VISIBLE_DEVICES)
    gpus_hidden_by: str | None = None  # the setting that hides them, "CUDA_VISIBLE_DEVICES=0,1"
    pci_gpus: tuple[PciGpu, ...] | None = None

    @property
    def python(self) -> PythonEnvironment | None:
        """The environment whose SGLang a launch from here would use."""
        return self.pythons[0] if self.pythons else None
