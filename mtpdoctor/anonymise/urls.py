"""URLs: which host is whose. Of a private one the host, the parts of its path and its query are replaced."""

from __future__ import annotations

import re
from collections.abc import Callable

from mtpdoctor.anonymise.tokens import PLACEHOLDER, is_placeholder
from mtpdoctor.anonymise.words import ROUTES, is_public_host
from mtpdoctor.patterns import lazy

_URL = lazy(
    r"\b(?P<scheme>https?|wss?|ftp|sftp|ssh|git|grpcs?|redis|amqp|postgres(?:ql)?|mysql|mongodb(?:\+srv)?|nats|etcd|kafka)(?P<slashes>:(?:\\?/){2})"
    r"(?P<user>(?:<hidden>|[^\s/@'\"<>]+)@)?(?P<host>\[[0-9A-Fa-f:.%\w-]+\]|[\w.-]+)(?P<port>:\d+)?(?P<path>(?:\\?/[^\s?#'\"`<>\\,;)\]}]*)*)"
    r"(?P<query>\?[^\s'\"`<>\\]*)?",
    re.I,
)
_HERE = frozenset(("localhost", "127.0.0.1", "0.0.0.0", "[::1]", "[::]", "host.docker.internal"))
_SPECIAL = lazy(r"\d+(?:\.\d+){3}$|\[")


def redact_urls(
    text: str, put: Callable[[str, str], str], host: Callable[[str], str], parts: Callable[[str], str]
) -> str:
    """``host`` gives the placeholder of a machine's name; ``parts`` replaces the private parts of a path."""

    def change(m: re.Match[str]) -> str:
        name = m["host"].rstrip(".")
        if not name or name.lower() in _HERE or is_public_host(name):
            return m[0]
        dots = m["host"][len(name) :]
        shown = m["host"] if _SPECIAL.match(name) or is_placeholder(name) else host(name) + dots
        path = m["path"]
        first = path.replace("\\", "").strip("/").split("/")[0]
        if path and first not in ROUTES and not PLACEHOLDER.search(path):
            path = parts(path)
        query = m["query"] or ""
        if len(query) > 1 and not is_placeholder(query[1:]):
            query = "?" + put("url", query[1:])
        return f"{m['scheme']}{m['slashes']}{m['user'] or ''}{shown}{m['port'] or ''}{path}{query}"

    return _URL.sub(change, text) if "://" in text or ":\\/" in text else text
