"""A launch that dies of an error no fixture has."""

from __future__ import annotations

import json
from typing import Any

from mtpdoctor.diagnose.engine import diagnose
from mtpdoctor.diagnose.given import Given
from mtpdoctor.kb.load import load_knowledge
from mtpdoctor.launch.document import read_launch
from mtpdoctor.log.reading import reading_from_text
from mtpdoctor.report.json import to_json

LAUNCH = "python -m sglang.launch_server --model-path /m/Q"
LOADING = "[2026-11-29 13:46:12 TP0] Load weight begin. avail mem=78.0 GB"
SITE = "/usr/lib/python3/site-packages"


def first(
    error: str,
    frames: tuple[str, ...] = (),
    release: str | None = "0.5.13.post1",
    *,
    before: tuple[str, ...] = (),
    more: str = "",
) -> dict[str, Any]:
    """The first diagnosis of a launch that dies of ``error`` raised through ``frames`` (path:function), after the
    lines ``before``; ``more``: of its command."""
    lines = [
        *before,
        "[2026-11-29 13:46:42 TP0] Scheduler hit an exception: Traceback (most recent call last):",
    ]
    for frame in frames:
        path, _, function = frame.partition(":")
        lines += [f'  File "{path}", line 7, in {function}', "    self.warp(x)"]
    text = "\n".join([*lines, error, "", "[2026-11-29 13:46:43] Received sigquit from a child process."])
    knowledge = load_knowledge()
    given = Given(release=release, document=read_launch(f"{LAUNCH} {more}".strip()))
    report = to_json(diagnose(reading_from_text(text, knowledge.literals), knowledge, given))
    found: dict[str, Any] = json.loads(json.dumps(report))["diagnoses"][0]
    assert error.split("\n")[0] in found["root"]["text"]
    return found
