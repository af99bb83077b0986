"""Reports as the diagnosis would hand them over, written out by hand."""

from __future__ import annotations

from dataclasses import replace

from mtpdoctor.diagnose.types import Clue, Diagnosis, Ended, Finding, Fix, Late, Report, Stop, StopCause
from mtpdoctor.launch.types import Edit, EditOp
from mtpdoctor.log.types import Line

COMMAND = (
    "python -m sglang.launch_server --model-path /models/Qwen3.5-122B-A10B --speculative-algorithm NEXTN "
    "--mamba-scheduler-strategy no_buffer --tp 4 --attention-backend triton --trust-remote-code --port 31020"
)


def line(number: int, text: str, rank: str | None = None, file: int = 0) -> Line:
    body = text.split("] ", 1)[1] if text.startswith("[") and "] " in text else text
    return Line(file=file, number=number, part=0, stream="", rank=rank, time=None, text=text, body=body)


EXTRA_BUFFER = Fix(
    title="Use the extra_buffer strategy",
    safety="safe",
    why="Keeps the prefix cache and speculation; costs some memory for the extra states.",
    risk=None,
    edits=(Edit(EditOp.SET, "--mamba-scheduler-strategy", "extra_buffer"),),
    run=(),
    command=COMMAND.replace("no_buffer", "extra_buffer"),
    verified="rules",
)
NO_RADIX = Fix(
    title="Keep no_buffer and give up the prefix cache",
    safety="risky",
    why="Speculation works without the prefix cache.",
    risk="Repeated prefixes are computed again: chats and agents get slower.",
    edits=(Edit(EditOp.ADD, "--disable-radix-cache"),),
    run=(),
    command=COMMAND + " --disable-radix-cache",
    verified="rules",
)
NO_BUFFER = Diagnosis(
    rule="MTP0007",
    title="Speculative decoding with radix cache needs the extra_buffer strategy on hybrid models",
    confidence=0.97,
    cause="The model is a hybrid: its linear-attention state must be kept apart for draft tokens, and "
    "no_buffer keeps it in one place, which the radix cache cannot share.",
    misleading="the missing generation_config.json; and SGLANG_ENABLE_SPEC_V2=1, which the message asks for, "
    "is already the default in this release.",
    root=line(
        25,
        "ValueError: Speculative decoding for Qwen3_5MoeForConditionalGeneration is not compatible with "
        "radix cache when using --mamba-scheduler-strategy no_buffer.To use radix cache with speculative "
        "decoding, please use --mamba-scheduler-strategy extra_buffer and set SGLANG_ENABLE_SPEC_V2=1.",
    ),
    ranks=(),
    evidence=(),
    consequences=(),
    references=("https://github.com/sgl-project/sglang/pull/19391",),
    fixes=(EXTRA_BUFFER, NO_RADIX),
    marks=(
        "is not compatible with radix cache when using --mamba-scheduler-strategy no_buffer",
        "Qwen3_5MoeForConditionalGeneration",
    ),
)
FAILED = Report(
    outcome="failed",
    stage="server_args",
    sglang_version="0.5.13.post1",
    version_source="server.log:3",
    command=COMMAND,
    diagnoses=(NO_BUFFER,),
    findings=(),
    attempts=1,
    files=("server.log",),
)

_TWO_ON_ONE = Diagnosis(
    rule="MTP0112",
    title="More ranks than GPUs: --tp 8 on 4 GPUs",
    confidence=0.9,
    cause="Each rank wants a GPU of its own; ranks 4 to 7 asked for GPUs that this host does not have.",
    misleading=None,
    root=line(
        210, "[2026-11-29 13:45:08 TP5] torch.AcceleratorError: CUDA error: invalid device ordinal", "TP5"
    ),
    ranks=("TP5", "TP4", "TP6", "TP7"),
    evidence=(line(96, "[2026-11-29 13:44:59 TP0] Init torch distributed begin.", "TP0"),),
    consequences=(
        line(
            215,
            "[2026-11-29 13:45:08] Received sigquit from a child process. It usually means the child failed.",
        ),
        line(
            216,
            "[2026-11-29 13:45:08] Received sigquit from a child process. It usually means the child failed.",
        ),
        line(217, "EOFError"),
        line(230, "[2026-11-29 13:45:09] Rank 0 scheduler is dead. Please check if there are relevant logs."),
        line(231, "[2026-11-29 13:45:09] Exit code: -9"),
    ),
    references=(),
    fixes=(
        Fix(
            title="Use as many ranks as there are GPUs",
            safety="risky",
            why="The model may need all 8 GPUs' memory.",
            risk="The weights may not fit on 4 GPUs.",
            edits=(Edit(EditOp.SET, "--tp-size", "4"),),
            run=(),
            command=None,
            verified="none",
        ),
        Fix(
            title="See which GPUs the server may use",
            safety="manual",
            why="",
            risk=None,
            edits=(),
            run=("nvidia-smi -L", 'echo "$CUDA_VISIBLE_DEVICES"'),
            command=None,
            verified="none",
        ),
    ),
    marks=("invalid device ordinal",),
)
RANKS = replace(FAILED, stage="dist_init", command=None, sglang_version=None, diagnoses=(_TWO_ON_ONE,))

