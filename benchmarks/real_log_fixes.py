"""The best fixed command of every recorded failing launch, put before the real SGLang of its release.

    python benchmarks/real_log_fixes.py cases > cases.jsonl
    (in an environment with SGLang 0.5.13.post1 and no GPU, with a dry run that pretends the host)
    python benchmarks/real_log_fixes.py record verdicts.jsonl > tests/data/fixed_commands.json

The verdict lines need ``id``, ``verdict`` (accept or reject) and, for a rejection, ``error``.
"""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from mtpdoctor.diagnose.engine import diagnose  # noqa: E402
from mtpdoctor.kb.load import load_knowledge  # noqa: E402
from mtpdoctor.log.reading import read_logs  # noqa: E402

H200 = {"sm": [9, 0], "gib": 139.8, "name": "NVIDIA H200", "sms": 132}


def best_commands() -> dict[str, dict[str, str]]:
    """Log name -> the first fix that has a command ready to paste; what only helps the search is none."""
    knowledge = load_knowledge()
    out = {}
    for label in sorted((ROOT / "tests" / "data").glob("*_logs/*.json")):
        if json.loads(label.read_text())["outcome"] != "failed":
            continue
        report = diagnose(read_logs([str(label.with_suffix(".log"))], knowledge.literals), knowledge)
        for fix in report.diagnoses[0].fixes if report.diagnoses else ():
            if fix.command and fix.safety != "manual":
                out[f"{label.parent.name}/{label.stem}"] = {
                    "command": fix.command,
                    "title": fix.title,
                    "safety": fix.safety,
                }
                break
    return out


def case_of(name: str, command: str) -> dict[str, object]:
    words = shlex.split(command)
    env = {}
    while "=" in words[0] and not words[0].startswith("-"):
        key, _, value = words.pop(0).partition("=")
        env[key] = value
    start = next(i for i, w in enumerate(words) if w in ("sglang.launch_server", "serve")) + 1
    gpus = 2 if "/tp2" in name or "/tp4" in name else 1
    return {"id": name, "argv": words[start:], "env": env, "gpu": {**H200, "count": gpus}}


def main() -> None:
    if sys.argv[1:2] == ["cases"]:
        for name, fix in best_commands().items():
            print(json.dumps(case_of(name, fix["command"])))
    elif sys.argv[1:2] == ["record"] and len(sys.argv) == 3:
        verdicts = {v["id"]: v for v in map(json.loads, Path(sys.argv[2]).read_text().splitlines())}
        rows = {
            name: {**fix, "verdict": verdicts[name]["verdict"], "error": verdicts[name].get("error")}
            for name, fix in best_commands().items()
            if name in verdicts
        }
        print(json.dumps({"release": "0.5.13.post1", "rows": rows}, indent=1))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
