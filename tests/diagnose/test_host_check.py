"""Findings of a host from facts alone, and what of them stands in the check of a launch."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mtpdoctor.diagnose.check import check
from mtpdoctor.diagnose.examples import host_finder
from mtpdoctor.diagnose.given import Given
from mtpdoctor.diagnose.host_check import host_findings, host_of_launch
from mtpdoctor.host.saved import load_host
from mtpdoctor.host.spec import parse_gpu_spec
from mtpdoctor.host.types import Gpu, GpuProcess, HostFacts, Port, PythonEnvironment
from mtpdoctor.kb import host_examples
from mtpdoctor.kb.load import load_knowledge
from mtpdoctor.launch.document import read_launch

HOSTS = sorted((Path(__file__).parent.parent / "healthy" / "hosts").glob("*.json"))
COMMAND = "python -m sglang.launch_server --model-path M --tp 2"


@pytest.fixture(scope="module")
def knowledge() -> Any:
    return load_knowledge()


@pytest.fixture
def h200() -> HostFacts:
    """Eight H200 with the packages of 0.5.13.post1, on which nothing is wrong."""
    return load_host(next(p for p in HOSTS if p.stem == "h200x8_container"))


def ids(host: HostFacts, knowledge: Any, release: str | None = None) -> list[str]:
    return [f.rule for f in host_findings(host, knowledge, release)]


def with_python(host: HostFacts, **fields: Any) -> HostFacts:
    assert host.python is not None
    python = replace(host.python, **fields)
    return replace(host, pythons=(python,), packages=python.packages)


@pytest.mark.parametrize("path", HOSTS, ids=lambda p: p.stem)
def test_a_healthy_host_has_no_finding(path: Path, knowledge: Any) -> None:
    assert ids(load_host(path), knowledge) == []


@pytest.mark.parametrize("spec", ["1xsm75@16", "8xsm90@140", "4xsm120@95", "2xsm103"])
def test_nothing_is_said_of_what_a_pretended_host_does_not_tell(spec: str, knowledge: Any) -> None:
    host = parse_gpu_spec(spec)
    assert ids(host, knowledge) == []
    document = read_launch("python -m sglang.launch_server --model-path M")
    report = check(Given(document=document, host=host, release="0.5.13.post1"), knowledge)
    assert not [p.rule for p in report.problems if p.rule and "MTP1100" <= p.rule <= "MTP1149"]


def test_the_examples_of_every_host_rule_hold(knowledge: Any) -> None:
    rules = [r for r in knowledge.rules if r.scope == "host"]
    assert len(rules) >= 40
    titles = {r.id: r.title for r in rules}
    assert [str(p) for p in host_examples.check(rules, host_finder(knowledge), titles, HOSTS, ci=True)] == []


def test_several_things_at_once_the_worst_first(h200: HostFacts, knowledge: Any) -> None:
    gpus = tuple(
        replace(g, free_gib=12.0, persistence=False, processes=(GpuProcess(4000 + g.index, 127.0, f"sglang::scheduler_TP{g.index}", "me", None, 1),))
        for g in h200.gpus or ()
    )  # fmt: skip
    host = replace(
        with_python(h200, torch_cuda="13.0"), gpus=gpus, cuda_driver="12.4", shm_gib=0.0625, shm_free_gib=0.06
    )
    found = host_findings(host, knowledge)
    assert [(f.rule, f.severity) for f in found] == [
        ("MTP1100", "fatal"), ("MTP1126", "degrades"), ("MTP1135", "degrades"), ("MTP1133", "info"),
    ]  # fmt: skip
    leftovers = found[1]
    assert "pid 4000 of me (sglang::scheduler_TP0): 127.0 GiB of GPU 0" in leftovers.cause
    assert leftovers.remedies[0].run[0] == "kill 4000 4001 4002 4003 4004 4005 4006 4007"
    assert found[2].remedies[0].edits[0].value == "32g"


def test_a_server_at_work_is_no_leftover(h200: HostFacts, knowledge: Any) -> None:
    def held(parent: int, *ports: Port) -> list[str]:
        process = GpuProcess(500, 127.0, "sglang::scheduler_TP0", None, None, parent)
        gpus = tuple(replace(g, free_gib=12.0, processes=(process,)) for g in (h200.gpus or ())[:1])
        return ids(replace(h200, gpus=gpus, ports=ports), knowledge)

    assert held(1) == ["MTP1126"]
    assert held(400) == ["MTP1127"]
    assert held(1, Port(30000, "0.0.0.0", 1, "python3 -m sglang.launch_server")) == ["MTP1127"]


def test_a_process_whose_share_is_not_told_leaves_the_rest_unknown(h200: HostFacts, knowledge: Any) -> None:
    hidden = tuple(replace(g, free_gib=20.0) for g in h200.gpus or ())
    assert ids(replace(h200, gpus=hidden), knowledge) == ["MTP1128"]
    untold = tuple(replace(g, processes=(GpuProcess(1, 0.0, ""),)) for g in hidden)
    assert "MTP1128" not in ids(replace(h200, gpus=untold), knowledge)


def test_a_light_look_at_the_gpus_blames_nobody(h200: HostFacts, knowledge: Any) -> None:
    """Without the question for processes, memory in use is no finding."""
    light = tuple(Gpu(g.index, g.name, g.sm, g.memory_gib, 60.0) for g in h200.gpus or ())
    assert ids(HostFacts("cuda", light, h200.driver, local=True), knowledge) == []


def test_pins_are_those_of_the_installed_release_where_its_metadata_is_not_at_hand(
    h200: HostFacts, knowledge: Any
) -> None:
    assert h200.python is not None
    wrong = {**h200.packages, "transformers": "4.57.1"}
    found = host_findings(with_python(h200, packages=wrong, requires={}), knowledge)
    assert [f.rule for f in found] == ["MTP1111"]
    assert found[0].remedies[0].run == ("pip install transformers==5.8.1",)
    only_packages = replace(h200, packages=wrong, pythons=None)
    assert ids(only_packages, knowledge) == ["MTP1111"]


def test_another_release_than_the_installed_one_says_nothing_of_its_packages(
    h200: HostFacts, knowledge: Any
) -> None:
    host = with_python(h200, packages={**h200.packages, "transformers": "4.57.1"})
    assert ids(host, knowledge) == ["MTP1111"]
    assert ids(host, knowledge, "0.5.13.post1") == ["MTP1111"]
    assert ids(host, knowledge, "0.5.9") == []


def test_an_unknown_release_of_sglang_is_held_against_no_pins(h200: HostFacts, knowledge: Any) -> None:
    packages = {**h200.packages, "sglang": "0.9.0", "transformers": "4.0"}
    assert ids(with_python(h200, packages=packages, requires={}), knowledge) == []


# -- check -------------------------------------------------------------------------------------------


def verdict(
    host: HostFacts | None, knowledge: Any, command: str = COMMAND, release: str | None = None
) -> Any:
    document = read_launch(command)
    found = ("0.5.13.post1", "test")
    return check(Given(document=document, host=host, release=release), knowledge, None, found)


def test_a_driver_that_is_too_old_rejects_every_launch(h200: HostFacts, knowledge: Any) -> None:
    old = replace(h200, cuda_driver="12.4", driver="550.54")
    report = verdict(old, knowledge)
    assert report.verdict == "reject" and report.argument_checks != "reject"
    assert [p.rule for p in report.problems if p.decisive] == ["MTP1100"]
    assert report.fixed is None  # no command helps
    assert "MTP1100" not in [p.rule for p in verdict(h200, knowledge).problems]


@pytest.mark.parametrize(
    "command",
    [
        "docker run --gpus all lmsysorg/sglang:v0.5.9 python -m sglang.launch_server --model-path M --tp 2",
        "/opt/other/bin/python -m sglang.launch_server --model-path M --tp 2",
    ],
)
def test_the_packages_here_say_nothing_of_a_launch_elsewhere(
    h200: HostFacts, knowledge: Any, command: str
) -> None:
    old = replace(h200, cuda_driver="12.4")
    assert "MTP1100" not in [p.rule for p in verdict(old, knowledge, command).problems]
    own = "/opt/venv/bin/python3 -m sglang.launch_server --model-path M --tp 2"
    assert "MTP1100" in [p.rule for p in verdict(old, knowledge, own).problems]


def test_what_the_command_sets_goes_before_the_host(h200: HostFacts, knowledge: Any) -> None:
    host = replace(h200, env={"http_proxy": "http://proxy.example:3128"})
    report = verdict(host, knowledge)
    assert [p.rule for p in report.problems if p.decisive] == ["MTP1139"]
    assert report.fixed is not None
    assert report.fixed.text.startswith("no_proxy=localhost,127.0.0.1,0.0.0.0 NO_PROXY=")
    mended = verdict(host, knowledge, "no_proxy=127.0.0.1 " + COMMAND)
    assert not any(p.decisive for p in mended.problems)


def test_a_finding_stands_in_a_check_only_where_it_is_of_consequence(h200: HostFacts, knowledge: Any) -> None:
    host = replace(h200, shm_gib=0.0625, shm_free_gib=0.0625)
    assert "MTP1135" in [p.rule for p in verdict(host, knowledge).problems]
    alone = "python -m sglang.launch_server --model-path M"
    assert "MTP1135" not in [p.rule for p in verdict(host, knowledge, alone).problems]
    assert ids(host, knowledge) == ["MTP1135"]


def test_a_container_launch_keeps_the_gpus_of_the_host_only(h200: HostFacts) -> None:
    met = host_of_launch(h200, read_launch("docker run lmsysorg/sglang:v0.5.9 sglang serve M").command, None)
    assert met is not None
    assert met.gpus == h200.gpus and met.cuda_driver == h200.cuda_driver and met.ram_gib == h200.ram_gib
    assert (met.packages, met.pythons, met.env, met.shm_gib, met.limits) == ({}, None, {}, None, {})
    assert host_of_launch(None, read_launch(COMMAND).command, None) is None


def test_a_rule_on_hosts_is_data_alone(tmp_path: Path, h200: HostFacts) -> None:
    """A finding is added without Python: a file of YAML, its examples checked by lint."""
    (tmp_path / "mine.yaml").write_text(
        """\
