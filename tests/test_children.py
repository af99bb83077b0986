"""Nothing that lies in the folder a command is run in is ever run: it may be a folder of logs that somebody sent."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[1]
TRAP = "import os; open(os.environ['TRAP'], 'a').write(__name__)\n"


@pytest.mark.parametrize(
    "words", [["triage", "--jobs", "2", "."], ["probe", "--json"]], ids=["triage", "probe"]
)
def test_modules_in_the_present_folder_are_not_taken(words: list[str], tmp_path: Path) -> None:
    folder, marker = tmp_path / "logs", tmp_path / "sprung"
    folder.mkdir()
    for name in ("signal", "json", "struct", "selectors"):
        (folder / f"{name}.py").write_text(TRAP)
    for name in ("port_in_use", "flag_from_newer_version"):
        shutil.copy(REPO / "sample_logs" / f"{name}.log", folder)
    script = tmp_path / "run.py"  # as the installed command does it: its own folder first on the path
    script.write_text(
        f"import sys; from mtpdoctor.cli.main import main\nif __name__ == '__main__': sys.exit(main({words!r}))\n"
    )
    done = subprocess.run(
        [sys.executable, str(script)],
        cwd=folder,
        env={
            **os.environ,
            "TRAP": str(marker),
            "PYTHONPATH": str(REPO),
            "MTPDOCTOR_CACHE": str(tmp_path / "cache"),
        },
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert not marker.exists(), marker.read_text()
    assert "Traceback" not in done.stderr and "cannot be started" not in done.stderr
    if words[0] == "triage":
        assert "port_in_use.log" in done.stdout
