"""Hosts: pretended with --gpu, saved and loaded, turned into facts."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import types
import typing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtpdoctor.errors import UserError
from mtpdoctor.facts import UNKNOWN, Source
from mtpdoctor.host.facts import host_facts
from mtpdoctor.host.saved import host_to_json, load_host
from mtpdoctor.host.spec import parse_gpu_spec
from mtpdoctor.host.types import Gpu, GpuProcess, HostFacts


@pytest.mark.parametrize(
    ("text", "count", "sm", "memory"),
    [
        ("4xsm120@95", 4, 120, 95.0),
        ("8xsm90", 8, 90, None),
        ("1xSM89@23.5", 1, 89, 23.5),
        (" 2 x sm_100a @ 180GiB ", 2, 100, 180.0),
        ("1xsm130@300", 1, 130, 300.0),
    ],
)
def test_gpu_spec(text: str, count: int, sm: int, memory: float | None) -> None:
    host = parse_gpu_spec(text)
    assert host.platform == "cuda" and host.pretended
    assert host.gpus is not None and len(host.gpus) == count
    assert [g.index for g in host.gpus] == list(range(count))
    assert {(g.sm, g.memory_gib) for g in host.gpus} == {(sm, memory)}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "not a GPU specification"),
        ("sm90", "not a GPU specification"),
        ("4xh100", "not a GPU specification"),
        ("4xsm90@", "not a GPU specification"),
        ("0xsm90", "number of GPUs"),
        ("99999xsm90", "number of GPUs"),
        ("1xsm9", "no compute capability sm9"),
        ("1xsm95", "no compute capability sm95"),
        ("1xsm90@0", "above 0"),
        ("1xsm90@100000", "at most"),
    ],
)
def test_bad_gpu_spec_says_what_is_wrong_and_what_to_write(text: str, says: str) -> None:
    with pytest.raises(UserError, match=says) as e:
        parse_gpu_spec(text)
    assert e.value.hint


@given(st.text(max_size=20))
def test_any_gpu_spec_is_a_host_or_a_user_error(text: str) -> None:
    with contextlib.suppress(UserError):
        assert parse_gpu_spec(text).gpus


_names = st.text(alphabet="abcXYZ-_. 019", max_size=12)


def _values(hint: Any) -> st.SearchStrategy[Any]:
    """Any value that a field of this type can have."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return st.none() | _values(next(a for a in arguments if a is not type(None)))
    if origin is tuple:
        return st.lists(_values(arguments[0]), max_size=2).map(tuple)
    if origin is not None:
        return st.dictionaries(_names, _values(arguments[1]), max_size=2)
    if dataclasses.is_dataclass(hint):
        hints = typing.get_type_hints(hint)
        fixed = {"local": st.just(False), "platform": st.sampled_from([None, "cuda", "rocm", "none"])}
        fixed |= {"env": st.dictionaries(st.sampled_from(["CUDA_VISIBLE_DEVICES", "NCCL_DEBUG"]), _names)}
        return st.builds(
            hint,
            **{n: fixed[n] if n in fixed and hint is HostFacts else _values(h) for n, h in hints.items()},
        )
    return {str: _names, int: st.integers(0, 9999), float: st.floats(0, 4096), bool: st.booleans()}[hint]


_hosts = _values(HostFacts)


@given(host=_hosts, nested=st.booleans())
def test_a_saved_host_comes_back_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, host: HostFacts, nested: bool
) -> None:
    document = json.loads(json.dumps(host_to_json(host)))
    path = tmp_path_factory.getbasetemp() / "host.json"
    path.write_text(json.dumps({"schema": 1, "host": document, "sglang": None} if nested else document))
    assert load_host(path) == host


def test_a_host_saved_before_the_probe_told_more_still_loads(tmp_path: Path) -> None:
    path = tmp_path / "host.json"
    path.write_text(
        """{"schema": 1, "platform": "cuda", "driver": "570.86.15", "cuda_driver": "12.8", "ram_gib": 1007.5,
        "shm_gib": 16.0, "container": true, "packages": {"sglang": "0.5.13.post1"}, "pretended": false,
        "env": {"CUDA_VISIBLE_DEVICES": "0,1"}, "a_later_field": [1],
        "gpus": [{"name": "NVIDIA H200", "sm": 90, "memory_gib": 139.8, "free_gib": 9.8,
                  "processes": [{"pid": 4242, "used_gib": 130.0, "command": "python train.py"}]}]}"""
    )
    host = load_host(path)
    assert host.gpus == (
        Gpu(0, "NVIDIA H200", 90, 139.8, 9.8, (GpuProcess(4242, 130.0, "python train.py"),)),
    )
    assert (host.disks, host.ports, host.pythons, host.limits, host.failures) == (None, None, None, {}, ())


