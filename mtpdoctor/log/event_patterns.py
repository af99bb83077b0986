"""Lines that tell of an event: what is looked for, and what it says about the process that printed it.

The order counts: the first pattern that fits a line names its event.
"""

from __future__ import annotations

import re
from enum import Enum

from mtpdoctor.log.types import EventKind
from mtpdoctor.patterns import lazy


class Weight(Enum):
    """What an event says about the process that printed it, as far as the line alone tells."""

    DIES = "dies"  # it goes down, whatever follows
    LIKELY = "likely"  # it goes down unless healthy lines follow
    FOLLOWS = "follows"  # it goes down because of something else (a signal, an exit status)
    STOPPED = "stopped"  # it was ended by SIGTERM, Ctrl-C or an orderly exit
    NONE = "none"


class Pattern:
    __slots__ = ("kind", "literal", "regex", "weight")

    def __init__(self, kind: EventKind, weight: Weight, literal: str, regex: re.Pattern[str] | None) -> None:
        self.kind = kind
        self.weight = weight
        self.literal = literal  # looked for in the raw log, and in the line before the regex is tried
        self.regex = regex  # None: the literal says it all


def _p(kind: EventKind, weight: Weight, literal: str, regex: str | None = None) -> Pattern:
    return Pattern(kind, weight, literal, lazy(regex) if regex is not None else None)


# Beginnings of SGLang's own error lines: its log format has no level.
SAID = ("Error ", "Failed to ", "Could not ", "Unable to ")

