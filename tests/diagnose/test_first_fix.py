"""The order of fixes: what helped most often first where no rule knows the failure; what is open; what changes nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mtpdoctor.diagnose import ranking
from mtpdoctor.diagnose.engine import diagnose
from mtpdoctor.diagnose.installs import once
from mtpdoctor.diagnose.types import Fix
from mtpdoctor.kb.load import load_knowledge
from mtpdoctor.launch.types import Edit, EditOp
from mtpdoctor.log.reading import read_logs
from mtpdoctor.records import replace
from mtpdoctor.report.json import to_json

ROOT = Path(__file__).resolve().parents[2]


def fix(title: str, safety: str = "manual", why: str = "") -> Fix:
    return Fix(title, safety, why, None, (), (), None, "none")


def titles(fixes: tuple[Fix, ...]) -> list[str]:
    return [f.title for f in fixes]


def test_a_kind_that_mostly_helped_passes_one_that_seldom_did() -> None:
    seldom, mostly = (
        fix("Look whether it is known - search the issues"),
        fix("Serve without the hierarchical cache"),
    )
    assert titles(ranking.ranked([seldom, mostly])) == [mostly.title, seldom.title]


def test_a_safe_fix_is_passed_by_nothing() -> None:
    safe, mostly = fix("Warp the core", "safe"), fix("Serve without the hierarchical cache", "risky")
    assert titles(ranking.ranked([mostly, safe])) == [safe.title, mostly.title]


def test_the_same_edits_are_offered_once() -> None:
    edits = (Edit(EditOp.REMOVE, "--a"), Edit(EditOp.SET, "--b", "1"))
    one, two, other = (fix(title) for title in ("Serve without a", "Try without a", "Serve without b"))
    fixes = (replace(one, edits=edits), replace(two, edits=edits[::-1]), replace(other, edits=edits[:1]))
    assert titles(once(fixes)) == [one.title, other.title]


def test_kinds_that_nobody_counted_keep_their_order() -> None:
    two = [fix("Warp the core"), fix("Bend the field")]
    assert ranking.ranked(two) == tuple(two)


@pytest.mark.parametrize(
    ("why", "kind"),
    [
        ("the very line that fails, in f (srt/x.py), is in no release from 0.5.7 on", "line gone"),
        ("f (srt/x.py), where it dies, changed in 0.5.7", "function changed"),
        ("0.5.23 still has this check; the code around it changed in 0.5.9", "check stands"),
    ],
)
def test_an_upgrade_counts_by_what_speaks_for_it(why: str, kind: str) -> None:
    assert ranking.kind_of("Upgrade SGLang from 0.5.3 to 0.5.23", why) == f"Upgrade SGLang, {kind}"


def test_what_was_counted_is_more_offered_than_right() -> None:
    counts = json.loads((ROOT / "knowledge" / ranking.FILE).read_text(encoding="utf-8"))
    assert counts["launches"] > 400
    assert all(0 <= right <= offered for right, offered in counts["kinds"].values())
    assert any(kind.startswith("Upgrade SGLang, ") for kind in counts["kinds"])


SITE = "/usr/lib/python3/site-packages"


def first(tmp_path: Path, command: str, *frames: str, error: str) -> dict:
    shown = "".join(f'  File "{path}", line 9, in forward\n    warp()\n' for path in frames)
    log = tmp_path / "server.log"
    log.write_text(f"{command}\nTraceback (most recent call last):\n{shown}{error}\n", encoding="utf-8")
    knowledge = load_knowledge()
    return to_json(diagnose(read_logs([str(log)], knowledge.literals), knowledge))["diagnoses"][0]


@pytest.mark.parametrize(("gpu", "offered"), [("NVIDIA H200", False), ("NVIDIA A100-SXM4-80GB", True)])
def test_an_option_is_not_left_out_where_the_release_chooses_its_value_again(
    tmp_path: Path, gpu: str, offered: bool
) -> None:
    found = first(
        tmp_path,
        "$ python -m sglang.launch_server --model-path meta-llama/Llama-3.1-8B-Instruct --attention-backend fa3\n"
        f"SGLang version: 0.5.9 on {gpu}\n[2026-11-29 10:00:00] Load weight end. type=LlamaForCausalLM, avail mem=9 GB",
        f"{SITE}/sglang/srt/layers/attention/flashattention_backend.py",
        error="RuntimeError: warp is late",
    )
    left_out = [f for f in found["fixes"] if [e["op"] for e in f["edits"]] == ["remove"]]
    assert bool(left_out) is offered


def on(platform: str, *titles_: str, run: tuple[str, ...] = ()) -> list[str]:
    """What is left of fixes with these titles on a platform."""
    from mtpdoctor.case import build_case
    from mtpdoctor.diagnose.fitness import fitting
    from mtpdoctor.facts import Source, make_facts
    from mtpdoctor.records import replace

    case = build_case()
    if platform:
        case = replace(case, facts=make_facts({"host.platform": platform}, Source.USER, "test"))
    return titles(fitting([replace(fix(t), run=run) for t in titles_], case))


NVIDIAS = "Bring the NVIDIA driver up to the CUDA of the packages"
AMDS = "Start servers on one node one after another; rocm-smi shows when the first is ready"


def test_what_one_make_of_accelerator_has_is_offered_on_it_and_where_the_make_is_not_known() -> None:
    assert on("cuda", NVIDIAS, AMDS) == [NVIDIAS]
    assert on("rocm", NVIDIAS, AMDS) == [AMDS]
    assert ["Ascend image" in title for title in on("npu", NVIDIAS, AMDS)] == [True]  # never nothing
    assert on("", NVIDIAS, AMDS) == [NVIDIAS, AMDS]


def test_what_takes_another_makes_package_away_or_speaks_of_several_stays() -> None:
    away = "Uninstall flashinfer, which does not belong into this environment"
    both = "Look at the GPUs (nvidia-smi, rocm-smi)"
    aside = "Look at the transfer's settings; on Ascend ASCEND_MF_STORE_URL"
    assert on("rocm", away, both, aside) == [away, both, aside]


def test_a_command_of_anothers_tools_binds_a_fix_like_its_title() -> None:
    assert "See what else is on the card" not in on(
        "npu", "See what else is on the card", run=("nvidia-smi",)
    )


def test_a_release_that_runs_already_is_not_asked_for() -> None:
    from mtpdoctor.case import build_case
    from mtpdoctor.diagnose.fitness import fitting
    from mtpdoctor.records import replace

    newer = replace(fix("Upgrade SGLang to 0.5.13 or later"), run=('pip install --upgrade "sglang>=0.5.13"',))
    other = fix("Serve without it")
    for release, left in (
        ("0.5.12", [newer, other]),
        ("0.5.13", [other]),
        ("0.5.19", [other]),
        (None, [newer, other]),
    ):
        assert list(fitting([newer, other], build_case(release=release))) == left, release
    assert list(fitting([newer], build_case(release="0.5.19"))) == [newer]  # never nothing


@pytest.mark.parametrize(
    ("release", "name"),
    [("0.5.10", "--mamba-scheduler-strategy"), ("0.5.20", "--mamba-radix-cache-strategy")],
)
@pytest.mark.parametrize("typed", [False, True])
def test_what_is_taken_out_is_named_as_the_release_calls_it(
    tmp_path: Path, release: str, name: str, typed: bool
) -> None:
    """0.5.20 knows the option by its new name only (source: its parser)."""
    log = tmp_path / "server.log"
    log.write_text(
        (f"$ python3 -m sglang.launch_server --model-path /models/m {name} extra_buffer\n" if typed else "")
        + f"sglang=={release}\n"
        "[2026-08-26 10:00:02] Scheduler hit an exception: Traceback (most recent call last):\n"
        '  File "/opt/sglang/python/sglang/srt/managers/schedule_batch.py", line 2190, in prepare_for_extend\n'
        "    track_index = req.mamba_ping_pong_track_buffer[0]\n"
        "TypeError: 'NoneType' object is not subscriptable\n"
    )
    knowledge = load_knowledge()
    said = to_json(diagnose(read_logs([str(log)], knowledge.literals), knowledge))["diagnoses"][0]
    assert [e["name"] for e in said["fixes"][0]["edits"]] == [name]


def test_options_of_the_language_server_are_not_offered_to_the_one_for_pictures(tmp_path: Path) -> None:
    said = first(
        tmp_path,
        "$ sglang serve --model-path black-forest-labs/FLUX.1-dev --num-gpus 2\nSGLang version: 0.5.19",
        f"{SITE}/sglang/multimodal_gen/runtime/layers/attention/triton_backend.py",
        error="RuntimeError: warp kernel exceeds shared memory",
    )
    assert all(
        e["name"] != "--attention-backend" or e["value"] != "flashinfer"
        for f in said["fixes"]
        for e in f["edits"]
    )
    assert all(
        e["name"] not in ("--tp-size", "--disable-cuda-graph") for f in said["fixes"] for e in f["edits"]
    )


def test_a_chain_of_commands_loses_only_the_wheel_for_another_make() -> None:
    from mtpdoctor.diagnose.own_build import _spelled
    from mtpdoctor.records import replace

    chained = "uv venv --python 3.12 && source .venv/bin/activate && uv pip install sglang"
    before = replace(
        fix("Make an environment"), run=(chained, "uv pip install sglang", "pip install sglang-router")
    )
    after = _spelled(before, "npu")
    assert after.run == ("uv venv --python 3.12 && source .venv/bin/activate", "pip install sglang-router")
    assert "Ascend image" in after.why
