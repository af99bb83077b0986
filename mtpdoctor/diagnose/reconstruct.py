"""A launch command put together from the ``server_args=`` line, where the log shows no command.

It is what the server ran with, not what was typed: arguments that SGLang decides by itself at start
(memory fraction, attention backend, chunk sizes, ...) are left out, since typing them would pin them.
"""

from __future__ import annotations

import shlex
from typing import Any

from mtpdoctor.log.types import Attempt
from mtpdoctor.release import Release
from mtpdoctor.sglang.arguments import decided_at_start, default_arguments
from mtpdoctor.sglang.flags import flag_table


def reconstructed_command(attempt: Attempt, release: Release | None) -> str | None:
    """None when the log shows no server arguments. ``release`` is the one whose defaults count."""
    values: dict[str, Any] = {}
    for observation in attempt.observations:
        if observation.name.startswith("arg."):
            values.setdefault(observation.name[4:], observation.value)
    if not values.get("model_path"):
        return None
    defaults = default_arguments(release)
    table = flag_table(release)
    words = ["python", "-m", "sglang.launch_server", "--model-path", str(values["model_path"])]
    for dest, value in values.items():
        if dest == "model_path" or dest in decided_at_start() or value == defaults.get(dest, value):
            continue
        spec = table.resolve("--" + dest.replace("_", "-"))
        if spec is None or spec.dest != dest or value in (None, [], ()) or isinstance(value, dict):
            continue
        if spec.arity == "switch":
            words += [spec.name] if value is True else []
        elif isinstance(value, (list, tuple)):
            words += [spec.name, *(str(v) for v in value)]
        else:
            words += [spec.name, str(value)]
    return shlex.join(words)
