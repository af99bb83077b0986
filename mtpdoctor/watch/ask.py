"""One HTTP request to the launched server: no proxies, a deadline over all of it, a bounded answer."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mtpdoctor.watch.target import Target

MAX_ANSWER = 16 << 20  # bytes; an answer with embeddings of a whole batch stays far below


class NoAnswer(Exception):
    """Nothing came back: refused, cut, timed out, or no HTTP. ``refused``: nobody listens there."""

    def __init__(self, message: str, *, refused: bool = False, timed_out: bool = False) -> None:
        super().__init__(message)
        self.refused = refused
        self.timed_out = timed_out


@dataclass(frozen=True, slots=True)
class Answer:
    """``seconds`` from sending the request to the last byte of the answer."""

    status: int
    body: bytes
    seconds: float

    @property
    def ok(self) -> bool:
        return self.status == 200

    def json(self) -> Any:
        """The body as data; None where it is no JSON."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            return None

    @property
    def message(self) -> str:
        """What an error answer says, on one line, not masked."""
        data = self.json()
        for _ in range(3):  # {"error": {"message": ...}}, {"detail": ...}, {"message": ...}
            if not isinstance(data, Mapping):
                break
            data = next((data[k] for k in ("error", "message", "detail", "msg") if data.get(k)), None)
        text = data if isinstance(data, str) else self.body[:400].decode(errors="replace")
        return " ".join(text.split())[:300]


def ask(target: Target, method: str, path: str, body: object = None, *, timeout_s: float = 30.0) -> Answer:
    """Send one request. ``path`` is without the base path, which is tried first where the target has one.

    ``timeout_s`` is for the whole exchange. Raises NoAnswer.
    """
    deadline = time.monotonic() + timeout_s
    if not target.base_path:
        return _once(target, method, path, body, deadline)
    answer = _once(target, method, target.base_path + path, body, deadline)
    # FastAPI's root path is what a proxy in front cuts off; without the proxy either may be right.
    return answer if answer.status != 404 else _once(target, method, path, body, deadline)


def _once(target: Target, method: str, path: str, body: object, deadline: float) -> Answer:
    import http.client
    import ssl

    started = time.monotonic()
    connection: http.client.HTTPConnection
    try:
        if target.tls:
            context = ssl.create_default_context()
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
            connection = http.client.HTTPSConnection(
                target.host, target.port, timeout=_left(deadline), context=context
            )
        else:
            connection = http.client.HTTPConnection(target.host, target.port, timeout=_left(deadline))
        try:
            headers = {"Accept": "application/json", "Connection": "close"}
            if target.api_key:
                headers["Authorization"] = f"Bearer {target.api_key}"
            payload = None
            if body is not None:
                payload = json.dumps(body).encode()
                headers["Content-Type"] = "application/json"
            connection.request(method, path, payload, headers)
            _rest(connection, deadline)
            response = connection.getresponse()
            parts: list[bytes] = []
            size = 0
            while size < MAX_ANSWER:
                _rest(connection, deadline)
                part = response.read1(1 << 16)
                if not part:
                    break
                parts.append(part)
                size += len(part)
            return Answer(response.status, b"".join(parts), time.monotonic() - started)
        finally:
            connection.close()
    except TimeoutError:
        raise NoAnswer("no answer in time", timed_out=True) from None
    except ConnectionRefusedError:
        raise NoAnswer("nobody listens there", refused=True) from None
    except http.client.HTTPException as error:
        raise NoAnswer(f"no HTTP answer ({type(error).__name__})") from None
    except (OSError, ValueError) as error:  # ValueError: a key or path that cannot stand in a header
        raise NoAnswer(f"the connection broke ({type(error).__name__})") from None


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _rest(connection: Any, deadline: float) -> None:
    """What is left of the deadline, for the next call that blocks."""
    if connection.sock is not None:
        connection.sock.settimeout(_left(deadline))
