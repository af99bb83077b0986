"""Errors meant for people: one clear line, a documented exit code, never a traceback."""

from __future__ import annotations

EXIT_OK = 0
EXIT_FAILURE_DIAGNOSED = 1
EXIT_USAGE = 2
EXIT_FAILURE_UNKNOWN = 3


class UserError(Exception):
    """Bad input or usage. ``str()`` says what happened and where; ``hint`` says what to do.

    The command line prints both on one line of standard error and exits with ``exit_code``.
    """

    def __init__(self, message: str, *, hint: str | None = None, exit_code: int = EXIT_USAGE) -> None:
        super().__init__(message)
        self.hint = hint
        self.exit_code = exit_code