rules:
- id: MTP9001
  title: The machine {host.cpus} has too many CPUs
  role: degrades
  stage: env
  source: kernel
  evidence: stated
  scope: host
  predicts: {host.cpus: {gt: 100}, env.NCCL_DEBUG: WARN}
  severity: info
  cause: Nothing is wrong.
  examples:
    bad_host: [{host: {cpus: 128, env: {NCCL_DEBUG: WARN}}, said: '128'}]
    ok_host: [{host: {cpus: 8}}]
"""
    )
    own = load_knowledge(tmp_path, use_cache=False)
    assert [f.title for f in host_findings(h200, own)] == ["The machine 192 has too many CPUs"]
    assert host_examples.check(own.rules, host_finder(own), {}, [], ci=True) == []


@pytest.mark.parametrize(
    ("example", "said"),
    [
        ({"host": {"cpu_count": 3}}, "no saved host has the field 'cpu_count'"),
        ({"host": {"cpus": "many"}}, "'cpus' must be a whole number"),
        ({"host": {"gpus": "8 H200"}}, "not a GPU specification"),
        ({"host": {"cpus": 8}}, "the rule does not speak"),
        ({"host": {"cpus": 128}, "said": "129"}, "without '129'"),
        ({"host": {"cpus": 128}, "fix": "less"}, "without 'less'"),
    ],
)
def test_wrong_examples_are_named(tmp_path: Path, example: dict[str, Any], said: str) -> None:
    rule = {
        "id": "MTP9001", "title": "CPUs: {host.cpus}", "role": "degrades", "stage": "env", "source": "kernel",
        "evidence": "stated", "scope": "host", "predicts": {"host.cpus": {"gt": 100}}, "cause": "x",
        "examples": {"bad_host": [example], "ok_host": [{"host": {"cpus": 1}}]},
    }  # fmt: skip
    (tmp_path / "mine.yaml").write_text(json.dumps({"rules": [rule]}))
    own = load_knowledge(tmp_path, use_cache=False)
    (problem,) = host_examples.check(own.rules, host_finder(own), {}, [], ci=True)
    assert said in str(problem)


def test_an_environment_without_sglang_is_held_against_nothing(knowledge: Any) -> None:
    python = PythonEnvironment(
        "/usr/bin/python3", "3.9.1", "PATH", packages={"torch": "1.0"}, torch_cuda="13.0"
    )
    gpus = (Gpu(0, "NVIDIA H200", 90, 139.8, 139.0),)
    host = HostFacts("cuda", gpus, cuda_driver="12.4", packages=python.packages, pythons=(python,))
    assert ids(host, knowledge) == ["MTP1145"]  # that it is not there is all that is said
