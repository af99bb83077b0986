"""``mtpdoctor bundle [LOG...]``: one archive for support, without whose machine it was."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mtpdoctor.cli.given import add_given_arguments, given_from
from mtpdoctor.errors import EXIT_OK, UserError
from mtpdoctor.records import replace as replace_given

if TYPE_CHECKING:
    from mtpdoctor.anonymise.kept import KeptMap
    from mtpdoctor.bundle.types import Bundle, Material
    from mtpdoctor.case import Case
    from mtpdoctor.diagnose.given import Given
    from mtpdoctor.diagnose.types import Report
    from mtpdoctor.host.types import HostFacts
    from mtpdoctor.kb.load import Knowledge
    from mtpdoctor.model.types import ModelFacts

DEFAULT_OUT = "mtpdoctor-bundle.tar.gz"
_MIB = 2**20
_MOST_CONFIG = 4 * _MIB


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("logs", nargs="*", metavar="LOG", help="log(s) of one launch; - is standard input")
    parser.add_argument(
        "--out", "-o", metavar="FILE", default=DEFAULT_OUT, help=f"the archive (default {DEFAULT_OUT})"
    )
    parser.add_argument("--force", action="store_true", help="replace the archive that is there")
    parser.add_argument("--dry-run", action="store_true", help="show what would go in; write nothing")
    parser.add_argument("--json", action="store_true", help="the manifest on standard output")
    parser.add_argument(
        "--keep-map", metavar="FILE", help="keep there, on this machine, which name became which placeholder"
    )
    parser.add_argument("--hide-models", action="store_true", help="take out names of public models too")
    parser.add_argument(
        "--max-log-size",
        metavar="MIB",
        type=float,
        default=8.0,
        help="of each log (default 8); more is cut, lines keep their numbers",
    )
    parser.add_argument("--no-probe", action="store_true", help="do not look at this host")
    add_given_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Exit code: 0 written (or shown, with --dry-run), 2 usage."""
    from mtpdoctor.anonymise.kept import load_kept, save_kept
    from mtpdoctor.bundle.archive import archive_bytes, refuse_existing, write_archive
    from mtpdoctor.bundle.build import build, redactor_for, vocabulary
    from mtpdoctor.kb.load import load_knowledge

    if not 0.05 <= args.max_log_size <= 1024:
        raise UserError(f"--max-log-size must be 0.05 to 1024 MiB, not {args.max_log_size:g}")
    if not args.dry_run:
        refuse_existing(args.out, args.force)
    given = given_from(args)
    if args.no_probe and not args.logs and given.document is None and given.host is None:
        raise UserError("nothing to put in", hint="give a log, a command, or leave out --no-probe")
    kept: KeptMap | None = load_kept(args.keep_map) if args.keep_map else None
    knowledge = load_knowledge()
    material, given = _material(args, given, knowledge)
    redactor = redactor_for(material, vocabulary(knowledge), hide_models=args.hide_models, remembered=kept)
    bundle = build(material, redactor, lambda *parts: _diagnosed(*parts, given=given, knowledge=knowledge))
    if not args.dry_run:
        write_archive(archive_bytes(bundle), args.out, force=args.force)
        if kept is not None:
            save_kept(kept.with_entries(redactor.entries()), args.keep_map)
    _print(args, bundle)
    return EXIT_OK


# -- what goes in ------------------------------------------------------------------------------------------


def _material(args: argparse.Namespace, given: Given, knowledge: Knowledge) -> tuple[Material, Given]:
    from mtpdoctor.bundle.cut import log_text
    from mtpdoctor.bundle.types import Material
    from mtpdoctor.diagnose.engine import diagnose
    from mtpdoctor.diagnose.the_case import case_of
    from mtpdoctor.log.reading import read_sources
    from mtpdoctor.log.source import open_source

    host = given.host
    if host is None and not args.no_probe:
        from mtpdoctor.host.probe import Wanted, probe_host

        host = probe_host(Wanted(model=args.model))
    report, case, texts = None, None, []
    if args.logs:
        sources = [open_source(path, stdin=sys.stdin.buffer) for path in args.logs]
        reading = read_sources(sources, knowledge.literals)
        report = diagnose(reading, knowledge, replace_given(given, models_here=True))
        if reading.attempt is None:
            raise UserError(f"{', '.join(args.logs)}: nothing in it", hint="was the log written elsewhere?")
        case = case_of(reading, reading.attempt, given)[0]
        if report.memory is not None and given.model is None and (model := _model_here(case)) is not None:
            given = replace_given(given, model=model)  # the redacted log no longer says where it lies
            report = diagnose(reading, knowledge, given)
        limit = int(args.max_log_size * _MIB)
        texts = [log_text(s, i, limit, report, reading.attempt) for i, s in enumerate(sources)]
    command, name = _command(given, case)
    material = Material(
        logs=tuple(texts),
        command=command,
        command_name=name,
        host=_host_document(host, knowledge) if host is not None else None,
        configs=tuple(_configs(args.model, given, case)),
        packages=_packages(host),
        seeds_hosts=_own_hosts(host),
        seeds_users=_own_users(),
        report=report,
    )
    return material, given


