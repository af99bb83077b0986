"""The root line is where the error was raised, not where it is quoted; a cause that points at the message shows it."""

from __future__ import annotations

import pytest
from own_knowledge import own_knowledge

from mtpdoctor.diagnose.engine import Given, diagnose
from mtpdoctor.diagnose.types import Diagnosis
from mtpdoctor.log.reading import reading_from_text

SERVER = '  File "/opt/sglang/srt/entrypoints/{file}", line 9, in {function}\n    {code}\n'
WARM_UP = (
    "[2026-08-20 03:13:09] Initialization failed. warmup error: Traceback (most recent call last):\n"
    + SERVER.format(
        file="http_server.py", function="_execute_server_warmup", code="assert res.status_code == 200"
    )
    + 'AssertionError: {{"object":"error","message":"Internal server error: {quoted}","code":500}}\n'
)
REQUEST = (
    "[2026-08-20 03:13:09] Error in request: {said}\nTraceback (most recent call last):\n"
    + SERVER.format(
        file="openai/serving_base.py", function="handle_request", code="return await self._handle("
    )
    + "RuntimeError: {said}\n"
    + '[2026-08-20 03:13:09] INFO:     127.0.0.1:5 - "POST /v1/chat/completions HTTP/1.1" 500 Internal Server Error\n'
)


def first(log: str, release: str = "0.5.13.post1") -> Diagnosis:
    knowledge = own_knowledge()
    return diagnose(reading_from_text(log, knowledge.literals), knowledge, Given(release=release)).diagnoses[
        0
    ]


@pytest.mark.parametrize(
    ("said", "quoted", "root"),
    [
        ("the frobnicator is not set up", "the frobnicator is not set up", "RuntimeError: the frobnicator"),
        ("no \"qwen\" 'x' here at all", "no \\\"qwen\\\" 'x' here at all", "RuntimeError: no "),
        ("something else went wrong", "the frobnicator is not set up", "AssertionError: "),
    ],
)
def test_a_warm_up_that_quotes_the_server(said: str, quoted: str, root: str) -> None:
    log = f"$ python -m sglang.launch_server --model-path M\n{REQUEST.format(said=said)}{WARM_UP.format(quoted=quoted)}"
    assert first(log).root.body.startswith(root)


def test_a_cause_that_points_at_the_message_shows_it() -> None:
    log = "ValueError: UNO requires --uno-lora-path.\n"
    assert 'Here it says: "UNO requires --uno-lora-path".' in first(log, "0.5.23").cause
