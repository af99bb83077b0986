"""With speculation against without: the same prompts, the same server otherwise, and honest numbers."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from mtpdoctor.launch.document import LaunchDocument
from mtpdoctor.watch.target import Target

# Launches a document, waits until it is ready, yields where it listens, and ends it when the block is left.
Launcher = Callable[[LaunchDocument], AbstractContextManager[Target]]


@dataclass(frozen=True, slots=True)
class Plan:
    """What is measured."""

    max_tokens: int = 128
    repetitions: int = 5
    concurrencies: tuple[int, ...] = (1, 4)
    timeout_s: float = 300.0  # of one request


def without_speculation(document: LaunchDocument) -> LaunchDocument:
    """The same launch with no flag of speculation. Raises UserError when it asks for none."""
    raise NotImplementedError
