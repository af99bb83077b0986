"""A host for people: what stands in the way of a launch first, then each part of the machine."""

from __future__ import annotations

import os.path
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from mtpdoctor.host.types import Disk, HostFacts, Port, PythonEnvironment
from mtpdoctor.launch.types import Edit, EditOp
from mtpdoctor.report.gpu_text import gpu_rows
from mtpdoctor.report.rows import LABEL, Rows, and_, of, size
from mtpdoctor.text import width as columns_of

if TYPE_CHECKING:
    from mtpdoctor.diagnose.host_check import HostFinding

BAR = 16
# Distributions that decide over a launch, as a person looks for them
_PACKAGES = (
    "sglang", "sglang-kernel", "sgl-kernel", "torch", "transformers", "flashinfer-python", "flashinfer-cubin",
    "flashinfer-jit-cache", "triton", "xgrammar", "nvidia-cutlass-dsl", "nvidia-nccl-cu12", "nvidia-nccl-cu13",
    "torchao", "outlines", "deep-gemm", "deep-ep", "mooncake-transfer-engine", "sgl-router", "sglang-router", "vllm",
)  # fmt: skip
_COLOUR = {"fatal": "red", "degrades": "yellow", "info": "cyan"}
_USUAL_PORTS = range(30000, 30100)  # SGLang's default is 30000


def render_host(
    host: HostFacts,
    findings: Sequence[HostFinding] = (),
    *,
    width: int = 80,
    color: bool = False,
    verbose: bool = False,
    plain: bool = False,
    now: float | None = None,
    after: Sequence[str] = (),
) -> str:
    """The page as text that ends in a line feed.

    ``plain``: without block and line characters. ``now`` dates processes (seconds since the epoch);
    ``after`` are rows that are shown before the environment (the model's).
    """
    rows = Rows(width, color, plain)
    parts = [
        _title(host, findings, rows),
        _findings(findings, rows, verbose),
        _failures(host, rows),
        gpu_rows(host, rows, verbose, now),
        _memory(host, rows),
        _system(host, rows, verbose),
        _python(host, rows, verbose),
        _disks(host, rows, verbose),
        _ports(host, rows, verbose),
        after,
        _environment(host, rows, verbose),
    ]
    pages = [page for part in parts if (page := list(part))]
    return "\n\n".join("\n".join(row.rstrip() for row in page) for page in pages) + "\n"


# -- above all -------------------------------------------------------------------------------------
def _title(host: HostFacts, findings: Sequence[HostFinding], rows: Rows) -> Iterator[str]:
    fatal = sum(f.severity == "fatal" for f in findings)
    other = sum(f.severity == "degrades" for f in findings)
    name = rows.clean(host.name or ("pretended host" if host.pretended else "this host"))
    if fatal:
        verdict, colour = f"{fatal} thing{'s' if fatal > 1 else ''} will stop a launch here", "red"
    elif other:
        verdict, colour = f"{other} thing{'s are' if other > 1 else ' is'} not as wanted", "yellow"
    else:
        verdict, colour = "nothing is wrong", "green"
    absent = _absent(host)
    if absent and colour == "green":
        verdict, colour = absent, "yellow"
    if host.failures:
        n = len(host.failures)
        if colour == "green":
            verdict, colour = "nothing is wrong as far as can be seen", "yellow"
        verdict += f", {n} thing{'s' if n > 1 else ''} could not be looked at"
    row = f"{name}: {verdict}."
    if columns_of(row) > rows.width:
        yield from rows.prose(row, "", style=colour)
    else:
        yield f"{rows.style('bold', name)}: {rows.style(colour, verdict)}."
    yield from rows.prose(f" {rows.dot} ".join(_in_short(host, rows)), "")


