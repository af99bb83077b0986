"""The record of one launch while it goes on: what stands in its ``run.json``, and what must not be shown."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace

from mtpdoctor.redact import mask_secrets, mask_values, secret_values
from mtpdoctor.text import one_line, safe
from mtpdoctor.watch import runs
from mtpdoctor.watch.plan import LaunchPlan

_LONGEST = 8000  # characters of one line that are shown; the log has it all


class Kept:
    """Makes the run's folder. Raises UserError when it cannot be made."""

    def __init__(self, plan: LaunchPlan, attempt: int, after: str | None, edits: Sequence[str]) -> None:
        self.hidden = _secrets_of(plan)
        self.folder, run = runs.new_run(self.masked(" ".join(_shown(plan))), plan.model)
        self.run = replace(run, attempt=attempt, after=after, edits=tuple(map(self.masked, edits)))

    def save(self, **changes: object) -> None:
        self.run = replace(self.run, **changes)  # type: ignore[arg-type]
        runs.save(self.folder, self.run)

    def masked(self, text: str) -> str:
        return mask_values(mask_secrets(one_line(text)), self.hidden)


def masked(text: str, kept: Kept | None) -> str:
    """One line of text that is safe to show; without a launch of ours only what looks like a secret is one."""
    return kept.masked(text) if kept is not None else mask_secrets(one_line(text))


def shown(text: str, kept: Kept | None, *, masked_already: bool) -> str:
    """A line of output as it is shown: what no terminal minds, and not endless."""
    more = ""
    if len(text) > _LONGEST:
        text, more = text[:_LONGEST], f" ... (a line of {len(text)} characters)"
    return (safe(text) if masked_already else masked(text, kept)) + more


def _shown(plan: LaunchPlan) -> tuple[str, ...]:
    """The command as a person would type it, variables first."""
    document = plan.document
    env = document.command.env if document is not None else {}
    return (*(f"{name}={shlex.quote(value)}" for name, value in env.items()), *map(shlex.quote, plan.argv))


def _secrets_of(plan: LaunchPlan) -> tuple[str, ...]:
    """Secrets that command and environment name, which may stand anywhere in the output."""
    texts = [" ".join(_shown(plan)), *(f"{name}={value}" for name, value in plan.env.items())]
    return tuple(sorted(secret_values(texts)))
