"""``python -m mtpdoctor``, and the ``mtpdoctor`` script."""

import gc
import sys


def run() -> int:
    """One command as a process of its own; its exit code."""
    # What a short run makes, it needs to the end: looking for garbage in it, and once more in all of
    # it at exit, would take a tenth of the time. A long log still gets its collections.
    gc.set_threshold(100_000, 10, 10)
    from mtpdoctor.cli.main import main

    code = main()
    if "mtpdoctor.compiled" in sys.modules:
        sys.modules["mtpdoctor.compiled"].keep()
    gc.freeze()
    return code


if __name__ == "__main__":
    sys.exit(run())
