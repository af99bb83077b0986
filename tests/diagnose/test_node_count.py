"""A fix that leaves fewer nodes says so to whatever starts them: Slurm's directive, srun, a manifest, another shell."""

from __future__ import annotations

import pytest

from mtpdoctor.diagnose.engine import diagnose
from mtpdoctor.diagnose.given import Given
from mtpdoctor.diagnose.types import Fix
from mtpdoctor.kb.load import load_knowledge
from mtpdoctor.launch.document import read_launch
from mtpdoctor.log.reading import reading_from_text

COMMAND = "python -m sglang.launch_server --model-path M --tp 24 --nnodes 3 --node-rank {rank} --dist-init-addr a:5000"
LOG = "[2026-01-01 10:00:00] sglang==0.5.9\nAssertionError: 151936 is not divisible by 24\n"


def one_node(script: str, name: str, log: str = LOG) -> Fix:
    knowledge = load_knowledge()
    given = Given(document=read_launch(script, name=name), command_where=name)
    said = diagnose(reading_from_text(log, knowledge.literals), knowledge, given).diagnoses[0]
    return next(fix for fix in said.fixes if any(edit.name == "--nnodes" for edit in fix.edits))


@pytest.mark.parametrize("directive", ["--nodes=3", "-N 3", "-N3", "--ntasks-per-node=1 --nodes 3"])
def test_the_directive_of_a_script_is_changed_along(directive: str) -> None:
    script = f"#!/bin/bash\n#SBATCH {directive}\nsrun {COMMAND.format(rank='$SLURM_NODEID')}\n"
    fix = one_node(script, "run.sbatch")
    assert fix.diff is not None and f"+#SBATCH {directive.replace('3', '1')}\n" in fix.diff


@pytest.mark.parametrize(
    ("script", "name", "log", "said"),
    [
        (
            f"#!/bin/bash\n#SBATCH --nodes=3\nsrun -N1 {COMMAND.format(rank=0)} &\nsrun -N1 {COMMAND.format(rank=1)} &\n",
            "run.sbatch",
            LOG,
            "the job needs 1 node only",
        ),
        (COMMAND.format(rank=0), "command", f"{LOG}srun: error: n1: task 0: Exited\n", "#SBATCH --nodes=1"),
        (COMMAND.format(rank=0), "command", LOG, "start it on 1 node only"),
    ],
)
def test_what_cannot_be_changed_is_said(script: str, name: str, log: str, said: str) -> None:
    assert any(said in note for note in one_node(script, name, log).notes)
