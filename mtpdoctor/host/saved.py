"""A host as JSON: what ``probe --json`` writes and ``--host FILE`` reads. The form is in docs/json.md.

Writing and reading follow the fields of the types themselves, so that a new field is saved without a word
here, and a host saved before it was there loads with its default.
"""

from __future__ import annotations

import dataclasses
import json
import types
import typing
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from mtpdoctor.errors import UserError
from mtpdoctor.host.types import HostFacts
from mtpdoctor.redact import MASK, mask_secrets
from mtpdoctor.text import safe

SCHEMA = 1
_PLATFORMS = ("cuda", "rocm", "npu", "xpu", "cpu", "none")
_MAX_BYTES = 16 * 1024 * 1024
_HINT = "save a host with: mtpdoctor probe --json > host.json"
_SECRET_WORDS = frozenset((
    "KEY", "APIKEY", "TOKEN", "SECRET", "SECRETS", "PASS", "PASSWORD", "PASSWD", "PASSPHRASE", "PASSWORT", "PWD", "AUTH",
    "AUTHORIZATION", "COOKIE", "COOKIES", "CREDENTIAL", "CREDENTIALS", "CREDS", "HEADERS", "SIGNATURE", "SAS",
))  # fmt: skip
_SWITCH = frozenset(("", "0", "1", "true", "false", "yes", "no", "on", "off"))
_NOT_SAVED = frozenset({"local"})  # a saved host is no longer the machine at hand


def host_to_json(host: HostFacts) -> dict[str, Any]:
    """The plain serialisation of ``host`` with ``schema``; every text safe, its secrets masked."""
    document: dict[str, Any] = {"schema": SCHEMA, **_plain(host)}
    document["env"] = {safe(name): mask_variable(name, value) for name, value in host.env.items()}
    return document


def mask_variable(name: str, value: str) -> str:
    """The value of an environment variable as it may be shown: masked where its name or shape is a secret's.

    Wholly where a word of the name says secret: what else stands in such a value is nobody's business."""
    if value.lower() not in _SWITCH and _SECRET_WORDS & set(name.upper().split("_")):
        return MASK
    prefix = f"{name}="
    masked = mask_secrets(prefix + safe(value))
    return masked.removeprefix(prefix) if masked.startswith(prefix) else value


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [f.name for f in dataclasses.fields(value) if f.name not in _NOT_SAVED]
        return {name: _plain(getattr(value, name)) for name in names}
    if isinstance(value, str):
        return mask_secrets(safe(value))
    if isinstance(value, Mapping):
        return {safe(str(k)): _plain(v) for k, v in value.items()}
    if isinstance(value, (tuple, list)):
        return [_plain(v) for v in value]
    return value


def load_host(path: str | Path) -> HostFacts:
    """The host saved in ``path``: a ``probe --json`` document, or its ``host`` part alone.

    Raises UserError (file, field, what it must be) when it cannot be read or is no saved host.
    """
    return host_from_document(_document(str(path)), str(path))


def host_from_document(document: Mapping[str, Any], path: str) -> HostFacts:
    """The host of a document that is already read; ``path`` names it in errors. Raises UserError."""
    if isinstance(document.get("host"), dict):
        document = {"schema": document.get("schema"), **document["host"]}
    reader = _Reader(path)
    if document.get("schema") != SCHEMA:
        raise reader.error("schema", f"{SCHEMA}", document.get("schema"))
    host: HostFacts = reader.record(HostFacts, document, "")
    env = {name: mask_variable(name, value) for name, value in host.env.items()}  # written by hand, perhaps
    host = dataclasses.replace(host, env=env)
    if host.platform is not None and host.platform not in _PLATFORMS:
        raise reader.error("platform", f"one of {', '.join(_PLATFORMS)}", host.platform)
    return host


