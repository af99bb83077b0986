"""``mtpdoctor probe``: the host, the SGLang installation, the model's folder."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, TextIO

from mtpdoctor.errors import EXIT_FAILURE_DIAGNOSED, EXIT_OK, UserError

if TYPE_CHECKING:
    from mtpdoctor.diagnose.host_check import HostFinding
    from mtpdoctor.host.types import HostFacts
    from mtpdoctor.model.types import ModelFacts

_MOST_SECONDS = 600.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "mtpdoctor probe [options]"
    parser.add_argument(
        "--json",
        action="store_true",
        help="one JSON document on standard output; --host FILE reads it elsewhere",
    )
    parser.add_argument(
        "--verbose", "-v", action="store_true", help="every process, port, folder and environment"
    )
    parser.add_argument(
        "--python", metavar="PATH", help="the Python, or environment's folder, that has SGLang"
    )
    parser.add_argument("--model", metavar="DIR", help="the model's folder or config.json, to look at too")
    parser.add_argument(
        "--host", metavar="FILE", help="show a saved `mtpdoctor probe --json` instead of this host"
    )
    parser.add_argument("--sglang", metavar="RELEASE", help="the SGLang release that is meant to run here")
    parser.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=float,
        help="how long each probe may take (default 1.5); a driver without persistence mode may need more",
    )


def run(args: argparse.Namespace) -> int:
    """Exit code: 0 nothing stops a launch, 1 something does, 2 usage."""
    from mtpdoctor.cli.given import model_from, release_from
    from mtpdoctor.diagnose.host_check import host_findings
    from mtpdoctor.kb.load import load_knowledge

    release = release_from(args.sglang)
    model = model_from(args.model)
    host = _host(args)
    knowledge = load_knowledge()
    findings = host_findings(host, knowledge, release)
    if model is not None:
        from mtpdoctor.diagnose.model_check import model_findings

        findings = (*model_findings(model, host, knowledge, release), *findings)
    if args.json:
        import json

        from mtpdoctor.report.model_json import model_to_json
        from mtpdoctor.report.probe_json import probe_to_json

        document = probe_to_json(host, findings, model_to_json(model) if model is not None else None)
        print(json.dumps(document, ensure_ascii=True, indent=2))
    else:
        _print(host, findings, model, args.verbose)
    return EXIT_FAILURE_DIAGNOSED if any(f.severity == "fatal" for f in findings) else EXIT_OK


def _host(args: argparse.Namespace) -> HostFacts:
    from mtpdoctor.cli.given import HERE

    if args.host is not None and args.host != HERE:
        for name in ("python", "timeout"):
            if getattr(args, name) is not None:
                raise UserError(f"--host and --{name} exclude each other", hint="a saved host is not probed")
        from mtpdoctor.host.saved import load_host

        return load_host(args.host)
    from mtpdoctor.host.probe import LIMIT, Wanted, probe_host

    limit = LIMIT if args.timeout is None else args.timeout
    if not 0.1 <= limit <= _MOST_SECONDS:
        raise UserError(f"--timeout must be 0.1 to {_MOST_SECONDS:.0f} seconds, not {limit:g}")
    if args.python is not None:
        from mtpdoctor.host.python import given_python

        given_python(args.python)  # bad input is named before anything is looked at
    return probe_host(Wanted(args.python, args.model), limit)


def _print(host: HostFacts, findings: Sequence[HostFinding], model: ModelFacts | None, verbose: bool) -> None:
    from mtpdoctor.report.probe_text import render_host
    from mtpdoctor.report.style import terminal

    width, color = terminal(sys.stdout)
    plain = not _has_blocks(sys.stdout)
    if hasattr(sys.stdout, "reconfigure"):  # a command line may hold what the terminal's encoding does not
        sys.stdout.reconfigure(errors="replace")
    after: Sequence[str] = ()
    if model is not None:
        from mtpdoctor.report.model_text import render_model

        after = render_model(model, width=width, color=color, verbose=verbose, plain=plain).splitlines()
    page = render_host(
        host,
        findings,
        width=width,
        color=color,
        verbose=verbose,
        plain=not _has_blocks(sys.stdout),
        after=after,
    )
    print(page, end="")


def _has_blocks(stream: TextIO) -> bool:
    """The terminal's encoding has the characters that bars and lines are made of."""
    try:
        "\u2588\u2591\u2500\u00b7\u00d7\u2192".encode(stream.encoding or "ascii")
    except (UnicodeError, LookupError):
        return False
    return True
