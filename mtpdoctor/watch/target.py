"""Where a launched server listens, and what a request to it must carry.

Read off the launch command, the environment and the lines of the log; the log's ``server_args`` line is what
SGLang made of the command, so it goes before the command where both tell. Secrets stay in here: ``Target`` never
shows them in its ``repr``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from mtpdoctor.patterns import lazy

if TYPE_CHECKING:
    from mtpdoctor.launch.types import LaunchCommand

DEFAULT_PORT = 30000  # SGLang's own, in every release
_ANYWHERE = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "*": "127.0.0.1", "::": "::1", "[::]": "::1"}
_LISTENING = lazy(r"(?:Uvicorn running on|Starting Granian HTTP/2 server on)\s+(?:(https?)://)?(\S+)")
_MASKED = ("***", "<hidden>")


@dataclass(frozen=True, slots=True)
class Target:
    """One server to ask. ``host`` is one that can be connected to (0.0.0.0 is asked on the loopback)."""

    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    tls: bool = False  # the certificate is not checked: it need not name the loopback
    api_key: str | None = field(default=None, repr=False)
    admin_key: str | None = field(default=None, repr=False)
    key_masked: bool = False  # a key is asked for, and what is at hand is its mask
    base_path: str = ""  # "/prefix": a proxy's, or --fastapi-root-path; asked with and without
    model: str | None = None  # the name it serves under
    speculative: str | None = None  # the algorithm in force
    draft_tokens: int | None = None  # --speculative-num-draft-tokens
    token_ids_only: bool = False  # --skip-tokenizer-init: no text in, none out
    embedding: bool = False  # --is-embedding; else the server is asked
    grpc: bool = False  # it speaks gRPC and no HTTP
    encoder_only: bool = False
    disaggregation: str | None = None  # "prefill", "decode"
    node_rank: int = 0  # only node 0 answers requests
    random_weights: bool = False  # --load-format dummy

    @property
    def url(self) -> str:
        """Without a path or a secret."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.tls else 'http'}://{host}:{self.port}"

    @property
    def local(self) -> bool:
        """The address is one of this machine's loopback."""
        return self.host in ("localhost", "::1") or self.host.startswith("127.")


def target_of(
    command: LaunchCommand | None = None,
    environment: Mapping[str, str] | None = None,
    lines: Iterable[str] = (),
) -> Target:
    """Who to ask. ``lines`` are log lines among which ``server_args=`` and ``Uvicorn running on`` are looked for
    (others are skipped; the last of each counts). What nobody tells is SGLang's default."""
    from mtpdoctor.log.server_args import parse_server_args

    values: dict[str, Any] = {}
    if command is not None:
        values = _typed(command, environment or {})
    listening: tuple[str | None, str, int] | None = None
    for line in lines:
        if "server_args=" in line:
            resolved = parse_server_args(line)
            if resolved:
                values = _merge(values, resolved)
        elif "running on" in line or "Granian" in line:
            listening = _listening(line) or listening
    target = _target(values)
    if listening is not None:
        scheme, host, port = listening
        target = replace(
            target,
            host=_ANYWHERE.get(host, host),
            port=port,
            tls=target.tls if scheme is None else scheme == "https",
        )
    return target


def _typed(command: LaunchCommand, environment: Mapping[str, str]) -> dict[str, Any]:
    """Field -> value as typed; variables are put in where the environment or the command knows them."""
    known = {**environment, **command.env}
    values: dict[str, Any] = {}
    for use in command.flags:
        if not use.values:
            values[use.dest] = True
        else:
            values[use.dest] = " ".join(_expanded(value, known) for value in use.values)
    if "model_path" not in values and command.positionals:
        values["model_path"] = _expanded(command.positionals[0], known)
    return values


def _expanded(text: str, known: Mapping[str, str]) -> str:
    if "$" not in text:
        return text
    pattern = r"\$(?:\{(\w+)(?::?-([^}]*))?\}|(\w+))"
    return re.sub(pattern, lambda m: known.get(m[1] or m[3]) or m[2] or m[0], text)


def _merge(typed: dict[str, Any], resolved: Mapping[str, Any]) -> dict[str, Any]:
    """The log's values, but a secret that the log masks is taken from the command."""
    out = dict(typed)
    for name, value in resolved.items():
        if isinstance(value, str) and value in _MASKED and name in typed:
            continue
        out[name] = value
    return out


def _target(values: Mapping[str, Any]) -> Target:
    host = _text(values.get("host")) or ""
    key, admin = _text(values.get("api_key")), _text(values.get("admin_api_key"))
    base = _text(values.get("fastapi_root_path")) or ""
    algorithm = _text(values.get("speculative_algorithm"))
    mode = _text(values.get("disaggregation_mode"))
    return Target(
        host=_ANYWHERE.get(host, host.strip("[]")),
        port=_number(values.get("port")) or DEFAULT_PORT,
        tls=bool(_text(values.get("ssl_certfile"))),
        api_key=_secret(key),
        admin_key=_secret(admin),
        key_masked=_unknown(key),
        base_path="/" + base.strip("/") if base.strip("/") else "",
        model=_text(values.get("served_model_name")) or _text(values.get("model_path")),
        speculative=algorithm if algorithm and algorithm.upper() != "NONE" else None,
        draft_tokens=_number(values.get("speculative_num_draft_tokens")),
        token_ids_only=bool(values.get("skip_tokenizer_init")),
        embedding=bool(values.get("is_embedding")),
        grpc=bool(values.get("grpc_mode") or values.get("smg_grpc_mode")),
        encoder_only=bool(values.get("encoder_only")),
        disaggregation=mode if mode in ("prefill", "decode") else None,
        node_rank=_number(values.get("node_rank")) or 0,
        random_weights=values.get("load_format") == "dummy",
    )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _unknown(secret: str | None) -> bool:
    return secret is not None and (secret in _MASKED or "$" in secret)


def _secret(secret: str | None) -> str | None:
    return None if _unknown(secret) else secret


def _number(value: object) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    return int(value) if isinstance(value, str) and value.isdecimal() and len(value) < 10 else None


def _listening(line: str) -> tuple[str | None, str, int] | None:
    m = _LISTENING.search(line)
    if not m:
        return None
    host, _, port = m[2].rstrip("/").rpartition(":")
    if not port.isdecimal() or len(port) > 5:
        return None
    return m[1], host.strip("[]"), int(port)
