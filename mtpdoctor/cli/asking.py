"""``--ask-sglang``: the installed SGLang as a source, for several commands."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from mtpdoctor.diagnose.given import Given

if TYPE_CHECKING:
    from mtpdoctor.diagnose.asking import Asker


def add_asking_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--ask-sglang",
        nargs="?",
        const="",
        metavar="PYTHON",
        help="let the installed SGLang check the arguments, on this host or the one of --gpu or --host; "
        "PYTHON (or the folder of its environment): default $VIRTUAL_ENV, this Python, python3",
    )


def asker_from(args: argparse.Namespace, given: Given) -> tuple[Asker | None, tuple[str, ...]]:
    """The SGLang to ask, where ``--ask-sglang`` was given, and what was assumed for it."""
    if args.ask_sglang is None:
        return None, ()
    from mtpdoctor.diagnose.asking import Asker, pretended
    from mtpdoctor.sglang.installed import python_to_ask

    gpu, notes = pretended(given.host)
    model = None
    if args.model is not None:
        path = Path(args.model)
        model = str(path.parent if path.is_file() else path)
    return Asker(python_to_ask(args.ask_sglang or None), gpu, model), notes
