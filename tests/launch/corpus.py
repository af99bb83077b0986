"""Launch files of every form, as people write them."""

from __future__ import annotations

from pathlib import Path

FILES = Path(__file__).parent / "files"


def corpus() -> list[Path]:
    return sorted(p for p in FILES.rglob("*") if p.is_file())


def text_of(path: Path) -> str:
    return path.read_bytes().decode("utf-8")


def name_of(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"
