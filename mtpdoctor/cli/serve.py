"""``mtpdoctor --serve``: the interactive doctor in a browser, on the loopback of this machine only.

Whoever reaches the page can read files and launch commands as the person who serves it. So it is bound to
the loopback, and other users of the machine and other pages of the browser are kept out: the address holds
a secret word that becomes a cookie, and only requests from and to this very address are answered.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import secrets
import shlex
import signal
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from mtpdoctor.errors import EXIT_OK, UserError

HOST = "127.0.0.1"


def serve(port: int, arguments: Sequence[str], words: Sequence[str]) -> int:
    """Serves until it is interrupted. Raises UserError when textual-serve is missing or the port is taken."""
    if not 1 <= port <= 65535:
        raise UserError(f"--port {port} is no port", hint="1 to 65535")
    try:
        import textual_serve.server  # noqa: F401
    except ImportError:
        raise UserError("--serve needs textual-serve", hint="pip install 'mtpdoctor[serve]'") from None
    command = [sys.executable, "-m", "mtpdoctor", *arguments]
    command += ["--", *words] if words else []
    try:
        _server(shlex.join(command), port).serve()
    except OSError as error:
        raise UserError(
            f"cannot serve on {HOST}:{port}: {error.strerror or error}",
            hint="--port names another one",
        ) from None
    return EXIT_OK


def _server(command: str, port: int) -> Any:
    from aiohttp import web
    from textual_serve.server import Server

    class Guarded(Server):
        word = secrets.token_urlsafe(24)

        async def _make_app(self) -> web.Application:
            app = await super()._make_app()
            app.middlewares.append(_guard(port, self.word))
            return app

        def serve(self, debug: bool = False) -> None:
            """As the one above it, but its address is told when it listens there, not before."""
            loop = asyncio.new_event_loop()
            for number in (signal.SIGINT, signal.SIGTERM):
                with contextlib.suppress(NotImplementedError):
                    loop.add_signal_handler(number, self.request_exit)
            web.run_app(
                self._make_app(), host=HOST, port=port, handle_signals=False, loop=loop, print=self._listens
            )

        def _listens(self, *_: object) -> None:
            """``run_app`` calls it once, when the port is bound."""
            print(f"mtpdoctor: open {self.public_url}/?word={self.word}  (Ctrl+C ends it)", flush=True)

        async def on_startup(self, app: web.Application) -> None:
            """It would tell the address before there is one."""

    return Guarded(command, host=HOST, port=port, title="mtpdoctor")


def _guard(port: int, word: str) -> Any:
    from aiohttp import web

    places = {f"{HOST}:{port}"}
    cookie = f"mtpdoctor_{port}"

    @web.middleware
    async def guard(
        request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        origin = request.headers.get("Origin")
        if request.host not in places or (origin and origin.removeprefix("http://") not in places):
            raise web.HTTPForbidden(text="not from here\n")
        if hmac.compare_digest(request.query.get("word", ""), word):
            answer = web.HTTPFound("/")
            answer.set_cookie(cookie, word, httponly=True, samesite="Strict")
            raise answer
        if not hmac.compare_digest(request.cookies.get(cookie, ""), word):
            raise web.HTTPForbidden(text="open the address that mtpdoctor printed\n")
        return await handler(request)

    return guard
