"""``mtpdoctor runs``: what was launched from here, how it ended, and where its log is."""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from mtpdoctor.errors import EXIT_OK, UserError

if TYPE_CHECKING:
    from mtpdoctor.watch.runs import Run

_HOW = {
    "running": "running",
    "detached": "left running",
    "stopped": "ended as asked",
    "died": "died",
    "ended": "ended",
    "refused": "not started",
    "lost": "ended with the doctor",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "mtpdoctor runs [ID] [--log] [--json]"
    parser.add_argument("id", nargs="?", metavar="ID", help="one run, by its id or the beginning of it")
    parser.add_argument(
        "--log",
        action="store_true",
        help="only the log's path (of the newest run): mtpdoctor diagnose $(...)",
    )
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")


def run(args: argparse.Namespace) -> int:
    """Exit code 0; 2 where there is no such run."""
    from mtpdoctor.watch.runs import all_runs

    runs = all_runs()
    if args.id is not None:
        runs = tuple(r for r in runs if r.id.startswith(args.id))
        if not runs:
            raise UserError(f"there is no run {args.id}", hint="mtpdoctor runs lists them")
    if args.log:
        if not runs:
            raise UserError("nothing was launched yet", hint="mtpdoctor run -- COMMAND")
        print(runs[0].log)
    elif args.json:
        import json

        print(json.dumps({"schema": 1, "runs": [_to_json(r) for r in runs]}, ensure_ascii=True, indent=2))
    else:
        _print(runs, full=args.id is not None)
    return EXIT_OK


def _to_json(run: Run) -> dict[str, Any]:
    out = {f.name: getattr(run, f.name) for f in fields(run) if f.name not in ("guard", "guard_started")}
    out["started"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(run.started))
    out["edits"] = list(run.edits)
    return out


def _print(runs: tuple[Run, ...], full: bool) -> None:
    from mtpdoctor.paths import state_folder
    from mtpdoctor.report.command import wrapped
    from mtpdoctor.report.style import Style, terminal
    from mtpdoctor.text import cut, safe
    from mtpdoctor.watch.runs import KEEP_BYTES, KEEP_RUNS, KEEP_SECONDS

    width, color = terminal(sys.stdout)
    style = Style(color)
    if not runs:
        print("Nothing was launched yet: mtpdoctor run -- COMMAND")
        return
    for run in runs:
        how = _HOW.get(run.how, run.how)
        code = f", exit code {run.code}" if run.code is not None and run.how != "lost" else ""
        seconds = f" after {run.seconds:.0f} s" if run.seconds is not None else ""
        print(f"{style('bold', safe(run.id))}  {how} at {run.stage}{seconds}{code}")
        cause = f"{run.rule}: {run.cause}" if run.rule else run.cause
        for edit in run.edits:
            print(f"  changed: {safe(edit)}")
        if cause:
            print(f"  {cut(safe(cause), width - 2)[0]}")
        if run.ready_after is not None:
            print(f"  it generated after {run.ready_after:.0f} s")
        if full:
            print("\n".join("  " + row for row in wrapped(safe(run.command), width - 2)))
        else:
            print(f"  {style('dim', cut(safe(run.command), width - 2)[0])}")
        print(f"  {safe(run.log)}")
    if not full:
        kept = f"at most {KEEP_RUNS} runs, {KEEP_SECONDS / 86400:.0f} days, {KEEP_BYTES >> 30} GiB"
        print(f"Kept under {safe(str(state_folder()))}: {kept}; secrets are masked.")
