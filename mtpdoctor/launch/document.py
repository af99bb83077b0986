"""A launch command in the text it was written in: read it, edit it, give the text back."""

from __future__ import annotations

from collections.abc import Sequence

from mtpdoctor.errors import UserError
from mtpdoctor.launch.edits import CONTAINER_OPS, command_of, holds, site_splices
from mtpdoctor.launch.flags import FlagTable, default_table, flag_dest
from mtpdoctor.launch.forms.reading import detect_form, read_sites
from mtpdoctor.launch.layers import Splice, splice_all
from mtpdoctor.launch.render import command_line
from mtpdoctor.launch.types import Edit, EditOp, Form, LaunchCommand
from mtpdoctor.launch.words import Site
from mtpdoctor.records import dataclass

_MANY = 8  # options to take out, from which on they go in one reading of the text


@dataclass(frozen=True, slots=True)
class LaunchDocument:
    """A text and the server commands in it. Reading and editing never run anything."""

    form: Form
    text: str
    commands: tuple[LaunchCommand, ...]
    name: str
    table: FlagTable
    sites: tuple[Site, ...]

    @property
    def command(self) -> LaunchCommand:
        """The server's command; of several nodes the one with rank 0, else the first."""
        for command in self.commands:
            rank = command.value("node_rank")
            if rank and rank[-1] == "0":
                return command
        return self.commands[0]

    @property
    def line(self) -> str:
        """The command in one line to paste. Where another program carries it (a container's ``exec``, numactl,
        ``bash -c``) the line as it stands: without that the server starts elsewhere."""
        site = self.sites[self.commands.index(self.command)]
        if self.one_line or (self.form is Form.SHELL and (site.before or site.carriers)):
            return self.text.strip()
        return command_line(self.command, written=self.written)

    @property
    def written(self) -> str:
        """The text, where a shell reads it itself."""
        return self.text if self.form in (Form.SHELL, Form.SCRIPT) else ""

    @property
    def one_line(self) -> bool:
        """Is it one line that starts a container, to be pasted as it stands?"""
        return self.form is Form.DOCKER and "\n" not in self.text.strip()

    @property
    def launches(self) -> tuple[tuple[int, ...], ...]:
        """Indices of the commands that start one server together (its nodes, its replicas).

        Commands belong together when they serve the same model in the same disaggregation role.
        """
        groups: dict[tuple[object, ...], list[int]] = {}
        for i, command in enumerate(self.commands):
            model = command.value("model_path") or command.positionals[:1]
            groups.setdefault((model, command.value("disaggregation_mode")), []).append(i)
        return tuple(tuple(g) for g in groups.values())

    def apply(self, edits: Sequence[Edit], *, of: int | None = None) -> LaunchDocument:
        """The document after the edits, made alike on every command of one launch.

        ``of`` is the index of one of the launch's commands (default: ``command``'s). All else stays byte for
        byte. Raises UserError when an edit cannot be written in this form.
        """
        document = self
        index = self.commands.index(self.command) if of is None else of
        leading = next((n for n, edit in enumerate(edits) if edit.op is not EditOp.REMOVE), len(edits))
        if leading > _MANY and (at_once := self._without(edits[:leading], index)) is not None:
            document, edits = at_once, edits[leading:]
        for edit in edits:
            document = document._apply_one(edit, index)
        return document

    def _without(self, removals: Sequence[Edit], index: int) -> LaunchDocument | None:
        """Many options taken out in one reading; None where that cannot be written, or leaves anything else changed."""
        group = next(g for g in self.launches if index in g)
        try:
            splices = [s for e in removals for i in group for s in site_splices(self.sites[i], e, self.table)]
            text = splice_all(splices, self.text)
            document = read_launch(text, name=self.name, form=self.form, table=self.table)
        except (ValueError, UserError):
            return None
        if len(document.commands) != len(self.commands):
            return None
        gone = {flag_dest(edit.name, self.table) for edit in removals}
        for i in group:
            now, before = document.commands[i], self.commands[i]
            if now.flags != tuple(f for f in before.flags if f.dest not in gone) or now.env != before.env:
                return None
        return document

    def _apply_one(self, edit: Edit, index: int) -> LaunchDocument:
        group = next(g for g in self.launches if index in g)
        if edit.op in CONTAINER_OPS and all(self.sites[i].edit_container is None for i in group):
            raise UserError(
                f"{edit} needs a container, and this {self.form.value} command starts none",
                hint="apply it where the container is started (docker run, compose file, manifest)",
            )
        try:
            splices: list[Splice] = []
            for i in group:
                splices += site_splices(self.sites[i], edit, self.table)
        except ValueError as error:
            raise UserError(f"cannot write {edit} here: {error}") from None
        if not splices:
            return self
        for rewrite in (False, True):
            try:
                text = splice_all(splices, self.text, rewrite=rewrite)
                document = read_launch(text, name=self.name, form=self.form, table=self.table)
            except (ValueError, UserError):
                continue
            if (
                len(document.commands) == len(self.commands)
                and all(holds(document.commands[i], self.commands[i], edit, self.table) for i in group)
                and (edit.op not in CONTAINER_OPS or document._settled(edit, group))
            ):
                return document
        raise UserError(
            f"{edit} cannot be made in {self.name} without changing something else",
            hint="make this change by hand: the words it touches are shared or computed",
        )

    def _settled(self, edit: Edit, group: Sequence[int]) -> bool:
        """Whether making the edit again would change nothing: it stands where this form reads it."""
        if all(self.sites[i].edit_container is None for i in group):
            return False
        again = [s for i in group for s in site_splices(self.sites[i], edit, self.table)]
        return splice_all(again, self.text) == self.text

    def diff(self, other: LaunchDocument, name: str | None = None) -> str:
        """Unified diff from this text to ``other``'s; empty when they are equal."""
        import difflib

        name = name or self.name
        out: list[str] = []
        for line in difflib.unified_diff(
            _lines(self.text),
            _lines(other.text),
            f"a/{name}",
            f"b/{name}",
        ):
            out.append(line if line.endswith("\n") else line + "\n\\ No newline at end of file\n")
        return "".join(out)


def _lines(text: str) -> list[str]:
    """Lines as diff and patch see them: split at line feeds only."""
    lines = text.split("\n")
    return [line + "\n" for line in lines[:-1]] + lines[-1:] * bool(lines[-1])


def read_launch(
    text: str, *, name: str = "command", form: Form | None = None, table: FlagTable | None = None
) -> LaunchDocument:
    """Read a launch command in any form. ``name`` (a file's name) and the content tell the form.

    Raises UserError with line and column when the text cannot be read, and saying what was found instead
    when no SGLang server is started in it.
    """
    table = table if table is not None else default_table()
    form = form if form is not None else detect_form(text, name)
    sites, found = read_sites(text, name, form, table)
    commands = tuple(command_of(site, found, table) for site in sites)
    return LaunchDocument(found, text, commands, name, table, tuple(sites))
