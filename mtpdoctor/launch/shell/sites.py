"""SGLang server commands in shell text."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Mapping, Sequence

from mtpdoctor.launch.layers import Layer, Raw, Splice
from mtpdoctor.launch.shell.commands import SimpleCommand, simple_commands
from mtpdoctor.launch.shell.lexer import Lexeme, ShellSyntaxError, assignment, tokenize
from mtpdoctor.launch.shell.locate import AddEnv, Surroundings, locate
from mtpdoctor.launch.shell.notation import ShellHost, inner_layer, quote
from mtpdoctor.launch.shell.programs import talks_only
from mtpdoctor.launch.shell.scope import Scope
from mtpdoctor.launch.words import Binding, Site, Word
from mtpdoctor.patterns import lazy
from mtpdoctor.records import dataclass, replace

_DECLARE = ("export", "declare", "typeset", "readonly", "local")
_BLANK_AFTER = lazy(r"(?:[ \t]|\\\r?\n)*")


@dataclass(slots=True)
class _Export:
    """A statement ``export NAME=value`` standing alone on its line."""

    start: int
    end: int
    indent: str


class ShellReader:
    """Collects the sites of one shell text (a file, or a quoted text inside one)."""

    def __init__(
        self,
        layer: Layer,
        scope: Scope | None = None,
        outer: Sequence[Binding] = (),
        add_env: AddEnv | None = None,
        depth: int = 0,
    ) -> None:
        self.layer = layer
        self.host = ShellHost(layer)
        self.scope = scope or Scope()
        self.outer = list(outer)
        self.outer_add_env = add_env
        self.depth = depth
        self.sites: list[Site] = []
        self.seen: list[str] = []  # names of commands, for saying what was found instead
        self.scheduler: Mapping[str, str] = {}
        self._export: _Export | None = None

    def read(self, start: int = 0) -> list[Site]:
        """Raises ShellSyntaxError."""
        for command in simple_commands(tokenize(self.layer.text, start)):
            self._command(command)
        return self.sites

    # Assignments and exports

    def _assignment_binding(
        self, lexeme: Lexeme, name: str, skip: int, remove: Callable[[], list[Splice]]
    ) -> Binding:
        layer, start = self.layer, lexeme.start + skip

        def write(new: str) -> list[Splice]:
            text = quote(new, layer.text[start : lexeme.end], layer.text)
            return [Splice(layer, start, lexeme.end, (text,))]

        return Binding(name, self.scope.value_of(lexeme, skip)[0], write, remove)

    def _remove_statement(self, command: SimpleCommand) -> list[Splice]:
        """Take a whole statement out, its line too where nothing else stands there."""
        text = self.layer.text
        start, end = command.start, command.end
        line = text.rfind("\n", 0, start) + 1
        m = re.compile(r"[ \t]*(?:;|&&)?[ \t]*").match(text, end)
        assert m is not None
        stop = m.end()
        if not text[line:start].strip() and text[stop : stop + 1] in ("", "\n", "\r"):
            stop = text.find("\n", stop) + 1 or len(text)
            return [Splice(self.layer, line, stop)]
        if m[0].strip() or (start == line and text[stop : stop + 1] == "#"):
            return [Splice(self.layer, start, stop)]
        return [Splice(self.layer, start, end, (":",))]  # a comment or an operator needs a command there

    def _assign_statement(
        self, command: SimpleCommand, lexemes: Sequence[Lexeme], exported: bool, first: int
    ) -> None:
        for lexeme in lexemes:
            found = assignment(lexeme)
            if not found:
                continue
            name, op, skip = found
            if len(lexemes) == 1:
                binding = self._assignment_binding(
                    lexeme, name, skip, lambda: self._remove_statement(command)
                )
            else:
                binding = self._assignment_binding(lexeme, name, skip, self._word_remover(lexeme, first))
            self.scope.assign(name, op, skip, lexeme, self.host, binding, exported)

    def _word_remover(self, lexeme: Lexeme, first: int) -> Callable[[], list[Splice]]:
        """Remove one of several words; the blank space before it goes, for the first the one after it."""

        def remove() -> list[Splice]:
            if lexeme.start > first:
                return self.host.remove([Word("", self.host, lexeme.start, lexeme.end)])
            m = _BLANK_AFTER.match(self.layer.text, lexeme.end)
            assert m is not None
            return [Splice(self.layer, lexeme.start, m.end())]

        return remove

    def _declaration(self, command: SimpleCommand, name: str) -> None:
        words = command.words[1:]
        exported = name == "export" or any(
            (w.literal or "").startswith("-") and "x" in (w.literal or "") for w in words
        )
        operands = [w for w in words if not (w.literal or "").startswith("-")]
        first = command.words[0].start
        self._assign_statement(command, operands, exported, first)
        for word in operands:
            literal = word.literal or ""
            if exported and re.fullmatch(r"[A-Za-z_]\w*", literal):
                one = len(operands) == 1
                gone = (lambda: self._remove_statement(command)) if one else self._word_remover(word, first)
                self.scope.export(literal, Binding(literal, "", lambda new: [], gone))
        text = self.layer.text
        line = text.rfind("\n", 0, command.start) + 1
        indent = text[line : command.start]
        if name == "export" and not indent.strip() and re.match(r"[ \t]*(#|\r?\n|\Z)", text[command.end :]):
            self._export = _Export(command.start, command.end, indent)

    # Commands

    def _command(self, command: SimpleCommand) -> None:
        if not command.words:
            self._assign_statement(command, command.assignments, False, command.start - 1)
            if len(command.assignments) > 1:
                self._fix_first(command)
            return
        name = command.words[0].literal or ""
        if name in _DECLARE:
            self._declaration(command, name)
            return
        literals = [w.literal or "" for w in command.words]
        if name == "set":
            if {"-a", "allexport"} & set(literals) and "+o" not in literals:
                self.scope.export_all = True
            elif {"+a", "allexport"} & set(literals):
                self.scope.export_all = False
            return
        if name == "unset":
            for literal in literals[1:]:
                self.scope.variables.pop(literal, None)
            return
        if name in ("source", "."):
            self.scope.env_files += [self.scope.value_of(w)[0] for w in command.words[1:2]]
            return
        words = [w for lexeme in command.words for w in self.scope.expand(lexeme, self.host)]
        if not words or talks_only(words[0].value):
            return
        self.seen.append(words[0].value)
        if words[0].value == "eval":
            self._eval(command)
            return
        self._launch(command, words)

    def _fix_first(self, command: SimpleCommand) -> None:
        """``A=1 B=2`` alone on a line: the first has no word before it."""
        first = command.assignments[0]
        found = assignment(first)
        if found and (var := self.scope.variables.get(found[0])) and var.binding:
            binding = replace(var.binding, remove=self._word_remover(first, first.start))
            self.scope.variables[found[0]] = replace(var, binding=binding)

    def _eval(self, command: SimpleCommand) -> None:
        for lexeme in command.words[1:]:
            name = self.layer.text[lexeme.start : lexeme.end].strip("\"'${}")
            var = self.scope.variables.get(name)
            if var and var.source is None and var.words:
                self._launch(command, list(var.words))
                continue
            if var and var.source:
                inner = inner_layer(*var.source)
            else:
                inner = inner_layer(self.layer, lexeme.start, lexeme.end)
            if inner is not None:
                bindings = self._outer_bindings(command)
                self.sites += self._nested_sites(inner, bindings, self.scope.child(), self.outer_add_env)

    def _outer_bindings(self, command: SimpleCommand) -> list[Binding]:
        bindings = self.outer + self.scope.bindings()
        for lexeme in command.assignments:
            found = assignment(lexeme)
            if found:
                name, _, skip = found
                remove = self._word_remover(lexeme, lexeme.start)
                bindings.append(self._assignment_binding(lexeme, name, skip, remove))
        return bindings

    def _launch(self, command: SimpleCommand, words: list[Word]) -> None:
        def env_adder(words: Sequence[Word], start: int) -> AddEnv:
            return self.outer_add_env or self._env_adder(command, words, start)

        around = Surroundings(
            bindings=self._outer_bindings(command),
            env_adder=env_adder,
            layer_of=_quoted_layer,
            nested=self._nested_sites,
            scope=self.scope,
            inner_add_env=self.outer_add_env,
            scheduler=self.scheduler,
            env_reaches_container=self.outer,
        )
        self.sites += locate(words, around)

    def _nested_sites(
        self, inner: Layer, bindings: Sequence[Binding], scope: Scope, add_env: AddEnv | None
    ) -> list[Site]:
        if self.depth > 4:
            return []
        reader = ShellReader(inner, scope, bindings, add_env, self.depth + 1)
        reader.scheduler = self.scheduler
        try:
            return reader.read()
        except ShellSyntaxError as error:
            raise ShellSyntaxError(str(error), _offset(inner, error.offset, self.layer)) from None

    def _env_adder(self, command: SimpleCommand, words: Sequence[Word], program: int) -> AddEnv:
        layer, text, export = self.layer, self.layer.text, self._export

        def add(name: str, value: str) -> list[Splice]:
            assign = f"{name}={quote(value, context=text)}"
            if command.assignments:
                last = command.assignments[-1]
                m = _BLANK_AFTER.match(text, last.end)
                assert m is not None
                blank = Raw(layer.source(m.start(), m.end()), m[0]) if m[0] else " "
                return [Splice(layer, last.end, last.end, (blank, assign))]
            indent = text[text.rfind("\n", 0, command.start) + 1 : command.start]
            if export is not None and export.indent == (indent if not indent.strip() else ""):
                newline = "\r\n" if "\r\n" in text else "\n"
                m = re.compile(r"[ \t]*(?:#[^\r\n]*)?").match(text, export.end)
                assert m is not None
                return [Splice(layer, m.end(), m.end(), (f"{newline}{export.indent}export {assign}",))]
            if posixpath.basename(words[0].value) in ("sudo", "doas") and words[program].host is self.host:
                return [Splice(layer, words[program].start, words[program].start, (f"env {assign} ",))]
            return [Splice(layer, command.start, command.start, (assign + " ",))]

        return add


def _quoted_layer(word: Word) -> Layer | None:
    """The text inside a quoted word of shell text; None for words that stand elsewhere."""
    if not isinstance(word.source, Lexeme) or not isinstance(word.host, ShellHost):
        return None
    return inner_layer(word.host.layer, word.start, word.end)


def _offset(inner: Layer, at: int, outer: Layer) -> int:
    """The place in ``outer`` of a place in a layer made from it; 0 when it was made from another."""
    if inner.parent is outer:
        return inner.starts[at] if at < len(inner.starts) else inner.start
    return 0
