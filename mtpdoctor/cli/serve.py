"""``mtpdoctor --serve``: the interactive doctor in a browser, on the loopback of this machine only."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence

from mtpdoctor.errors import EXIT_OK, UserError

HOST = "127.0.0.1"  # whoever reaches the page can read files and launch commands: nobody else's business


def serve(port: int, arguments: Sequence[str], words: Sequence[str]) -> int:
    """Serves until it is interrupted. Raises UserError when textual-serve is missing or the port is taken."""
    if not 1 <= port <= 65535:
        raise UserError(f"--serve {port} is no port", hint="1 to 65535")
    try:
        from textual_serve.server import Server
    except ImportError:
        raise UserError("--serve needs textual-serve", hint="pip install 'mtpdoctor[serve]'") from None
    command = [sys.executable, "-m", "mtpdoctor", *arguments]
    command += ["--", *words] if words else []
    try:
        Server(served_command(command), host=HOST, port=port, title="mtpdoctor").serve()
    except OSError as error:
        raise UserError(
            f"cannot serve on {HOST}:{port}: {error.strerror or error}", hint="another port?"
        ) from None
    return EXIT_OK


def served_command(command: Sequence[str]) -> str:
    """As the server's shell takes it: every word quoted."""
    return shlex.join(command)