def _absent(host: HostFacts) -> str:
    """What a launch needs and is known not to be here: nothing is wrong with it, and yet nothing can start."""
    no_gpu = host.gpus == () and not host.gpus_hidden and not host.pci_gpus and not host.failures
    known = host.pythons is not None
    no_sglang = known and not any("sglang" in python.packages for python in host.pythons or ())
    if no_sglang and host.pythons and host.pythons[0].origin == "--python":
        no_sglang = "sglang" not in host.pythons[0].packages
    words = ["SGLang is not installed"] if no_sglang else []
    words += ["there is no GPU"] if no_gpu else []
    return " and ".join(words)


def _in_short(host: HostFacts, rows: Rows) -> Iterator[str]:
    kinds: dict[tuple[str, str], int] = {}
    for gpu in host.gpus or ():
        kind = f"SM{gpu.sm}" if gpu.sm is not None else gpu.arch or ""
        kinds[(gpu.name, kind)] = kinds.get((gpu.name, kind), 0) + 1
    for (name, kind), n in kinds.items():
        yield f"{n} {rows.times} {name}" + (f" ({kind})" if kind else "")
    if host.gpus == ():
        yield "no GPU that a launch could use" if host.gpus_hidden or host.pci_gpus else "no GPU"
    sglang = host.packages.get("sglang")
    if sglang:
        yield f"SGLang {sglang}"
    elif host.pythons is not None:
        yield "no SGLang found"
    if host.container:
        runtime = host.container_kind
        yield f"in a container ({runtime})" if runtime not in (None, "container") else "in a container"
    if host.wsl:
        yield "WSL2"
    if host.system:
        yield host.system + (f", {host.machine}" if host.machine else "")


def _findings(findings: Sequence[HostFinding], rows: Rows, verbose: bool) -> Iterator[str]:
    shown = [f for f in findings if verbose or f.severity != "info"]
    if not shown:
        return
    yield rows.heading("What is wrong")
    for number, finding in enumerate(shown):
        if number:
            yield ""
        colour = _COLOUR.get(finding.severity, "bold")
        word = {"fatal": "stops a launch", "degrades": "not as wanted"}.get(finding.severity, "note")
        rule = f"{finding.rule} " if finding.rule else ""
        head = f"{rule}({word}): "
        lines = rows.folded(head + finding.title, rows.width - 2)
        lead, _, rest = lines[0].partition("): ")
        first = rows.style(colour, lead + "):") + f" {rest}" if rest else rows.style(colour, lines[0])
        yield "  " + first
        yield from (f"    {line}" for line in rows.folded(" ".join(lines[1:]), rows.width - 4) if lines[1:])
        yield from rows.prose(finding.cause, "    ")
        if finding.misleading and verbose:
            yield from rows.prose(f"Not the cause: {finding.misleading}", "    ")
        for fix in finding.remedies if verbose else finding.remedies[:2]:
            yield from rows.item(">" if rows.plain else "→", fix.title, "    ", style="bold")
            if fix.why and verbose:
                yield from rows.prose(fix.why, "      ")
            if fix.risk:
                yield from rows.prose(f"Risk: {fix.risk}", "      ", style="magenta")
            for edit in fix.edits:
                yield from rows.prose(f"{edit.op.value} {_shown(edit)}", "      ")
            for line in fix.run:
                for i, part in enumerate(_command(line, rows)):
                    yield ("      $ " if i == 0 else "        ") + part


def _shown(edit: Edit) -> str:
    joint = "=" if edit.op is EditOp.ENV else " "
    return edit.name if edit.value is None else f"{edit.name}{joint}{edit.value}"


def _command(text: str, rows: Rows) -> list[str]:
    """A command to paste: broken between words only."""
    from mtpdoctor.report.command import wrapped

    return wrapped(rows.clean(text), rows.width - 8)


def _failures(host: HostFacts, rows: Rows) -> Iterator[str]:
    if not host.failures:
        return
    yield rows.heading("Could not be looked at")
    for failure in host.failures:
        yield from rows.item("-", f"{failure.probe}: {failure.said}", style=None)


# -- parts of the machine --------------------------------------------------------------------------
def _memory(host: HostFacts, rows: Rows) -> Iterator[str]:
    lines = list(_memory_rows(host, rows))
    if lines:
        yield rows.heading("Memory")
        yield from lines


