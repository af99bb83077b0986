"""The options and variables that SGLang's code runs under, learned by ``kb learn``."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from mtpdoctor.cli.kb_learn import add_learn_arguments, run_learn
from mtpdoctor.release import parse_release
from mtpdoctor.sglang.gates import gates_of_frame
from tests.sglang.trees import write_tree

ARGS = """\
import argparse
import dataclasses
@dataclasses.dataclass
class ServerArgs:
    model_path: str
    page_size: int = 1
    pp_size: int = 1
    enable_wide: bool = False
    enable_deep: bool = False
    disable_graph: bool = False
    attn_backend: str | None = None

    @staticmethod
    def add_cli_args(parser: argparse.ArgumentParser):
        parser.add_argument("--model-path", type=str, required=True)
        parser.add_argument("--page-size", type=int, default=1)
        parser.add_argument("--pp-size", type=int, default=1)
        parser.add_argument("--enable-wide", action="store_true")
        parser.add_argument("--enable-deep", action="store_true")
        parser.add_argument("--disable-graph", action="store_true")
        parser.add_argument("--attn-backend", type=str, default=None)
"""
RUNNER = """\
from sglang.srt.deep import Deep, Shared
from sglang.srt.utils import get_bool_env_var

_use_fast = get_bool_env_var("SGLANG_FAST") and has_gpu()


class Runner:
    def __init__(self, server_args):
        self.wide = server_args.enable_wide
        self.deep = False

    def start(self, server_args, model):
        if self.wide and model.large:
            widen(model)
        elif server_args.attn_backend in ("fa", "fb"):
            slow(model)
        if server_args.enable_deep:
            self.engine = Deep(model)
            self.engine.turn_on(self)
        self.shared = Shared(model)
        if not server_args.{graph}:
            self.capture()
        if server_args.pp_size <= 1:
            return
        stages(model)

    def capture(self):
        if _use_fast:
            fast(self)
        if self.deep:
            down(self)

    def get_deep(self):
        self.deep = True
        return self.engine.layers(self)
"""
DEEP = """\
class Shared:
    def layers(self, runner):
        return runner.count


class Deep(Shared):
    def turn_on(self, runner):
        helper(runner)
        runner.get_deep()


def helper(runner):
    return runner.size
"""
RELEASES = {"2.0.0": "disable_graph", "2.0.1": "enable_wide"}
FILE = "/opt/site-packages/sglang/srt/runner.py"
DEEP_FILE = "/opt/site-packages/sglang/srt/deep.py"


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("gates")
    parser = argparse.ArgumentParser()
    add_learn_arguments(parser)
    sources = []
    for release, graph in RELEASES.items():
        files = {
            "sglang/version.py": f'__version__ = "{release}"\n',
            "sglang/srt/server_args.py": ARGS,
            "sglang/srt/runner.py": RUNNER.format(graph=graph),
            "sglang/srt/deep.py": DEEP,
        }
        sources.append(str(write_tree(base / release, files)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MTPDOCTOR_CACHE", str(base / "cache"))
        run_learn(parser.parse_args([*sources, "--folder", str(base / "facts")]))
    return base / "facts"


def gates(facts: Path, function: str, line: str, release: str = "2.0.0", file: str = FILE) -> list[str]:
    return [str(gate) for gate in gates_of_frame(facts, file, function, line, parse_release(release))]


@pytest.mark.parametrize(
    ("function", "line", "found"),
    [
        ("start", "widen(model)", ["enable_wide+"]),  # an attribute that was set from the option
        ("start", "slow(model)", ["attn_backend=fa|fb"]),
        ("start", "self.engine = Deep(model)", ["enable_deep+"]),
        ("start", "self.shared = Shared(model)", []),
        ("start", "stages(model)", ["pp_size>1"]),  # behind an early return
        (
            "capture",
            "fast(self)",
            ["$SGLANG_FAST+", "disable_graph-"],
        ),  # a constant of the file, and its only call
        ("capture", "down(self)", ["enable_deep+", "disable_graph-"]),  # set where only the option leads
        ("start", "nobody(wrote, this)", []),
    ],
)
def test_what_a_line_runs_under(facts: Path, function: str, line: str, found: list[str]) -> None:
    assert gates(facts, function, line) == found


def test_what_a_function_runs_under_by_all_that_use_it(facts: Path) -> None:
    assert gates(facts, "helper", "return runner.size", file=DEEP_FILE) == ["enable_deep+"]
    assert gates(facts, "layers", "return runner.count", file=DEEP_FILE) == ["enable_deep+"], (
        "called by one way only"
    )
    assert gates(facts, "Nobody", "x", file=DEEP_FILE) == []


def test_gates_are_those_of_the_release(facts: Path) -> None:
    assert gates(facts, "capture", "", "2.0.0") == ["disable_graph-"]
    assert gates(facts, "capture", "", "2.0.1") == []
    assert gates(facts, "capture", "fast(self)", "9.9.9") == []
