"""``mtpdoctor memory -- COMMAND``: what the launch needs of each GPU, and whether it fits."""

from __future__ import annotations

import argparse
import sys

from mtpdoctor.cli import check as check_command
from mtpdoctor.cli.given import add_given_arguments
from mtpdoctor.errors import EXIT_FAILURE_DIAGNOSED, EXIT_FAILURE_UNKNOWN, EXIT_OK, UserError
from mtpdoctor.memory.types import MemorySum
from mtpdoctor.records import replace

_EXIT = {True: EXIT_OK, False: EXIT_FAILURE_DIAGNOSED, None: EXIT_FAILURE_UNKNOWN}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = (
        "mtpdoctor memory [options] -- COMMAND\n       mtpdoctor memory [options] --command-file FILE"
    )
    parser.add_argument(
        "words", nargs="*", metavar="COMMAND", help="the launch command, after --; its flags alone will do"
    )
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")
    parser.add_argument("--verbose", "-v", action="store_true", help="the numbers behind the advice, too")
    parser.add_argument("--draft-model", metavar="DIR", help="the draft model's folder or config.json")
    add_given_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Exit code: 0 it fits, 1 it does not, 2 usage, 3 not decided (the missing facts are named)."""
    found, release, command = summed(args)
    if args.json:
        import json

        from mtpdoctor.report.memory_json import memory_to_json

        print(
            json.dumps(memory_to_json(found, release=release, command=command), ensure_ascii=True, indent=2)
        )
    else:
        from mtpdoctor.report.memory_text import render_memory
        from mtpdoctor.report.style import terminal

        width, color = terminal(sys.stdout)
        print(render_memory(found, width=width, color=color, verbose=args.verbose), end="")
    return _EXIT[found.fits]


def summed(args: argparse.Namespace) -> tuple[MemorySum, str | None, str]:
    """The sum, the release and the command with its secrets masked. Raises UserError for bad input."""
    from mtpdoctor.case import build_case
    from mtpdoctor.diagnose.proof import launch_facts
    from mtpdoctor.host.nvml import gpus_here
    from mtpdoctor.kb.load import load_knowledge
    from mtpdoctor.memory.summing import memory_sum
    from mtpdoctor.model.config import read_model
    from mtpdoctor.redact import mask_secrets
    from mtpdoctor.release import release_or_none
    from mtpdoctor.sglang.installed import installed_release

    if not args.words and args.command is None and args.command_file is None:
        if args.model is None:
            raise UserError(
                "no launch command, and no model", hint="mtpdoctor memory -- --model-path DIR ..."
            )
        args.words = ["--model-path", args.model]  # as SGLang starts it with nothing else said
    given = check_command.with_local_model(check_command._given(args))
    document = given.document
    assert document is not None
    if given.host is None and not document.command.container:
        given = replace(given, host=gpus_here())
    case = build_case(
        document=document,
        command_where=given.command_where,
        host=given.host,
        model=given.model,
        release=given.release,
    )
    if case.release is None:
        version = given.host.packages.get("sglang") if given.host is not None else None
        found = (version, "the saved host") if version else installed_release(document.command)
        release = release_or_none(found[0]) if found else None
        if found is not None and release is not None:
            case = case.with_release(release, found[1], str(release), certain=True)
    case = replace(case, facts=launch_facts(case, load_knowledge()))
    draft = read_model(args.draft_model) if args.draft_model else None
    total = memory_sum(case, case.model, draft)
    return total, str(case.release) if case.release else None, mask_secrets(document.text.strip())
