"""Words of a command and the notations that hold them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from mtpdoctor.launch.layers import Splice
from mtpdoctor.records import dataclass, field


class Host(Protocol):
    """The notation a word stands in. All methods give splices and change nothing."""

    def replace(self, word: Word, value: str) -> list[Splice]:
        """Write another value in the word's place."""

    def insert_after(
        self, word: Word, groups: Sequence[Sequence[str]], like: Word | None = None
    ) -> list[Splice]:
        """Write new words after ``word``; each group (a flag and its values) stands together.

        ``like`` is a word whose way of standing apart from the one before is imitated.
        """

    def remove(self, words: Sequence[Word]) -> list[Splice]:
        """Take neighbouring words out, with the blank space that set them apart."""


@dataclass(frozen=True, slots=True, eq=False)
class Word:
    """One argument: its value as the program gets it, and its place ``start:end`` in the host's text."""

    value: str
    host: Host
    start: int
    end: int
    open: bool = False  # holds an expansion that only a run could resolve, e.g. "$@"
    source: Any = None  # the host's own handle (lexeme, YAML node)


@dataclass(frozen=True, slots=True)
class Binding:
    """One place that gives the server a variable; later bindings win."""

    name: str
    value: str
    replace: Callable[[str], list[Splice]]
    remove: Callable[[], list[Splice]]


@dataclass(frozen=True, slots=True)
class Site:
    """A server command as it stands in a document, with the ways to change it."""

    program: tuple[Word, ...]
    args: tuple[Word, ...]
    bindings: tuple[Binding, ...]
    add_env: Callable[[str, str], list[Splice]]
    program_values: tuple[str, ...] | None = None  # where the program is not written as words
    container: Mapping[str, str] | None = None
    edit_container: Callable[[str, str], list[Splice]] | None = None
    append: Callable[[Sequence[Sequence[str]]], list[Splice]] | None = None  # where args has no word yet
    env_files: tuple[str, ...] = ()
    scheduler: Mapping[str, str] = field(default_factory=dict)
    image_default: bool = False
    before: tuple[Word, ...] = ()  # what runs the program: numactl, uv run, ...
    carriers: tuple[str, ...] = ()  # commands whose quoted word the command stands in: bash, ssh, tmux
