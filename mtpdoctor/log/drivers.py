"""The NVIDIA driver that a log shows, and the newest CUDA that it runs. Pure.

nvidia-smi prints both as its table; asked for single values (``--query-gpu=name,driver_version --format=csv``) and in
collect_env's answers only the driver, of which NVIDIA's release notes tell the CUDA.
"""

from __future__ import annotations

from mtpdoctor.patterns import lazy

_TABLE = lazy(r"\bDriver Version:\s+(\d{3}\.\d+(?:\.\d+)?)(?:.*\bCUDA Version:\s+(\d+\.\d+))?")
_ROW = lazy(r"\bNVIDIA [\w ().-]{2,40}, (?:[^,]{1,40}, )*?([45-9]\d\d\.\d{2,3}\.\d{2})(?:,|\s*$)")
# Branch of drivers -> the CUDA that came with it.
_CUDA = (
    (590, "13.1"), (580, "13.0"), (575, "12.9"), (570, "12.8"), (565, "12.7"), (560, "12.6"), (555, "12.5"), (550, "12.4"),
    (545, "12.3"), (535, "12.2"), (530, "12.1"), (525, "12.0"), (520, "11.8"), (515, "11.7"), (510, "11.6"), (470, "11.4"),
)  # fmt: skip


def driver_in(text: str) -> tuple[str, str | None] | None:
    """The driver, and the newest CUDA that it runs, of a line that shows them."""
    if "Driver Version:" in text:
        found = _TABLE.search(text)
        return (found[1], found[2] or _cuda_of(found[1])) if found else None
    row = _ROW.search(text) if "NVIDIA " in text and ", " in text else None
    return (row[1], _cuda_of(row[1])) if row else None


def _cuda_of(driver: str) -> str | None:
    branch = int(driver.partition(".")[0])
    return next((cuda for since, cuda in _CUDA if since <= branch), None)
