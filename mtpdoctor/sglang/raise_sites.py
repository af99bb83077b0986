"""Where SGLang says what: every raise, assert and log statement of a source tree, by message and by line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from mtpdoctor.sglang.scan import Guard, RaiseSite, scan
from mtpdoctor.sglang.source import SourceTree
from mtpdoctor.sglang.templates import Pieces, common_beginning, literal_length, pattern

__all__ = ["Guard", "RaiseSite", "SiteIndex", "find_site", "index_sites", "scan", "site_at", "source_path"]

ARGUMENT_FILES = ("sglang/srt/server_args.py", "sglang/srt/arg_groups/")
_SKIP = ("sglang/test/", "/tests/", "sglang/multimodal_gen/")
_MIN_LITERAL = 6  # characters of fixed text a message must share with a template to be told from others
_MIN_BEGINNING = 16  # the same where only the beginning can be compared


class SiteIndex:
    """The statements of one source tree, parsed file by file as they are asked for."""

    def __init__(self, source: SourceTree) -> None:
        self.source = source
        self._sites: dict[str, tuple[RaiseSite, ...]] = {}

    def files(self) -> tuple[str, ...]:
        return tuple(f for f in self.source.files() if not any(part in f for part in _SKIP))

    def sites(self, path: str) -> tuple[RaiseSite, ...]:
        """Statements of one file, in order; empty when it does not parse or exist."""
        if path not in self._sites:
            text = self.source.read(path)
            self._sites[path] = tuple(scan(path, text)) if text else ()
        return self._sites[path]

    def likely_files(self, message: str, limit: int = 24) -> list[str]:
        """Files whose text shares the rarest words with ``message``, best first; argument checks ahead."""
        wanted = set(re.findall(r"[A-Za-z_]{4,}", message))
        if not wanted:
            return []
        hits: dict[str, set[str]] = {}
        for path in self.files():
            text = self.source.read(path) or ""
            found = {word for word in wanted if word in text}
            if found:
                hits[path] = found
        spread = {word: sum(word in found for found in hits.values()) or 1 for word in wanted}
        score = {path: sum(1.0 / spread[w] ** 0.5 for w in found) for path, found in hits.items()}
        ranked = sorted(hits, key=lambda p: (-score[p] - (0.2 if p.startswith(ARGUMENT_FILES) else 0), p))
        return ranked[:limit]


def index_sites(source: SourceTree) -> SiteIndex:
    return SiteIndex(source)


def find_site(index: SiteIndex, text: str, files: Iterable[str] | None = None) -> list[RaiseSite]:
    """Statements whose message fits ``text`` (an exception line or log line, with or without its
    ``ValueError: `` or ``[time rank]`` prefix), the one with most fixed text first.

    ``files`` narrows the search (paths as in :meth:`SiteIndex.files`).
    """
    kind, message = _split(text)
    paths = index.likely_files(message) if files is None else list(files)
    sites = [site for path in paths for site in index.sites(path)]
    whole = [(literal_length(s.pieces), s) for s in sites if _fits(s.pieces, message)]
    found = _ranked(whole, kind, message, _MIN_LITERAL)
    if not found:  # a message cut by the log, or with more text after it
        begun = [(common_beginning(s.pieces, message), s) for s in sites if s.template]
        found = _ranked(begun, kind, message, _MIN_BEGINNING)
    return found


def _ranked(sized: Iterable[tuple[int, RaiseSite]], kind: str, message: str, least: int) -> list[RaiseSite]:
    found: list[tuple[tuple[bool, int, bool], RaiseSite]] = []
    for size, site in sized:
        agrees = bool(kind) and site.exception.split(".")[-1] == kind.split(".")[-1]
        if size < least or (kind and not agrees and size * 2 < len(message.replace(" ", ""))):
            continue  # mostly holes, or another exception type: chance
        found.append(((agrees, size, site.kind != "log"), site))
    found.sort(key=lambda item: item[0], reverse=True)
    if found and found[0][0][0]:  # where the exception type is known, others only look alike
        found = [item for item in found if item[0][0]]
    return list(dict.fromkeys(site for _, site in found))


def _fits(pieces: Pieces, message: str) -> bool:
    longest = max(pieces, key=len).split()
    return all(word in message for word in longest) and pattern(pieces).match(message) is not None


def _split(text: str) -> tuple[str, str]:
    """Exception type ("" when none) and message of a line."""
    text = re.sub(r"^\[[\d :.,-]{8,}[^\]]*\]\s*", "", text.strip())
    match = re.match(r"([A-Za-z_][\w.]*(?:Error|Exception|Interrupt|Exit|Warning)):\s*([\s\S]*)$", text)
    return (match[1], match[2]) if match else ("", text)


def site_at(source: SourceTree, path_suffix: str, lineno: int, function: str) -> RaiseSite | None:
    """The statement a traceback frame stands at: the innermost one of ``function`` that spans ``lineno``.

    ``path_suffix`` may be the whole path of the frame; from ``sglang/`` on it must match.
    """
    index = SiteIndex(source)
    path = source_path(path_suffix, index.files())
    if path is None:
        return None
    spanning = [s for s in index.sites(path) if s.line <= lineno <= s.end_line and s.kind != "log"]
    spanning = [s for s in spanning if s.function.split(".")[-1] == function] or spanning
    return min(spanning, key=lambda s: s.end_line - s.line, default=None)


def source_path(path: str, files: Sequence[str]) -> str | None:
    """The file of a tree that a path in a traceback means."""
    parts = path.replace("\\", "/").split("/")
    for start in range(len(parts)):
        if parts[start] == "sglang":
            candidate = "/".join(parts[start:])
            if candidate in files:
                return candidate
    return None
