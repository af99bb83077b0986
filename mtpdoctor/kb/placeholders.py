"""Taking out of an example what is private, with stand-ins that stay the same throughout it."""

from __future__ import annotations

import re
from collections.abc import Callable

from mtpdoctor.redact import mask_secrets
from mtpdoctor.text import safe

# Folders whose names say nothing about anybody.
_PUBLIC = (
    "/dev/", "/proc/", "/sys/", "/usr/", "/lib", "/opt/placeholder", "/etc/", "/bin/", "/sbin/", "/var/lib/docker",
    "/sgl-workspace/", "/pytorch/", "/tmp", "/run/",
)  # fmt: skip
_CODE = re.compile(
    r"(?<![\w/])/[^\s\"':,]*/(?=(?:site-packages|dist-packages)/|sglang/(?:srt|lang|launch|cli)|python3?\.\d+/)"
)
_PATH = re.compile(r"(?<![\w/:.])~?/[\w.+@=~-]+(?:/[\w.+@=~-]+)*/?")
_ADDRESS = re.compile(r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?![\w.])")
_MAIL = re.compile(r"[\w.+-]+@[\w-]+\.[\w.-]+")
_HOSTED = re.compile(r"^(?P<host>[\w.-]+)(?=:\d+:\d+ \[\d+\] )")
_UUID = re.compile(r"\b(?:GPU-)?[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b")
_LOCAL = ("127.", "0.0.0.0", "255.")


class Placeholders:
    """Stand-ins for paths, addresses, hosts, mail addresses and UUIDs; the same text gets the same one.

    Secrets are masked as everywhere (``redact``), and so are user folders; paths of code keep what is below
    ``site-packages`` or ``sglang``.
    """

    def __init__(self) -> None:
        self._seen: dict[str, dict[str, str]] = {}

    def __call__(self, text: str) -> str:
        text = mask_secrets(safe(text))
        text = _CODE.sub("/opt/placeholder/", text)
        text = _MAIL.sub(self._stand_in("mail", "user{}@example.org"), text)
        text = _UUID.sub(self._stand_in("uuid", "00000000-0000-0000-0000-{:012d}"), text)
        text = _HOSTED.sub(self._stand_in("host", "host{}"), text)
        text = _ADDRESS.sub(self._address, text)
        return _PATH.sub(self._path, text).replace("/opt/placeholder/", "/opt/")

    def _stand_in(self, kind: str, form: str) -> Callable[[re.Match[str]], str]:
        return lambda match: self._of(kind, match[0], form)

    def _of(self, kind: str, text: str, form: str) -> str:
        seen = self._seen.setdefault(kind, {})
        if text in seen.values():  # a stand-in already
            return text
        return seen.setdefault(text, form.format(len(seen) + 1))

    def _address(self, match: re.Match[str]) -> str:
        if match[0].startswith(_LOCAL):
            return match[0]
        return self._of("address", match[0], "10.0.0.{}")

    def _path(self, match: re.Match[str]) -> str:
        path = match[0]
        if path.startswith(_PUBLIC) or path.count("/") < 2 or path.startswith("/data/placeholder"):
            return path
        end = re.search(r"\.[A-Za-z]\w{0,11}$", path)
        return self._of("path", path, "/data/placeholder{}") + (end[0] if end else "")
