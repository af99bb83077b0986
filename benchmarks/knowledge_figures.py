"""How much the knowledge holds: rules by stage, evidence, confidence and source, remedies, examples, releases, families.

    python benchmarks/knowledge_figures.py [--json] [--rules FOLDER]

Counted from the files of ``knowledge/`` (``--rules``: of another state of it). "Verified" are the rules whose message is
SGLang's and whose range of releases is held against the sources (``knowledge/releases/verified.json``). Families are those of
``mtpdoctor/kb/families.txt``, failures seen in public reports; a rule names the ones that it covers. Nothing here says how
often a rule is right: that is measured on reports (tests/data/unseen_reports*/README.md).
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from mtpdoctor.kb.hangs_source import load_hangs  # noqa: E402
from mtpdoctor.kb.lint_static import known_families  # noqa: E402
from mtpdoctor.kb.load import load_knowledge  # noqa: E402
from mtpdoctor.kb.types import Remedy, Rule  # noqa: E402

BANDS = ((0.9, "0.90 and more"), (0.8, "0.80 to 0.89"), (0.6, "0.60 to 0.79"), (0.0, "below 0.60"))
MANY = 12  # sources that are printed by name
EXAMPLES = ("bad", "ok", "command", "bad_host", "ok_host")


def _counted(values: Iterable[str]) -> dict[str, int]:
    """How often each value occurs, most frequent first, then by name."""
    return dict(sorted(Counter(values).items(), key=lambda item: (-item[1], item[0])))


def _band(confidence: float) -> str:
    return next(name for least, name in BANDS if confidence >= least)


def _remedies(remedies: Sequence[Remedy]) -> dict[str, Any]:
    written = [r for r in remedies if r.generate is None]
    return {
        "all": len(remedies),
        "worked out by a generator": len(remedies) - len(written),
        "with edits of the command": sum(bool(r.edits) for r in written),
        "with commands to type": sum(bool(r.run) and not r.edits for r in written),
        "by safety": _counted(r.safety.value for r in written),
        "with edits, by safety": _counted(r.safety.value for r in written if r.edits),
    }


def figures(rules: Sequence[Rule], knowledge: Path) -> dict[str, Any]:
    """All figures of ``rules``, as they are printed; ``knowledge``: the folder with ``releases/verified.json`` and ``hangs/``."""
    verified = json.loads((knowledge / "releases" / "verified.json").read_text(encoding="utf-8"))
    own = [r for r in rules if r.source == "sglang" and r.match]
    named = {family for rule in rules for family in rule.families}
    families = known_families()
    return {
        "rules": len(rules),
        "by stage": _counted(r.stage.value for r in rules),
        "by role": _counted(r.role.value for r in rules),
        "by evidence": _counted(r.evidence for r in rules),
        "by confidence": {name: sum(_band(r.confidence) == name for r in rules) for _, name in BANDS},
        "by source": _counted(r.source for r in rules),
        "of hosts": sum(r.scope == "host" for r in rules),
        "with a prediction before launch": sum(r.predicts is not None for r in rules),
        "generic (name only a symptom)": sum(r.generic for r in rules),
        "with a public reference": sum(bool(r.refs) for r in rules),
        "remedies": _remedies([remedy for rule in rules for remedy in rule.remedies]),
        "examples": {kind: sum(len(r.examples.get(kind) or ()) for r in rules) for kind in EXAMPLES},
        "messages of SGLang": {
            "rules": len(own),
            "held against the sources": sum(r.id in verified["rules"] for r in own),
            "releases": len(verified["releases"]),
        },
        "causes of hangs": len(load_hangs(knowledge).causes),
        "families": {
            "known": len(families),
            "covered by a rule": len(families & named),
            "not covered": sorted(families - named),
        },
    }


def _lines(name: str, value: Any, depth: int = 0) -> Iterable[str]:
    lead = "  " * depth
    if isinstance(value, dict):
        yield f"{lead}{name}"
        shown = list(value.items())
        for key, inner in shown[:MANY] if name == "by source" else shown:
            yield from _lines(key, inner, depth + 1)
        rest = shown[MANY:] if name == "by source" else []
        if rest:
            yield from _lines(f"{len(rest)} others", sum(n for _, n in rest), depth + 1)
    elif isinstance(value, list):
        yield f"{lead}{name:<34} {', '.join(value) or 'none'}"
    else:
        yield f"{lead}{name:<34} {value:>6,}"


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", action="store_true", help="one JSON document")
    parser.add_argument(
        "--rules", type=Path, default=ROOT / "knowledge", help="the folder of another state of the knowledge"
    )
    args = parser.parse_args(argv)
    found = figures(load_knowledge(args.rules).rules, args.rules)
    if args.json:
        print(json.dumps(found, indent=1))
    else:
        for name, value in found.items():
            print("\n".join(_lines(name, value)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
