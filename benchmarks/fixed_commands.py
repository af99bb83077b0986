"""Whether the real SGLang accepts the commands that `check` offers in place of those it refuses.

For every recorded refusal the fixed command is worked out and written as a case for SGLang's own
argument checks; with ``--answers`` the verdicts on those cases are counted. The fixed command is the one
that safe fixes lead to; where there is none, the first fix offered (risky, says what is lost).

    python benchmarks/fixed_commands.py [FILE...] --cases DIR       # writes DIR/RELEASE.jsonl
    python benchmarks/fixed_commands.py [FILE...] --cases DIR --answers DIR2   # reads DIR2/RELEASE.jsonl
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

from agreement import MODELS, PLACE, VERDICTS, case_of, host_of, kind_of, model_of, read_records  # noqa: E402

from mtpdoctor.diagnose.check import check  # noqa: E402
from mtpdoctor.diagnose.engine import Given  # noqa: E402
from mtpdoctor.kb.load import Knowledge, load_knowledge  # noqa: E402
from mtpdoctor.release import parse_release  # noqa: E402
from mtpdoctor.sglang.ask import arguments  # noqa: E402


def fixed_case(release: str, record: dict[str, Any], knowledge: Knowledge) -> dict[str, Any] | None:
    """The fixed command as a case (argv, env, gpu); None when `check` offers none."""
    case = case_of(release, record)
    assert case.document is not None
    report = check(
        Given(
            document=case.document,
            command_where="record",
            host=host_of(record["gpu"]),
            model=model_of(record["model"]),
            release=release,
        ),
        knowledge,
    )
    offered = [f.document for p in report.problems if p.decisive for f in p.fixes if f.document is not None]
    document = report.fixed or (offered[0] if offered else None)
    if document is None:
        return None
    command = document.command
    argv = [word.replace(f"{MODELS}/", PLACE) for word in arguments(command)]
    env = dict(command.env)
    return {
        "id": f"{record['id']}-fixed",
        "model": record["model"],
        "argv": argv,
        "env": env,
        "gpu": record["gpu"],
        "was": record["argv"],
        "safe": report.fixed is not None,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="recorded verdicts")
    parser.add_argument("--cases", type=Path, required=True, metavar="DIR", help="the fixed commands")
    parser.add_argument("--answers", type=Path, metavar="DIR", help="SGLang's verdicts on them")
    parser.add_argument("--show", type=int, default=3, metavar="N", help="show N refusals of each kind")
    args = parser.parse_args()
    knowledge = load_knowledge()
    args.cases.mkdir(parents=True, exist_ok=True)
    fixed: dict[str, list[dict[str, Any]]] = {}
    without: Counter[tuple[str, str]] = Counter()
    refused: Counter[str] = Counter()
    for release, record in read_records(args.files or sorted(VERDICTS.glob("*.jsonl*"))):
        if record["verdict"] != "reject":
            continue
        refused[release] += 1
        case = fixed_case(release, record, knowledge)
        if case is None:
            without[release, kind_of(record)] += 1
        else:
            fixed.setdefault(release, []).append(case)
    for release, cases in fixed.items():
        text = "".join(json.dumps(c).replace(PLACE, f"{MODELS}/") + "\n" for c in cases)
        (args.cases / f"{release}.jsonl").write_text(text)
    for release in sorted(refused, key=parse_release):
        print(
            f"{release:16} {refused[release]:5} refused, {len(fixed.get(release, [])):5} with a fixed command",
            end="",
        )
        if args.answers and (args.answers / f"{release}.jsonl").exists():
            report(args.answers / f"{release}.jsonl", fixed.get(release, []), refused[release], args.show)
        else:
            print()
    for (release, kind), count in without.most_common():
        print(f"no fix {count:4}  {release} {kind}")


def report(answers: Path, cases: list[dict[str, Any]], refused: int, show: int) -> None:
    verdicts = {v["id"]: v for v in map(json.loads, answers.read_text().splitlines())}
    known = [c for c in cases if c["id"] in verdicts]
    good = sum(verdicts[c["id"]]["verdict"] == "accept" for c in known)
    print(
        f", {good} of {len(known)} accepted ({good / max(1, len(known)):.1%}; {good / refused:.1%} of the refused)"
    )
    kinds: dict[str, list[dict[str, Any]]] = {}
    for case in known:
        verdict = verdicts[case["id"]]
        if verdict["verdict"] == "reject":
            kinds.setdefault(kind_of(verdict), []).append(case)
    for kind, found in sorted(kinds.items(), key=lambda item: -len(item[1])):
        print(f"  still refused {len(found):4}  {kind}")
        for case in found[:show]:
            print(f"      {case['id']} {case['env'] or ''} {' '.join(case['argv'][2:])}")
            print(f"        was {' '.join(case['was'][2:])}")


if __name__ == "__main__":
    main()
