"""Options that name what the log or the host would otherwise tell, shared by several commands."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from mtpdoctor.diagnose.given import Given
from mtpdoctor.errors import UserError

if TYPE_CHECKING:
    from mtpdoctor.host.types import HostFacts
    from mtpdoctor.model.types import ModelFacts

HERE = "here"  # --host here: this machine; a file of that name is ./here
MAX_COMMAND_FILE = 4 * 2**20  # bytes; a launch file is small, a log given by mistake is not


def add_given_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--command", metavar="TEXT", help="the launch command, as it was typed")
    parser.add_argument(
        "--command-file",
        metavar="FILE",
        help="the launch command's file: shell script, compose, Kubernetes, sbatch, systemd unit",
    )
    parser.add_argument(
        "--host",
        metavar="FILE",
        help="a saved `mtpdoctor probe --json` of the host; `here` looks at this machine as probe does",
    )
    parser.add_argument("--gpu", metavar="SPEC", help="pretend GPUs: COUNTxsmNNN[@GIB], e.g. 4xsm120@95")
    parser.add_argument("--sglang", metavar="RELEASE", help="the SGLang release, e.g. 0.5.13.post1")
    parser.add_argument("--model", metavar="DIR", help="the model's folder or config.json")


def given_from(args: argparse.Namespace) -> Given:
    """Raises UserError for anything unreadable."""
    from mtpdoctor.launch.document import read_launch

    if args.command is not None and args.command_file is not None:
        raise UserError("--command and --command-file exclude each other", hint="give one of them")
    document, where = None, None
    if args.command is not None:
        document, where = read_launch(args.command, name="--command"), "--command"
    elif args.command_file is not None:
        document, where = read_launch(_read(args.command_file), name=args.command_file), args.command_file
    return Given(
        document=document,
        command_where=where,
        host=_host(args),
        model=model_from(args.model),
        release=release_from(args.sglang),
    )


def _read(path: str) -> str:
    file = Path(path)
    try:
        if file.stat().st_size > MAX_COMMAND_FILE:
            raise UserError(f"{path} is too large for a launch file", hint="is it a log? give it as LOG")
        return file.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        raise UserError(f"{path} is not UTF-8 text", hint="give the launch file as text") from None
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from None


def _host(args: argparse.Namespace) -> HostFacts | None:
    if args.gpu is not None and args.host is not None:
        raise UserError("--gpu and --host exclude each other", hint="give one of them")
    if args.gpu is not None:
        from mtpdoctor.host.spec import parse_gpu_spec

        return parse_gpu_spec(args.gpu)
    if args.host == HERE:
        from mtpdoctor.host.probe import Wanted, probe_host

        return probe_host(Wanted(model=args.model))
    if args.host is not None:
        from mtpdoctor.host.saved import load_host

        return load_host(args.host)
    return None


def model_from(path: str | None) -> ModelFacts | None:
    """The model of ``--model``. Raises UserError."""
    if path is None:
        return None
    from mtpdoctor.model.config import read_model

    return read_model(path)


def release_from(text: str | None) -> str | None:
    """The release of ``--sglang``. Raises UserError."""
    if text is None:
        return None
    from mtpdoctor.release import parse_release

    try:
        return str(parse_release(text))
    except ValueError:
        raise UserError(f"--sglang {text} is no release number", hint="e.g. --sglang 0.5.13.post1") from None
