"""How often the rules say what the real SGLang says about a launch command.

Recorded verdicts (``tests/data/verdicts/*.jsonl.xz``, or files named on the command line) are compared
with what the preflight rules foresee for the same command, host and model config. Printed per release:
agreement in accept/reject, false alarms (refused here, accepted by SGLang), cases that a missing fact
left open, and what was missed, by the place in SGLang that raised.

    python benchmarks/agreement.py [--kind shared|wide] [--half 0|1] [--misses N] [FILE...]
"""

from __future__ import annotations

import argparse
import json
import lzma
import shlex
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from mtpdoctor.case import Case, build_case  # noqa: E402
from mtpdoctor.diagnose.check import ARGUMENT_STAGES  # noqa: E402
from mtpdoctor.diagnose.preflight import Foreseen, foreseen  # noqa: E402
from mtpdoctor.host.types import Gpu, HostFacts  # noqa: E402
from mtpdoctor.kb.load import Knowledge, load_knowledge  # noqa: E402
from mtpdoctor.launch.document import read_launch  # noqa: E402
from mtpdoctor.model.config import read_model  # noqa: E402
from mtpdoctor.model.types import ModelFacts  # noqa: E402
from mtpdoctor.release import parse_release  # noqa: E402
from mtpdoctor.sglang.ask import arguments  # noqa: E402
from mtpdoctor.sglang.flags import flag_table  # noqa: E402
from mtpdoctor.sglang.parse import parse_error  # noqa: E402

VERDICTS = ROOT / "tests" / "data" / "verdicts"
MODELS = ROOT / "tests" / "data" / "models"

PLACE = "{models}/"  # stands in recorded commands for the folder of model configs


@dataclass(frozen=True, slots=True)
class Answer:
    """What the rules say: ``verdict`` accept, reject or unknown, and why."""

    verdict: str
    why: tuple[str, ...] = ()
    problems: tuple[Foreseen, ...] = ()


@dataclass(slots=True)
class Tally:
    """The comparison of one release."""

    cases: int = 0
    agree: int = 0
    false_alarms: list[tuple[dict[str, Any], Answer]] = field(default_factory=list)
    misses: list[tuple[dict[str, Any], Answer]] = field(default_factory=list)
    unknown: list[tuple[dict[str, Any], Answer]] = field(default_factory=list)

    @property
    def agreement(self) -> float:
        return self.agree / self.cases if self.cases else 0.0

    @property
    def alarm_rate(self) -> float:
        return len(self.false_alarms) / self.cases if self.cases else 0.0


def read_records(paths: Iterable[Path]) -> Iterator[tuple[str, dict[str, Any]]]:
    """(release, record) of recorded verdicts; the release is the file's name. Time-outs are left out."""
    for path in paths:
        release = path.name.split(".jsonl")[0]
        data = path.read_bytes()
        for line in (lzma.decompress(data) if path.suffix == ".xz" else data).splitlines():
            record = json.loads(line)
            if record["verdict"] in ("accept", "reject"):
                yield release, record


def half_of(record: dict[str, Any]) -> int:
    """0 or 1, by the seed or number in the record's id: rules are tuned on one half, measured on the other."""
    digits = "".join(c for c in str(record["id"]).rpartition("-")[2] if c.isdigit())
    return int(digits or 0) % 2


def kind_of_command(record: dict[str, Any]) -> str:
    """``shared``: what people combine; ``wide``: every flag now and then (their ids begin with w)."""
    return "wide" if str(record["id"]).startswith("w") else "shared"


@lru_cache(maxsize=64)
def model_of(name: str) -> ModelFacts:
    return read_model(MODELS / name)


def host_of(gpu: dict[str, Any]) -> HostFacts:
    major, minor = gpu["sm"]
    one = [Gpu(i, gpu.get("name", "GPU"), major * 10 + minor, float(gpu["gib"])) for i in range(gpu["count"])]
    return HostFacts(platform="cuda", gpus=tuple(one), pretended=True)