def _memory_rows(host: HostFacts, rows: Rows) -> Iterator[str]:
    if host.ram_gib is not None:
        swap = (
            "" if host.swap_gib is None else f", {size(host.swap_gib)} swap" if host.swap_gib else ", no swap"
        )
        yield _level("RAM", host.ram_free_gib, host.ram_gib, swap, rows)
    if host.cgroup_memory_gib is not None:
        used = host.cgroup_memory_used_gib
        free = None if used is None else max(host.cgroup_memory_gib - used, 0.0)
        yield _level("limit", free, host.cgroup_memory_gib, ", set by the container", rows)
    if host.shm_gib is not None:
        yield _level("/dev/shm", host.shm_free_gib, host.shm_gib, "", rows)


def _level(label: str, free: float | None, total: float, rest: str, rows: Rows) -> str:
    lead = rows.style("dim", f"  {label}".ljust(12) + " ")
    if free is None:
        return f"{lead}{size(total)}{rest}"
    said = f"{of(free, total)} free"
    if rows.width - LABEL - BAR - 2 - len(said) - len(rest) >= 0:
        said += rest
    columns = min(BAR, rows.width - LABEL - 2 - len(said))
    return f"{lead}{rows.bar(total - free, total, columns)}  {said}" if columns >= 4 else f"{lead}{said}"


def _system(host: HostFacts, rows: Rows, verbose: bool) -> Iterator[str]:
    lines: list[str] = []
    if host.cpu or host.cpus:
        said = [host.cpu or "processor not named"]
        said += [f"{host.cpus} CPUs"] if host.cpus else []
        if host.cgroup_cpus and host.cgroup_cpus < (host.cpus or host.cgroup_cpus + 1):
            said.append(f"{host.cgroup_cpus:g} of them by the container's limit")
        said += (
            [f"{host.numa_nodes} NUMA node{'s' if host.numa_nodes > 1 else ''}"] if host.numa_nodes else []
        )
        if (verbose or not host.gpus) and host.cpu_features:
            said.append(" ".join(host.cpu_features))
        lines += rows.value("CPU", ", ".join(said))
    if host.limits:
        lines += rows.value("ulimits", ", ".join(_limits(host, verbose)))
    if verbose and host.cgroup_version:
        lines += rows.value("cgroup", f"v{host.cgroup_version}")
    if host.nvcc or host.nvcc_path:
        lines += rows.value(
            "nvcc", f"CUDA {host.nvcc or 'release not known'} ({host.nvcc_path or 'on PATH'})"
        )
    if lines:
        yield rows.heading("System")
        yield from lines


def _limits(host: HostFacts, verbose: bool) -> Iterator[str]:
    titles = {"nofile": "open files", "memlock": "locked memory", "nproc": "processes", "stack": "stack"}
    titles |= {"as": "address space", "fsize": "file size", "core": "core files"} if verbose else {}
    for name, title in titles.items():
        if name not in host.limits:
            continue
        value = host.limits[name]
        if value is None:
            said = "unlimited"
        elif name in ("nofile", "nproc"):
            said = f"{value:.0f}"
        else:
            said = size(value / 2**30)
        yield f"{title} {said}"
    for name, title in (("as", "address space"), ("fsize", "file size")):
        if not verbose and (value := host.limits.get(name)) is not None:
            yield f"{title} {size(value / 2**30)}"


