"""What the documents say about JSON and sample logs is so."""

from __future__ import annotations

import json
import re
from pathlib import Path

from mtpdoctor.host.saved import load_host

ROOT = Path(__file__).parent.parent


def test_every_field_of_the_schema_is_described() -> None:
    schema = json.loads((ROOT / "mtpdoctor/report/diagnose.schema.json").read_text())
    described = set(re.findall(r"`([a-z_]+)`", (ROOT / "docs/json.md").read_text()))
    parts = [schema, *(schema["$defs"][name] for name in ("diagnosis", "root", "fix", "edit", "finding"))]
    assert {name for part in parts for name in part["properties"]} <= described


def test_the_saved_host_shown_in_the_documents_can_be_loaded(tmp_path: Path) -> None:
    shown = re.search(r"```json\n(.*?)```", (ROOT / "docs/json.md").read_text(), re.DOTALL)
    assert shown is not None
    (tmp_path / "host.json").write_text(shown[1])
    host = load_host(tmp_path / "host.json")
    assert host.gpus is not None and host.gpus[0].processes[0].used_gib == 130.0


def test_the_index_of_sample_logs_is_complete() -> None:
    folder = ROOT / "sample_logs"
    listed = set(re.findall(r"`(\w+\.log)`", (folder / "README.md").read_text()))
    assert listed == {path.name for path in folder.glob("*.log")} and listed
