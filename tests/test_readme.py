"""What the README tells people to type is what is run."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = [line for block in re.findall(r"```sh\n(.*?)```", README, re.S) for line in [block.strip()]]


def test_ci_runs_the_test_command_of_the_readme() -> None:
    (tests,) = [c for c in COMMANDS if "pytest" in c]
    assert tests in (ROOT / ".ci" / "run").read_text().splitlines()


def test_the_main_command_of_the_readme_works() -> None:
    (main,) = [c for c in COMMANDS if "mtpdoctor diagnose" in c]
    words = shlex.split(main.split("&&")[-1])
    assert words[0].endswith("mtpdoctor")
    done = subprocess.run(
        [sys.executable, "-m", "mtpdoctor", *words[1:]], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1
    assert "+ --mamba-scheduler-strategy extra_buffer" in done.stdout


def test_the_check_of_the_readme_works() -> None:
    (check,) = [c for c in COMMANDS if "mtpdoctor check" in c]
    words = shlex.split(check.replace("\\\n", " "))
    done = subprocess.run(
        [sys.executable, "-m", "mtpdoctor", *words[1:]], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1
    assert "--mamba-radix-cache-strategy extra_buffer" in done.stdout


def test_links_lead_somewhere() -> None:
    for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+?)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