def _python(host: HostFacts, rows: Rows, verbose: bool) -> Iterator[str]:
    if host.pythons is None and not host.packages:
        return
    yield rows.heading("Python")
    if not host.pythons:
        shown = _packages(host.packages, None, verbose)
        yield from rows.prose(", ".join(shown) if shown else "No Python with SGLang was found.")
        return
    first, *others = host.pythons
    if "sglang" in first.packages or first.origin == "--python":
        yield from rows.prose(f"{first.executable}  ({_about(first)})", style="bold")
        shown = _packages(first.packages, first, verbose)
        yield from rows.prose(", ".join(shown) if shown else "none of SGLang's packages", "    ")
    else:
        yield from rows.prose("SGLang is installed in none of these:")
        others = [first, *others]
    more = others if verbose else others[:3]
    for python in more:
        version = python.packages.get("sglang")
        said = f"SGLang {version}" if version else "no SGLang"
        yield rows.style("dim", rows.fit(f"  {python.executable}  ({_about(python)}): {said}", rows.width))
    if len(others) > len(more):
        count = len(others) - len(more)
        with_sglang = sum("sglang" in p.packages for p in others[len(more) :])
        rest = f", {with_sglang} of them with SGLang" if with_sglang else ", none with SGLang"
        yield rows.style("dim", f"  and {count} more{rest} (--verbose)")


def _about(python: PythonEnvironment) -> str:
    return ", ".join(filter(None, (f"Python {python.version}" if python.version else "", python.origin)))


def _packages(packages: Mapping[str, str], python: PythonEnvironment | None, verbose: bool) -> list[str]:
    out = []
    for name in _PACKAGES:
        version = packages.get(name)
        if version is None:
            continue
        cuda = None
        if python is not None:
            cuda = {"torch": python.torch_cuda, "sgl-kernel": python.kernel_cuda}.get(
                name, python.kernel_cuda if name == "sglang-kernel" else None
            )
        out.append(f"{name} {version}" + (f" (CUDA {cuda})" if cuda else ""))
    return out


def _disks(host: HostFacts, rows: Rows, verbose: bool) -> Iterator[str]:
    if not host.disks:
        return
    yield rows.heading("Disk space")
    same: dict[tuple[int, str | None], list[Disk]] = {}
    for disk in host.disks:  # folders of one file system are one row; its free space moves while it is asked
        same.setdefault((round(disk.total_gib * 1024), disk.kind), []).append(disk)
    for group in same.values():
        disk = group[0]
        bar = rows.bar(disk.total_gib - disk.free_gib, disk.total_gib, BAR)
        kind = f"  {disk.kind}" if disk.kind else ""
        yield f"  {bar}  " + rows.fit(f"{of(disk.free_gib, disk.total_gib)} free{kind}", rows.width - BAR - 4)
        if verbose:
            for one in group:
                yield from rows.prose(f"{one.purpose}: {_short(one.path, host)}", "      ")
        else:
            yield from rows.prose(and_([one.purpose for one in group]), "      ", style="dim")


def _short(path: str, host: HostFacts) -> str:
    home = os.path.expanduser("~")
    return "~" + path[len(home) :] if host.local and path.startswith(home + "/") and home != "/" else path


def _ports(host: HostFacts, rows: Rows, verbose: bool) -> Iterator[str]:
    if host.ports is None:
        return
    yield rows.heading("TCP ports in use")
    if not host.ports:
        yield from rows.prose("none")
        return
    by_number: dict[int, Port] = {}
    for port in host.ports:
        kept = by_number.setdefault(port.number, port)
        if kept.command is None and port.command is not None:
            by_number[port.number] = port
    named = [p for p in by_number.values() if p.number in _USUAL_PORTS or _is_server(p)]
    shown = list(by_number.values()) if verbose else named
    for port in shown:
        who = f"pid {port.pid}  " if port.pid else ""
        text = f"  {port.number:<6} {who}{port.command or 'whose it is does not show from here'}"
        yield rows.fit(text, rows.width)
    rest = [p for p in by_number.values() if p not in shown]
    if rest:
        yield from rows.prose(("also " if shown else "") + ", ".join(str(p.number) for p in rest))


def _is_server(port: Port) -> bool:
    return any(
        word in (port.command or "") for word in ("sglang", "vllm", "ray::", "raylet", "launch_server")
    )


def _environment(host: HostFacts, rows: Rows, verbose: bool) -> Iterator[str]:
    if not host.env:
        return
    yield rows.heading("Environment")
    for name, value in host.env.items():
        line = f"  {name}={value}"
        if verbose:
            yield from rows.prose(line.strip())
        else:
            yield rows.fit(line, rows.width)