UNKNOWN = replace(
    FAILED,
    stage="weights",
    diagnoses=(
        Diagnosis(
            rule=None,
            title="KeyError at weights, which no rule knows",
            confidence=0.3,
            cause="No rule knows this failure. The line above is the earliest error that nothing explains.",
            misleading=None,
            root=line(310, "KeyError: 'model.layers.3.mlp.experts.w2_weight_scale_inv'", "TP0"),
            ranks=("TP0", "TP1"),
            evidence=(),
            consequences=(line(340, "[2026-11-29 13:45:08] Received sigquit from a child process."),),
            references=(),
            fixes=(),
            chain=(
                line(310, "KeyError: 'model.layers.3.mlp.experts.w2_weight_scale_inv'", "TP0"),
                line(330, "RuntimeError: failed to load weights", "TP0"),
            ),
            next_steps=(
                "read the source at /opt/sglang/srt/models/qwen3_moe.py:812, in load_weights: "
                "param = params_dict[name]",
                "search SGLang's issues for: KeyError 'model.layers.3.mlp.experts.w2_weight_scale_inv'",
            ),
        ),
    ),
)

READY = replace(FAILED, outcome="ready", stage="serving", diagnoses=())
READY_FINDINGS = replace(
    READY,
    findings=(
        Finding(
            rule="MTP0203",
            title="Speculation is on, but not one drafted token is accepted",
            line=line(
                77,
                "[2026-11-29 13:47:58] Decode batch, #running-req: 1, #full token: 40, "
                "full token usage: 0.00, accept len: 1.00, accept rate: 0.00, "
                "cuda graph: True, gen throughput (token/s): 1.27",
            ),
            cause="An acceptance length of 1.00 means that drafting costs time and gains none.",
            fixes=(replace(NO_RADIX, title="Switch speculation off", command=None),),
            marks=("accept len: 1.00",),
        ),
        Finding(
            rule="MTP0204",
            title="The overlap schedule is off",
            line=line(12, "[2026-11-29 13:47:20] Overlap scheduler is disabled because of no_buffer."),
            cause="Scheduling and the GPU take turns.",
        ),
    ),
)
_SHARD = line(61, "Loading safetensors checkpoint shards:  62% Completed | 62/100 [05:00<03:00,  4.8s/it]")
_CHECK = line(
    97, '[2026-11-29 13:57:20] INFO:     10.0.0.9:40001 - "GET /health HTTP/1.1" 503 Service Unavailable'
)
STOP = Stop(
    stage="weights",
    last=replace(_SHARD, time="2026-11-29 13:47:20"),
    progress="62 of 100 shards",
    entered=line(40, "[2026-11-29 13:46:50 TP0] Load weight begin. avail mem=78.00 GB", "TP0"),
    before="dist_init",
    before_s=8.0,
    stage_s=30.0,
    quiet_s=240.0,
    quiet_why="10 s recorded; one shard of 5 GB from slow network storage takes minutes",
    silent_s=600.0,
    silent_until=replace(_CHECK, time="2026-11-29 13:57:20"),
    late=(
        Late("TP2", "dist_init", line(33, "[2026-11-29 13:46:44 TP2] Init torch distributed begin.", "TP2")),
        Late("TP3", None, None),
    ),
    ranks=4,
    ended=None,
    answers=None,
    causes=(
        StopCause(
            "rank-behind", "One rank is behind, and the others wait for it in a collective",
            (Clue("behind: TP2, TP3"),), "what holds up the rank that is behind is the cause",
            "look at what the rank that is behind does", ("https://github.com/sgl-project/sglang/issues/6864",), (),
        ),
        StopCause(
            "slow-weights", "Weights that come slowly from network storage or a slow disk",
            (Clue('it wrote "Loading safetensors checkpoint shards:  62% Completed"', _SHARD),),
            "ranks are in disk sleep and bytes are still read", "wait, or copy the model to a local disk", (),
            ("the states of the processes", "whether bytes are read"),
        ),
    ),
)  # fmt: skip
UNFINISHED = replace(READY, outcome="unfinished", stage="weights", stop=STOP)
LOADING = replace(
    UNFINISHED, stop=replace(STOP, silent_s=None, silent_until=None, late=(), causes=STOP.causes[1:])
)
_SIGTERM = line(
    300,
    "[2026-11-29 14:00:00] SIGTERM received. signum=15 frame=None. Draining requests and shutting down...",
)
_CODE = line(309, "exited with code 0")
_READY = line(90, "[2026-11-29 13:48:20] The server is fired up and ready to roll!")
STOPPED = replace(READY_FINDINGS, ended=Ended(_SIGTERM, "SIGTERM", True, 0, _CODE, _READY))
STOPPED_LOADING = replace(
    LOADING, stop=replace(STOP, silent_s=None, silent_until=None, causes=(), ended=line(98, "^C")),
    ended=Ended(line(98, "^C"), "Ctrl-C", False, None, None, None),
)  # fmt: skip
EMPTY = replace(
    READY, outcome="empty", stage="env", sglang_version=None, command=None, attempts=0,
    notes=("server.log is empty",),
)  # fmt: skip
SEVERAL = replace(
    FAILED,
    attempts=3,
    files=("node0.log", "node1.log"),
    diagnoses=(NO_BUFFER, replace(_TWO_ON_ONE, root=replace(_TWO_ON_ONE.root, file=1))),
    findings=READY_FINDINGS.findings,
    notes=("the log says SM90, --gpu says SM120: going by --gpu",),
)


