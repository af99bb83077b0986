"""``mtpdoctor kb try``: hold a regex against logs before making it a rule."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mtpdoctor.errors import EXIT_OK

if TYPE_CHECKING:
    from mtpdoctor.facts import Facts
    from mtpdoctor.kb.knowledge import Knowledge
    from mtpdoctor.kb.trial import Found
    from mtpdoctor.kb.types import Match, Pattern, Rule
    from mtpdoctor.log.types import LogReading

EXIT_PROBLEMS = 1
SHOWN = 10  # of the lines that healthy logs and examples have


def add_try_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("regex", metavar="REGEX")
    parser.add_argument("logs", nargs="+", metavar="LOG", help="logs; - is standard input")
    parser.add_argument("--traceback", action="store_true", help="hold it against whole tracebacks")
    parser.add_argument("--literal", help="the text to look for first (default: derived from the regex)")
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")


def run_try(args: argparse.Namespace) -> int:
    """0 when the regex matches in the last attempt of a log, 1 when in none; UserError (2) for a regex of which no
    rule can be made and for a log that cannot be read."""
    from mtpdoctor.kb.load import load_knowledge
    from mtpdoctor.kb.trial import (
        cost_s,
        example_hits,
        healthy_hits,
        healthy_logs,
        matches_of,
        pattern_from,
        rules_on,
    )
    from mtpdoctor.log.reading import read_logs

    pattern = pattern_from(args.regex, args.literal, traceback=args.traceback)
    knowledge = load_knowledge()
    logs: list[dict[str, Any]] = []
    for name in args.logs:
        reading = read_logs([name], (pattern.literal, *knowledge.literals), stdin=sys.stdin.buffer)
        matches = matches_of(pattern, reading)
        logs.append(
            _of_log(name, reading, pattern, matches, rules_on(matches, reading, knowledge, _facts(reading)))
        )
    healthy = healthy_logs()
    lines, counts = healthy_hits(pattern, healthy)
    told = {
        "schema": 1,
        "literal": pattern.literal,
        "cost_s": round(cost_s(pattern), 4),
        "logs": logs,
        "healthy": {"logs": len(healthy), "matches": _places(lines), "literal": counts},
        "examples": _places(list(example_hits(pattern, knowledge.rules))),
    }
    if args.json:
        print(json.dumps(told, indent=2))
    else:
        _print(told, knowledge)
    if not any(log["matches"] for log in logs):
        print("no match in the last launch attempt", file=sys.stderr)
        return EXIT_PROBLEMS
    return EXIT_OK


def _facts(reading: LogReading) -> Facts | None:
    """What the log says of its launch: conditions of other rules ask for it."""
    from mtpdoctor.diagnose.given import Given
    from mtpdoctor.diagnose.the_case import case_of

    return case_of(reading, reading.attempt, Given())[0].facts if reading.attempt is not None else None


def _of_log(
    name: str,
    reading: LogReading,
    pattern: Pattern,
    matches: Sequence[Match],
    rules: dict[tuple[int, int, int], list[Rule]],
) -> dict[str, Any]:
    from mtpdoctor.redact import mask_secrets
    from mtpdoctor.text import safe

    def shown(text: str) -> str:
        return mask_secrets(safe(text))

    return {
        "log": name,
        "literal": reading.hits.count(pattern.literal),
        "matches": [
            {
                "line": m.line.number,
                "text": shown(m.line.text[:500]),
                "captures": {group: shown(value[:200]) for group, value in m.captures.items()},
                "rules": [rule.id for rule in rules.get(m.line.key, ())],
            }
            for m in matches
        ],
    }


def _places(found: Sequence[Found]) -> list[dict[str, str]]:
    from mtpdoctor.text import safe

    return [{"where": f.where, "text": safe(f.text)[:200]} for f in found]


def _print(told: dict[str, Any], knowledge: Knowledge) -> None:
    from mtpdoctor.kb.trial import COST_LIMIT_S
    from mtpdoctor.text import safe

    print(f"literal: {told['literal']!r}")
    slow = (
        " (too slow for a rule: avoid nested and adjacent repeats)" if told["cost_s"] >= COST_LIMIT_S else ""
    )
    print(
        f"cost: {told['cost_s'] * 1000:.0f} ms on 8 KiB built to make it slow, {COST_LIMIT_S * 1000:.0f} allowed{slow}"
    )
    for log in told["logs"]:
        print(f"{safe(log['log'])}: the literal occurs {log['literal']} times")
        for match in log["matches"]:
            print(f"{safe(log['log'])}:{match['line']}: {match['text']}")
            for group, value in match["captures"].items():
                print(f"    {group} = {value}")
            for rule in match["rules"]:
                print(f"    {rule} fires here too: {knowledge.by_id[rule].title}")
    healthy = told["healthy"]
    count = len(healthy["matches"])
    print(f"healthy logs: {count or 'no'} match{'es' if count > 1 else ''} in {healthy['logs']}")
    _list(healthy["matches"])
    for name, times in sorted(healthy["literal"].items(), key=lambda item: -item[1])[:3]:
        print(f"    the literal stands in {name}, {times} times")
    examples = told["examples"]
    print(f"examples of other rules: {len(examples) or 'no'} match{'es' if len(examples) > 1 else ''}")
    _list(examples)


def _list(found: Sequence[dict[str, str]]) -> None:
    for each in found[:SHOWN]:
        print(f"    {each['where']}: {each['text']}")
    if len(found) > SHOWN:
        print(f"    and {len(found) - SHOWN} more")
