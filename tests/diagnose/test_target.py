"""An upgrade is to a release that can run where the log was written: by the driver and the Python that the log shows."""

from __future__ import annotations

import pytest

from mtpdoctor.diagnose.engine import diagnose
from mtpdoctor.diagnose.types import Fix
from mtpdoctor.kb.load import load_knowledge
from mtpdoctor.log.reading import reading_from_text

SMI = "| NVIDIA-SMI {driver}             Driver Version: {driver}     CUDA Version: 12.8     |\n"
FAILS = """\
$ python3 -m sglang.launch_server --model-path /models/m --quantization warp
sglang=={release}
Traceback (most recent call last):
  File "/opt/envs/s/lib/python3.{python}/site-packages/sglang/srt/model_loader/weight_utils.py", line 180, in get_quant_config
    quant_cls = get_quantization_config(model_config.quantization)
  File "/opt/envs/s/lib/python3.{python}/site-packages/sglang/srt/layers/quantization/__init__.py", line 109, in get_quantization_config
    raise ValueError(
ValueError: Invalid quantization method: warp. Available methods: ['fp8', 'gptq']
"""


def upgrade(driver: str | None, python: int = 12, release: str = "0.5.6") -> Fix:
    knowledge = load_knowledge()
    text = (SMI.format(driver=driver) if driver else "") + FAILS.format(release=release, python=python)
    found = diagnose(reading_from_text(text, knowledge.literals), knowledge).diagnoses[0]
    return next(fix for fix in found.fixes if any("pip install sglang==" in line for line in fix.run))


@pytest.mark.parametrize(
    ("driver", "python", "installed", "said"),
    [
        (
            "570.195.03",
            12,
            "0.5.10.post1",
            ["CUDA 13, whose driver has to be 580 or newer; the log shows 570.195.03"],
        ),
        ("580.65.06", 12, "0.5.23", []),
        (None, 12, "0.5.23", []),
        ("580.65.06", 10, "0.5.21", ["needs Python 3.11; the log shows 3.10"]),
        (
            "560.35.03",
            10,
            "0.5.10.post1",
            ["needs Python 3.11; the log shows 3.10", "the log shows 560.35.03"],
        ),
    ],
)
def test_the_newest_release_that_runs_there(
    driver: str | None, python: int, installed: str, said: list[str]
) -> None:
    """torch 2.9.1 of 0.5.10.post1 is for CUDA 12.8, that of 0.5.11 and later for CUDA 13 (their wheels)."""
    fix = upgrade(driver, python)
    assert f"pip install sglang=={installed}" in fix.run
    notes = " ".join(fix.notes)
    assert all(part in notes for part in said) and ("has to be" in notes or "needs Python" in notes) is bool(
        said
    )


def test_or_later_ends_with_the_last_release_that_runs_there() -> None:
    """ "or later" would install the newest one: its torch is for CUDA 13."""
    text = SMI.format(driver="570.195.03") + FAILS.format(release="0.4.8.post1", python=12)
    text = text.partition("Traceback")[0] + (
        "Traceback (most recent call last):\n"
        '  File "/opt/envs/s/lib/python3.12/site-packages/sglang/srt/server_args.py", line 400, in __post_init__\n'
        "    assert (\n"
        "AssertionError: DeepEP MoE `auto` mode is not supported with DP Attention.\n"
    )
    knowledge = load_knowledge()
    found = diagnose(reading_from_text(text, knowledge.literals), knowledge).diagnoses[0]
    (fix,) = [f for f in found.fixes if f.title == "Upgrade SGLang from 0.4.8.post1 to 0.4.9 or later"]
    assert fix.run == ('pip install --upgrade "sglang>=0.4.9,<=0.5.10.post1"',)
    assert "the newest release for what is there is 0.5.10.post1" in fix.notes[-1]


def test_where_nothing_newer_runs_there_the_command_stays_and_says_so() -> None:
    fix = upgrade("570.195.03", release="0.5.14")
    assert "pip install sglang==0.5.23" in fix.run
    assert fix.notes[-1].endswith("the log shows 570.195.03")
