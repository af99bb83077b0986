"""``--format``, ``--json`` and ``--out``: in which form an answer is given, and where it goes.

A command calls ``add_output_arguments``, asks ``output_format`` early (bad usage shows before the work is
done), makes the text of that format and hands it to ``deliver``.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable

from mtpdoctor.errors import UserError

FORMATS = ("text", "json", "markdown", "html", "sarif")
FOR_PROGRAMS = ("json", "sarif")  # an empty answer is a document there too
_SUFFIXES = {
    ".txt": "text",
    ".json": "json",
    ".md": "markdown",
    ".markdown": "markdown",
    ".html": "html",
    ".htm": "html",
    ".sarif": "sarif",
    ".sarif.json": "sarif",
}


def add_output_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")
    parser.add_argument(
        "--format",
        choices=FORMATS,
        help="text (default), json, markdown (for an issue), html (one file, works offline), sarif",
    )
    parser.add_argument(
        "--out",
        metavar="FILE",
        help="write the answer there; its suffix chooses the format: .md .html .sarif",
    )


def output_format(args: argparse.Namespace, inputs: Iterable[str] = ()) -> str:
    """The format asked for: by ``--format``, ``--json``, or the suffix of ``--out``.

    Raises UserError where these contradict each other, and where ``--out`` names one of the ``inputs``.
    """
    if args.json and args.format not in (None, "json"):
        raise UserError(f"--json and --format {args.format} exclude each other", hint="give one of them")
    if args.out is not None:
        _refuse_inputs(args.out, inputs)
    if args.format is not None:
        return str(args.format)
    if args.json:
        return "json"
    return _by_suffix(args.out) if args.out is not None else "text"


def deliver(text: str, out: str | None, form: str = "text") -> None:
    """Write ``text`` to the file ``out`` as a whole or not at all; to standard output without one. Markdown and
    HTML are UTF-8 there too, whatever the terminal's encoding.

    Raises UserError when the file cannot be written.
    """
    if out is None:
        if hasattr(sys.stdout, "reconfigure"):  # a log may hold what the terminal's encoding does not
            encoding = "utf-8" if form in ("markdown", "html") else None
            sys.stdout.reconfigure(encoding=encoding, errors="replace")
        print(text, end="" if text.endswith("\n") else "\n")
        return
    target = os.path.realpath(out)
    try:
        if os.path.exists(target) and not os.path.isfile(target):  # /dev/stdout, a pipe
            with open(target, "w", encoding="utf-8", newline="") as stream:
                stream.write(text)
        else:
            _replace(target, text)
    except OSError as error:
        raise UserError(
            f"cannot write {out}: {error.strerror or error}", hint="name a file in --out"
        ) from None
    print(f"wrote {out}", file=sys.stderr)


def _replace(target: str, text: str) -> None:
    """By way of a file beside it: a reader never sees half of it, a full disk leaves the old one."""
    beside = f"{target}.{os.getpid()}.part"
    try:
        with open(beside, "x", encoding="utf-8", newline="") as stream:
            stream.write(text)
        os.replace(beside, target)
    except BaseException:
        if os.path.exists(beside):
            os.unlink(beside)
        raise


def _by_suffix(out: str) -> str:
    name = os.path.basename(out).lower()
    for suffix in sorted(_SUFFIXES, key=len, reverse=True):
        if name.endswith(suffix):
            return _SUFFIXES[suffix]
    return "text"


def _refuse_inputs(out: str, inputs: Iterable[str]) -> None:
    for name in inputs:
        try:
            same = os.path.samefile(out, name)
        except OSError:  # one of them is not there, or no file of this machine
            continue
        if same and os.path.isfile(out):
            raise UserError(f"--out {out} is one of the files to read", hint="write the answer elsewhere")
