"""``mtpdoctor triage PATH...``: many launches, one picture."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from mtpdoctor.cli.output import add_output_arguments, deliver, output_format
from mtpdoctor.errors import EXIT_FAILURE_DIAGNOSED, EXIT_FAILURE_UNKNOWN, EXIT_OK, EXIT_USAGE, UserError

if TYPE_CHECKING:
    from mtpdoctor.triage.groups import Groups
    from mtpdoctor.triage.types import Triage

EXIT_INTERRUPTED = 130


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "paths",
        nargs="+",
        metavar="PATH",
        help="log, folder, glob, .zip or .tar(.gz|.zst|.xz) of logs, URL (s3:// gs:// hdfs://); "
        "- reads a list of them from standard input",
    )
    add_output_arguments(parser)
    parser.add_argument("--verbose", "-v", action="store_true", help="every launch and every fixed command")
    parser.add_argument(
        "--baseline", metavar="FILE", help="an earlier run's --json: which causes are new, which came back"
    )
    together = parser.add_mutually_exclusive_group()
    together.add_argument("--one-launch", action="store_true", help="all files are of one launch")
    together.add_argument("--each-file", action="store_true", help="every file is a launch of its own")
    parser.add_argument(
        "--jobs", "-j", type=int, metavar="N", help="worker processes (default: one a CPU; 0: none)"
    )
    parser.add_argument(
        "--time-limit", type=float, default=120.0, metavar="S", help="seconds for one launch (default 120)"
    )
    parser.add_argument(
        "--unpack-limit",
        type=float,
        default=4.0,
        metavar="GIB",
        help="what one log may unpack to (default 4)",
    )
    parser.add_argument("--engine", choices=("local", "ray"), default="local", help="where the work is done")
    parser.add_argument("--ray-address", metavar="ADDRESS", help="of the Ray cluster (default: RAY_ADDRESS)")


def run(args: argparse.Namespace) -> int:
    """0 none failed, 1 all failures known, 2 nothing could be read, 3 some cause is not known, 130 interrupted."""
    from mtpdoctor.triage.baseline import against, read_baseline
    from mtpdoctor.triage.find import find
    from mtpdoctor.triage.gather import EACH_FILE, ONE_LAUNCH
    from mtpdoctor.triage.opening import GIB, Limits
    from mtpdoctor.triage.run import triage

    form = output_format(args, args.paths)
    if args.jobs is not None and args.jobs < 0:
        raise UserError(f"--jobs {args.jobs}: a number of processes, 0 or more")
    if not args.time_limit > 0 or not args.unpack_limit > 0:
        raise UserError("--time-limit and --unpack-limit are greater than 0")
    baseline = read_baseline(args.baseline) if args.baseline else None
    limits = Limits(unpacked=int(args.unpack_limit * GIB), seconds=args.time_limit)
    mode = ONE_LAUNCH if args.one_launch else EACH_FILE if args.each_file else None
    progress = _progress()
    with find(args.paths, stdin=sys.stdin.buffer, limits=limits, look=mode is None) as found:
        try:
            result = triage(
                found,
                mode=mode,
                engine=args.engine,
                jobs=args.jobs,
                limits=limits,
                progress=progress,
                ray_address=args.ray_address,
            )
        finally:
            if progress is not None:
                print("\r\x1b[K", end="", file=sys.stderr, flush=True)
    if baseline is not None:
        result = against(result, baseline)
    if not result.launches and not result.interrupted and form not in ("json", "sarif"):
        raise UserError(
            f"no logs in {', '.join(args.paths)}" + _left_out(result),
            hint="name folders or files of server logs",
        )
    deliver(_rendered(args, form, result), args.out, form)
    return exit_code(result)


def _left_out(result: Triage) -> str:
    what = ", ".join(f"{count} {name}" for name, count in result.skipped)
    return f" (left out: {what})" if what else ""


def exit_code(triage: Triage) -> int:
    if triage.interrupted:
        return EXIT_INTERRUPTED
    if any(group.fingerprint.rule is None for group in triage.groups):
        return EXIT_FAILURE_UNKNOWN
    if triage.groups:
        return EXIT_FAILURE_DIAGNOSED
    return EXIT_OK if triage.ready or triage.unfinished else EXIT_USAGE


def _rendered(args: argparse.Namespace, form: str, result: Triage) -> str:
    if form == "markdown":
        from mtpdoctor.report.markdown_triage import render_triage_markdown

        return render_triage_markdown(result)
    if form == "html":
        from mtpdoctor.report.html_triage import render_triage_html

        return render_triage_html(result)
    if form in ("json", "sarif"):
        import json

        if form == "sarif":
            from mtpdoctor.report.sarif_triage import triage_to_sarif

            return json.dumps(triage_to_sarif(result), ensure_ascii=True, indent=2)
        from mtpdoctor.report.triage_json import triage_to_json

        return json.dumps(triage_to_json(result), ensure_ascii=True, indent=1)
    from mtpdoctor.report.style import DEFAULT_WIDTH, terminal
    from mtpdoctor.report.triage_text import render_triage

    width, color = terminal(sys.stdout) if args.out is None else (DEFAULT_WIDTH, False)
    return render_triage(result, width=width, color=color, verbose=args.verbose)


def _progress() -> Callable[[int, int, Groups], None] | None:
    """A bar on a terminal's standard error; none where nobody looks."""
    if not sys.stderr.isatty():
        return None
    began = time.monotonic()
    shown = 0.0

    def show(done: int, total: int, groups: Groups) -> None:
        nonlocal shown
        now = time.monotonic()
        if now - shown < 0.1 and done < total:
            return
        shown = now
        share = done / total if total else 1.0
        full = int(share * 24)
        rate = done / max(now - began, 1e-6)
        left = f", {(total - done) / rate:.0f} s left" if done and rate else ""
        text = (
            f"[{'#' * full}{'.' * (24 - full)}] {done:,} of {total:,} launches, {groups.causes} causes{left}"
        )
        print(f"\r{text}\x1b[K", end="", file=sys.stderr, flush=True)

    return show