def _document(path: str) -> dict[str, Any]:
    try:
        with open(path, "rb") as file:
            data = file.read(_MAX_BYTES + 1)
    except OSError as e:
        raise UserError(f"{path}: cannot be read: {e.strerror or e}", hint=_HINT) from None
    if len(data) > _MAX_BYTES:
        raise UserError(f"{path}: too large for a saved host (over 16 MiB)", hint=_HINT)
    try:
        document = json.loads(data.decode("utf-8-sig"), parse_constant=_no_constant)
    except json.JSONDecodeError as e:
        raise UserError(f"{path}:{e.lineno}:{e.colno}: not valid JSON: {e.msg}", hint=_HINT) from None
    except (UnicodeDecodeError, ValueError, RecursionError) as e:
        raise UserError(f"{path}: not valid JSON: {e}", hint=_HINT) from None
    if not isinstance(document, dict):
        raise UserError(f"{path}: a saved host is a JSON object, not {type(document).__name__}", hint=_HINT)
    return document


@lru_cache(maxsize=16)
def _hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)


class _Reader:
    """Reads values of the declared types; every error names the file and the field."""

    def __init__(self, path: str) -> None:
        self.path = path

    def error(self, field: str, wanted: str, got: object) -> UserError:
        plain = isinstance(got, (str, int, float, bool, type(None)))
        shown = json.dumps(got)[:60] if plain else type(got).__name__
        return UserError(f"{self.path}: '{field}' must be {wanted}, not {shown}", hint=_HINT)

    def record(self, kind: type, document: object, where: str, position: int = 0) -> Any:
        if not isinstance(document, dict):
            raise self.error(where, "an object", document)
        hints = _hints(kind)
        values: dict[str, Any] = {}
        for field in dataclasses.fields(kind):
            if field.name in _NOT_SAVED:
                continue
            got = document.get(field.name)
            at = f"{where}.{field.name}" if where else field.name
            required = field.default is field.default_factory is dataclasses.MISSING
            if got is None and required and type(None) not in typing.get_args(hints[field.name]):
                if field.name == "index":  # GPUs are numbered as they stand
                    got = position
                else:
                    got = hints[field.name]()
            if got is None and not required and not _nullable(hints[field.name]):
                continue
            values[field.name] = self.value(hints[field.name], got, at)
        return kind(**values)

    def value(self, hint: Any, got: object, at: str) -> Any:
        origin, arguments = typing.get_origin(hint), typing.get_args(hint)
        if origin in (typing.Union, types.UnionType):
            if got is None:
                return None
            (inner,) = (a for a in arguments if a is not type(None))
            return self.value(inner, got, at)
        if origin is tuple:
            if not isinstance(got, list):
                raise self.error(at, "a list or null", got)
            inner = arguments[0]
            if dataclasses.is_dataclass(inner):
                return tuple(self.record(inner, v, f"{at}[{i}]", i) for i, v in enumerate(got))  # type: ignore[arg-type]
            return tuple(self.value(inner, v, f"{at}[{i}]") for i, v in enumerate(got))
        if origin is not None:  # a mapping from texts
            if not isinstance(got, dict):
                raise self.error(at, "an object", got)
            return {name: self.value(arguments[1], v, f"{at}.{name}") for name, v in got.items()}
        return self.plain(hint, got, at)

    def plain(self, kind: type, got: object, at: str) -> Any:
        if kind is bool:
            if not isinstance(got, bool):
                raise self.error(at, "true, false or null", got)
            return got
        if kind is str:
            if not isinstance(got, str):
                raise self.error(at, "text or null", got)
            return got
        number = isinstance(got, (int, float)) and not isinstance(got, bool)
        if kind is int:
            if not number or not isinstance(got, int) or got < 0:
                raise self.error(at, "a whole number, 0 or more, or null", got)
            return got
        if not number or not 0 <= typing.cast(float, got) <= 1e18:
            wanted = "a size in GiB" if at.endswith("_gib") else "a number"
            raise self.error(at, f"{wanted}, 0 or more, or null", got)
        return float(typing.cast(float, got))


def _nullable(hint: Any) -> bool:
    return type(None) in typing.get_args(hint)


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON number")
