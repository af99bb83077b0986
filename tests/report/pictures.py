"""Takes the pictures of docs/formats.md anew: python tests/report/pictures.py (needs Chromium)."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

from browser import Browser, find_browser  # noqa: E402
from triages import triage  # noqa: E402

from mtpdoctor.cli.main import main  # noqa: E402
from mtpdoctor.report.html_triage import render_triage_html  # noqa: E402


def take() -> None:
    path = find_browser()
    if path is None:
        raise SystemExit("needs Chromium")
    os.chdir(ROOT)
    folder = ROOT / "docs" / "pictures"
    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        browser = Browser(path, Path(work) / "profile")
        with contextlib.closing(browser):
            report = Path(work) / "report.html"
            main(["diagnose", "sample_logs/spec_no_buffer_with_radix.log", "--out", str(report)])
            for name, dark in (("report-light", False), ("report-dark", True)):
                browser.page(report, dark=dark, width=960).picture(folder / f"{name}.png", height=860)
            many = Path(work) / "triage.html"
            many.write_text(render_triage_html(triage()), encoding="utf-8")
            for name, dark in (("triage-light", False), ("triage-dark", True)):
                browser.page(many, dark=dark, width=960).picture(folder / f"{name}.png", height=1060)


if __name__ == "__main__":
    take()
