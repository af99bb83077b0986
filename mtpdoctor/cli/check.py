"""``mtpdoctor check -- COMMAND``: before launching, would this command start here?"""

from __future__ import annotations

import argparse
import re
import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace

from mtpdoctor.cli.asking import add_asking_argument, asker_from
from mtpdoctor.cli.given import add_given_arguments, given_from
from mtpdoctor.diagnose.check import CheckReport
from mtpdoctor.diagnose.given import Given
from mtpdoctor.errors import EXIT_FAILURE_DIAGNOSED, EXIT_FAILURE_UNKNOWN, EXIT_OK, UserError
from mtpdoctor.host.types import HostFacts

_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_EXIT = {"accept": EXIT_OK, "reject": EXIT_FAILURE_DIAGNOSED, "unknown": EXIT_FAILURE_UNKNOWN}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = (
        "mtpdoctor check [options] -- COMMAND\n       mtpdoctor check [options] --command-file FILE"
    )
    parser.add_argument(
        "words", nargs="*", metavar="COMMAND", help="the launch command, after --; its flags alone will do"
    )
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")
    parser.add_argument("--verbose", "-v", action="store_true", help="all fixes, and the resolved arguments")
    add_given_arguments(parser)
    add_asking_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Exit code: 0 it would start, 1 it would not, 2 usage, 3 not decided."""
    _, report = checked(args)
    if args.json:
        import json

        from mtpdoctor.report.check_json import check_to_json

        print(json.dumps(check_to_json(report), ensure_ascii=True, indent=2))
    else:
        from mtpdoctor.report.check_text import render_check
        from mtpdoctor.report.style import terminal

        width, color = terminal(sys.stdout)
        if hasattr(sys.stdout, "reconfigure"):  # a command may hold what the terminal's encoding does not
            sys.stdout.reconfigure(errors="replace")
        print(render_check(report, width=width, color=color, verbose=args.verbose), end="")
    return _EXIT[report.verdict]


def checked(args: argparse.Namespace) -> tuple[Given, CheckReport]:
    """What the command line gives, and the check of it. Raises UserError for bad input."""
    from mtpdoctor.diagnose.check import check
    from mtpdoctor.host.here import host_here
    from mtpdoctor.kb.load import load_knowledge
    from mtpdoctor.sglang.installed import installed_release
    from mtpdoctor.sglang.newer import learn_when_new

    given = with_local_model(_given(args))
    assert given.document is not None
    asker, notes = asker_from(args, given)
    found = None
    if given.release is None and asker is None:
        found = _release_of(given.host) or installed_release(given.document.command)
    if found is not None and (said := learn_when_new(*found)) is not None:
        notes = (*notes, said)
    if given.host is None and not given.document.command.container:
        given = replace(given, host=host_here())
    report = check(given, load_knowledge(), asker, found)
    return given, replace(report, notes=(*notes, *_several(given), *report.notes))


def _given(args: argparse.Namespace) -> Given:
    ways = [bool(args.words), args.command is not None, args.command_file is not None]
    if sum(ways) != 1:
        hint = "mtpdoctor check -- python -m sglang.launch_server --model-path ..."
        raise UserError("no launch command" if not any(ways) else "more than one launch command", hint=hint)
    if args.words:
        args.command = as_typed(args.words)
    given = given_from(args)
    return replace(given, command_where="command") if args.words else given


def as_typed(words: Sequence[str]) -> str:
    """The words of this process's command line as shell text. One word alone is taken as such a text;
    flags alone get SGLang's own program before them."""
    if len(words) == 1 and any(c.isspace() for c in words[0].strip()):
        return words[0]
    out: list[str] = []
    for word in words:
        name = _ASSIGNMENT.match(word)
        leading = name is not None and all(_ASSIGNMENT.match(w) for w in out)
        out.append(name[0] + shlex.quote(word[name.end() :]) if name and leading else shlex.quote(word))
    if words and words[0].startswith("-"):
        out = ["python", "-m", "sglang.launch_server", *out]
    return " ".join(out)


def with_local_model(given: Given) -> Given:
    """Facts of the model that the command names, where its config.json is on this machine."""
    if given.model is not None or given.document is None:
        return given
    from mtpdoctor.model.config import read_model
    from mtpdoctor.model.locate import local_model

    command = given.document.command
    named = command.value("model_path") or command.positionals[:1]
    folder = local_model(named[-1]) if named else None
    return replace(given, model=read_model(folder)) if folder is not None else given


def _release_of(host: HostFacts | None) -> tuple[str, str] | None:
    """The release that a saved host has installed."""
    version = host.packages.get("sglang") if host is not None else None
    return (version, "the saved host") if version else None


def _several(given: Given) -> tuple[str, ...]:
    assert given.document is not None
    n = len(given.document.launches)
    return (f"{n} servers are started here; this is about the first",) if n > 1 else ()
