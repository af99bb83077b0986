"""Packages that a sentence says to install, as commands that are safe to show: nothing of the log goes into a shell but
well-formed names, versions and a few options."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from mtpdoctor.patterns import lazy

_PIP = lazy(r"(?:\bpython3? -m |\buv )?\bpip3? install\s+(?P<rest>.+)$")
_APT = lazy(r"(?:\bsudo )?\bapt(?:-get)? install\s+(?P<rest>.+)$")
_VERSION = r"(?:\s?(?:==|>=|<=|~=|!=|<|>)\s?\d[\w.*+!-]*(?:,(?:==|>=|<=|!=|<|>)\d[\w.*+!-]*)*)"
_REQUIREMENT = lazy(rf"[A-Za-z][A-Za-z0-9._-]*(?:\[[A-Za-z0-9_,-]+\])?{_VERSION}?\Z")
_GIT = lazy(r"git\+https://github\.com/[\w.-]+/[\w.-]+(?:@[\w.-]+)?(?:#subdirectory=(?!\S*\.\.)[\w./-]+)?\Z")
_DEB = lazy(r"[a-z0-9][a-z0-9.+-]+\Z")
_OPTIONS = frozenset(
    {"-U", "--upgrade", "--no-deps", "--force-reinstall", "--no-build-isolation", "--pre", "-y"}
)
# Words of the sentence that go on behind a command without quotes.
_WORDS = frozenset(
    [
        "to",
        "or",
        "and",
        "for",
        "if",
        "first",
        "then",
        "in",
        "on",
        "with",
        "before",
        "the",
        "a",
        "an",
        "it",
        "which",
        "that",
        "as",
        "from",
        "use",
        "using",
        "is",
        "are",
        "via",
        "by",
        "so",
        "your",
        "this",
        "when",
        "please",
        "instead",
        "again",
        "manually",
        "separately",
        "package",
        "packages",
        "library",
        "module",
        "version",
        "latest",
    ]
)
_QUOTE = "`\"'\u201c\u2018"
_CLOSE = {"`": "`", '"': '"', "'": "'", "\u201c": "\u201d", "\u2018": "\u2019"}
_UPGRADE_TO = lazy(
    rf"(?i)\b(?:install|upgrade|update|requires?|need(?:s|ed)?|downgrade)\b(?: to| the| package| version of| python package)*\s+[`'\"]?"
    rf"(?P<name>[A-Za-z][\w.-]*?)[`'\"]?(?:\s+to)?(?P<version>{_VERSION}|\s+(?:version\s+)?v?\d+(?:\.\d+)+\S*)"
)
_PLEASE_INSTALL = lazy(
    r"(?i)(?:\bplease\s+(?:install|upgrade)|\binstall it|\bneeds? to be installed|\bis not installed|\bmust be installed)"
)
_INSTALL_NAME = lazy(
    r"(?i)\bplease (?:re)?install (?:the )?(?:latest )?(?:python )?(?:package |library )?[`'\"]?(?P<name>[A-Za-z][\w.-]*[A-Za-z0-9])[`'\"]?"
    r"|(?:package|library) [`'\"](?P<quoted>[\w.-]+)[`'\"] (?:is|was|could) (?:required|not (?:be )?found|not installed|missing)"
)
_OWN = frozenset({"sglang", "python", "cuda", "torch", "driver", "nvidia", "gcc", "rust", "linux"})


def pip_commands(sentence: str) -> Iterator[str]:
    """Commands of pip and apt that the sentence spells out, cleaned; at most what they name is installed."""
    for pattern, head in ((_PIP, "pip install"), (_APT, "apt-get install -y")):
        found = pattern.search(sentence)
        if not found:
            continue
        words = _words(_enclosed(sentence, found.start(), found["rest"]))
        kept = _kept_apt(words) if pattern is _APT else _kept_pip(words)
        if kept:
            yield f"{head} {' '.join(kept)}"


def required_versions(sentence: str) -> Iterator[tuple[str, str]]:
    """Packages and versions ("transformers", ">=4.57") that the sentence asks for without a command."""
    if "pip install" in sentence:
        return
    sentence = sentence.replace("\u2265", ">=").replace("\u2264", "<=")
    for found in _UPGRADE_TO.finditer(sentence):
        name, version = found["name"].strip("`'\""), found["version"].strip()
        if version[:1] not in "=<>~!":
            version = ">=" + version.removeprefix("version").strip().lstrip("vV")
        version = version.replace(" ", "").rstrip(".,:;)`'\"")
        if name.lower() not in _OWN and re.fullmatch(_VERSION, version):
            yield name, version


def named_packages(sentence: str) -> Iterator[str]:
    """Packages that the sentence says to install, by name alone; whether there is such a package is for others."""
    if "pip install" in sentence or _PLEASE_INSTALL.search(sentence) is None:
        return
    for found in _INSTALL_NAME.finditer(sentence):
        name = found["name"] or found["quoted"]
        if name.lower() not in _OWN and name.lower() not in _WORDS:
            yield name


def _enclosed(sentence: str, start: int, rest: str) -> str:
    """The command within its quotes, where it stands in some."""
    before = sentence[:start].rstrip()
    opened = (
        before[-1:]
        if before[-1:] in _QUOTE and before[-1:] and sentence[start - 1 : start] == before[-1:]
        else ""
    )
    if not opened:
        return rest
    end = rest.find(_CLOSE[opened])
    return rest if end < 0 else rest[:end]


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text.replace("`", " "))
    except ValueError:
        return text.replace("'", "").replace('"', "").split()


def _kept_pip(words: list[str]) -> list[str]:
    kept: list[str] = []
    names = 0
    ended = False  # a word that closes the sentence or the command
    for written in words:
        word = written.rstrip(".,;:)")
        if ended:
            break
        if word in _OPTIONS and word != "-y":
            kept.append(word)
        elif word.lower() in _WORDS or not (_REQUIREMENT.match(word) or _GIT.match(word)):
            break
        else:
            names += 1
            kept.append(shlex.quote(word) if re.search(r"[<>!,\[\]*]", word) else word)
        ended = written != word
    return kept if names else []


def _kept_apt(words: list[str]) -> list[str]:
    kept: list[str] = []
    for word in words:
        word = word.rstrip(".,;:)")
        if word == "-y":
            continue
        if word in _WORDS or not _DEB.match(word):
            break
        kept.append(word)
    return kept
