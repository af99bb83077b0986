"""Sessions that are made up, so that what is shown of them does not change with the knowledge."""

from __future__ import annotations

from dataclasses import replace

from mtpdoctor.diagnose.check import CheckReport, Problem
from mtpdoctor.diagnose.given import Given
from mtpdoctor.diagnose.trial import with_edits
from mtpdoctor.diagnose.types import Diagnosis, Finding, Fix, Report
from mtpdoctor.host.types import Gpu, GpuProcess, HostFacts
from mtpdoctor.kb.knowledge import Knowledge
from mtpdoctor.launch.document import LaunchDocument, read_launch
from mtpdoctor.launch.types import Edit, EditOp
from mtpdoctor.log.types import Line
from mtpdoctor.tui.session import Chosen, Session

SECRET = "sk-abcdefghijklmnopqrstuvwx12345"
COMMAND = (
    "python -m sglang.launch_server --model-path /models/Qwen3-Next --tp 4 --speculative-algorithm NEXTN "
    f"--mamba-scheduler-strategy no_buffer --mem-fraction-static 0.97 --api-key {SECRET} --port 30000"
)
COMPOSE = f"""services:
  sglang:
    image: lmsysorg/sglang:v0.5.13
    command: >-
      python3 -m sglang.launch_server --model-path /models/Qwen3-Next
      --mamba-scheduler-strategy no_buffer --api-key {SECRET}
"""
BUFFER = Edit(EditOp.SET, "--mamba-scheduler-strategy", "extra_buffer")
NO_RADIX = Edit(EditOp.ADD, "--disable-radix-cache")
NO_STRATEGY = Edit(EditOp.REMOVE, "--mamba-scheduler-strategy")
SPEC_V2 = Edit(EditOp.ENV, "SGLANG_ENABLE_SPEC_V2", "1")
ROOT = Line(0, 7, 0, "", None, None, "ValueError: [bold]no[/bold]", "ValueError: [bold]no[/bold]")


def fix(title: str, safety: str, edits: tuple[Edit, ...], base: LaunchDocument, **more: object) -> Fix:
    trial = with_edits(base, edits)
    values = {
        "why": "keeps speculation and the prefix cache",
        "risk": None,
        "run": (),
        "command": trial.command,
        "verified": "rules",
        "document": trial.document,
    }
    return Fix(title=title, safety=safety, edits=edits, **{**values, **more})  # type: ignore[arg-type]


def checked(verdict: str = "accept", *problems: Problem) -> CheckReport:
    return CheckReport(verdict, verdict, "0.5.13.post1", "--sglang", "rules", problems, "", None, {})


def problem(title: str, severity: str = "fatal", certain: bool = True, **more: object) -> Problem:
    values = {"rule": "MTP9999", "cause": "it is so", "stage": "server_args"}
    return Problem(title=title, severity=severity, certain=certain, **{**values, **more})  # type: ignore[arg-type]


def failed(text: str = COMMAND, name: str = "command") -> Session:
    """A failed launch with two remedies for its edits, and one that a person must do."""
    base = read_launch(text, name=name)
    fixes = (
        fix("Use the extra_buffer strategy", "safe", (BUFFER, SPEC_V2), base),
        fix(
            "Give up the prefix cache",
            "risky",
            (NO_RADIX, NO_STRATEGY),
            base,
            risk="repeated prefixes are computed again for every request",
        ),
        Fix(
            title="Bring the packages to the versions of the release",
            safety="manual",
            why="a newer kernel package may know the layer",
            risk=None,
            edits=(),
            run=("pip install 'sglang[all]==0.5.13.post1'",),
            command=None,
            verified="none",
        ),
    )
    diagnosis = Diagnosis(
        rule="MTP9000",
        title="Speculation with the prefix cache needs extra_buffer",
        confidence=0.95,
        cause="so it is",
        misleading=None,
        root=ROOT,
        ranks=(),
        evidence=(),
        consequences=(),
        references=(),
        fixes=fixes,
    )
    report = Report(
        "failed", "server_args", "0.5.13.post1", "server.log:1", text, (diagnosis,), (), 1, ("server.log",)
    )
    return Session(Given(release="0.5.13.post1"), Knowledge.of(()), ("server.log",), report=report, base=base)


def with_chosen(session: Session, *edits: Edit, check: CheckReport | None = None) -> Session:
    assert session.base is not None
    trial = with_edits(session.base, edits)
    chosen = Chosen(trial.edits, trial.command, check, trial.diff, trial.document, trial.problem)
    return replace(session, chosen=chosen)


def healthy(findings: tuple[Finding, ...] = ()) -> Session:
    report = Report("ready", "serving", "0.5.13.post1", None, COMMAND, (), findings, 1, ("server.log",))
    return Session(Given(), Knowledge.of(()), ("server.log",), report=report, base=read_launch(COMMAND))


def host() -> HostFacts:
    """Two GPUs, one held by a process whose name tries to be markup and holds a key."""
    held = GpuProcess(4242, 120.5, f"python -m sglang.launch_server [red]x[/] --api-key {SECRET} \x1b[31mred")
    gpus = (
        Gpu(0, "NVIDIA H200", 90, 139.8, 138.9, utilization=0, uuid="GPU-0"),
        Gpu(1, "NVIDIA H200", 90, 139.8, 18.4, (held,), utilization=87, uuid="GPU-1"),
    )
    return HostFacts(
        "cuda",
        gpus,
        driver="570.86",
        cuda_driver="12.8",
        ram_gib=512.0,
        ram_free_gib=400.0,
        shm_gib=64.0,
        shm_free_gib=63.0,
        name="node7",
        system="Ubuntu 24.04",
        local=True,
    )
