"""When two failures are the same one: whatever differs from launch to launch must not change the key."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from triage_logs import server_args, traceback

from mtpdoctor.triage.normal import MAX_TEXT, normal
from mtpdoctor.triage.types import Triage
from tests.log.wrap import TRANSPORTS, wrap

SITES = ("managers/scheduler.py:run_scheduler_process", "layers/odd/core.py:start_odd")
MANY = [t for t in TRANSPORTS if t not in ("quoted", "indented")]


def key_of(triaged: Callable[..., Triage], folder: Path, data: bytes) -> str:
    file = folder / "server.log"
    file.write_bytes(data)
    (group,) = triaged(file).groups
    return group.fingerprint.key


def log(error: str, *frames: str, **options: object) -> str:
    return server_args() + "\n" + traceback(error, *(frames or SITES), **options)  # type: ignore[arg-type]


@pytest.fixture
def key(triaged: Callable[..., Triage], tmp_path: Path) -> Callable[..., str]:
    return lambda *a, **o: key_of(triaged, tmp_path, log(*a, **o).encode())


SAME = [
    ("OddError: slot 3 of 4096 is owned by rank 2", "OddError: slot 77 of 65536 is owned by rank 11"),
    ("OddError: no answer from gpu-node03:5001", "OddError: no answer from 10.7.0.9:41234"),
    ("OddError: cannot map 3.41 GiB at 0x7f00ab12cd34", "OddError: cannot map 512 MiB at 0x55aa01020304"),
    ("OddError: /mnt/a/run-7/pages is full", "OddError: /home/bob/x is full"),
    ("OddError: layer model.layers.14.mlp is odd", "OddError: layer model.layers.3.mlp is odd"),
    ("OddError: shape [8, 128] not [8, 64]", "OddError: shape [16, 128, 4] not [2]"),
    ("OddError: since 2026-11-29 10:00:01.123", "OddError: since 2027-01-02T03:04:05Z"),
    (
        "OddError: id 123e4567-e89b-12d3-a456-426614174000",
        "OddError: id 00000000-1111-2222-3333-444444444444",
    ),
    ("OddError: on cuda:0 (pid 4711)", "OddError: on cuda:7 (pid 12)"),
    ("OddError: by (PID:715605, Device:0)", "OddError: by (PID:12085, Device:3)"),
]
OTHER = [
    ("OddError: fp8 is not for this", "OddError: fp4 is not for this"),
    ("OddError: w13_weight is missing", "OddError: w2_weight is missing"),
    ("OddError: sm120 lacks it", "OddError: sm90 lacks it"),
    ("OddError: /m/x/config.json is odd", "OddError: /m/x/tokenizer.json is odd"),
    ("OddError: slot is taken", "EvenError: slot is taken"),
    ("OddError: slot is taken", "OddError: slot is free"),
    ("KeyError: 'alpha'", "KeyError: 'beta'"),
]


@pytest.mark.parametrize(("one", "two"), SAME)
def test_the_same(one: str, two: str, key: Callable[..., str]) -> None:
    assert key(one) == key(two, at="2027-03-04 05:06:07", rank="TP3", line=4012)


@pytest.mark.parametrize(("one", "two"), OTHER)
def test_not_the_same(one: str, two: str, key: Callable[..., str]) -> None:
    assert key(one) != key(two)


def test_another_raise_site_is_another_problem(key: Callable[..., str]) -> None:
    error = "OddError: slot 3 is taken"
    keys = [
        key(error, SITES[0], f"layers/odd/{file}:{name}")
        for file, name in (("core.py", "start"), ("core.py", "stop"), ("edge.py", "start"))
    ]
    assert len(set(keys)) == 3


@pytest.mark.parametrize("transport", MANY)
def test_the_same_in_every_transport(transport: str, triaged: Callable[..., Triage], tmp_path: Path) -> None:
    text = log("OddError: slot 3 of 4096 is owned by rank 2")
    plain = key_of(triaged, tmp_path, text.encode())
    assert key_of(triaged, tmp_path, wrap(text.rstrip("\n").split("\n"), transport)) == plain


def test_a_key_is_for_ever(key: Callable[..., str]) -> None:
    assert key("OddError: slot 3 is taken") == "a836e636c9a1443d"


WORDS = st.sampled_from(
    [
        "slot",
        "is",
        "taken",
        "by",
        "rank",
        "3",
        "TP1",
        "of",
        "4096",
        "10.0.0.1:500",
        "/a/b/c.json",
        "0x7f1122334455",
        "[1,",
        "2,",
        "3]",
        "node-17",
        "x.y.local",
        "3.5",
        "GiB",
        "fp8",
        "w2_weight",
        "https://a.b/c?d=e",
        "2026-11-29",
        "10:00:00",
        "cuda:1",
        "(12)",
        "model.layers.3.mlp",
    ]
)


@given(st.lists(WORDS, max_size=12))
def test_normal_is_stable(words: list[str]) -> None:
    once = normal(" ".join(words))
    assert normal(once) == once and len(once) <= MAX_TEXT


@settings(max_examples=60)
@given(st.text(max_size=300))
def test_normal_takes_anything(text: str) -> None:
    assert len(normal(text)) <= MAX_TEXT


@given(st.integers(0, 10**9), st.integers(0, 10**9))
def test_numbers_never_count(a: int, b: int) -> None:
    for form in ("slot {} is taken", "[{}]", "x={}", "({} of 7)", "layers.{}.mlp", "{} GiB"):
        assert normal(form.format(a)) == normal(form.format(b))


def test_groups_do_not_depend_on_order(triaged: Callable[..., Triage], tmp_path: Path) -> None:
    for i, error in enumerate(("OddError: slot 1", "OddError: slot 2", "EvenError: x")):
        (tmp_path / f"{i}.log").write_text(log(error))
    files = sorted(tmp_path.iterdir())
    answers = [triaged(*order) for order in itertools.permutations(files)]
    assert all(answer == answers[0] for answer in answers)
    assert [len(g.members) for g in answers[0].groups] == [2, 1]
