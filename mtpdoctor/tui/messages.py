"""What regions tell the application. Messages go up, a ``Session`` comes down."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.message import Message

if TYPE_CHECKING:
    from mtpdoctor.launch.document import LaunchDocument
    from mtpdoctor.launch.types import Edit
    from mtpdoctor.watch.types import AttemptRecord, Ended


class OpenLog(Message):
    """Read these files as the log(s) of one launch."""

    def __init__(self, paths: tuple[str, ...]) -> None:
        super().__init__()
        self.paths = paths


class OpenContainer(Message):
    """Fetch the log of this Docker container and read it."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name


class ShowLine(Message):
    """Go to a line of the log and show it. ``number`` counts from 1, ``file`` indexes ``Session.logs``."""

    def __init__(self, file: int, number: int) -> None:
        super().__init__()
        self.file = file
        self.number = number


class ShowRule(Message):
    """Open the long form of a rule in the Knowledge region."""

    def __init__(self, rule: str) -> None:
        super().__init__()
        self.rule = rule


class ShowRegion(Message):
    """Go to another region, by its name in tabs.py."""

    def __init__(self, region: str) -> None:
        super().__init__()
        self.region = region


class ChooseDiagnosis(Message):
    """Look at another cause: its index in ``Report.diagnoses``."""

    def __init__(self, index: int) -> None:
        super().__init__()
        self.index = index


class ChooseEdits(Message):
    """These edits are switched on now: build the command and check it."""

    def __init__(self, edits: tuple[Edit, ...]) -> None:
        super().__init__()
        self.edits = edits


class EditCommand(Message):
    """The person edited the command by hand."""

    def __init__(self, command: str) -> None:
        super().__init__()
        self.command = command


class CopyText(Message):
    """Put text on the clipboard (OSC 52, else a file whose name is shown)."""

    def __init__(self, text: str, what: str) -> None:
        super().__init__()
        self.text = text
        self.what = what


class LaunchCommand(Message):
    """The person said yes: launch the chosen command and watch it."""

    def __init__(self, command: str) -> None:
        super().__init__()
        self.command = command


class EndLaunch(Message):
    """End the running launch: gently, or ``hard`` at once."""

    def __init__(self, hard: bool = False) -> None:
        super().__init__()
        self.hard = hard


class LaunchEnded(Message):
    """A launch is over: its line for the history, how it ended, and the launch as it was (None: somebody else's).

    One that died is to be diagnosed from ``record.log``, with ``document`` as the command."""

    def __init__(self, record: AttemptRecord, ended: Ended, document: LaunchDocument | None) -> None:
        super().__init__()
        self.record = record
        self.ended = ended
        self.document = document


class ProbeAgain(Message):
    """Ask the host again."""
