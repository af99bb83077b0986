"""A host as JSON: what ``probe --json`` writes and ``--host FILE`` reads. The form is in docs/json.md."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mtpdoctor.errors import UserError
from mtpdoctor.host.types import Gpu, GpuProcess, HostFacts
from mtpdoctor.redact import mask_secrets

SCHEMA = 1
_PLATFORMS = ("cuda", "rocm", "npu", "xpu", "cpu", "none")
_MAX_BYTES = 16 * 1024 * 1024


def host_to_json(host: HostFacts) -> dict[str, Any]:
    """The plain serialisation of ``host`` with ``schema``; secrets in ``env`` are masked."""
    document: dict[str, Any] = {"schema": SCHEMA, **dataclasses.asdict(host)}
    document["gpus"] = None if host.gpus is None else [_gpu_to_json(g) for g in host.gpus]
    document["packages"] = dict(host.packages)
    document["env"] = {name: _mask_variable(name, value) for name, value in host.env.items()}
    return document


def _gpu_to_json(gpu: Gpu) -> dict[str, Any]:
    processes = [dataclasses.asdict(p) | {"command": mask_secrets(p.command)} for p in gpu.processes]
    return dataclasses.asdict(gpu) | {"processes": processes}


def _mask_variable(name: str, value: str) -> str:
    prefix = f"{name}="
    masked = mask_secrets(prefix + value)
    return masked.removeprefix(prefix) if masked.startswith(prefix) else value


def load_host(path: str | Path) -> HostFacts:
    """The host saved in ``path``: a ``probe --json`` document, or its ``host`` part alone.

    Raises UserError (file, field, what it must be) when it cannot be read or is no saved host.
    """
    reader = _Reader(str(path))
    document = reader.document()
    if isinstance(document.get("host"), dict):
        document = {"schema": document.get("schema"), **document["host"]}
    if document.get("schema") != SCHEMA:
        raise reader.error("schema", f"{SCHEMA}", document.get("schema"))
    platform = reader.text(document, "platform")
    if platform is not None and platform not in _PLATFORMS:
        raise reader.error("platform", f"one of {', '.join(_PLATFORMS)}", platform)
    gpus = document.get("gpus")
    if gpus is not None and not isinstance(gpus, list):
        raise reader.error("gpus", "a list or null", gpus)
    return HostFacts(
        platform=platform,
        gpus=None if gpus is None else tuple(reader.gpu(i, item) for i, item in enumerate(gpus)),
        driver=reader.text(document, "driver"),
        cuda_driver=reader.text(document, "cuda_driver"),
        ram_gib=reader.size(document, "ram_gib"),
        shm_gib=reader.size(document, "shm_gib"),
        container=reader.flag(document, "container"),
        packages=reader.texts(document, "packages"),
        env=reader.texts(document, "env"),
        pretended=reader.flag(document, "pretended") or False,
    )


class _Reader:
    """Typed access to the document; every error names the file and the field."""

    def __init__(self, path: str) -> None:
        self.path = path

    def error(self, field: str, wanted: str, got: object) -> UserError:
        shown = (
            json.dumps(got)[:60]
            if isinstance(got, (str, int, float, bool, type(None)))
            else type(got).__name__
        )
        return UserError(
            f"{self.path}: '{field}' must be {wanted}, not {shown}",
            hint="save a host with: mtpdoctor probe --json > host.json",
        )

    def document(self) -> dict[str, Any]:
        hint = "save a host with: mtpdoctor probe --json > host.json"
        try:
            with open(self.path, "rb") as file:
                data = file.read(_MAX_BYTES + 1)
        except OSError as e:
            raise UserError(f"{self.path}: cannot be read: {e.strerror or e}", hint=hint) from None
        if len(data) > _MAX_BYTES:
            raise UserError(f"{self.path}: too large for a saved host (over 16 MiB)", hint=hint)
        try:
            document = json.loads(data.decode("utf-8-sig"), parse_constant=_no_constant)
        except json.JSONDecodeError as e:
            raise UserError(f"{self.path}:{e.lineno}:{e.colno}: not valid JSON: {e.msg}", hint=hint) from None
        except (UnicodeDecodeError, ValueError, RecursionError) as e:
            raise UserError(f"{self.path}: not valid JSON: {e}", hint=hint) from None
        if not isinstance(document, dict):
            raise UserError(
                f"{self.path}: a saved host is a JSON object, not {type(document).__name__}", hint=hint
            )
        return document

    def gpu(self, position: int, item: object) -> Gpu:
        where = f"gpus[{position}]"
        if not isinstance(item, dict):
            raise self.error(where, "an object", item)
        processes = item.get("processes") or []
        if not isinstance(processes, list):
            raise self.error(f"{where}.processes", "a list", processes)
        index = self.whole(item, "index", where)
        return Gpu(
            index=position if index is None else index,
            name=self.text(item, "name", where) or "",
            sm=self.whole(item, "sm", where),
            memory_gib=self.size(item, "memory_gib", where),
            free_gib=self.size(item, "free_gib", where),
            processes=tuple(self.process(f"{where}.processes[{i}]", p) for i, p in enumerate(processes)),
        )

    def process(self, where: str, item: object) -> GpuProcess:
        if not isinstance(item, dict):
            raise self.error(where, "an object", item)
        return GpuProcess(
            pid=self.whole(item, "pid", where) or 0,
            used_gib=self.size(item, "used_gib", where) or 0.0,
            command=self.text(item, "command", where) or "",
        )

    def text(self, item: Mapping[str, Any], key: str, where: str = "") -> str | None:
        value = item.get(key)
        if value is not None and not isinstance(value, str):
            raise self.error(_join(where, key), "text or null", value)
        return value

    def whole(self, item: Mapping[str, Any], key: str, where: str = "") -> int | None:
        value = item.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise self.error(_join(where, key), "a whole number, 0 or more, or null", value)
        return value

    def size(self, item: Mapping[str, Any], key: str, where: str = "") -> float | None:
        value = item.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < math.inf:
            raise self.error(_join(where, key), "a size in GiB, 0 or more, or null", value)
        return float(value)

    def flag(self, item: Mapping[str, Any], key: str) -> bool | None:
        value = item.get(key)
        if value is not None and not isinstance(value, bool):
            raise self.error(key, "true, false or null", value)
        return value

    def texts(self, item: Mapping[str, Any], key: str) -> dict[str, str]:
        value = item.get(key)
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise self.error(key, "an object of texts", value)
        for name, text in value.items():
            if not isinstance(text, str):
                raise self.error(f"{key}.{name}", "text", text)
        return value


def _join(where: str, key: str) -> str:
    return f"{where}.{key}" if where else key


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON number")
