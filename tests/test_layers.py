"""Imports point one way, and a command-line run loads neither the TUI nor a GPU framework."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "mtpdoctor"

BASE = {
    "errors",
    "release",
    "facts",
    "text",
    "children",
    "redact",
    "paths",
    "compiled",
    "patterns",
    "records",
    "anonymise",
}
READERS = {"log", "launch", "host", "model", "sglang"}
# part -> the parts it may import
ALLOWED = {
    **dict.fromkeys(BASE, BASE),
    "log": BASE,
    "host": BASE,
    "model": BASE,
    "sglang": BASE | {"launch"},  # flag tables implement launch's FlagTable; edits are launch's
    "launch": BASE | {"sglang"},  # the union flag table is the default, loaded lazily
    "case": BASE | READERS,
    "memory": BASE | READERS | {"case"},
    "kb": BASE | READERS,
    "diagnose": BASE | READERS | {"case", "kb", "memory"},
    "watch": BASE | READERS | {"case", "kb", "memory", "diagnose"},
    "triage": BASE | READERS | {"case", "kb", "memory", "diagnose"},
    "bundle": BASE | READERS | {"case", "kb", "memory", "diagnose"},
    "compare": BASE | READERS | {"case", "kb", "memory", "diagnose"},
    "report": BASE
    | READERS
    | {"bundle", "compare"}
    | {"triage"}
    | {"diagnose", "kb", "case", "memory", "watch"},
    "tui": BASE | READERS | {"case", "kb", "memory", "diagnose", "watch", "report"},
    "cli": BASE
    | READERS
    | {"bundle", "compare"}
    | {"triage", "case", "kb", "memory", "diagnose", "watch", "report", "tui"},
    "__main__": {"cli"},
    "__init__": set(),
}


def part_of(path: Path) -> str:
    first = path.relative_to(PACKAGE).parts[0]
    return first.removesuffix(".py")


def imports_of(path: Path) -> set[str]:
    out = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.Import):
            names = [a.name for a in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names = [node.module or ""]
            if node.module == "mtpdoctor":
                names = [f"mtpdoctor.{a.name}" for a in node.names]
        out |= {n.split(".")[1] for n in names if n.startswith("mtpdoctor.")}
    return out


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_point_down(path: Path) -> None:
    part = part_of(path)
    assert part in ALLOWED, f"{part}: a new part; say here what it may import"
    wrong = imports_of(path) - ALLOWED[part] - {part} - {"__version__"}
    assert not wrong, f"{path.relative_to(PACKAGE)} imports {sorted(wrong)}"


@pytest.mark.parametrize(
    "command", [["diagnose", "sample_logs/spec_no_buffer_with_radix.log"], ["kb", "list"], ["--version"]]
)
def test_a_command_line_run_stays_light(command: list[str]) -> None:
    code = (
        "import sys; from mtpdoctor.cli.main import main; main(sys.argv[1:]);"
        "heavy = {'textual', 'torch', 'sglang', 'rich', 'pynvml', 'transformers'} & set(sys.modules);"
        "sys.exit(f'loaded {heavy}' if heavy else 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *command], cwd=PACKAGE.parent, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "command",
    [
        ["diagnose", "sample_logs/ready_mtp_accept_len_1.log"],
        ["check", "--sglang", "0.5.13", "--", "python", "-m", "sglang.launch_server", "--model-path", "/m"],
        [
            "run",
            "--no-check",
            "--",
            "/nonexistent/python",
            "-m",
            "sglang.launch_server",
            "--model-path",
            "/m",
        ],
        ["probe", "--timeout", "1"],
        ["triage", "sample_logs"],
        [],
        ["sample_logs/port_in_use.log"],
    ],
    ids=lambda command: " ".join(command[:1]) or "usage",
)
def test_only_the_interactive_doctor_loads_textual(command: list[str]) -> None:
    code = (
        "import sys; from mtpdoctor.cli.main import main; main(sys.argv[1:]);"
        "loaded = {'textual', 'rich', 'torch', 'sglang'} & set(sys.modules) | "
        "{m for m in sys.modules if m.startswith('mtpdoctor.tui')};"
        "sys.exit(f'loaded {loaded}' if loaded else 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *command],
        cwd=PACKAGE.parent,
        capture_output=True,
        text=True,
        timeout=60,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stderr
