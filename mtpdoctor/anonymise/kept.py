"""The map from placeholders back to names, on the person's own machine, where it was asked for.

It holds the names of hosts, folders and accounts, so that an answer ("redacted-host-2 is out of memory") can be
read; of secrets only salted digests, enough to give the same secret the same placeholder in a later bundle.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Iterable
from pathlib import Path

from mtpdoctor.errors import UserError
from mtpdoctor.records import dataclass

SCHEMA = 1
_MOST_BYTES = 64 * 2**20


@dataclass(frozen=True, slots=True)
class KeptMap:
    """``digests``: salted digest of kind and value -> placeholder; ``values``: placeholder -> value."""

    salt: str
    digests: dict[str, str]
    values: dict[str, str]

    def placeholder_of(self, kind: str, key: str) -> str | None:
        return self.digests.get(self._digest(kind, key))

    def highest(self, kind: str) -> int:
        """The highest number among the placeholders of a kind; 0 where there are none."""
        prefix = f"redacted-{kind}-"
        return max(
            (
                int(p.removeprefix(prefix).partition("-")[0])
                for p in self.digests.values()
                if p.startswith(prefix)
            ),
            default=0,
        )

    def with_entries(self, entries: Iterable[tuple[str, str, str, str]]) -> KeptMap:
        """The map and more: kind, key, value and placeholder each."""
        digests, values = dict(self.digests), dict(self.values)
        for kind, key, value, placeholder in entries:
            digests[self._digest(kind, key)] = placeholder
            if kind != "secret":
                values[placeholder] = value
        return KeptMap(self.salt, digests, values)

    def _digest(self, kind: str, key: str) -> str:
        text = f"{kind}\0{key}".encode("utf-8", "surrogatepass")
        return hmac.new(bytes.fromhex(self.salt), text, hashlib.sha256).hexdigest()


def load_kept(path: str) -> KeptMap:
    """The map at ``path``; a new one where there is no such file. Raises UserError for another kind of file."""
    file = Path(path)
    try:
        if not file.exists():
            return KeptMap(secrets.token_hex(16), {}, {})
        if file.stat().st_size > _MOST_BYTES:
            raise ValueError
        document = json.loads(file.read_text(encoding="utf-8"))
        if document["schema"] != SCHEMA or not all(
            isinstance(document[k], dict) for k in ("digests", "values")
        ):
            raise ValueError
        bytes.fromhex(document["salt"])
        kept = KeptMap(document["salt"], document["digests"], document["values"])
        for kind in ("host", "ip", "path", "user", "secret", "email", "url", "mac", "model"):
            kept.highest(kind)
        return kept
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise UserError(
            f"{path} is no map of `mtpdoctor bundle`", hint="name a new file in --keep-map"
        ) from None


def save_kept(kept: KeptMap, path: str) -> None:
    """Written for the owner's eyes only, as a whole or not at all. Raises UserError."""
    beside = f"{path}.{os.getpid()}.part"
    document = {"schema": SCHEMA, "salt": kept.salt, "values": kept.values, "digests": kept.digests}
    try:
        with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as out:
            json.dump(document, out, indent=1, ensure_ascii=True)
        os.replace(beside, path)
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror or error}") from None
