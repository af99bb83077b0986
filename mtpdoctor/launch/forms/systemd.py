"""systemd units: ``ExecStart=`` with continuations, ``Environment=``, ``EnvironmentFile=``.

Quoting and expansion: systemd.service(5) "Command lines", systemd.exec(5) "Environment", systemd.syntax(7).
There is no shell: ``|``, ``>`` and ``&&`` are ordinary words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from mtpdoctor.launch.forms.errors import no_server, unreadable
from mtpdoctor.launch.layers import Layer, Splice
from mtpdoctor.launch.shell.lexer import BLANKS, ShellSyntaxError, fields
from mtpdoctor.launch.shell.locate import Surroundings, locate
from mtpdoctor.launch.shell.notation import ShellHost
from mtpdoctor.launch.shell.scope import Scope
from mtpdoctor.launch.shell.sites import ShellReader
from mtpdoctor.launch.words import Binding, Site, Word
from mtpdoctor.patterns import lazy
from mtpdoctor.records import dataclass

_SETTING = lazy(r"[ \t]*([A-Za-z]\w*)[ \t]*=[ \t]*")
# A continuation, with the comment lines that may follow inside it.
_JOIN = lazy(r"\\\r?\n(?:[ \t]*[#;][^\n]*(?:\n|\Z))*")
_C_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "\\": "\\",
              '"': '"', "'": "'", "s": " "}  # fmt: skip
_C_ESCAPE = lazy(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{3})|(.))", re.S)
_SAFE = lazy(r"[\w@+=:,./-]+\Z")
_PREFIX = lazy(r"[-@:+!|]*")


@dataclass(frozen=True, slots=True)
class _Setting:
    """One ``Name=value``; ``value`` and ``end`` bound the value, continuations included."""

    name: str
    start: int
    value: int
    end: int


def read_systemd(text: str, name: str) -> list[Site]:
    """Raises UserError."""
    root = Layer(text)
    settings = list(_settings(text))
    host = SystemdHost(root)
    unit = _Unit(root, host, settings, name)
    sites = [s for setting in settings if setting.name == "ExecStart" for s in unit.sites(setting)]
    if not sites:
        starts = [text[s.value : s.end].split(None, 1)[:1] for s in settings if s.name == "ExecStart"]
        names = ", ".join(s[0] for s in starts if s)
        raise no_server(name, f"ExecStart is {names}" if names else "found no ExecStart with a command")
    return sites


def _settings(text: str) -> Iterator[_Setting]:
    at = 0
    while at < len(text):
        stop = _line_end(text, at)
        m = _SETTING.match(text, at, stop)
        if m and text[at:stop].lstrip()[:1] not in ("#", ";", "["):
            while text[:stop].endswith(("\\", "\\\r")) and stop < len(text):
                stop = _line_end(text, stop + 1)
                while text[line_at(text, stop) : stop].lstrip()[:1] in ("#", ";") and stop < len(text):
                    stop = _line_end(text, stop + 1)
            end = stop - 1 if text[:stop].endswith("\r") else stop
            yield _Setting(m[1], at, m.end(), end)
        at = stop + 1


def _line_end(text: str, at: int) -> int:
    stop = text.find("\n", at)
    return len(text) if stop < 0 else stop


def line_at(text: str, at: int) -> int:
    return text.rfind("\n", 0, at) + 1


@dataclass(frozen=True, slots=True)
class _Chars:
    """A word's characters with their places."""

    chars: tuple[str, ...]
    starts: tuple[int, ...]
    ends: tuple[int, ...]
    quote: str


class SystemdHost(ShellHost):
    """Words of a unit's setting."""

    __slots__ = ()

    def quoted(self, value: str, raw: str = "") -> str:
        escaped = value.replace("%", "%%")
        if not re.fullmatch(r"\$(?:[A-Za-z_]\w*|\{[A-Za-z_]\w*\})", value) or value not in self.layer.text:
            escaped = escaped.replace("$", "$$")
        if value and _SAFE.match(value) and raw[:1] not in ('"', "'"):
            return escaped
        if raw[:1] == "'" and "'" not in value and "\\" not in value and "\n" not in value:
            return f"'{escaped}'"
        escaped = escaped.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
        return f'"{escaped}"'

    def words(self, start: int, end: int, name: str) -> list[Word]:
        """Words of ``start:end``. Raises UserError for a quote that is never closed."""
        text, at, out = self.layer.text, start, []
        while at < end:
            if m := _JOIN.match(text, at, end):
                at = m.end()
            elif text[at] in BLANKS:
                at += 1
            else:
                chars, stop = self._word(at, end, name)
                value = "".join(chars.chars)
                out.append(Word(value, self, at, stop, False, chars))
                at = stop
        return out

    def _word(self, at: int, end: int, name: str) -> tuple[_Chars, int]:
        text, begin = self.layer.text, at
        quote = text[at] if text[at] in "\"'" else ""
        opened = at
        inside = quote
        chars: list[str] = []
        starts: list[int] = []
        ends: list[int] = []

        def put(piece: str, a: int, b: int) -> None:
            chars.append(piece)
            starts.append(a)
            ends.append(b)

        at += 1 if quote else 0
        while at < end:
            c = text[at]
            if m := _JOIN.match(text, at, end):
                if not inside:
                    break
                put(" ", at, m.end())
                at = m.end()
            elif c == inside and inside:
                inside = ""
                at += 1
            elif not inside and c in "\"'":
                inside, opened = c, at
                at += 1
            elif c in BLANKS and not inside:
                break
            elif c == "\\" and (m := _C_ESCAPE.match(text, at, end)):
                put(_c_value(m), at, m.end())
                at = m.end()
            elif text.startswith(("%%", "$$"), at):
                put(c, at, at + 2)
                at += 2
            else:
                put(c, at, at + 1)
                at += 1
        if inside:
            raise unreadable(
                text, opened, name, "a quote is opened here and never closed", "check the quoting"
            )
        return _Chars(tuple(chars), tuple(starts), tuple(ends), quote or text[begin]), at


