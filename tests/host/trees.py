"""Small Python environments on disk: folders of metadata, no interpreter, nothing that could be imported."""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from pathlib import Path


def venv(
    root: Path, version: str = "3.12.3", *, home: Path | None = None, system: bool = False, cfg: bool = True
) -> Path:
    """An environment's folder; returns its site-packages."""
    minor = ".".join(version.split(".")[:2])
    python = root / "bin" / "python"
    python.parent.mkdir(parents=True, exist_ok=True)
    python.write_text("")
    python.chmod(0o755)
    if cfg:
        lines = [f"home = {home or root.parent / 'base' / 'bin'}", f"version = {version}"]
        lines.append(f"include-system-site-packages = {str(system).lower()}")
        (root / "pyvenv.cfg").write_text("\n".join(lines) + "\n")
    site = root / "lib" / f"python{minor}" / "site-packages"
    site.mkdir(parents=True, exist_ok=True)
    return site


def base(prefix: Path, version: str = "3.12", names: Sequence[str] = ("python3",)) -> Path:
    """An installation as a distribution or pyenv makes it; returns its site-packages."""
    program = prefix / "bin" / f"python{version}"
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text("")
    program.chmod(0o755)
    for name in names:
        (prefix / "bin" / name).symlink_to(program.name)
    site = prefix / "lib" / f"python{version}" / "site-packages"
    site.mkdir(parents=True, exist_ok=True)
    return site


def installed(site: Path, name: str, version: str, *metadata: str, package: str | None = None) -> Path:
    """A distribution's metadata, with further lines of METADATA and, where named, the package's folder."""
    info = site / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    head = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}", *metadata]
    (info / "METADATA").write_text("\n".join(head) + "\n\nA description.\nRequires-Dist: not-a-header\n")
    if package is not None:
        (site / package).mkdir(exist_ok=True)
        (site / package / "__init__.py").write_text("raise RuntimeError('imported')\n")
    return info


def editable(site: Path, name: str, version: str, source: Path, *, finder: bool) -> Path:
    """An editable install of ``source``: through a finder, or a path in a .pth file."""
    info = installed(site, name, version)
    said = {"url": source.as_uri(), "dir_info": {"editable": True}}
    (info / "direct_url.json").write_text(json.dumps(said))
    if finder:
        module = f"__editable___{name}_finder"
        (site / f"__editable__.{name}.pth").write_text(f"import {module}; {module}.install()\n")
        mapping = {name: str(source / name)}
        (site / f"{module}.py").write_text(
            f"import sys\nMAPPING: dict[str, str] = {mapping!r}\nNAMESPACES: dict[str, list[str]] = {{}}\n"
        )
    else:
        (site / f"__editable__.{name}.pth").write_text(f"{source}\n")
    (source / name).mkdir(parents=True, exist_ok=True)
    (source / name / "__init__.py").write_text("")
    egg = source / f"{name}.egg-info"  # a build leaves it beside the package
    egg.mkdir(exist_ok=True)
    (egg / "PKG-INFO").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    return info


def library(path: Path, needed: Sequence[str] = (), sms: Sequence[Sequence[int]] = ()) -> Path:
    """An ELF file that says it needs libraries and holds GPU code: one group a sequence of architectures."""
    strings = b"\0" + b"".join(n.encode() + b"\0" for n in needed)
    offsets, at = [], 1
    for name in needed:
        offsets.append(at)
        at += len(name) + 1
    dynamic = b"".join(struct.pack("<QQ", 1, o) for o in offsets) + struct.pack("<QQ", 0, 0)
    code = b""
    for group in sms:
        records = b""
        for sm in group:
            head = struct.pack("<HHIQ", 2, 0x101, 64, 24) + struct.pack("<IIHHI", 0, 0, 0, 0, sm)
            records += head.ljust(64, b"\0") + b"\x7fELF".ljust(24, b"\xaa")
        code += struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(records)) + records
        code += b"\0" * (-len(code) % 8)
    names = [b"", b".dynstr", b".dynamic", b".nv_fatbin", b".shstrtab"]
    table = b"\0".join(names) + b"\0"
    bodies = [b"", strings, dynamic, code, table]
    out, places = bytearray(64), []
    for body in bodies:
        places.append((len(out), len(body)))
        out += body + b"\0" * (-len(body) % 8)
    start = len(out)
    for name, (offset, size) in zip(names, places, strict=True):
        out += struct.pack("<IIQQQQIIQQ", table.index(name), 1, 0, 0, offset, size, 0, 0, 8, 0)
    head = b"\x7fELF\x02\x01\x01".ljust(16, b"\0") + struct.pack("<HHIQQQ", 3, 62, 1, 0, 0, start)
    head += struct.pack("<IHHHHHH", 0, 64, 0, 0, 64, len(names), len(names) - 1)
    out[:64] = head
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(bytes(out))
    return path