def case_of(release: str, record: dict[str, Any]) -> Case:
    """The case of a recorded command."""
    words = [
        *(f"{k}={v}" for k, v in (record.get("env") or {}).items()),
        "python",
        "-m",
        "sglang.launch_server",
    ]
    argv = [word.replace(PLACE, f"{MODELS}/") for word in record["argv"]]
    return build_case(
        document=read_launch(shlex.join([*words, *argv])),
        command_where="record",
        host=host_of(record["gpu"]),
        model=model_of(record["model"]),
        release=release,
    )


def answer(case: Case, knowledge: Knowledge) -> Answer:
    """What the preflight says about SGLang's argument parsing and checks."""
    assert case.document is not None and case.release is not None
    refused = parse_error(arguments(case.document.command), flag_table(case.release))
    if refused:
        return Answer("reject", (refused,))
    problems = tuple(
        p
        for p in foreseen(knowledge, case.facts)
        if p.severity == "fatal" and p.rule.stage.value in ARGUMENT_STAGES
    )
    certain = tuple(p for p in problems if p.certain)
    if certain:
        return Answer("reject", tuple(f"{p.rule.id} {p.title}" for p in certain), certain)
    if problems:
        why = tuple(f"{p.rule.id} if {', '.join(p.unknown)}" for p in problems)
        return Answer("unknown", why, problems)
    return Answer("accept")


def compare(records: Iterable[tuple[str, dict[str, Any]]], knowledge: Knowledge) -> dict[str, Tally]:
    """The comparison by release. An answer "unknown" agrees with nothing."""
    out: dict[str, Tally] = {}
    for release, record in records:
        tally = out.setdefault(release, Tally())
        tally.cases += 1
        said = answer(case_of(release, record), knowledge)
        if said.verdict == record["verdict"]:
            tally.agree += 1
        elif said.verdict == "unknown":
            tally.unknown.append((record, said))
        else:
            (tally.misses if said.verdict == "accept" else tally.false_alarms).append((record, said))
    return out


def kind_of(record: dict[str, Any]) -> str:
    """The place and the message of a refusal, short."""
    if record.get("stage") == "argparse":
        return "argparse: " + record["error"].rpartition("error:")[2].strip()[:70]
    return f"{record.get('site')}: {record['error'][:90]}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="recorded verdicts")
    parser.add_argument("--half", type=int, choices=(0, 1), help="only this half of the cases")
    parser.add_argument("--kind", choices=("shared", "wide"), help="only commands of this distribution")
    parser.add_argument("--misses", type=int, default=0, metavar="N", help="show N cases of each kind")
    args = parser.parse_args()
    files = args.files or sorted(VERDICTS.glob("*.jsonl*"))
    records = [r for r in read_records(files) if args.half is None or half_of(r[1]) == args.half]
    records = [r for r in records if args.kind in (None, kind_of_command(r[1]))]
    result = compare(records, load_knowledge())
    print(f"{'release':16} {'cases':>6} {'agree':>7} {'false alarms':>13} {'missed':>7} {'unknown':>8}")
    for release in sorted(result, key=parse_release):
        t = result[release]
        print(
            f"{release:16} {t.cases:6} {t.agreement:7.1%} {len(t.false_alarms):5} {t.alarm_rate:7.1%} "
            f"{len(t.misses):7} {len(t.unknown):8}"
        )
    for title, pick in (("missed", "misses"), ("false alarm", "false_alarms"), ("unknown", "unknown")):
        kinds: Counter[str] = Counter()
        shown: dict[str, list[str]] = {}
        for release, t in result.items():
            for record, said in getattr(t, pick):
                kind = kind_of(record) if pick == "misses" else " | ".join(said.why)[:160]
                kinds[kind] += 1
                argv = " ".join(record["argv"][2:])
                sm = "".join(map(str, record["gpu"]["sm"]))
                shown.setdefault(kind, []).append(
                    f"      {release} {record['id']} sm{sm} {record['model']} {record.get('env') or ''} {argv}"
                    + (
                        f"  [{kind_of(record)}]"
                        if record["verdict"] == "reject" and pick == "unknown"
                        else ""
                    )
                )
        for kind, count in kinds.most_common():
            print(f"{title} {count:4}  {kind}")
            for line in shown[kind][: args.misses]:
                print(line)


if __name__ == "__main__":
    main()
