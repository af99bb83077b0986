"""A file of SGLang imports what this SGLang does not have: no program around it is at fault."""

from __future__ import annotations

from typing import Any

import pytest

from mtpdoctor.diagnose.engine import diagnose
from mtpdoctor.diagnose.given import Given
from mtpdoctor.kb.load import load_knowledge
from mtpdoctor.launch.document import read_launch
from mtpdoctor.log.reading import reading_from_text
from mtpdoctor.paths import releases_folder
from mtpdoctor.report.json import to_json
from mtpdoctor.sglang.dangling import fault_of

SITE = "/usr/lib/python3/site-packages"
LOG = """\
[2026-11-29 13:46:42 TP0] Scheduler hit an exception: Traceback (most recent call last):
  File "{file}", line 7, in {function}
    {code}
{last}
"""
FP4 = (
    f"{SITE}/sglang/srt/mem_cache/memory_pool.py",
    "from sglang.srt.layers.quantization.kvfp4_tensor import KVFP4QuantizeUtil",
    "ImportError: cannot import name 'KVFP4QuantizeUtil' from 'sglang.srt.layers.quantization.kvfp4_tensor'"
    f" ({SITE}/sglang/srt/layers/quantization/kvfp4_tensor.py)",
)


def first(file: str, code: str, last: str, release: str | None, more: str = "") -> dict[str, Any]:
    knowledge = load_knowledge()
    log = LOG.format(file=file, function="go", code=code, last=last)
    launch = read_launch(f"python -m sglang.launch_server --model-path /m/Q {more}".strip())
    given = Given(release=release, document=launch)
    report = to_json(diagnose(reading_from_text(log, knowledge.literals), knowledge, given))
    found: dict[str, Any] = report["diagnoses"][0]
    return found


@pytest.mark.parametrize("release", ["0.5.11", "0.5.13.post1"])
def test_a_fault_of_the_release_is_left_by_another_or_by_the_option_that_leads_there(release: str) -> None:
    found = first(*FP4, release, "--kv-cache-dtype fp4_e2m1 --mem-fraction-static 0.8")
    assert found["rule"] == "MTP2190" and "fault of SGLang itself" in found["cause"]
    upgrade, option, back = found["fixes"]
    assert upgrade["run"] == ["pip install sglang==0.5.14"]
    assert [(e["op"], e["name"]) for e in option["edits"]] == [("remove", "--kv-cache-dtype")]
    assert back["run"] == ["pip install sglang==0.5.10.post1"]


def test_where_the_release_has_the_name_its_folder_is_not_whole() -> None:
    found = first(*FP4, "0.5.10")
    assert found["rule"] == "MTP2190" and "as a whole" in found["cause"]
    assert found["fixes"][0]["run"][-1] == "pip install --no-cache-dir sglang==0.5.10"


def test_a_release_that_neither_has_nor_imports_it_is_mixed_with_another() -> None:
    found = first(*FP4, "0.5.20")
    assert "fault of SGLang itself" not in found["cause"] or "0.5.20" not in found["cause"]
    assert "Reinstall" in found["fixes"][0]["title"]


def test_a_missing_module_is_named_by_the_first_part_that_is_not_there() -> None:
    file = "sglang/srt/managers/cache_controller.py"
    fault = fault_of(releases_folder(), file, "sglang.srt.mem_cache.mooncake_store")
    assert fault is not None and len(fault.releases) == 1
    assert fault_of(releases_folder(), file, "sglang.srt.utils") is None
    found = first(
        f"{SITE}/{file}",
        "from sglang.srt.mem_cache.mooncake_store.mooncake_store import MooncakeStore",
        "ModuleNotFoundError: No module named 'sglang.srt.mem_cache.mooncake_store'",
        None,
    )
    assert str(fault.after(fault.releases[0])) in found["fixes"][0]["title"]


def test_a_program_around_sglang_is_still_told_so() -> None:
    found = first(
        f"{SITE}/sometrainer/sglang/rollout.py",
        "from sglang.srt.utils import maybe_set_triton_cache_manager",
        "ImportError: cannot import name 'maybe_set_triton_cache_manager' from 'sglang.srt.utils'"
        f" ({SITE}/sglang/srt/utils.py)",
        "0.4.10",
    )
    assert found["rule"] == "MTP0165"
