"""Python processes of the doctor's own: none of them takes a module from the folder it is started in.

The folder may be one of logs that somebody sent, with a ``signal.py`` among them; ``python -c`` and multiprocessing put
it first on the path otherwise.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# Python 3.10 has no -P; -I leaves out the user's site-packages and PYTHONPATH as well.
SAFE_PATH = ("-P",) if sys.version_info >= (3, 11) else ("-I",)
_PACKAGE = Path(__file__).resolve().parents[1]


@contextmanager
def elsewhere() -> Iterator[None]:
    """While workers of multiprocessing are started: their path begins without the present folder."""
    if sys.version_info >= (3, 11):
        before = os.environ.get("PYTHONSAFEPATH")
        os.environ["PYTHONSAFEPATH"] = "1"
        try:
            yield
        finally:
            if before is None:
                os.environ.pop("PYTHONSAFEPATH", None)
            else:
                os.environ["PYTHONSAFEPATH"] = before
        return
    here = os.getcwd()
    os.chdir(_PACKAGE)  # the worker goes back to the folder in which this process began
    try:
        yield
    finally:
        os.chdir(here)
