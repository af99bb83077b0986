"""GPUs and accelerators on the PCI bus, whether or not a driver answers for them."""

from __future__ import annotations

from mtpdoctor.host.machine import Machine
from mtpdoctor.host.types import PciGpu

# https://pci-ids.ucw.cz: vendors of what a model can run on
_VENDORS = {0x10DE: "NVIDIA", 0x1002: "AMD", 0x8086: "Intel", 0x19E5: "Huawei", 0x1DA3: "Habana"}
_DISPLAY, _ACCELERATOR = 0x03, 0x12  # base classes; 0x0b40: a co-processor


def pci_gpus(machine: Machine) -> tuple[PciGpu, ...]:
    """Display and accelerator devices of the known vendors, but for graphics built into a processor."""
    out = []
    for address in machine.names("/sys/bus/pci/devices"):
        folder = f"/sys/bus/pci/devices/{address}"
        vendor = _VENDORS.get(machine.number(f"{folder}/vendor") or 0)
        kind = machine.number(f"{folder}/class") or 0
        if vendor is None or (kind >> 16 not in (_DISPLAY, _ACCELERATOR) and kind >> 8 != 0x0B40):
            continue
        if vendor == "Intel" and address.startswith("0000:00:02."):  # graphics of the processor itself
            continue
        out.append(PciGpu(address, vendor, machine.line(f"{folder}/device") or "", _driver(machine, folder)))
    return tuple(out)


def _driver(machine: Machine, folder: str) -> str | None:
    try:
        return machine.path(f"{folder}/driver").readlink().name
    except OSError:
        return None
