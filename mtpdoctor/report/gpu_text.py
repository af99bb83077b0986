"""The region of the GPUs: memory as a bar, who holds it, how they are linked, what is set apart from usual."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from mtpdoctor.host.types import Gpu, GpuProcess, HostFacts
from mtpdoctor.report.rows import Rows, age, and_, of, size
from mtpdoctor.text import width as columns_of

BAR = 20
HELD_UNSEEN = 2.0  # GiB in use by nobody who shows: less is the driver's own
UNIFIED = frozenset({72, 87, 101, 110, 121})  # Jetson (Xavier, Orin, Thor) and GB10: no memory of their own
SHOWN = 5  # processes a GPU without --verbose


def gpu_rows(host: HostFacts, rows: Rows, verbose: bool = False, now: float | None = None) -> Iterator[str]:
    """``now`` (seconds since the epoch) dates processes; the present unless given."""
    yield rows.heading("GPUs", _driver(host))
    if host.gpus is None:
        yield from rows.prose("not known here: see what could not be looked at")
        return
    if not host.gpus:
        yield from _none(host, rows)
    alike = len({(g.name, g.sm, g.arch, g.memory_gib) for g in host.gpus}) <= 1
    wide = max((len(_free(g)) for g in host.gpus), default=0)
    for gpu in host.gpus:
        yield from _gpu(gpu, rows, verbose, time.time() if now is None else now, wide)
    for gpu in host.gpus_hidden:
        free = _free(gpu)
        yield rows.style(
            "dim", rows.fit(f"  {gpu.index:>2}  {gpu.name}: not visible here, {free}", rows.width)
        )
    if host.gpus_hidden and host.gpus_hidden_by:
        yield from rows.prose(f"{host.gpus_hidden_by} hides {_count(len(host.gpus_hidden))}.", "      ")
    yield from _links(host.gpus, rows)
    if not alike and host.platform == "cuda" and host.env.get("CUDA_DEVICE_ORDER") != "PCI_BUS_ID":
        yield from rows.prose(
            "The GPUs differ, and CUDA numbers the fastest first unless CUDA_DEVICE_ORDER=PCI_BUS_ID is set: "
            "its numbers may not be the ones shown."
        )


def _count(n: int) -> str:
    return "1 GPU" if n == 1 else f"{n} GPUs"


def _driver(host: HostFacts) -> str:
    said = [f"driver {host.driver}"] if host.driver else []
    said += [f"CUDA up to {host.cuda_driver}"] if host.cuda_driver else []
    said += [f"ROCm {host.rocm}"] if host.rocm else []
    return ", ".join(said)


def _none(host: HostFacts, rows: Rows) -> Iterator[str]:
    devices = host.pci_gpus or ()
    if host.gpus_hidden:
        yield from rows.prose("None is visible to a launch from here.", style="yellow")
        return
    if not devices:
        yield from rows.prose("No GPU is here: SGLang can run on the CPU alone (--device cpu), slowly.")
        return
    names = and_([f"{d.vendor} {d.device}" for d in devices[:4]])
    bound = and_(sorted({d.driver or "no driver" for d in devices}))
    yield from rows.prose(
        f"None can be used here, though {len(devices)} on the PCI bus (bound to {bound}): {names}"
        f"{' ...' if len(devices) > 4 else ''}.",
        style="yellow",
    )


def _free(gpu: Gpu) -> str:
    if gpu.memory_gib is None:
        return "shares the system's memory" if gpu.sm in UNIFIED else "memory not known"
    return f"{of(gpu.free_gib, gpu.memory_gib)} free" if gpu.free_gib is not None else size(gpu.memory_gib)


def _gpu(gpu: Gpu, rows: Rows, verbose: bool, now: float, wide: int) -> Iterator[str]:
    kind = f"SM{gpu.sm}" if gpu.sm is not None else gpu.arch or ""
    if gpu.memory_gib is not None and gpu.free_gib is not None:
        free = _free(gpu).rjust(wide)
        bar = rows.bar(gpu.memory_gib - gpu.free_gib, gpu.memory_gib, min(BAR, rows.width - len(free) - 10))
        tail = f"{bar}  {free}"
        room = rows.width - 6 - BAR - 2 - len(free) - 2
        if room >= 20:
            name = rows.fit(f"{gpu.name}  {kind}".rstrip(), room)
            yield f"  {gpu.index:>2}  {rows.style('bold', name)}{' ' * (room - columns_of(name) + 2)}{tail}"
        else:
            yield f"  {gpu.index:>2}  {rows.style('bold', rows.fit(f'{gpu.name}  {kind}', rows.width - 6))}"
            yield f"      {tail}"
    else:
        name = rows.fit(f"{gpu.name}  {kind}  {_free(gpu)}", rows.width - 6)
        yield f"  {gpu.index:>2}  {rows.style('bold', name)}"
    if odd := _odd(gpu, verbose):
        yield from rows.prose(", ".join(odd), "      ", style="dim")
    shown = gpu.processes if verbose else gpu.processes[:SHOWN]
    for process in shown:
        yield from _process(process, rows, verbose, now)
    if len(gpu.processes) > len(shown):
        rest = sum(p.used_gib for p in gpu.processes[len(shown) :])
        more = f"      and {len(gpu.processes) - len(shown)} more with {size(rest)} (--verbose)"
        yield rows.style("dim", more)
    if gpu.memory_gib is not None and gpu.free_gib is not None:
        told = sum(p.used_gib for p in gpu.processes) + (gpu.reserved_gib or 0)
        unseen = gpu.memory_gib - gpu.free_gib - told
        if unseen >= HELD_UNSEEN and all(p.used_gib for p in gpu.processes):
            yield from rows.prose(
                f"{size(unseen)} held by processes that are not visible from here "
                "(another container or user)",
                "      ",
                style="yellow",
            )


def _odd(gpu: Gpu, verbose: bool) -> list[str]:
    """What is unlike the usual setting, and with ``verbose`` the rest."""
    said = []
    if gpu.mig:
        said.append("MIG is on")
    if gpu.compute_mode not in (None, "default"):
        said.append(f"compute mode {gpu.compute_mode}")
    if gpu.persistence is False:
        said.append("persistence mode off")
    if gpu.ecc_errors:
        said.append(f"{gpu.ecc_errors} uncorrected ECC errors")
    if gpu.utilization:
        said.append(f"{gpu.utilization} % busy")
    if verbose:
        if gpu.power_limit_w is not None:
            said.append(f"power cap {gpu.power_limit_w:.0f} W")
        if gpu.ecc is not None:
            said.append(f"ECC {'on' if gpu.ecc else 'off'}")
        if gpu.numa_node is not None:
            said.append(f"NUMA node {gpu.numa_node}")
        said += [x for x in (gpu.bus, gpu.uuid) if x]
    return said


def _process(process: GpuProcess, rows: Rows, verbose: bool, now: float) -> Iterator[str]:
    held = size(process.used_gib) if process.used_gib else "?"
    lead = f"      {held:>9}  pid {process.pid}"
    about = [process.user] if process.user else []
    if process.started is not None:
        about.append(age(now - process.started))
    if process.parent == 1:
        about.append("its parent is gone")
    lead = rows.fit(lead + (f" ({', '.join(about)})" if about else ""), rows.width)
    command = process.command or "not visible from here: another container's or user's"
    room = rows.width - columns_of(lead) - 2
    if verbose or room < 24:
        yield lead
        cut = rows.folded(command, rows.width - 17)
        yield from (f"{' ' * 17}{row}" for row in (cut if verbose else [rows.fit(command, rows.width - 17)]))
    else:
        yield f"{lead}  {rows.fit(command, room)}"


def _links(gpus: Sequence[Gpu], rows: Rows) -> Iterator[str]:
    if len(gpus) < 2 or not all(len(g.links) == len(gpus) for g in gpus):
        return
    kinds = {link for i, g in enumerate(gpus) for j, link in enumerate(g.links) if i != j}
    refused = [
        f"{a.index}-{b.index}"
        for i, a in enumerate(gpus)
        for j, b in enumerate(gpus)
        if i < j and j < len(a.peers) and a.peers[j] is False
    ]
    pairs = len(gpus) * (len(gpus) - 1) // 2
    peers = any(p is not None for g in gpus for p in g.peers)
    access = (
        "no direct access (P2P) between them"
        if len(refused) == pairs
        else f"no direct access (P2P): {', '.join(refused[:6])}{' ...' if len(refused) > 6 else ''}"
        if refused
        else "direct access (P2P) between all"
        if peers
        else ""
    )
    if len(kinds) == 1:
        yield from rows.value("links", ", ".join(filter(None, (_link_words(kinds.pop()), access))))
        return
    wide = max(5, *(len(link) for g in gpus for link in g.links))
    yield "  links      " + " ".join(f"{g.index:<{wide}}" for g in gpus).rstrip()
    for gpu in gpus:
        row = " ".join(f"{link:<{wide}}" for link in gpu.links)
        yield rows.fit(f"          {gpu.index:>2} {row}".rstrip(), rows.width)
    if access:
        yield from rows.value("", access)


def _link_words(kind: str) -> str:
    words = {
        "PIX": "PIX: one PCIe switch between them",
        "PXB": "PXB: several PCIe switches between them",
        "PHB": "PHB: through the processor's PCIe host bridge",
        "NODE": "NODE: through one NUMA node",
        "SYS": "SYS: through the link between processors",
        "XGMI": "XGMI between all",
        "PCIe": "PCIe",
    }
    if kind.startswith("NV"):
        return f"{kind}: {kind[2:]} NVLinks between all"
    return words.get(kind, "not known")
