"""Triages as the examination would hand them over, written out by hand."""

from __future__ import annotations

from mtpdoctor.triage.types import Fingerprint, Gone, Group, LaunchFiles, Member, Root, Triage

COMMAND = (
    "python -m sglang.launch_server --model-path /models/Qwen3.5-122B-A10B --mamba-scheduler-strategy {}"
)
NO_BUFFER = Fingerprint("8a7774be825f6979", "MTP0200", ("MTP0200", "arch=Qwen3_5MoeForConditionalGeneration"))
UNKNOWN = Fingerprint("0123456789abcdef", None, ("WidgetError: widget <n> does not turn", "in widgets.turn"))


def launch(name: str) -> LaunchFiles:
    return LaunchFiles(name, (f"{name}/server.log",), "one file")


def failed(name: str, fingerprint: Fingerprint, line: int, **more: object) -> Member:
    known = fingerprint.rule is not None
    text = (
        "ValueError: Speculative decoding is not compatible with radix cache" if known else "WidgetError: 7"
    )
    values: dict[str, object] = {
        "launch": launch(name),
        "outcome": "failed",
        "stage": "server_args",
        "fingerprint": fingerprint,
        "title": "Speculation needs the extra_buffer strategy"
        if known
        else "WidgetError: widget 7 does not turn",
        "cause": "The state of the linear attention cannot be kept."
        if known
        else "No rule knows this failure.",
        "confidence": 0.97 if known else 0.3,
        "root": Root(f"{name}/server.log", line, text, "TP3"),
        "evidence": (Root(f"{name}/server.log", line - 2, "Init torch distributed begin.", "TP3"),),
        "release": "0.5.13.post1",
        "gpu": "4xsm120",
        "model": "Qwen3.5-122B-A10B",
        "started": "2026-11-29T13:45:08",
        "remedy": "Use extra_buffer" if known else None,
        "safety": "safe" if known else None,
        "command": COMMAND.format("extra_buffer") if known else None,
        "next_steps": () if known else ("Look at line 7 of widgets.py",),
        "references": ("https://github.com/sgl-project/sglang/pull/19391",) if known else (),
    }
    return Member(**{**values, **more})  # type: ignore[arg-type]


def group(status: str | None, *members: Member) -> Group:
    first = members[0]
    assert first.fingerprint and first.title and first.cause
    return Group(
        fingerprint=first.fingerprint,
        title=first.title,
        cause=first.cause,
        members=members,
        example=first,
        first_seen="2026-11-28T09:00:00",
        last_seen="2026-11-29T13:45:08",
        releases=tuple({m.release: None for m in members if m.release}),
        gpus=("4xsm120",),
        models=("Qwen3.5-122B-A10B",),
        status=status,
    )


def triage(**more: object) -> Triage:
    known = group(
        "known",
        failed("customer-a/node0", NO_BUFFER, 25),
        failed("customer-b/run7", NO_BUFFER, 31, gpu="8xsm90", release="0.5.14"),
    )
    unknown = group("new", failed("customer-c/first", UNKNOWN, 7))
    values: dict[str, object] = {
        "groups": (known, unknown),
        "ready": (Member(launch("customer-d/good"), "ready", release="0.5.13"),),
        "unfinished": (Member(launch("customer-d/cut"), "unfinished", stage="weights"),),
        "unreadable": (Member(launch("customer-d/secret"), "unreadable", error="permission denied"),),
        "bytes": 123_456,
        "interrupted": 2,
        "notes": ("one archive is damaged",),
        "skipped": (("pictures", 3),),
        "gone": (
            Gone(Fingerprint("fedcba9876543210", "MTP0510", ("MTP0510",)), "The HTTP port is in use", 4),
        ),
    }
    return Triage(**{**values, **more})  # type: ignore[arg-type]
