"""The light look of `check`, and `--host here`."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import pytest
from machines import DOCKER, NoNvml
from recorded import RecordedNvml

from mtpdoctor.cli.given import add_given_arguments, given_from
from mtpdoctor.facts import Source
from mtpdoctor.host.facts import host_facts
from mtpdoctor.host.here import host_here


def test_what_a_check_learns_of_this_machine(tmp_path: Path) -> None:
    environ = {**DOCKER.environ, "SGLANG_ENABLE_SPEC_V2": "1", "HF_TOKEN": "hf_abcdefghijklmnop1234"}
    machine = replace(DOCKER, environ=environ).at(tmp_path)
    host = host_here(RecordedNvml("nvml_2xh200"), environ, machine)
    assert host is not None and host.local
    facts = host_facts(host)
    assert (facts["host.gpu.count"], facts["host.gpu.sm"], facts["host.driver"]) == (2, 90, "580.159.04")
    assert (facts["host.shm_gib"], facts["host.container"]) == (0.0625, True)
    assert facts["env.SGLANG_ENABLE_SPEC_V2"] == "1" and facts["env.HF_TOKEN"] == "<hidden>"
    fact = facts.fact("host.shm_gib")
    assert fact is not None and fact.source is Source.PROBE


def test_a_machine_without_a_driver_says_nothing_of_the_launch() -> None:
    assert host_here(NoNvml(), {}) is None


def test_here_is_this_machine_and_a_file_of_that_name_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("here").write_text('{"schema": 1, "platform": "rocm", "name": "far away"}')
    parser = argparse.ArgumentParser()
    add_given_arguments(parser)
    here = given_from(parser.parse_args(["--host", "here"])).host
    saved = given_from(parser.parse_args(["--host", "./here"])).host
    assert here is not None and here.local and here.pythons
    assert saved is not None and not saved.local and saved.name == "far away"
