"""Memory of GPUs by the name their driver gives them, as nvidia-smi counts it (MiB)."""

from __future__ import annotations

# (a part of the name, MiB); the first that is in the name counts. Names that come with several sizes are left out.
_CARDS = (
    ("H200", 143771), ("H100 NVL", 95830), ("H100 80GB", 81559), ("H100 PCIe", 81559), ("H20-3e", 143771), ("H20", 97871),
    ("H800", 81559), ("GH200 480GB", 97871), ("B200", 183359), ("B300", 275040),
    ("A100-SXM4-80GB", 81920), ("A100 80GB", 81920), ("A100-SXM4-40GB", 40960), ("A100-PCIE-40GB", 40960),
    ("A800-SXM4-80GB", 81920), ("A40", 46068), ("A10G", 23028), ("A10", 23028), ("A6000", 49140), ("A5000", 24564),
    ("L40S", 46068), ("L40", 46068), ("L20", 46068), ("L4", 23034), ("RTX PRO 6000", 97887), ("RTX 6000 Ada", 49140),
    ("RTX 5090", 32607), ("RTX 5080", 16303), ("RTX 4090", 24564), ("RTX 4080", 16376), ("RTX 3090", 24576),
    ("Tesla T4", 15360),
)  # fmt: skip


def memory_mib(name: str | None) -> float | None:
    """None for a name that is not known, or does not tell the size."""
    if not name:
        return None
    plain = name.replace("_", " ")
    return next((float(mib) for part, mib in _CARDS if _has(plain, part)), None)


def _has(name: str, part: str) -> bool:
    at = name.find(part)
    end = at + len(part)
    return at >= 0 and not name[end : end + 1].isalnum()
