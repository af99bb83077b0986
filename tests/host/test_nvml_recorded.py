"""GPUs as the driver of a host with two H200 told of them, and as it would tell of their variations."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from machines import BARE_METAL, DOCKER
from recorded import RecordedNvml
from waiting import LONG

from mtpdoctor.host.nvml import gpus_here
from mtpdoctor.host.probe import probe_machine
from mtpdoctor.host.types import HostFacts

H200 = "nvml_2xh200"
ONE, TWO = "GPU-6f0c2c1e-11aa-4d0a-9a1f-000000000001", "GPU-9b7d44f2-22bb-4d0a-9a1f-000000000002"
HOLDER = {"cmdline": ["python3", "hold.py"], "username": "root", "create_time": 1e9, "ppid": 1}


def probed(
    root: Path, changes: dict[str, Any] | None = None, visible: str | None = None, base: Any = BARE_METAL
) -> HostFacts:
    environ = {**base.environ, **({"CUDA_VISIBLE_DEVICES": visible} if visible is not None else {})}
    machine = replace(base, environ=environ, processes={576: HOLDER})
    nvml = RecordedNvml(H200, changes)
    host = probe_machine(machine.at(root, nvml), limit=LONG)
    assert nvml.open == 0
    return host


def test_everything_of_a_real_answer(tmp_path: Path) -> None:
    host = probed(tmp_path)
    assert (host.platform, host.driver, host.cuda_driver) == ("cuda", "580.159.04", "13.0")
    assert host.gpus is not None and len(host.gpus) == 2
    one = host.gpus[0]
    assert (one.name, one.sm, one.uuid, one.bus) == ("NVIDIA H200", 90, ONE, "0000:00:06.0")
    assert one.memory_gib == pytest.approx(140.4, abs=0.1) and one.free_gib == pytest.approx(137.3, abs=0.1)
    assert one.reserved_gib == pytest.approx(0.6, abs=0.01)
    assert (one.ecc, one.ecc_errors, one.persistence, one.power_limit_w) == (True, 0, True, 700.0)
    assert (one.mig, one.compute_mode, one.utilization) == (False, "default", 0)
    assert one.links == ("X", "NV18") and host.gpus[1].links == ("NV18", "X")
    assert one.peers == (None, True)
    (process,) = one.processes
    assert (process.pid, process.command, process.user, process.parent) == (576, "python3 hold.py", "root", 1)
    assert process.used_gib == pytest.approx(2.5, abs=0.01)
    assert host.failures == ()


@pytest.mark.parametrize(
    ("setting", "shown"),
    [
        ("1", [1]),
        ("1,0", [1, 0]),
        (TWO, [1]),
        ("GPU-9b7d", [1]),
        ("gpu-9B7D,GPU-6f", [1, 0]),
        ("GPU-", []),  # two begin so
        ("GPU-000", []),
        ("0,GPU-000", [0]),
        ("0,0", []),  # named twice: CUDA takes none
        ("0,5,1", [0]),
        ("", []),
        ("-1", []),
        ("none", []),
    ],
)
def test_visible_devices_by_number_and_uuid(tmp_path: Path, setting: str, shown: list[int]) -> None:
    host = probed(tmp_path, visible=setting)
    assert [g.index for g in host.gpus or ()] == shown
    assert sorted(g.index for g in host.gpus_hidden) == sorted({0, 1} - set(shown))
    assert host.platform == ("cuda" if shown else "none")
    assert host.gpus_hidden_by == (f"CUDA_VISIBLE_DEVICES={setting}" if len(shown) < 2 else None)
    light = gpus_here(RecordedNvml(H200), {"CUDA_VISIBLE_DEVICES": setting})
    assert light is not None and [g.index for g in light.gpus or ()] == shown


def test_links_are_those_between_the_gpus_that_show(tmp_path: Path) -> None:
    host = probed(tmp_path, visible="1")
    assert host.gpus is not None and host.gpus[0].links == ("X",)
    host = probed(tmp_path / "2", visible="1,0")
    assert host.gpus is not None and [g.links for g in host.gpus] == [("X", "NV18"), ("NV18", "X")]


def test_gpus_without_nvlink_go_by_the_pci_tree(tmp_path: Path) -> None:
    changes: dict[str, Any] = {
        f'nvmlDeviceGetNvLinkState["h{g}", {n}]': {"error": 3} for g in (0, 1) for n in range(18)
    }
    changes |= {'nvmlDeviceGetTopologyCommonAncestor["h0", "h1"]': {"is": 50}}
    changes |= {'nvmlDeviceGetP2PStatus["h0", "h1", 0]': {"is": 1}}
    gpus = probed(tmp_path, changes).gpus
    assert gpus is not None
    assert gpus[0].links == ("X", "SYS") and gpus[1].links == ("?", "X")
    assert gpus[0].peers == (None, False)


def test_a_direct_bridge_counts_its_links(tmp_path: Path) -> None:
    changes: dict[str, Any] = {}
    for gpu, other in ((0, "00000000:00:07.0"), (1, "00000000:00:06.0")):
        for link in range(18):
            changes[f'nvmlDeviceGetNvLinkState["h{gpu}", {link}]'] = {"is": 1 if link < 4 else 0}
            changes[f'nvmlDeviceGetNvLinkRemoteDeviceType["h{gpu}", {link}]'] = {"is": 0}
            changes[f'nvmlDeviceGetNvLinkRemotePciInfo["h{gpu}", {link}]'] = {"is": {"busId": other}}
    gpus = probed(tmp_path, changes).gpus
    assert gpus is not None and gpus[0].links == ("X", "NV4")


def test_a_gpu_that_fell_off_the_bus_is_named_and_the_other_is_told(tmp_path: Path) -> None:
    lost = {"error": 15, "said": "GPU is lost"}
    host = probed(tmp_path, {"nvmlDeviceGetHandleByIndex[1]": lost})
    assert [g.index for g in host.gpus or ()] == [0]
    (failure,) = host.failures
    assert failure.probe == "GPU 1" and "GPU is lost" in failure.said and "dmesg" in failure.said


def test_what_a_driver_does_not_answer_stays_unknown(tmp_path: Path) -> None:
    calls = RecordedNvml(H200).calls
    changes = {
        c: {"error": 3} for c in calls if "EccMode" in c or "PowerLimit" in c or "_v2" in c or "P2P" in c
    }
    host = probed(tmp_path, changes)
    assert host.cuda_driver is None and host.failures == ()
    assert {(g.ecc, g.ecc_errors, g.power_limit_w, g.peers) for g in host.gpus or ()} == {
        (None, None, None, (None, None))
    }


def test_memory_that_the_driver_does_not_tell_by_process(tmp_path: Path) -> None:
    process = {"pid": 576, "usedGpuMemory": None}
    host = probed(tmp_path, {'nvmlDeviceGetComputeRunningProcesses["h0"]': {"is": [process]}})
    assert host.gpus is not None and host.gpus[0].processes[0].used_gib == 0


@pytest.mark.parametrize(("device", "command"), [("/dev/nvidia0", "python3 hold.py"), ("/dev/null", "")])
def test_in_a_container_a_number_of_the_host_is_not_taken_for_a_process_in_here(
    tmp_path: Path, device: str, command: str
) -> None:
    base = replace(DOCKER, links={"/proc/576/fd/3": device})
    host = probed(tmp_path, base=base)
    assert host.gpus is not None
    assert [(p.pid, p.command) for p in host.gpus[0].processes] == [(576, command)]


_PART = "MIG-5f1c9a52-33cc-4d0a-9a1f-000000000003"
MIG: dict[str, Any] = {
    'nvmlDeviceGetMigMode["h0"]': {"is": [1, 1]},
    'nvmlDeviceGetMaxMigDeviceCount["h0"]': {"is": 7},
    'nvmlDeviceGetMigDeviceHandleByIndex["h0", 0]': {"handle": "m0"},
    'nvmlDeviceGetMigDeviceHandleByIndex["h0", 2]': {"handle": "m2"},
    'nvmlDeviceGetName["m0"]': {"is": "NVIDIA H200 MIG 3g.71gb"},
    'nvmlDeviceGetName["m2"]': {"is": "NVIDIA H200 MIG 3g.71gb"},
    'nvmlDeviceGetUUID["m0"]': {"is": _PART},
    'nvmlDeviceGetUUID["m2"]': {"is": _PART.replace("5f1c", "77aa")},
    'nvmlDeviceGetMemoryInfo["m0"]': {"is": {"total": 71 * 2**30, "free": 70 * 2**30, "used": 2**30}},
    'nvmlDeviceGetMemoryInfo["m2"]': {"is": {"total": 71 * 2**30, "free": 60 * 2**30, "used": 11 * 2**30}},
}


@pytest.mark.parametrize(
    ("setting", "free"),
    [(None, [70.0, 137.3]), ("0", [70.0]), ("MIG-77aa", [60.0]), ("MIG-77aa,1", [60.0, 137.3])],
)
def test_parts_of_a_gpu(tmp_path: Path, setting: str | None, free: list[float]) -> None:
    host = probed(tmp_path, MIG, setting)
    assert [g.free_gib for g in host.gpus or ()] == pytest.approx(free, abs=0.1)
    assert host.gpus is not None and host.gpus[0].mig is True


def test_a_gpu_in_mig_mode_without_parts_cannot_be_used(tmp_path: Path) -> None:
    host = probed(tmp_path, {'nvmlDeviceGetMigMode["h0"]': {"is": [1, 1]}})
    assert [g.index for g in host.gpus or ()] == [1]
    assert [(g.index, g.mig) for g in host.gpus_hidden] == [(0, True)]
