"""What two sources say differently, in words."""

from __future__ import annotations

from mtpdoctor.case import Case

# Arguments SGLang takes over as typed; a difference means another command made the log.
_AS_TYPED = (
    "model_path",
    "tp_size",
    "dp_size",
    "pp_size",
    "ep_size",
    "port",
    "quantization",
    "context_length",
    "speculative_draft_model_path",
    "load_format",
)


def contradictions_of(case: Case) -> tuple[str, ...]:
    """Sentences for the report; empty when all sources agree."""
    notes = [
        f"{c.kept.name} is {c.kept.value} by {c.kept.where or c.kept.source.value}, "
        f"but {c.dropped.value} by {c.dropped.where or c.dropped.source.value}; went by the former"
        for c in case.facts.contradictions
        if not c.kept.name.startswith("flag.")
    ]
    differing = []
    for dest in _AS_TYPED:
        typed, in_force = case.facts.fact(f"flag.{dest}"), case.facts.fact(f"arg.{dest}")
        if typed is None or in_force is None or in_force.source.value != "log":
            continue
        if dest == "ep_size" and in_force.value == case.facts.look("arg.tp_size"):
            continue  # SGLang spreads the experts over all ranks by itself, for DeepEP and its like
        if not _alike(str(typed.value).rstrip("/"), str(in_force.value).rstrip("/")):
            differing.append(f"{dest} {typed.value} typed, {in_force.value} in the log")
    if differing:
        notes.append(f"this log seems to come from another command: {'; '.join(differing)}")
    return tuple(notes)


def _alike(typed: str, logged: str) -> bool:
    """Whether a shell may have made ``logged`` of ``typed``: variables can stand for anything, "~/" for a home."""
    if "$" in typed:
        return True
    if typed.startswith("~/"):
        return logged.startswith("/") and logged.endswith(typed[1:])
    return typed == logged