K, W = EventKind, Weight
PATTERNS: tuple[Pattern, ...] = (
    # what is no failure although it reads like one
    _p(K.SHUTDOWN, W.NONE, "Ignore import error", r"\A(?!)"),
    # shutdown asked for
    _p(K.SHUTDOWN, W.STOPPED, "SIGTERM received", r"SIGTERM received"),
    _p(K.SHUTDOWN, W.STOPPED, "Gracefully exiting"),
    _p(K.SHUTDOWN, W.STOPPED, "Shutting down", r"(?:INFO:\s+|^)Shutting down\s*$"),
    _p(K.SHUTDOWN, W.STOPPED, "Received SIGINT"),
    # supervisors and frameworks that were asked themselves; what torch's agent sends on ("closing signal SIGTERM") follows
    _p(
        K.SHUTDOWN,
        W.STOPPED,
        "SIGTERM",
        r"(?i)\b(?:received|caught|got)\W+(?:signal\W+|shutdown signal\W+)?(?:Signals\.)?SIGTERM",
    ),
    _p(
        K.SHUTDOWN,
        W.STOPPED,
        "SIGINT",
        r"(?i)\b(?:received|caught|got)\W+(?:signal\W+|shutdown signal\W+)?(?:Signals\.)?SIGINT",
    ),
    _p(K.SHUTDOWN, W.STOPPED, "signal 15", r"(?i)\b(?:received|caught|got|called with|handling) signal 15\b"),
    _p(K.SHUTDOWN, W.STOPPED, "signal=15", r"\bcontainer kill\b.*\bsignal=15\b"),
    _p(K.SHUTDOWN, W.STOPPED, "StopSignal SIGTERM", r"StopSignal SIGTERM failed to stop"),
    _p(K.SHUTDOWN, W.STOPPED, "eceived shutdown signal"),
    _p(
        K.SHUTDOWN,
        W.STOPPED,
        "stopped: ",
        r"\bstopped: \S+ \((?:terminated by SIG(?:TERM|INT)|exit status \d+)\)",
    ),
    _p(K.SHUTDOWN, W.STOPPED, " to stop", r"\bINFO waiting for \S+ to stop\s*$"),
    _p(K.SHUTDOWN, W.STOPPED, "via signal [", r"exited with code \[\d+\] via signal \[SIG(?:INT|TERM)\]"),
    _p(
        K.SHUTDOWN,
        W.STOPPED,
        "Stopping ",
        r"\bsystemd(?:\[\d+\])?: Stopping \S|^Stopping \S+\.service\b|^Stopping [\w.-]+ +\.\.\.",
    ),
    _p(K.SHUTDOWN, W.STOPPED, "stop-sigterm", r"State 'stop-sigterm' timed out"),
    _p(K.SHUTDOWN, W.STOPPED, "Container ", r"^\W*Container \S+\s+Stopp(?:ing|ed)\b"),
    _p(K.SHUTDOWN, W.STOPPED, "Finished server process"),
    _p(K.SHUTDOWN, W.STOPPED, "Gracefully stopping"),
    _p(K.SHUTDOWN, W.STOPPED, "Killing container with", r"Killing container with|Stopping container"),
    _p(K.SHUTDOWN, W.STOPPED, "Stopping container"),
    _p(K.SHUTDOWN, W.STOPPED, "DUE TO TIME LIMIT"),
    _p(K.SHUTDOWN, W.STOPPED, "CANCELLED AT", r"STEP \S+ ON \S+ CANCELLED AT|JOB \d+ ON \S+ CANCELLED AT"),
    _p(K.SHUTDOWN, W.STOPPED, "canceled", r"^\s*(?:Container \S+\s+)?(?:context )?canceled\s*$"),
    _p(K.SHUTDOWN, W.STOPPED, "^C", r"^\s*\^C"),
    # kernel and cgroup
    _p(K.OOM_KILL, W.DIES, "Out of memory: Killed process", r"(?i)out of memory: killed process"),
    _p(K.OOM_KILL, W.DIES, "emory cgroup out of memory", r"(?i)memory cgroup out of memory"),
    _p(K.OOM_KILL, W.DIES, "invoked oom-killer"),
    _p(K.OOM_KILL, W.DIES, "oom-kill:constraint"),
    _p(K.OOM_KILL, W.DIES, "oom_kill event", r"(?i)oom[-_]kill event"),
    _p(K.OOM_KILL, W.DIES, "oom-kill event", r"(?i)oom[-_]kill event"),
    _p(K.OOM_KILL, W.DIES, "OOM Killed", r"(?i)oom killed"),
    _p(K.OOM_KILL, W.DIES, "oom_reaper: reaped process"),
    _p(K.OOM_KILL, W.DIES, "killed by the OOM killer"),
    _p(
        K.OOM_KILL,
        W.DIES,
        "OOMKilled",
        r"(?<!not )(?<!\.State\.)OOMKilled\b(?![\"'\\]*\s*[:=]\s*[\"'\\]*(?i:false|no|null|none|0)\b)",
    ),
    # the answer to `docker inspect -f "{{.State.ExitCode}} {{.State.OOMKilled}}"`, and the other way round
    _p(K.OOM_KILL, W.DIES, "137 true", r"^\s*137 true\s*$"),
    _p(K.OOM_KILL, W.DIES, "true 137", r"^\s*true 137\s*$"),
    # native crashes
    _p(K.NATIVE, W.DIES, "Fatal Python error"),
    _p(K.NATIVE, W.DIES, "terminate called"),
    _p(K.NATIVE, W.DIES, "what():", r"^\s*what\(\):"),
    _p(K.NATIVE, W.DIES, "Segfault encountered"),
    _p(K.NATIVE, W.DIES, "Segmentation fault"),
    _p(K.NATIVE, W.DIES, "core dumped"),
    _p(K.NATIVE, W.DIES, "*** Signal", r"\*\*\* (?:Signal|SIG|Process received signal|Aborted)"),
    _p(K.NATIVE, W.DIES, "*** SIG", r"\*\*\* SIG"),
    _p(K.NATIVE, W.DIES, "*** Aborted"),
    _p(K.NATIVE, W.DIES, "*** Process received signal"),
    _p(K.NATIVE, W.DIES, "Assertion `", r"Assertion `.*[`'] failed"),
    _p(K.NATIVE, W.DIES, "double free or corruption"),
    _p(
        K.NATIVE,
        W.DIES,
        "free(): invalid",
        r"^(?:free|munmap_chunk|malloc|corrupted)\S*.{0,30}(?:invalid|corrupted)",
    ),
    _p(K.NATIVE, W.DIES, "malloc(): ", r"^malloc\(\): "),
    _p(K.NATIVE, W.DIES, "stack smashing detected"),
    _p(K.NATIVE, W.DIES, "Illegal instruction"),
    _p(K.NATIVE, W.DIES, "symbol lookup error"),
    _p(K.NATIVE, W.DIES, "error while loading shared libraries"),
    _p(K.NATIVE, W.LIKELY, "frame #0:", r"\bframe #0: "),
    _p(K.NATIVE, W.DIES, "panicked at", r"thread '.*' (?:\(\d+\) )?panicked at"),
    _p(K.NATIVE, W.DIES, "panic: ", r"^panic: "),
    # exit statuses
    _p(K.EXIT, W.FOLLOWS, "crashed with exit code"),
    _p(K.EXIT, W.FOLLOWS, "died during initialization"),
    _p(K.EXIT, W.FOLLOWS, "unexpectedly failed with an exit code"),
    _p(K.EXIT, W.FOLLOWS, "xit code: ", r"(?i)\bexit code: -?\d+"),
    _p(K.EXIT, W.FOLLOWS, "Exit Code:", r"Exit Code:\s+\d+"),
    _p(K.EXIT, W.FOLLOWS, "exited with code", r"exited with code -?\d+"),
    _p(K.EXIT, W.FOLLOWS, "xited with exit code", r"(?i)exited with (?:an? )?exit code -?\d+"),
    _p(K.EXIT, W.FOLLOWS, "terminated with exit code"),
    _p(
        K.EXIT,
        W.FOLLOWS,
        "terminated with ",
        r"(?:Scheduler|Controller|process) \S*.{0,40}terminated with -?\d+",
    ),
    _p(K.EXIT, W.FOLLOWS, "Exited with exit code"),
    _p(K.EXIT, W.FOLLOWS, "Main process exited"),
    _p(K.EXIT, W.FOLLOWS, "Failed with result", r"Failed with result '"),
    _p(K.EXIT, W.FOLLOWS, "exited due to signal"),
    _p(K.EXIT, W.FOLLOWS, "CrashLoopBackOff"),
    _p(K.EXIT, W.FOLLOWS, "Back-off restarting failed container"),
    _p(
        K.EXIT,
        W.FOLLOWS,
        "srun: error: ",
        r"srun: error: .{0,200}: tasks? [\d,-]+: (?:Exited|Killed|Aborted|Terminated|Segmentation|Bus|Out)",
    ),
    _p(K.EXIT, W.FOLLOWS, "; not expected)", r"exited: \S+ \([^)]{1,80}; not expected\)"),
    _p(K.EXIT, W.FOLLOWS, "entered FATAL state"),
    _p(K.EXIT, W.FOLLOWS, "exitcode", r"(?i)exitcode\s*[:=]\s*-?\d+|ChildFailedError"),
    # signals
    _p(K.SIGNAL, W.FOLLOWS, "eceived sigquit", r"(?i)received sigquit"),
    _p(K.SIGNAL, W.FOLLOWS, "SIGQUIT received"),
    _p(K.SIGNAL, W.FOLLOWS, "Received SIGQUIT"),
    _p(K.SIGNAL, W.FOLLOWS, "kill_process_tree called", r"\A(?!)"),
    _p(
        K.SIGNAL,
        W.DIES,
        "Killed",
        r"^(?:.{0,200}: line \d+:\s+\d+ )?Killed(?:\s|$)|^\[\d+\]\+?\s+\d*\s*Killed\b",
    ),
    _p(
        K.SIGNAL,
        W.STOPPED,
        "Terminated",
        r"^(?:.{0,200}: line \d+:\s+\d+ |\[\d+\][+-]?\s+(?:\d+\s+)?)?Terminated(?:\s|$)",
    ),
    _p(K.SIGNAL, W.DIES, "Aborted", r"^(?:.{0,200}: line \d+:\s+\d+ )?Aborted(?:\s|$)"),
    _p(K.SIGNAL, W.DIES, "Bus error", r"^(?:.{0,200}: line \d+:\s+\d+ )?Bus error"),
    _p(
        K.SIGNAL,
        W.DIES,
        "signal 9",
        r"(?i)(?:killed by|received|terminated by|died from) signal 9|code=killed, status=9",
    ),
    _p(K.SIGNAL, W.DIES, "signal 7", r"(?i)(?:killed by|received|terminated by) signal 7"),
    # slime's monitor of rollout engines, which takes its answer from the engine's /health_generate.
    _p(K.SIGNAL, W.DIES, "Killing actor", r"Health check failed for rollout engine \d+ .{0,60}Killing actor"),
    _p(K.SIGNAL, W.DIES, "signal 11", r"(?i)(?:killed by|received|terminated by) signal 11"),
    # what shells print in other languages
    _p(K.SIGNAL, W.DIES, "已杀死"),
    _p(K.SIGNAL, W.DIES, "被杀死"),
    _p(K.SIGNAL, W.STOPPED, "已终止", r"(?:^|\s)已终止(?:\s|$)"),
    _p(K.NATIVE, W.DIES, "段错误"),
    _p(K.NATIVE, W.DIES, "核心已转储"),
    _p(K.SIGNAL, W.DIES, "Getötet", r"(?:^|\s)Getötet(?:\s|$)"),
    _p(K.SIGNAL, W.DIES, "Processus arrêté"),
    _p(K.SIGNAL, W.DIES, "強制終了", r"(?:^|\s)強制終了(?:\s|$)"),
    # ports
    _p(K.ERROR, W.DIES, "error while attempting to bind"),
    _p(K.ERROR, W.LIKELY, "ddress already in use", r"(?i)address already in use"),
    _p(K.ERROR, W.LIKELY, "ort is already allocated", r"(?i)port is already allocated"),
    # CUDA, NCCL, HIP outside tracebacks
    _p(K.CUDA, W.NONE, "NCCL WARN"),
    _p(K.CUDA, W.DIES, "Watchdog caught collective operation timeout"),
    _p(K.CUDA, W.DIES, "due to a collective timeout"),
    _p(K.CUDA, W.DIES, "Terminating the process after attempting to dump"),
    _p(K.CUDA, W.DIES, "terminated with exception: ", r"(?i)watchdog thread terminated with exception"),
    _p(K.CUDA, W.LIKELY, "CUDA error", r"CUDA error\b"),
    _p(K.CUDA, W.LIKELY, "HIP error", r"HIP error\b"),
    _p(K.CUDA, W.LIKELY, "NCCL error", r"NCCL error\b"),
    _p(K.CUDA, W.LIKELY, "CUDA out of memory"),
    _p(K.CUDA, W.LIKELY, "CUBLAS_STATUS_", r"CUBLAS_STATUS_(?!SUCCESS)\w+"),
    _p(K.CUDA, W.LIKELY, "device-side assert"),
    _p(K.CUDA, W.LIKELY, "NVRM: Xid", r"NVRM: Xid"),
    _p(K.CUDA, W.LIKELY, "Failed to initialize NVML"),
    _p(K.CUDA, W.LIKELY, "NV_ERR_NO_MEMORY"),
    _p(K.CUDA, W.LIKELY, "ncclInvalid", r"^ncclInvalid\w+: "),
    _p(K.CUDA, W.LIKELY, "ncclSystemError: ", r"^ncclSystemError: "),
    _p(K.CUDA, W.LIKELY, "ncclInternalError: ", r"^ncclInternalError: "),
    _p(K.CUDA, W.LIKELY, "ncclRemoteError: ", r"^ncclRemoteError: "),
    _p(K.CUDA, W.LIKELY, "ncclUnhandledCudaError: ", r"^ncclUnhandledCudaError: "),
    _p(K.CUDA, W.LIKELY, "NVSHMEM API called before"),
    _p(K.CUDA, W.LIKELY, "failed, error code", r"\bcall \w+ failed, error code"),
    # an exception of Python as a host written in Rust prints it
    _p(K.ERROR, W.LIKELY, "PyErr {", r"PyErr \{ type: "),
    _p(K.CUDA, W.LIKELY, "non-zero status: ", r"\.cpp:\d+: non-zero status: -?\d+"),
    # compilers at run time, package managers
    _p(K.ERROR, W.LIKELY, "nvcc fatal"),
    _p(K.ERROR, W.LIKELY, "ninja: build stopped"),
    _p(K.ERROR, W.LIKELY, "No matching distribution found"),
    _p(K.ERROR, W.LIKELY, "ResolutionImpossible"),
    _p(K.ERROR, W.LIKELY, "No solution found when resolving"),
    # SGLang's own way of saying that it gives up
    _p(K.ERROR, W.DIES, "atchdog timeout", r"(?i)watchdog timeout(?!.*soft=True)"),
    _p(K.ERROR, W.DIES, "Initialization failed"),
    _p(K.ERROR, W.DIES, "hit an exception: ", r"hit an exception: (?!Traceback)\S"),
    _p(K.ERROR, W.DIES, "Application startup failed"),
    _p(K.ERROR, W.DIES, "Error starting router: "),
    _p(K.ERROR, W.LIKELY, "Health check failed", r"Health check failed"),
    _p(K.EXIT, W.FOLLOWS, "scheduler is dead", r"scheduler is dead|Please check if there are relevant logs"),
    # shells, containers, interpreters
    _p(
        K.ERROR,
        W.DIES,
        "command not found",
        r"(?:^|: )[\w./+-]+: command not found\s*$|command not found: \S+$",
    ),
    _p(K.ERROR, W.DIES, "executable file not found"),
    _p(K.ERROR, W.DIES, "can't open file"),
    _p(
        K.ERROR,
        W.DIES,
        ": No module named ",
        r"^\S*python[\d.]*: No module named \S+|^\S*python[\d.]*: Error while finding module",
    ),
    _p(K.ERROR, W.DIES, "Error while finding module"),
    _p(
        K.ERROR,
        W.DIES,
        "No such file or directory",
        r"^(?:-?(?:/\S*/)?(?:ba|z|da|k|fi)?sh|\S+\.sh|env|exec|nohup|/usr/bin/env|\S*python[\d.]*|docker|sudo|numactl|time)"
        r"(?:: line \d+|: \d+|: -c)?: .*No such file or directory",
    ),
    _p(
        K.ERROR,
        W.DIES,
        "ermission denied",
        r"^(?:-?(?:/\S*/)?(?:ba|z|da)?sh|\S+\.sh|env|docker|sudo|nohup).{0,300}: [Pp]ermission denied",
    ),
    _p(
        K.ERROR,
        W.DIES,
        ": not found",
        r"^(?:-?(?:/\S*/)?(?:ba|z|da)?sh|\S+\.sh)(?:: line \d+|: \d+|: -c)?: .{1,200}: not found\s*$",
    ),
    # what a shell says of a command line that it cannot run: a container's entrypoint ends with it
    *(
        _p(
            K.ERROR,
            W.LIKELY,
            said,
            r"^-?(?:\S*/)?(?:(?:ba|z|da|k)?sh|[\w.-]+\.sh|[\w.-]*entrypoint[\w.-]*|exec)"
            r"(?:: line \d+|: \d+|: -c|\[\d+\])?: .{0,300}?"
            r"(?:nvalid option|llegal option|annot execute|xec format error|unbound variable|yntax error\b)",
        )
        for said in (
            *("nvalid option", "llegal option", "annot execute"),
            *("xec format error", "unbound variable", "yntax error"),
        )
    ),
    _p(
        K.ERROR,
        W.LIKELY,
        "exec format error",
        r"(?:^exec \S+:|exec user process caused:?) ?\"?exec format error",
    ),
    _p(K.ERROR, W.DIES, "rror response from daemon", r"(?i)error response from daemon"),
    _p(K.ERROR, W.DIES, "failed to register layer"),
    _p(
        K.ERROR,
        W.DIES,
        "the Docker daemon",
        r"(?i)(?:permission denied while trying to|cannot) connect to the Docker daemon",
    ),
    _p(K.ERROR, W.DIES, "OCI runtime", r"OCI runtime \w+ failed"),
    _p(K.ERROR, W.DIES, "docker: Error", r"docker: Error"),
    _p(K.ERROR, W.DIES, "nvidia-container-cli:"),
    _p(K.ERROR, W.DIES, "Failed to pull image"),
    _p(K.ERROR, W.DIES, "ErrImagePull", r"ErrImagePull|ImagePullBackOff"),
    _p(K.ERROR, W.DIES, "ImagePullBackOff"),
    _p(K.ERROR, W.LIKELY, "FailedScheduling"),
    _p(
        K.ERROR,
        W.LIKELY,
        "is waiting to start: ",
        r"Error from server .* is waiting to start: (?!ContainerCreating|PodInitializing)",
    ),
    _p(K.ERROR, W.LIKELY, "slurmstepd: error"),
    # told by what runs the launch, of a launch that goes well by its own lines: a rule decides
    *(
        _p(K.EXIT, W.NONE, said)
        for said in (
            *(
                " probe, will be restarted",
                "The node was low on resource: ",
                "MountVolume.",
                "AttachVolume.Attach failed",
            ),
            *("Unable to attach or mount volumes", "start operation timed out", "is unhealthy"),
        )
    ),
    _p(K.ERROR, W.DIES, "Failed at step EXEC"),
    _p(K.ERROR, W.DIES, "Failed to locate executable"),
    _p(K.ERROR, W.DIES, "Unable to allocate resources: "),
    _p(K.ERROR, W.DIES, "Batch job submission failed"),
    # what a system call answered, as programs in C print it ("setting membind: Invalid argument")
    *(
        _p(K.ERROR, W.NONE, said, rf"^[\w :./()\[\]'-]{{2,100}}{said}\s*$")
        for said in (": Invalid argument", ": Operation not permitted", ": No such device")
    ),
    # what a program says when it gives up
    *(
        _p(
            K.ERROR,
            W.LIKELY,
            said,
            r"(?i)^(?:error|failed to|failure|could not|cannot|can't|unable to|fatal|no|missing|invalid)\b.{0,300}\b(?:exiting|aborting|giving up)\b",
        )
        for said in ("xiting", "borting", "iving up")
    ),
    # levels
    _p(K.ERROR, W.DIES, "CRITICAL", r"^(?:\[[^\]]*\]\s*)?CRITICAL\b"),
    _p(K.ERROR, W.LIKELY, "FATAL", r"(?:^|\s|\[)FATAL\b"),
    _p(K.ERROR, W.LIKELY, "fatal error", r"(?i)\bfatal error: "),
    _p(K.ERROR, W.DIES, ".cpp:", r"^F\d{4,8} \d\d:\d\d:\d\d"),
    _p(K.ERROR, W.DIES, ".cc:", r"^F\d{4,8} \d\d:\d\d:\d\d"),
    _p(K.ERROR, W.NONE, ".cpp:", r"^E\d{4,8} \d\d:\d\d:\d\d"),
    _p(K.ERROR, W.NONE, ".cc:", r"^E\d{4,8} \d\d:\d\d:\d\d"),
    _p(K.ERROR, W.NONE, "ERROR", r"(?:^|[\s\[|])ERROR(?:[\s:\]|]|$)"),
    _p(K.ERROR, W.NONE, "error: ", r"(?:^|[\s:(\[])(?:[Ee]rror|fatal): \S"),
    _p(K.ERROR, W.NONE, "Error: ", r"^\s*Error: \S"),
    *(
        _p(K.ERROR, W.NONE, said, rf"^{said}{more}")
        for said, more in zip(
            SAID, (r"(?:\w+ing|while|during|in|when|from) ", r"\w", r"\w", r"\w"), strict=True
        )
    ),
    _p(K.CUDA, W.NONE, "ProcessGroup", r"^(?:\[rank\d+\]:)?\[E\d{3,4} "),
)
LITERALS: tuple[str, ...] = (
    *dict.fromkeys(p.literal for p in PATTERNS if p.literal not in ("Ignore import error", "canceled", "^C")),
    "Exception: ",
    "Interrupt",
    "SystemExit",
)
FREQUENT = frozenset(
    {
        *(
            ".cpp:",
            ".cc:",
            "ERROR",
            "error: ",
            "Error: ",
            "Exception: ",
            "NCCL WARN",
            "CUDA error",
            "terminated with ",
        ),
        *SAID,
    }
)
