"""One redactor for all texts of a bundle: it learns the private names of all of them, then replaces each by the
same placeholder everywhere. The number of lines of a text never changes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from mtpdoctor.anonymise import hosts, secrets, users
from mtpdoctor.anonymise.addresses import redact_addresses
from mtpdoctor.anonymise.kept import KeptMap
from mtpdoctor.anonymise.paths import redact_paths, single_parts
from mtpdoctor.anonymise.tokens import PLACEHOLDER, Redaction, Tokens, is_placeholder
from mtpdoctor.anonymise.urls import redact_urls
from mtpdoctor.anonymise.words import GENERIC, PUBLIC_PARTS, is_model_name, is_public_host, words
from mtpdoctor.patterns import lazy

_EMAIL = lazy(
    r"(?<![\w.+%/-])(?P<local>[A-Za-z0-9][\w.+%-]*)@(?P<domain>(?:[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?\.)+(?P<tld>[A-Za-z]{2,24}))(?![\w-])"
)
_EMAIL_ESCAPED = lazy(
    r"(?<=\\[nrt])(?P<local>[A-Za-z0-9][\w.+%-]*)@(?P<domain>(?:[A-Za-z0-9-]+\.)+(?P<tld>[A-Za-z]{2,24}))(?![\w-])"
)
_NO_TLD = words("service socket timer mount target slice scope py json so safetensors yaml yml conf sh log")
_ROUTINE = ("Decode batch", "Prefill batch", 'HTTP/1.1" 200', 'HTTP/1.1\\" 200')
_ROUTINE_KEPT = 500
_BLANK = lazy(r"\n{3,}")
_USER_FIELDS = frozenset(("user", "username", "user_name", "owner", "login"))
_HUB_ID = lazy(
    r"(?<![\w./@:-])(?P<org>[A-Za-z0-9][\w.-]{1,60})/(?P<name>[A-Za-z0-9][\w.-]*[A-Za-z0-9])(?![\w/-]|\.\w)"
)


class Redactor:
    """``keep``: words (lower case) that the diagnosis needs and that are never names outside of their own
    place; ``hosts`` and ``users``: names known from elsewhere; ``remembered``: placeholders of an earlier bundle. Public model names stay unless ``hide_models``."""

    def __init__(
        self,
        *,
        keep: frozenset[str] = frozenset(),
        hide_models: bool = False,
        hosts: Iterable[str] = (),
        users: Iterable[str] = (),
        remembered: KeptMap | None = None,
    ) -> None:
        self._keep = keep | GENERIC | {p.lower() for p in PUBLIC_PARTS}
        self._hide_models = hide_models
        self._tokens = Tokens(remembered)
        self._hosts: dict[str, bool] = {}
        self._users: dict[str, bool] = {}
        self._secrets: set[str] = set()
        self._singles: frozenset[str] = frozenset()
        self._mapped: tuple[re.Pattern[str], dict[str, str]] | None = None
        self._lower: dict[str, str] = {}
        self._entries = 0
        self._clean: set[str] = set()  # stretches of text without secrets
        self._weak: re.Pattern[str] | None = None  # names that are replaced only where they are called names
        self._same: dict[str, str] = {}
        self._pattern: re.Pattern[str] | None = None
        self._known: dict[str, str] = {}  # text of the pattern -> kind
        for name in hosts:
            self._add_host(name, hosts_distinct(name, self._keep))
        for name in users:
            if name and name.lower() not in GENERIC:
                self._users[name] = len(name) > 3 and name.lower() not in self._keep

    # -- learning --------------------------------------------------------------------------------------

    def learn(self, text: str) -> None:
        """Take in the names of machines and accounts, and the secrets, that ``text`` shows where they stand."""
        text = _without_routine(text)
        for name, distinct in hosts.found_hosts(text, self._keep):
            self._add_host(name, distinct)
        for name, distinct in users.found_users(text, self._keep):
            self._users[name] = self._users.get(name, False) or (distinct and len(name) > 3)
        secrets.replace_all(text.split("\n"), self._note_secret, self._clean)
        self._singles |= single_parts(text)
        self._pattern = None

    def _add_host(self, name: str, distinct: bool) -> None:
        name = name.strip(".")
        if not name or is_placeholder(name) or name.lower() in GENERIC:
            return
        self._hosts[name] = self._hosts.get(name, False) or distinct
        first, dot, _ = name.partition(".")
        if dot and hosts_distinct(first, self._keep) and any(c.isdigit() or c == "-" for c in first):
            self._hosts.setdefault(first, True)

    def _note_secret(self, value: str, line: int) -> str:
        if (
            "\n" not in value
            and len(value) >= 8
            and (not value.isalpha() or len(value) >= 16)
            and value.lower() not in self._keep
        ):
            self._secrets.add(value)
        return "redacted-secret-0"

    # -- replacing -------------------------------------------------------------------------------------

    def redact(self, text: str, where: str, *, numbered: bool = True) -> str:
        """``text`` with every private value replaced; ``where`` names it in the list of redactions, with the line
        where ``numbered``."""
        if self._pattern is None:
            self._prepare()
        self._tokens.where, self._tokens.numbered = where, numbered
        lines = secrets.replace_all(text.split("\n"), self._put_secret, self._clean)
        return "\n".join(self._line(line, number) if line else line for number, line in enumerate(lines, 1))

    def value(self, value: Any, where: str, key: str = "") -> Any:
        """The same for a JSON value: every text in it, the names of its fields too."""
        if isinstance(value, str):
            return self._text(value, where, key)
        if isinstance(value, Mapping):
            return {self._text(str(k), where): self.value(v, where, str(k)) for k, v in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.value(v, where, key) for v in value]
        return value

    def _text(self, value: str, where: str, key: str = "") -> str:
        """A text of a JSON document; the name of its field may say what it is."""
        self._tokens.where = where
        free = value and not is_placeholder(value) and not value.startswith("<")
        if free and key and secrets.SECRET_NAME.fullmatch(key):
            return self._tokens.put("secret", value)
        if (
            free
            and key in _USER_FIELDS
            and value.lower() not in GENERIC
            and value.isprintable()
            and " " not in value
        ):
            return self._tokens.put("user", value)
        return self.redact(value, where, numbered=False)

    def host_name(self, value: str, where: str) -> str:
        """The placeholder of what is known to be the name of a machine."""
        if self._pattern is None:
            self._prepare()
        self._tokens.where = where
        low = value.lower()
        return value if low in GENERIC else self._tokens.put("host", value, key=self._same.get(low, low))

    def redactions(self) -> tuple[Redaction, ...]:
        return self._tokens.redactions()

    def mapping(self) -> dict[str, str]:
        """Placeholder -> value. Never part of what is passed on."""
        return self._tokens.mapping()

    def entries(self) -> list[tuple[str, str, str, str]]:
        """Kind, key, value and placeholder of all, for ``KeptMap.with_entries``."""
        return self._tokens.entries()

    def mapped(self, text: str) -> str:
        """``text`` with every value met so far replaced wherever it stands: to compare what was made of a text with
        what was made of the redacted one."""
        if self._mapped is None or self._entries != len(self._tokens.entries()):
            by_value = {v: p for p, v in self.mapping().items()}
            values = "|".join(re.escape(v) for v in sorted(by_value, key=len, reverse=True)) or "(?!)"
            pattern = re.compile(
                rf"{PLACEHOLDER.pattern}|(?<![A-Za-z0-9])(?:{values})(?![A-Za-z0-9])", re.IGNORECASE
            )
            self._mapped, self._entries = (pattern, by_value), len(self._tokens.entries())
            self._lower = {v.lower(): p for v, p in by_value.items()}
        pattern, by_value = self._mapped
        return pattern.sub(lambda m: by_value.get(m[0]) or self._lower.get(m[0].lower(), m[0]), text)

    def _put_secret(self, value: str, line: int) -> str:
        return self._tokens.put("secret", value, line=line)

    def _prepare(self) -> None:
        self._same = hosts.same_machine(set(self._hosts))
        self._known = {}
        for secret in self._secrets:
            self._known[secret] = "secret"
        for name, distinct in self._users.items():
            if distinct:
                self._known.setdefault(name, "user")
        for name, distinct in self._hosts.items():
            if distinct:
                self._known.setdefault(name.lower(), "host")
        # hosts are written in any case, the others as they are
        known_names = sorted(self._known, key=lambda w: (-len(w), w))
        each = [f"(?i:{re.escape(w)})" if self._known[w] == "host" else re.escape(w) for w in known_names]
        body = "|".join(each) or r"(?!)"
        weak = [n for names in (self._hosts, self._users) for n, distinct in names.items() if not distinct]
        self._weak = re.compile("|".join(map(re.escape, weak)), re.I) if weak else None
        self._pattern = re.compile(rf"(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))(?:{body})(?![A-Za-z0-9])(?!\.\d)")

    def _host(self, name: str, line: int) -> str:
        low = name.lower()
        return self._tokens.put("host", name, key=self._same.get(low, low), line=line)

    def _line(self, line: str, number: int) -> str:
        put = self._tokens.put

        def of_kind(kind: str, value: str) -> str:
            return put(kind, value, line=number)

        def known(m: re.Match[str]) -> str:
            kind = self._known.get(m[0]) or self._known.get(m[0].lower(), "host")
            return self._host(m[0], number) if kind == "host" else of_kind(kind, m[0])

        def email(m: re.Match[str]) -> str:
            if m["local"] == "git" and not is_public_host(m["domain"]):
                return f"git@{self._host(m['domain'], number)}"
            if m["local"] == "git" or m["local"].startswith("redacted-") or m["tld"].lower() in _NO_TLD:
                return m[0]
            return of_kind("email", m[0].lower())

        def path(text: str) -> str:
            return redact_paths(text, lambda part: of_kind("path", part), self._hide_models, self._singles)

        if "@" in line:
            line = _EMAIL_ESCAPED.sub(email, _EMAIL.sub(email, line))
        line = redact_urls(line, of_kind, lambda name: self._host(name, number), path)
        line = redact_addresses(line, of_kind)
        assert self._pattern is not None
        line = self._pattern.sub(known, line)
        if self._weak is not None and self._weak.search(line):
            line = _spans(line, hosts.in_place(line), lambda name: self._host(name, number))
            line = _spans(line, users.in_place(line), lambda name: of_kind("user", name))
        line = path(line)
        return self._models(line, number) if self._hide_models else line

    def _models(self, line: str, number: int) -> str:
        def model(m: re.Match[str]) -> str:
            if not is_model_name(m["name"]) or PLACEHOLDER.search(m[0]):
                return m[0]
            return self._tokens.put("model", m[0], line=number)

        return _HUB_ID.sub(model, line) if "/" in line else line


def _without_routine(text: str) -> str:
    """Without empty stretches (what a cut log left out) and, but for the first, the lines that a server prints for each
    batch and request: hours of them name nobody new."""
    kept, routine = [], 0
    for line in _BLANK.sub("\n\n", text).split("\n"):
        if any(words in line for words in _ROUTINE):
            routine += 1
            if routine > _ROUTINE_KEPT:
                continue
        kept.append(line)
    return "\n".join(kept)


def hosts_distinct(name: str, keep: frozenset[str]) -> bool:
    return hosts.is_distinct(name, keep)


def _spans(text: str, found: Iterable[tuple[int, int, str]], put: Any) -> str:
    """``text`` with the places replaced; of places that overlap the first counts."""
    out, at = [], 0
    for start, end, name in sorted(set(found)):
        if start < at:
            continue
        out += [text[at:start], put(name)]
        at = end
    return "".join([*out, text[at:]]) if out else text
