"""What two sources say differently about one launch."""

from __future__ import annotations

import pytest

from mtpdoctor.diagnose.engine import diagnose
from mtpdoctor.kb.load import load_knowledge
from mtpdoctor.log.reading import reading_from_text


@pytest.mark.parametrize(
    ("typed", "shown", "told"),
    [
        ("--tp 8 --ep 4", "tp_size=8, ep_size=8, moe_a2a_backend='deepep'", None),  # SGLang raises it itself
        ("--tp 8 --ep 4", "tp_size=8, ep_size=2", "ep_size 4 typed, 2 in the log"),
        ("--tp 4", "tp_size=8, ep_size=1", "tp_size 4 typed, 8 in the log"),
    ],
)
def test_a_log_of_another_command_is_told(typed: str, shown: str, told: str | None) -> None:
    knowledge = load_knowledge()
    text = (
        f"$ python3 -m sglang.launch_server --model-path /m {typed}\n"
        f"[2026-05-05 10:00:00] server_args=ServerArgs(model_path='/m', {shown})\n"
        "[2026-05-05 10:00:09] Load weight begin. avail mem=78.10 GB\n"
    )
    notes = [
        n
        for n in diagnose(reading_from_text(text, knowledge.literals), knowledge).notes
        if "another command" in n
    ]
    assert notes == ([f"this log seems to come from another command: {told}"] if told else [])