def _c_value(m: re.Match[str]) -> str:
    if m[1] or m[2] or m[3]:
        return chr(int(m[1] or m[2] or m[3], 16))
    if m[4]:
        return chr(int(m[4], 8))
    return _C_ESCAPES.get(m[5], m[0] if len(m[0]) == 1 else m[5])


class _Unit:
    def __init__(self, root: Layer, host: SystemdHost, settings: list[_Setting], name: str) -> None:
        self.root, self.host, self.settings, self.name = root, host, settings, name
        self.env = [s for s in settings if s.name == "Environment"]
        self.files = tuple(
            root.text[s.value : s.end].strip().lstrip("-") for s in settings if s.name == "EnvironmentFile"
        )

    def bindings(self) -> list[Binding]:
        out: list[Binding] = []
        for setting in self.env:
            words = self.host.words(setting.value, setting.end, self.name)
            if not words:
                out.clear()  # an empty Environment= resets the list
            for word in words:
                name, equals, value = word.value.partition("=")
                if equals:
                    out.append(self._binding(setting, word, len(words) == 1, name, value, word is words[0]))
        return out

    def _binding(
        self, setting: _Setting, word: Word, only: bool, name: str, value: str, first: bool
    ) -> Binding:
        def replace(new: str) -> list[Splice]:
            raw = self.host.raw(word)
            text = self.host.quoted(f"{name}={new}", raw)
            return [Splice(self.root, word.start, word.end, (text,))]

        def remove() -> list[Splice]:
            if only:
                stop = self.root.text.find("\n", setting.end) + 1 or len(self.root.text)
                return [Splice(self.root, setting.start, stop)]
            if first:
                m = re.compile(r"(?:\\\r?\n|[ \t\r\n])*").match(self.root.text, word.end)
                assert m is not None
                return [Splice(self.root, word.start, m.end())]
            return self.host.remove([word])

        return Binding(name, value, replace, remove)

    def _add_env(self, setting: _Setting, name: str, value: str) -> list[Splice]:
        text = self.root.text
        newline = "\r\n" if "\r\n" in text else "\n"
        line = f"Environment={self.host.quoted(f'{name}={value}')}"
        if self.env:
            at = self.env[-1].end
            return [Splice(self.root, at, at, (newline + line,))]
        return [Splice(self.root, setting.start, setting.start, (line + newline,))]

    def sites(self, setting: _Setting) -> list[Site]:
        bindings = self.bindings()
        scope = Scope().child({b.name: b.value for b in bindings})
        scope.env_files = list(self.files)
        text = self.root.text
        prefix = _PREFIX.match(text, setting.value)
        assert prefix is not None
        words = self._expand(self.host.words(prefix.end(), setting.end, self.name), scope)

        def add_env(name: str, value: str) -> list[Splice]:
            return self._add_env(setting, name, value)

        around = Surroundings(
            bindings=bindings,
            env_adder=lambda *_: add_env,
            layer_of=self._layer_of,
            nested=lambda inner, outer, inside, add: ShellReader(inner, inside, outer, add, 1).read(),
            scope=scope,
            inner_add_env=add_env,
        )
        try:
            return locate(words, around)
        except ShellSyntaxError as error:
            raise unreadable(
                text, setting.value, self.name, f"in this command {error}", "check the quoting"
            ) from None

    def _expand(self, words: Sequence[Word], scope: Scope) -> list[Word]:
        """``${NAME}`` within a word; ``$NAME`` as a word of its own is split."""
        out: list[Word] = []
        for word in words:
            raw = self.host.raw(word)
            name = re.fullmatch(r"\$([A-Za-z_]\w*)", raw)
            if name:
                value = scope.text(raw)
                if value is not None and len(fields(value)) != 1:
                    out += [Word(v, self.host, word.start, word.end, True) for v in fields(value)]
                    continue
                out.append(
                    Word(value if value is not None else raw, self.host, word.start, word.end, value is None)
                )
                continue
            value = word.value
            if "${" in value and not re.search(r"\s", value):
                value = scope.substitute(value)
            out.append(Word(value, self.host, word.start, word.end, False, word.source))
        return out

    def _layer_of(self, word: Word) -> Layer | None:
        chars = word.source
        if not isinstance(chars, _Chars):
            return None
        quote = chars.quote

        def escape(new: str, at: int) -> str:
            new = new.replace("%", "%%").replace("$", "$$").replace("\\", "\\\\").replace("\n", "\\n")
            return new.replace(quote, "\\" + quote) if quote in "\"'" else self.host.quoted(new)

        def whole(new: str) -> str:
            return self.host.quoted(new, '"')

        return Layer(
            "".join(chars.chars), self.root, word.start, word.end, chars.starts, chars.ends, escape, whole
        )
