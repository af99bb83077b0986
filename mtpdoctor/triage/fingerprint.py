"""When two failures are the same: the rule and what distinguishes it; for an unknown one the exception and
its raise site. Pure.

The key must not change with host, rank, transport, path, port, size, time or SGLang release, or one problem
falls apart; and it must hold what makes the remedy another one (architecture, flag, backend, module), or two
problems become one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from hashlib import blake2b

from mtpdoctor.diagnose.types import Diagnosis
from mtpdoctor.diagnose.unknown import deciding_frame
from mtpdoctor.kb.types import Rule
from mtpdoctor.log.types import Frame, Traceback
from mtpdoctor.triage.normal import normal, normal_capture
from mtpdoctor.triage.types import Fingerprint

# Captures that name a thing of SGLang, of the model's architecture or of a library. What is not listed
# (path, port, host, size, rank, count, version ...) differs from launch to launch.
IDENTITY = frozenset(
    {
        "algorithm", "arch", "architectures", "argument", "arguments", "attr", "backend", "backends", "check",
        "class", "cls", "config", "draft", "dtype", "error", "field", "file", "flag",
        "flags", "function", "kernel", "keyword", "kind", "lib", "library", "layout", "method", "module", "name",
        "needed", "op", "option", "other", "package", "parser", "phase", "policy", "reason",
        "required", "runner", "signal", "store", "strategy", "style", "symbol", "token", "tool", "type", "value",
        "variable", "what", "why",
    }
)  # fmt: skip
# Names that people choose, and values that are wrong whatever they are.
NOT_IDENTITY = {
    "MTP0031": {"process"},
    "MTP0103": {"value"},
    "MTP0107": {"value"},
    "MTP0430": {"name"},
    "MTP0446": {"value"},
    "MTP0461": {"name"},
    "MTP0575": {"name"},
    "MTP0577": {"name"},
    "MTP0578": {"name"},
    "MTP0579": {"name"},
}
# A generic rule names where it showed; what happened is told by the exception, so that is part of the fingerprint.
# Not so where chance decides which rank, peer, kernel or allocation it strikes.
_REFINED = frozenset(
    {"sglang", "python", "torch", "flashinfer", "sgl-kernel", "triton"}
)  # whose message it is
_BY_CHANCE = frozenset(
    {
        "MTP0032", "MTP0513", "MTP0529", "MTP0540", "MTP0703", "MTP0777", "MTP0880", "MTP0882", "MTP0890", "MTP0914",
        "MTP0980", "MTP1096",
    }
)  # fmt: skip


# Options that a path may be the value of; the model's own path is what most rules mean anyway.
_PATHS = (
    "tokenizer_path",
    "speculative_draft_model_path",
    "speculative_draft_model",
    "chat_template",
    "lora_paths",
)
_HUB_ID = re.compile(r"[\w.-]+/[\w.:@-]+\Z")


def fingerprint_of(
    diagnosis: Diagnosis, rule: Rule | None, facts: Mapping[str, object] | None = None
) -> Fingerprint:
    """``rule``: the one that the diagnosis names, None where none knows it; ``facts``: of the launch."""
    if rule is None:
        return make(None, unknown_parts(diagnosis))
    left_out = NOT_IDENTITY.get(rule.id, set())
    parts = [rule.id]
    for name, value in sorted(diagnosis.captures):
        if name in IDENTITY and name not in left_out:
            text = normal_capture(name, value)
            if text:
                parts.append(f"{name}={text}")
        elif name == "path" and (kind := _kind_of_path(value, facts or {})):
            parts.append(f"path={kind}")
    if rule.generic and rule.source in _REFINED and rule.id not in _BY_CHANCE:
        parts += unknown_parts(diagnosis)
    return make(rule.id, parts)


def _kind_of_path(value: str, facts: Mapping[str, object]) -> str | None:
    """What a path is: that of another option than the model's, or no path but the name of a repository. Which path it
    is differs from host to host."""
    if value != facts.get("arg.model_path"):
        for option in _PATHS:
            if value == facts.get(f"arg.{option}"):
                return option
    return "<repository>" if _HUB_ID.match(value) else None


def unknown_parts(diagnosis: Diagnosis) -> list[str]:
    """The exception in normal form, and where it was raised: functions and their modules, no line numbers."""
    raised = diagnosis.raised
    if raised is None or not raised.type:
        return [normal(_first_line(diagnosis.root.body))]
    message = normal(_first_line(raised.message))
    short = raised.type.rpartition(".")[2]  # releases of a library move their exceptions
    parts = [f"{short}: {message}" if message else short]
    site = raise_site(raised)
    return [*parts, "in " + " < ".join(site)] if site else parts


def raise_site(raised: Traceback) -> tuple[str, ...]:
    """The function that raised it, then SGLang's own that called it, as ``module.function``."""
    if not raised.frames:
        return ()
    last, own = raised.frames[-1], deciding_frame(raised)
    return tuple(dict.fromkeys((_site(last), _site(own))))


def _site(frame: Frame) -> str:
    module = frame.path.replace("\\", "/").rpartition("/")[2].removesuffix(".py")
    return f"{module}.{frame.function}"


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.split("\n") if line.strip()), "")


def make(rule: str | None, parts: Iterable[str]) -> Fingerprint:
    """The fingerprint of these parts. The same parts give the same key on every machine, forever."""
    parts = tuple(parts)
    text = "\x1f".join(("1", rule or "", *parts))
    return Fingerprint(blake2b(text.encode("utf-8", "replace"), digest_size=8).hexdigest(), rule, parts)