def _command(given: Given, case: Case | None) -> tuple[str | None, str]:
    """The launch command in the form it was given, else as the log shows it."""
    from mtpdoctor.launch.types import Form

    document = given.document if given.document is not None else case.document if case is not None else None
    if document is None:
        return None, ""
    if case is not None and case.reconstructed and given.document is None:
        return f"# put together from the log's server_args\n{document.text.strip()}\n", "command.sh"
    name = given.command_where if document is given.document else None
    return document.text.rstrip(
        "\n"
    ) + "\n", name if name and document.form is not Form.SHELL else "command.sh"


def _model_here(case: Case) -> ModelFacts | None:
    from mtpdoctor.diagnose.memory import with_model_here

    return with_model_here(case).model


def _configs(named: str | None, given: Given, case: Case | None) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The config.json of the model and of the draft model, where this machine has them."""
    from pathlib import Path

    from mtpdoctor.model.locate import local_model
    from mtpdoctor.model.reading import Unreadable, parse_object, read_some

    def said(dest: str) -> str | None:
        value = case.facts.look(f"arg.{dest}") if case is not None else None
        if isinstance(value, str):
            return value
        typed = given.document.command.value(dest) if given.document is not None else None
        return typed[0] if typed else None

    for target, name in (
        ("model/config.json", named or said("model_path")),
        ("draft-model/config.json", said("speculative_draft_model_path")),
    ):
        if not name:
            continue
        path = Path(name)
        folder = path.parent if path.is_file() else local_model(name)
        if folder is None:
            continue
        try:
            data, _ = read_some(folder / "config.json", _MOST_CONFIG)
            yield target, parse_object(data)
        except Unreadable as error:
            yield target, {"unreadable": str(error)}


def _host_document(host: HostFacts, knowledge: Knowledge) -> dict[str, Any]:
    from mtpdoctor.diagnose.host_check import host_findings
    from mtpdoctor.report.probe_json import probe_to_json

    return probe_to_json(host, host_findings(host, knowledge, None))


def _packages(host: HostFacts | None) -> tuple[tuple[str, str], ...]:
    if host is None:
        return ()
    return tuple(sorted((n, v) for n, v in host.packages.items() if v))


def _own_hosts(host: HostFacts | None) -> tuple[str, ...]:
    import socket

    names = [socket.gethostname(), getattr(host, "name", None) if host is not None else None]
    return tuple(name for name in names if isinstance(name, str) and name)


def _own_users() -> tuple[str, ...]:
    import getpass
    import os

    try:
        names = [getpass.getuser(), os.path.basename(os.path.expanduser("~"))]
    except (KeyError, OSError, ImportError):
        names = []
    return tuple(name for name in names if name)


# -- the diagnosis of what was redacted ----------------------------------------------------------------------


def _diagnosed(
    logs: list[tuple[str, str]],
    command: str | None,
    host: Mapping[str, Any] | None,
    *,
    given: Given,
    knowledge: Knowledge,
) -> tuple[Report | None, dict[str, str]]:
    import json

    from mtpdoctor.diagnose.engine import diagnose
    from mtpdoctor.log.reading import read_sources
    from mtpdoctor.log.source import LogSource
    from mtpdoctor.report.json import to_json
    from mtpdoctor.report.text import render

    sources = [LogSource.of_bytes(text.encode("utf-8", "replace"), name) for name, text in logs]
    report = diagnose(read_sources(sources, knowledge.literals), knowledge, _redacted(given, command, host))
    files = {
        "diagnosis.txt": render(report, width=120, verbose=True),
        "diagnosis.json": json.dumps(to_json(report), ensure_ascii=True, indent=1) + "\n",
    }
    if report.memory is not None:
        from mtpdoctor.report.memory_json import sum_to_json
        from mtpdoctor.report.memory_text import render_memory

        files["memory.txt"] = render_memory(report.memory, width=120, verbose=True)
        files["memory.json"] = json.dumps(sum_to_json(report.memory), ensure_ascii=True, indent=1) + "\n"
    return report, files


def _redacted(given: Given, command: str | None, host: Mapping[str, Any] | None) -> Given:
    """What the person gave, as it stands in the bundle."""
    from pathlib import PurePath

    from mtpdoctor.launch.document import read_launch

    document, model, saved = given.document, given.model, given.host
    if document is not None and command is not None:
        suffix = PurePath(document.name).suffix  # the rest of the name may be somebody's own
        document = read_launch(command, name=f"command{suffix}", form=document.form)
    if saved is not None and host is not None:
        from mtpdoctor.host.saved import host_from_document

        saved = replace(host_from_document(host, "host.json"), pretended=saved.pretended)
    if model is not None:
        model = replace(model, path="the model")
    return replace_given(given, document=document, model=model, host=saved)


# -- what is shown -------------------------------------------------------------------------------------------


def _print(args: argparse.Namespace, bundle: Bundle) -> None:
    if args.json:
        import json

        print(json.dumps(bundle.manifest, ensure_ascii=True, indent=2))
    else:
        from mtpdoctor.report.bundle_text import render_bundle

        print(render_bundle(bundle, None if args.dry_run else args.out, args.keep_map), end="")
