"""The GPUs that are shown beside a launch are those it was given."""

from __future__ import annotations

import pytest

from mtpdoctor.watch.gpus import GpuSampler
from tests.host.recorded import RecordedNvml


@pytest.mark.parametrize(
    ("visible", "gpus"), [(None, 2), ("0,1", 2), ("1", 1), ("", 2), ("7", 2), ("MIG-unknown", 2)]
)
def test_only_the_gpus_of_the_launch_are_sampled(visible: str | None, gpus: int) -> None:
    use = GpuSampler(RecordedNvml("nvml_2xh200"), visible=visible).sample(1.0, ())
    assert use is not None
    assert len(use.used_gib) == len(use.total_gib) == len(use.own_gib) == gpus
    assert all(139 < total < 142 for total in use.total_gib)
