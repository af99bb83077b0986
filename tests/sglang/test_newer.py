"""An installed release that the tables do not know is learned on the fly, and said so."""

from __future__ import annotations

from pathlib import Path

import pytest

from mtpdoctor.release import parse_release
from mtpdoctor.sglang.flags import flag_table
from mtpdoctor.sglang.newer import learn_when_new

SERVER_ARGS = """\
import argparse
import dataclasses


@dataclasses.dataclass
class ServerArgs:
    model_path: str
    tp_size: int = 1
    turbo_mode: str = "off"

    @staticmethod
    def add_cli_args(parser: argparse.ArgumentParser):
        parser.add_argument("--model-path", "--model", type=str, required=True, help="The model.")
        parser.add_argument("--tensor-parallel-size", "--tp-size", "--tp", type=int, default=ServerArgs.tp_size)
        parser.add_argument("--turbo-mode", type=str, default=ServerArgs.turbo_mode, choices=["off", "on"])
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MTPDOCTOR_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "site-packages"
    (folder / "sglang" / "srt").mkdir(parents=True)
    (folder / "sglang" / "srt" / "server_args.py").write_text(SERVER_ARGS)
    (folder / "sglang" / "version.py").write_text('__version__ = "0.9.0"\n')
    (folder / "sglang-0.9.0.dist-info").mkdir()
    (folder / "sglang-0.9.0.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: sglang\nVersion: 0.9.0\n"
    )
    return folder


def test_a_newer_release_is_learned_once(site: Path) -> None:
    said = learn_when_new("0.9.0", str(site))
    assert said is not None and "learned" in said and "0.9.0" in said
    table = flag_table(parse_release("0.9.0"))
    spec = table.resolve("--turbo-mode")
    assert spec is not None
    assert spec.choices == ("off", "on")
    again = learn_when_new("0.9.0", str(site))
    assert again is not None and "learned" in again


def test_a_known_release_needs_nothing(site: Path) -> None:
    assert learn_when_new("0.5.13.post1", str(site)) is None


def test_a_release_without_its_source_is_named_with_the_one_that_serves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MTPDOCTOR_CACHE", str(tmp_path / "cache"))
    said = learn_when_new("0.9.1", str(tmp_path))
    assert said is not None and "0.9.1" in said
