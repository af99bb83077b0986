"""How often an option of the command was what had to go, over the labelled failing launches of the tests.

    python benchmarks/suspects.py [--learn]

Prints the counts, or with ``--learn`` writes them to ``knowledge/advice/suspects.json``. A label's patterns tell whether
leaving the option out is a right fix; the last command of a log counts, each option once.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.first_fix import labelled  # noqa: E402
from mtpdoctor.diagnose import suspects  # noqa: E402
from mtpdoctor.diagnose.given import Given  # noqa: E402
from mtpdoctor.diagnose.the_case import case_of  # noqa: E402
from mtpdoctor.kb.load import load_knowledge  # noqa: E402
from mtpdoctor.log.reading import read_logs  # noqa: E402

WHAT = (
    "option -> in how many labelled failed launches it was at fault, how many had it in their command; "
    "benchmarks/suspects.py --learn"
)


def counted() -> tuple[int, dict[str, tuple[int, int]]]:
    """The number of launches with a command, and for each option in how many it was at fault, and in how many it stood."""
    knowledge = load_knowledge()
    asked: Counter[str] = Counter()
    at_fault: Counter[str] = Counter()
    launches = 0
    for launch in labelled():
        reading = read_logs([str(launch.log)], knowledge.literals)
        if reading.attempt is None:
            continue
        case, _ = case_of(reading, reading.attempt, Given())
        if case.document is None:
            continue
        launches += 1
        for dest, name in {use.dest: use.name for use in case.document.command.flags}.items():
            asked[dest] += 1
            left_out = f"Leave {name} out remove {name} "
            at_fault[dest] += any(re.search(p, left_out, re.I | re.S) for p in launch.right)
    return launches, {dest: (at_fault[dest], asked[dest]) for dest in sorted(asked)}


def main() -> None:
    launches, counts = counted()
    if "--learn" not in sys.argv[1:]:
        for dest, (right, asked) in sorted(counts.items(), key=lambda item: -item[1][0] / item[1][1]):
            print(f"{dest:<44}{right:>5} of {asked}")
        return
    text = ",\n".join(f"  {json.dumps(dest)}: {list(seen)}" for dest, seen in counts.items())
    path = ROOT / "knowledge" / suspects.FILE
    path.write_text(
        f'{{"what": "{WHAT}",\n "launches": {launches}, "options": {{\n{text}\n}}}}\n', encoding="utf-8"
    )


if __name__ == "__main__":
    main()