def test_secrets_of_the_environment_are_not_saved() -> None:
    host = HostFacts("cuda", None, env={"HF_TOKEN": "abcdefgh1234", "NCCL_DEBUG": "INFO"})
    assert host_to_json(host)["env"] == {"HF_TOKEN": "<hidden>", "NCCL_DEBUG": "INFO"}


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("{", r"host.json:1:\d+: not valid JSON"),
        ("[]", "a saved host is a JSON object"),
        ("{}", "'schema' must be 1, not null"),
        ('{"schema": 2}', "'schema' must be 1, not 2"),
        ('{"schema": 1, "platform": "amiga"}', "'platform' must be one of"),
        ('{"schema": 1, "gpus": {}}', "'gpus' must be a list"),
        ('{"schema": 1, "gpus": [{"sm": "90"}]}', r"'gpus\[0\].sm' must be a whole number"),
        ('{"schema": 1, "gpus": [{"memory_gib": -1}]}', r"'gpus\[0\].memory_gib' must be a size in GiB"),
        ('{"schema": 1, "ram_gib": NaN}', "not valid JSON"),
        ('{"schema": 1, "container": "yes"}', "'container' must be true, false or null"),
        ('{"schema": 1, "ram_gib": 1' + "0" * 400 + "}", "'ram_gib' must be a size in GiB"),
        ('{"schema": 1, "gpus": [{"processes": [{"started": "x"}]}]}', "started' must be a number"),
        ('{"schema": 1, "disks": [3]}', r"'disks\[0\]' must be an object"),
        ('{"schema": 1, "limits": {"nofile": "many"}}', "'limits.nofile' must be a number"),
        ('{"schema": 1, "packages": {"torch": 2}}', "'packages.torch' must be text"),
        ("\xff\xfe", "not valid JSON"),
    ],
)
def test_a_bad_file_is_one_clear_line(tmp_path: Path, content: str, says: str) -> None:
    path = tmp_path / "host.json"
    path.write_bytes(content.encode("latin-1"))
    with pytest.raises(UserError, match=says) as e:
        load_host(path)
    assert "probe --json" in (e.value.hint or "")
    assert "\n" not in str(e.value)


def test_a_missing_file_or_a_directory_is_one_clear_line(tmp_path: Path) -> None:
    for path in (tmp_path / "nothing.json", tmp_path):
        with pytest.raises(UserError, match="cannot be read"):
            load_host(path)


def test_unknown_is_absent_from_the_facts_and_known_has_its_source() -> None:
    facts = host_facts(parse_gpu_spec("4xsm120"))
    assert facts["host.gpu.sm"] == 120 and facts["host.gpu.count"] == 4
    assert facts.look("host.gpu.memory_gib") is UNKNOWN
    assert facts.look("host.driver") is UNKNOWN
    fact = facts.fact("host.gpu.sm")
    assert fact is not None and fact.source is Source.USER


def test_facts_of_a_probed_host() -> None:
    host = HostFacts(
        platform="cuda",
        gpus=(Gpu(0, "NVIDIA H200", 90, 139.8, 0.3),),
        driver="570.86",
        ram_gib=128.0,
        container=False,
        packages={"Sgl_Kernel": "0.3.21"},
        env={"NCCL_DEBUG": "INFO"},
    )
    facts = host_facts(host)
    plain = {
        "host.platform": "cuda",
        "host.gpu.count": 1,
        "host.gpu.name": "NVIDIA H200",
        "host.gpu.sm": 90,
        "host.gpu.memory_gib": 139.8,
        "host.gpu.free_gib": 0.3,
        "host.driver": "570.86",
        "host.ram_gib": 128.0,
        "host.container": False,
        "host.package.sgl-kernel": "0.3.21",
        "env.NCCL_DEBUG": "INFO",
    }
    assert {name: facts.look(name) for name in plain} == plain
    assert facts.look("host.package.torch") is None  # the packages are known, and torch is none of them
    assert facts.look("host.shm_gib") is UNKNOWN
    assert {facts.fact(n).source for n in facts} == {Source.PROBE}  # type: ignore[union-attr]


def test_no_gpu_is_known_and_unknown_gpus_are_not() -> None:
    assert host_facts(HostFacts("none", ()))["host.gpu.count"] == 0
    assert host_facts(HostFacts(None, None)).look("host.gpu.count") is UNKNOWN
