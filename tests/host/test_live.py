"""Live figures of the GPUs put into a host's facts."""

from __future__ import annotations

from dataclasses import replace

from mtpdoctor.host.live import with_figures
from mtpdoctor.host.types import Gpu, GpuProcess, HostFacts

GPUS = (Gpu(0, "H200", 90, 140.0, 139.0, uuid="A", numa_node=1), Gpu(1, "H200", 90, 140.0, 139.0, uuid="B"))
HOST = HostFacts("cuda", GPUS, name="node7", local=True)


def test_figures_follow_the_gpu_by_its_uuid_and_the_rest_stays() -> None:
    process = GpuProcess(7, 100.0, "python")
    now = HostFacts("cuda", (Gpu(0, "H200", 90, 140.0, 30.0, (process,), uuid="B", utilization=9),))
    host = with_figures(HOST, now)
    assert host.gpus is not None and host.name == "node7"
    assert host.gpus[0] == GPUS[0]
    assert host.gpus[1] == replace(GPUS[1], free_gib=30.0, processes=(process,), utilization=9)


def test_gpus_without_uuids_are_told_by_index_and_name() -> None:
    bare = replace(HOST, gpus=tuple(replace(g, uuid=None) for g in GPUS))
    host = with_figures(
        bare, HostFacts("cuda", (Gpu(1, "H200", 90, 140.0, 1.0), Gpu(0, "L4", 89, 24.0, 1.0)))
    )
    assert host.gpus is not None and [g.free_gib for g in host.gpus] == [139.0, 1.0]


def test_a_driver_that_says_nothing_changes_nothing() -> None:
    assert with_figures(HOST, None) is HOST
    assert with_figures(HostFacts(None, None), HOST) == HostFacts(None, None)


def test_processes_that_cannot_be_there_any_more_are_no_longer_named() -> None:
    held = replace(HOST, gpus=(replace(GPUS[0], free_gib=20.0, processes=(GpuProcess(7, 119.0, "python"),)),))
    still = with_figures(held, HostFacts("cuda", (replace(GPUS[0], free_gib=19.5),)))
    gone = with_figures(held, HostFacts("cuda", (replace(GPUS[0], free_gib=139.0),)))
    assert still.gpus is not None and len(still.gpus[0].processes) == 1
    assert gone.gpus is not None and gone.gpus[0].processes == ()
