"""Variables of a script, resolved as far as the text alone tells. Nothing is run, no environment is read."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from mtpdoctor.launch.layers import Layer, Splice
from mtpdoctor.launch.shell.lexer import Lexeme, Part, ShellSyntaxError, fields, tokenize
from mtpdoctor.launch.shell.notation import ShellHost, SplitHost, inner_layer
from mtpdoctor.launch.words import Binding, Word
from mtpdoctor.patterns import lazy
from mtpdoctor.records import dataclass, field

_BRACED = lazy(r"\$\{([A-Za-z_]\w*|[0-9@*])(?:(:?[-=+?])(.*))?\}\Z", re.S)
_ARRAY = lazy(r"\$\{([A-Za-z_]\w*)\[[@*]\]\}\Z")
_LONGEST = 1 << 17  # characters: what Linux takes as one argument
_REFERENCE = lazy(r"\$(?:[A-Za-z_]\w*|\{[^{}]*\})")


@dataclass(frozen=True, slots=True)
class Variable:
    """``value`` is None where the text does not tell. ``words`` is what an unquoted use splits into, or the
    elements of an array."""

    value: str | None
    words: tuple[Word, ...] = ()
    array: bool = False
    exported: bool = False
    binding: Binding | None = None
    source: tuple[Layer, int, int] | None = None  # the assigned text, for eval


@dataclass(slots=True)
class Scope:
    """The variables at one place of the text."""

    variables: dict[str, Variable] = field(default_factory=dict)
    export_all: bool = False
    env_files: list[str] = field(default_factory=list)
    parens: Mapping[str, str] = field(default_factory=dict)  # what $(NAME) is replaced by before (Kubernetes)

    def child(self, extra: Mapping[str, str] | None = None) -> Scope:
        variables = dict(self.variables)
        for name, value in (extra or {}).items():
            variables[name] = Variable(value, exported=True)
        return Scope(variables, self.export_all, list(self.env_files), self.parens)

    def give_arguments(self, words: Sequence[Word]) -> None:
        """What ``"$@"`` and ``$1`` stand for: the words behind a script that a shell is given (``bash -c``)."""
        self.variables["@"] = self.variables["*"] = Variable(None, tuple(words), array=True)
        for i, word in enumerate(words[:9], 1):
            self.variables[str(i)] = Variable(word.value)

    def bindings(self) -> list[Binding]:
        return [v.binding for v in self.variables.values() if v.exported and v.binding]

    def text(self, reference: str) -> str | None:
        """The value of ``$NAME`` or ``${NAME...}``; None when the text does not tell."""
        m = _BRACED.match(reference)
        if not m:
            var = self.variables.get(reference[1:])
            return var.value if var and not var.array else None
        name, op, word = m[1], m[2] or "", m[3] or ""
        var = self.variables.get(name)
        value = var.value if var and not var.array else None
        if var is not None and value is None:
            return None  # assigned, but from something only a run could tell
        if not op or op in ("?", ":?"):
            return value
        empty = value is None or (not value and op.startswith(":"))
        if op.endswith("+"):
            return self.fill(word) if value is not None and not empty else None if value is None else ""
        if not empty:
            return value
        filled = self.fill(word)
        if op.endswith("=") and filled is not None:
            self.variables[name] = Variable(filled)
        return filled

    def fill(self, text: str) -> str | None:
        """The word of ``${NAME:-word}``, its quotes taken off and its references resolved."""
        if not re.search(r"""["'\\$`]""", text):
            return text
        try:
            tokens = [t for t in tokenize(text) if t.kind == "word" and t.word]
        except ShellSyntaxError:
            return None
        out: list[str] = []
        for token in tokens:
            assert token.word is not None
            for part in token.word.parts:
                value = (
                    part.text if part.kind == "text" else self.text(part.text) if part.kind == "var" else None
                )
                if value is None:
                    return None
                out.append(value)
            out.append(" ")
        return "".join(out[:-1])

    def part(self, part: Part) -> str | None:
        """The value of a piece of a word; None when the text does not tell."""
        if part.kind == "text":
            return part.text
        if part.kind == "var":
            return self.text(part.text)
        return self.parens.get(part.text[2:-1])

    def substitute(self, text: str) -> str:
        """Text with the references that are known resolved."""
        return _REFERENCE.sub(lambda m: v if (v := self.text(m[0])) is not None else m[0], text)

    def value_of(self, lexeme: Lexeme, skip: int = 0) -> tuple[str, bool]:
        """The word's value (references that are not known stay as written) and whether all is known."""
        out: list[str] = []
        known = True
        for part in lexeme.parts:
            value = self.part(part)
            if value is None:
                known = False
            out.append(part.text if value is None else value)
        return "".join(out)[skip:], known

    def expand(self, lexeme: Lexeme, host: ShellHost) -> list[Word]:
        """The words that a word of a command becomes."""
        parts = [p for p in lexeme.parts if p.kind != "text" or p.text]
        if len(parts) == 1 and parts[0].kind == "var":
            part = parts[0]
            array = _ARRAY.match(part.text)
            if array and (var := self.variables.get(array[1])) and (var.array or var.words):
                return list(var.words)
            if (
                (var := self.variables.get(part.text.strip("${}")))
                and var.array
                and part.text.strip("${}") in "@*"
            ):
                return list(var.words)
            if not part.quote and not array:
                name = part.text.strip("${}")
                var = self.variables.get(name)
                known = var is not None and not var.array and var.value is not None
                if var and known and len(fields(var.value or "")) != 1:
                    return list(var.words)
                value = self.text(part.text)
                if value is not None and not value.strip():
                    return []
                if value is not None and len(fields(value)) > 1:  # from a default: written here
                    return [Word(v, host, lexeme.start, lexeme.end, True) for v in fields(value)]
        value, known = self.value_of(lexeme)
        opened = not known and bool(parts) and parts[0].kind != "text"
        return [Word(value, host, lexeme.start, lexeme.end, opened, lexeme)]

    def assign(
        self, name: str, op: str, skip: int, lexeme: Lexeme, host: ShellHost, binding: Binding, exported: bool
    ) -> None:
        """Take in ``NAME=value``, ``NAME+=value`` or ``NAME=(...)``."""
        old = self.variables.get(name)
        exported = exported or self.export_all or bool(old and old.exported)
        if lexeme.items is not None:
            items = [w for item in lexeme.items for w in self.expand(item, host)]
            before = list(old.words) if old and op == "+=" else []
            self.variables[name] = Variable(None, tuple(before + items), array=True)
            return
        value, known = self.value_of(lexeme, skip)
        words = self._split(lexeme, skip, host) if known else ()
        if op == "+=" and old:
            words = old.words + words
            value = (old.value or "") + value
            known = known and old.value is not None
        if len(value) > _LONGEST or len(words) > _LONGEST // 16:
            value, known, words = f"${name}", False, ()  # doubling itself again and again: not resolved
        shown = Binding(name, value, binding.replace, binding.remove)
        source = (host.layer, lexeme.start + skip, lexeme.end) if op == "=" else None
        self.variables[name] = Variable(value if known else None, words, False, exported, shown, source)

    def _split(self, lexeme: Lexeme, skip: int, host: ShellHost) -> tuple[Word, ...]:
        inner = inner_layer(host.layer, lexeme.start + skip, lexeme.end)
        if inner is None:
            return ()
        split = SplitHost(inner)
        words: list[Word] = []
        for m in re.finditer(r"(?:\\\r?\n|[ \t\r\n])+|((?:(?!\\\r?\n)[^ \t\r\n])+)", inner.text):
            if not m[1]:
                continue
            if _REFERENCE.fullmatch(m[1]):
                var = self.variables.get(m[1].strip("${}"))
                if var and var.words:
                    words += var.words
                    continue
            words += [Word(v, split, m.start(1), m.end(1)) for v in fields(self.substitute(m[1]))]
        return tuple(words)

    def export(self, name: str, binding: Binding) -> None:
        var = self.variables.get(name)
        if var is None:
            return
        old = var.binding

        def remove() -> list[Splice]:
            return binding.remove() + (old.remove() if old else [])

        value = var.value if var.value is not None else (old.value if old else f"${name}")
        both = Binding(name, value, old.replace if old else binding.replace, remove)
        self.variables[name] = Variable(var.value, var.words, var.array, True, both, var.source)