def hostile(text: str, number: int) -> Report:
    """A report that holds ``text`` wherever text of a log can get to."""
    bad = replace(line(number, "x", "TP0"), text=text, body=text)
    fix = Fix(text, "risky", text, text, (Edit(EditOp.SET, "--x", text),), (), None, "none", (text,))
    diagnosis = replace(
        NO_BUFFER, title=text, cause=text, misleading=text, root=bad, ranks=(text, text), evidence=(bad,),
        consequences=(bad,), references=(text,), fixes=(fix,), marks=(text[2:9], text), next_steps=(text,),
    )  # fmt: skip
    finding = replace(READY_FINDINGS.findings[0], title=text, line=bad, cause=text, fixes=(fix,))
    other = replace(diagnosis, rule=None)
    return replace(
        FAILED, diagnoses=(diagnosis, other), findings=(finding,), files=(text,), notes=(text,),
        sglang_version=text, command=None,
    )  # fmt: skip


def hostile_stop(text: str, number: int) -> Report:
    """An unfinished launch whose lines, ranks and times hold ``text``."""
    bad = replace(line(number, "x", "TP0"), text=text, body=text, rank=text, time=text)
    cause = StopCause("unknown", text, (Clue(text, bad),), text, text, (text,), (text,))
    stop = replace(
        STOP, last=bad, progress=text, entered=bad, quiet_why=text, silent_until=bad, late=(Late(text, "weights", bad),),
        causes=(cause,), ended=bad,
    )  # fmt: skip
    ended = Ended(bad, "SIGTERM", True, 1, bad, None)
    return replace(
        UNFINISHED, stop=stop, ended=ended, files=(text,), notes=(text,), sglang_version=text, command=None
    )


ALL = {
    "failed": FAILED,
    "ranks": RANKS,
    "unknown": UNKNOWN,
    "ready": READY,
    "ready_findings": READY_FINDINGS,
    "unfinished": UNFINISHED,
    "loading": LOADING,
    "stopped": STOPPED,
    "stopped_loading": STOPPED_LOADING,
    "empty": EMPTY,
    "several": SEVERAL,
}
