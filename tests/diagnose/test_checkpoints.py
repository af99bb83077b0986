"""Another checkpoint is a way out only where its weights fit."""

from __future__ import annotations

from mtpdoctor.diagnose.checkpoints import fitting_checkpoints
from mtpdoctor.diagnose.engine import diagnose
from mtpdoctor.diagnose.given import Given
from mtpdoctor.diagnose.the_case import case_of
from mtpdoctor.diagnose.types import Fix
from mtpdoctor.host.spec import parse_gpu_spec
from mtpdoctor.kb.load import load_knowledge
from mtpdoctor.log.reading import reading_from_text


def fix(title: str) -> Fix:
    return Fix(title, "manual", "", None, (), (), None, "none")


OTHERS = fix("Use another checkpoint of the model (BF16, FP8, AWQ)")
PLAIN = fix("Serve an unquantized (BF16) checkpoint")
UPGRADE = fix("Upgrade SGLang to 0.5.23")


def fitted(model: str, free: float, *fixes: Fix, options: str = "--tp 2") -> tuple[Fix, ...]:
    text = (
        f"$ python3 -m sglang.launch_server --model-path /models/{model} {options}\n"
        f"[2026-05-05 10:00:02 TP0] Load weight begin. avail mem={free:.2f} GB\n"
        "[2026-05-05 10:00:03 TP0] Scheduler hit an exception: Traceback (most recent call last):\n"
        '  File "/opt/sglang/python/sglang/srt/layers/warp.py", line 9, in create_weights\n    x = y()\n'
        "KeyError: 'warp'\n"
    )
    reading = reading_from_text(text, load_knowledge().literals)
    assert reading.attempt is not None
    return fitting_checkpoints(fixes, case_of(reading, reading.attempt, Given())[0])


def test_of_several_formats_those_that_are_too_large_are_named() -> None:
    first, second = fitted("Some-27B-W4", 22.5, OTHERS, UPGRADE, options="")
    (note,) = first.notes
    assert "27 billion parameters" in note and note.endswith("too large: BF16, FP8")
    assert (first.title, second) == (OTHERS.title, UPGRADE)


def test_what_cannot_fit_in_any_format_is_not_offered_beside_others() -> None:
    assert fitted("Some-27B-W4", 22.5, PLAIN, UPGRADE) == (UPGRADE,)
    (alone,) = fitted("Some-27B-W4", 22.5, PLAIN)
    assert alone.notes[0].endswith("too large: BF16")


def test_all_stays_where_it_fits_or_nothing_is_known() -> None:
    for model, free in (("Some-8B", 78.0), ("Some-model", 22.5)):
        assert fitted(model, free, OTHERS, PLAIN) == (OTHERS, PLAIN)


def test_weights_in_host_memory_are_not_counted() -> None:
    assert fitted("Some-122B", 22.5, PLAIN, UPGRADE, options="--tp 2 --cpu-offload-gb 200") == (
        PLAIN,
        UPGRADE,
    )


def test_experts_times_their_size() -> None:
    assert "56 billion" in fitted("Some-8x7B", 22.5, OTHERS)[0].notes[0]


def test_more_gpus_that_are_too_few_all_the_same_go_last_and_say_so() -> None:
    log = (
        "$ python3 -m sglang.launch_server --model-path some/Thing-405B --tp 2\n"
        "[2026-05-05 10:00:00] sglang==0.5.9\n"
        "[2026-05-05 10:00:02 TP0] Load weight begin. avail mem=23.10 GB\n"
        "[2026-05-05 10:00:03 TP0] Scheduler hit an exception: Traceback (most recent call last):\n"
        '  File "/opt/sglang/srt/model_loader/loader.py", line 743, in load_model\n    x = y()\n'
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 594.00 MiB. GPU 0 has a total capacity of 23.5 GiB "
        "of which 302.81 MiB is free.\n"
    )
    knowledge = load_knowledge()
    for model, size, last in (("some/Thing-405B", "94", True), ("some/Thing-27B", "", False)):
        text = log.replace("some/Thing-405B", model)
        given = Given(host=parse_gpu_spec("4xsm89@24"))
        said = diagnose(reading_from_text(text, knowledge.literals), knowledge, given).diagnoses[0]
        assert said.rule == "MTP0640"
        at = next(n for n, one in enumerate(said.fixes) if any(e.name == "--tp-size" for e in one.edits))
        notes = " ".join(said.fixes[at].notes)
        assert (at == len(said.fixes) - 1 and f"each of 4 GPUs would hold {size} GiB" in notes) is last
