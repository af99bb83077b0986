"""What the log itself holds of the remedy: an option twice, the devices that are there, where a link leads."""

from __future__ import annotations

import pytest

from mtpdoctor.diagnose.engine import diagnose
from mtpdoctor.diagnose.given import Given
from mtpdoctor.diagnose.types import Fix
from mtpdoctor.kb.load import load_knowledge
from mtpdoctor.log.reading import reading_from_text

KNOWLEDGE = load_knowledge()
SERVER = "python -m sglang.launch_server --model-path /m"


def fixes(log: str, release: str | None = "0.5.9") -> list[Fix]:
    report = diagnose(reading_from_text(log, KNOWLEDGE.literals), KNOWLEDGE, Given(release=release))
    return [f for d in report.diagnoses for f in d.fixes]


@pytest.mark.parametrize("options", ["--port --port 30001", "--port 30001 --port"])
def test_an_option_written_twice_is_given_once(options: str) -> None:
    log = f"$ {SERVER} {options} --tp 2\nlaunch_server.py: error: argument --port: expected one argument\n"
    first = fixes(log)[0]
    assert first.safety == "safe" and first.command is not None
    assert first.command.count("--port") == 1 and "--port 30001" in first.command


def test_an_option_written_once_without_its_value_is_not_guessed() -> None:
    log = f"$ {SERVER} --port --tp 2\nlaunch_server.py: error: argument --port: expected one argument\n"
    assert all(f.safety != "safe" for f in fixes(log))


@pytest.mark.parametrize(
    ("typed", "invalid", "wanted", "safety"),
    [
        ("rdma0-rdm,rdma10-rdm", "'rdma0-rdm', 'rdma10-rdm'", "rdma0,rdma10", "safe"),
        ("rdma1,rdma7", "'rdma7'", "rdma1", "risky"),
        ("mlx5_0", "'mlx5_0'", "rdma0,rdma1,rdma10", "risky"),
    ],
)
def test_refused_devices_become_those_that_the_message_lists(
    typed: str, invalid: str, wanted: str, safety: str
) -> None:
    log = (
        f"$ {SERVER} --disaggregation-mode prefill --disaggregation-ib-device {typed}\n"
        f"ValueError: Invalid IB devices specified: [{invalid}]. Available devices: ['rdma0', 'rdma1', 'rdma10']\n"
    )
    first = fixes(log)[0]
    assert [e.value for e in first.edits] == [wanted] and first.safety == safety


def test_the_target_of_a_link_is_to_be_mounted() -> None:
    error = 'FileNotFoundError: No such file or directory: "/ckpt/a/model.safetensors"'
    listing = "lrwxrwxrwx 1 u g 52 Jan  3 10:11 model.safetensors -> /nfs/runs/7/model.safetensors"
    shown = fixes(f"$ {SERVER}\n{error}\n+ ls -l /ckpt/a\n{listing}\n")
    assert "/nfs/runs/7" in shown[0].title
    assert all("/nfs" not in f.title for f in fixes(f"$ {SERVER}\n{error}\n"))
