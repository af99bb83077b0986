"""What a person gives beside a log, or in place of one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mtpdoctor.records import dataclass

if TYPE_CHECKING:
    from mtpdoctor.host.types import HostFacts
    from mtpdoctor.launch.document import LaunchDocument
    from mtpdoctor.model.types import ModelFacts


@dataclass(frozen=True, slots=True)
class Given:
    """What the person gave beside the log. A given command goes before one the log shows."""

    document: LaunchDocument | None = None
    command_where: str | None = None
    host: HostFacts | None = None
    model: ModelFacts | None = None
    release: str | None = None
    models_here: bool = False  # the model that a log names may be looked for on this machine
