"""How right and how fast is `triage` on a heap of launches.

    python benchmarks/bench_triage.py [--launches 5000] [--runs 3] [--jobs N] [--heap FOLDER]

Prints purity (launches of a group that are of its main problem) and completeness (launches of a problem that are in its
main group), launches and MB a second, the time of `rg -z -c -F -f LITERALS` over the same heap with as many literals
(runs in turn), and peak memory of the parent and of the largest worker at a tenth of the launches and at all of them.
Needs ripgrep on the PATH for the comparison.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.make_heap import make_heap  # noqa: E402

Truth = dict[str, dict[str, str | None]]


@dataclass(frozen=True)
class Score:
    """``wrong``: launches with another outcome than they had, or not found at all."""

    purity: float
    completeness: float
    failed: int
    groups: int
    problems: int
    wrong: tuple[str, ...]
    split: tuple[str, ...]
    merged: tuple[str, ...]


def score(answer: dict, truth: Truth, folder: Path) -> Score:
    """The answer of ``triage --json`` over ``folder``, held against the truth."""
    got: dict[str, tuple[str, str | None]] = {}

    def take(member: dict, outcome: str, key: str | None) -> None:
        got[Path(member["files"][-1]).relative_to(folder).as_posix()] = (outcome, key)

    for group in answer["groups"]:
        for member in group["members"]:
            take(member, "failed", group["key"])
    for outcome in ("ready", "unfinished", "unreadable"):
        for member in answer[outcome]:
            take(member, outcome, None)
    of_problem: dict[str, Counter[str]] = defaultdict(Counter)
    of_key: dict[str, Counter[str]] = defaultdict(Counter)
    for name, said in truth.items():
        key = got.get(name, ("missing", None))[1]
        if said["problem"] is not None and key is not None:
            of_problem[said["problem"]][key] += 1
            of_key[key][said["problem"]] += 1
    failed = sum(sum(c.values()) for c in of_key.values())

    def share(counters: dict[str, Counter[str]]) -> float:
        return sum(c.most_common(1)[0][1] for c in counters.values()) / failed if failed else 1.0

    wrong = [
        f"{n}: {got.get(n, ('missing', None))[0]}, was {t['outcome']}"
        for n, t in truth.items()
        if got.get(n, ("missing", None))[0] != t["outcome"]
    ]
    wrong += [f"{n}: is no launch" for n in got if n not in truth]
    return Score(
        share(of_key), share(of_problem), failed, len(answer["groups"]),
        len({t["problem"] for t in truth.values()} - {None}), tuple(wrong),
        tuple(f"{p}: {len(c)} groups" for p, c in of_problem.items() if len(c) > 1),
        tuple(f"{k}: {', '.join(c)}" for k, c in of_key.items() if len(c) > 1),
    )  # fmt: skip


class Memory(threading.Thread):
    """Peak resident memory of a process, and of the largest of its children, by looking often (Linux)."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.pid, self.own, self.child, self.stop = pid, 0.0, 0.0, False

    def run(self) -> None:
        while not self.stop:
            self.own = max(self.own, _resident(self.pid))
            for child in _children(self.pid):
                self.child = max(self.child, _resident(child))
            time.sleep(0.2)


def _resident(pid: int) -> float:
    """MiB."""
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    except OSError:
        pass
    return 0.0


def _children(pid: int) -> list[int]:
    try:
        return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def run(command: list[str], out: Path) -> tuple[float, float, float]:
    """Wall seconds, peak MiB of the process and of its largest child."""
    start = time.perf_counter()
    with out.open("wb") as stream, open(os.devnull, "wb") as null:
        process = subprocess.Popen(command, stdout=stream, stderr=null, cwd=ROOT)
        memory = Memory(process.pid)
        memory.start()
        process.wait()
    wall = time.perf_counter() - start
    memory.stop = True
    memory.join()
    return wall, memory.own, memory.child


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--launches", type=int, default=5000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--jobs", type=int, help="of triage and of ripgrep (default: one a CPU)")
    parser.add_argument("--heap", type=Path, help="a folder that make_heap.py wrote, instead of a new one")
    args = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        folder = args.heap or work / "heap"
        if args.heap is None:
            folder.mkdir()
            (folder / "truth.json").write_text(json.dumps(make_heap(folder, args.launches)))
        truth: Truth = json.loads((folder / "truth.json").read_text())
        jobs = ["--jobs", str(args.jobs)] if args.jobs else []
        doctor = [sys.executable, "-m", "mtpdoctor", "triage", "--json", *jobs, str(folder)]
        answer = work / "answer.json"
        walls, grep_walls, own, child = [], [], 0.0, 0.0
        grep = _ripgrep(work, folder, args.jobs)
        for _ in range(args.runs):
            wall, a, b = run(doctor, answer)
            walls.append(wall)
            own, child = max(own, a), max(child, b)
            if grep:
                grep_walls.append(run(grep, work / "found")[0])
        document = json.loads(answer.read_text())
        found = score(document, truth, folder)
        _show(found)
        wall = statistics.median(walls)
        megabytes = document["bytes"] / 1e6
        print(f"{len(truth)} launches, {megabytes:.0f} MB of log text: {wall:.1f} s, {len(truth) / wall:.0f} launches/s, "
              f"{megabytes / wall:.1f} MB/s")  # fmt: skip
        if grep_walls:
            of_grep = statistics.median(grep_walls)
            print(f"ripgrep, as many literals: {of_grep:.1f} s, {megabytes / of_grep:.1f} MB/s; triage takes "
                  f"{statistics.median(x / y for x, y in zip(walls, grep_walls, strict=True)):.1f} times as long")  # fmt: skip
        few = work / "few"
        few.mkdir()
        make_heap(few, max(len(truth) // 10, 1))
        _, few_own, few_child = run([*doctor[:-1], str(few)], work / "few.json")
        print(f"peak memory, MiB: {few_own:.0f} and {few_child:.0f} a worker at {max(len(truth) // 10, 1)} launches, "
              f"{own:.0f} and {child:.0f} at {len(truth)}")  # fmt: skip


def _show(found: Score) -> None:
    print(f"{found.failed} failed of {found.problems} problems: {found.groups} groups, purity {found.purity:.4f}, "
          f"completeness {found.completeness:.4f}, wrong outcome {len(found.wrong)}")  # fmt: skip
    for what, names in (("wrong", found.wrong), ("split", found.split), ("merged", found.merged)):
        for text in names[:10]:
            print(f"  {what}: {text}")


def _ripgrep(work: Path, folder: Path, jobs: int | None) -> list[str] | None:
    if not shutil.which("rg"):
        return None
    from mtpdoctor.kb.load import load_knowledge

    literals = work / "literals"
    literals.write_text("\n".join(load_knowledge().literals) + "\n")
    threads = ["-j", str(jobs)] if jobs else []
    return ["rg", "-z", "-c", "-F", *threads, "-f", str(literals), str(folder)]


if __name__ == "__main__":
    main()
