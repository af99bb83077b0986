"""Memory sums of recorded launches, the way the commands make them."""

from __future__ import annotations

import json
import shlex
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from mtpdoctor.case import Case, build_case
from mtpdoctor.diagnose.given import Given
from mtpdoctor.diagnose.remedies import launch_facts
from mtpdoctor.diagnose.the_case import case_of
from mtpdoctor.facts import Facts, Source, make_facts
from mtpdoctor.host.types import Gpu, HostFacts
from mtpdoctor.kb.load import Knowledge, load_knowledge
from mtpdoctor.launch.document import read_launch
from mtpdoctor.log.reading import read_logs
from mtpdoctor.memory.summing import memory_sum
from mtpdoctor.memory.types import MemorySum
from mtpdoctor.model.config import read_model
from mtpdoctor.model.types import ModelFacts
from mtpdoctor.records import replace

DATA = Path(__file__).parent.parent / "data"
PUBLISHED = DATA / "published_memory"
H200 = DATA / "h200_memory"


@cache
def knowledge_once() -> Knowledge:
    return load_knowledge()


@cache
def model(name: str) -> ModelFacts:
    """A model of the test data: a tiny one of the H200 launches, or a published configuration."""
    tiny = H200 / "models" / f"{name}.json"
    return read_model(tiny if tiny.is_file() else DATA / "models" / name)


def model_of(config: dict[str, Any]) -> ModelFacts:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "config.json").write_text(json.dumps(config))
        return read_model(folder)


def host(memory_gib: float, *, sm: int = 90, count: int = 1, free_gib: float | None = None) -> HostFacts:
    gpus = tuple(Gpu(i, "", sm, memory_gib, free_gib) for i in range(count))
    return HostFacts(platform="cuda", gpus=gpus, pretended=True)


def launch(
    command: str,
    release: str,
    of: ModelFacts | None,
    on: HostFacts | None,
    more: dict[str, Any] | None = None,
) -> Case:
    """A launch that has not happened; ``more`` are further facts."""
    case = build_case(document=read_launch(command), host=on, model=of, release=release)
    if more:
        case = replace(case, facts=make_facts(more, Source.USER, "test").merged(case.facts))
    return replace(case, facts=launch_facts(case, knowledge_once()))


def flags(**options: Any) -> str:
    words = ["python", "-m", "sglang.launch_server", "--model-path", "M"]
    for name, value in options.items():
        words.append("--" + name.replace("_", "-"))
        words += [] if value is True else [str(value)]
    return shlex.join(words)


def sum_of(command: str, release: str, of: ModelFacts | None, on: HostFacts | None) -> MemorySum:
    case = launch(command, release, of, on)
    return memory_sum(case, case.model)


def of_log(path: Path, of: ModelFacts | None, memory_gib: float | None = None) -> MemorySum:
    """The sum of a failed launch, from its log."""
    knowledge = knowledge_once()
    reading = read_logs([str(path)], knowledge.literals)
    assert reading.attempt is not None
    on = host(memory_gib) if memory_gib else None
    case, _ = case_of(reading, reading.attempt, Given(model=of, host=on))
    return memory_sum(replace(case, facts=launch_facts(case, knowledge)), of, failed=True)


def facts_of_log(path: Path) -> Facts:
    reading = read_logs([str(path)], knowledge_once().literals)
    assert reading.attempt is not None
    return case_of(reading, reading.attempt, Given())[0].facts


def term(found: MemorySum, name: str) -> float:
    size = next((t.gib for t in found.terms if t.name == name), None)
    return size or 0.0


def count(found: MemorySum, name: str) -> int | None:
    return next((c.value for c in found.counts if c.name == name), None)
