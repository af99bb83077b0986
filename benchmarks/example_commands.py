"""Whether the real SGLang accepts what the rules' before -> after command examples end in.

    python benchmarks/example_commands.py record --sglang 0.5.9=PYTHON --sglang 0.5.16=PYTHON ... [--rule MTP0200]
    python benchmarks/example_commands.py show

PYTHON is the interpreter of an environment that has that release (no GPU needed: the host is pretended). ``record``
asks what tests/data/example_commands.json does not hold yet (``--again``: everything) and writes it there. ``M`` and
``D`` in an example stand for any model and draft model: an example is asked with the models and hosts that fit
its rule, until SGLang refuses the command before and accepts the one after, else until it accepts the one after.
An example none of whose rule's releases is at hand is written down as not asked.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from mtpdoctor.host.spec import parse_gpu_spec  # noqa: E402
from mtpdoctor.kb.load import load_knowledge  # noqa: E402
from mtpdoctor.kb.types import Rule  # noqa: E402
from mtpdoctor.launch.document import read_launch  # noqa: E402
from mtpdoctor.launch.types import LaunchCommand  # noqa: E402
from mtpdoctor.records import replace  # noqa: E402
from mtpdoctor.release import parse_release  # noqa: E402
from mtpdoctor.sglang.ask import PretendedGpus, SglangVerdict, ask_many  # noqa: E402

MODELS = ROOT / "tests" / "data" / "models"
RECORDED = ROOT / "tests" / "data" / "example_commands.json"
DRAFT = "Llama-3.1-8B-EAGLE3"
HOSTS = ("8xsm90@140", "8xsm100@180", "4xsm120@95")
# What a word in the example or its rule says about the model that it is about, the likeliest first.
FITTING = (
    (r"hisparse|dsa\b|DSA|nsa\b", ("DeepSeek-V3.2", "GLM-5")),
    (r"mamba|linear.attn|hybrid|NEXTN", ("Qwen3-Next-80B-A3B", "Qwen3.5-27B", "DeepSeek-V3")),
    (r"mla\b|deepep|deepseek|two-batch|dp-attention", ("DeepSeek-V3", "DeepSeek-V3.2", "Qwen3-30B-A3B")),
    (r"moe|--ep|eplb", ("Qwen3-30B-A3B", "DeepSeek-V3", "gpt-oss-20b")),
    (r"awq", ("Qwen2.5-7B-AWQ",)),
    (r"swa|sliding", ("gpt-oss-20b", "Gemma-3-27B")),
    (r"multimodal|VIT", ("Qwen3-VL-8B", "Gemma-3-27B")),
)
OTHERS = ("Llama-3.1-8B", "Qwen3-Next-80B-A3B", "DeepSeek-V3", "gpt-oss-20b")
MAX_ERROR = 300


@dataclass(slots=True)
class Example:
    rule: Rule
    remedy: int
    before: str
    after: str
    release: str | None
    gpu: str | None

    @property
    def key(self) -> str:
        return f"{self.rule.id} {self.remedy}: {self.before} -> {self.after}"


def examples() -> Iterator[Example]:
    """Every command example of the knowledge."""
    for rule in load_knowledge().rules:
        for e in rule.examples.get("command", ()):
            yield Example(
                rule,
                e.get("remedy", 0),
                e["before"].strip(),
                e["after"].strip(),
                e.get("release"),
                e.get("gpu"),
            )


def releases_for(example: Example, at_hand: list[str]) -> list[str]:
    """Releases that rule and remedy are about, the nearest to the example's own first (none: the newest)."""
    remedy = example.rule.remedies[example.remedy]
    fits = [
        r
        for r in at_hand
        if parse_release(r) in example.rule.releases and parse_release(r) in remedy.releases
    ]
    fits.sort(key=parse_release, reverse=True)
    if example.release in fits:
        return [example.release, *(r for r in fits if r != example.release)]
    if example.release:
        newer = [r for r in fits if parse_release(r) > parse_release(example.release)]
        older = [r for r in fits if r not in newer]
        return [*reversed(newer), *older]
    return fits


def ways(example: Example, at_hand: list[str]) -> list[tuple[str, str, str]]:
    """(release, host, model) in the order in which they are tried."""
    remedy = example.rule.remedies[example.remedy]
    words = f"{example.before} {example.after} {example.rule.title} {remedy.title} {example.rule.cause}"
    fitting = [m for pattern, found in FITTING if re.search(pattern, words) for m in found]
    models = list(dict.fromkeys([*fitting, *OTHERS]))
    hosts = [example.gpu] if example.gpu else list(HOSTS)
    releases = releases_for(example, at_hand)
    first = [(releases[0], hosts[0], m) for m in models] if releases else []
    other_hosts = [(releases[0], h, m) for h in hosts[1:] for m in models[:2]] if releases else []
    return [*first, *other_hosts, *((r, hosts[0], m) for r in releases[1:3] for m in models[:1])]


def pretended(gpu: str) -> PretendedGpus:
    gpus = parse_gpu_spec(gpu).gpus
    return PretendedGpus(len(gpus), gpus[0].sm or 90, gpus[0].memory_gib or 80.0, gpus[0].name)


def ask(
    batch: list[tuple[Example, str]], release: str, gpu: str, python: str
) -> list[tuple[SglangVerdict, SglangVerdict]]:
    """The verdicts before and after of examples, each with its model, of one release on one host."""
    commands = [
        command_of(text, model) for example, model in batch for text in (example.before, example.after)
    ]
    verdicts = ask_many(python, commands, gpu=pretended(gpu))
    return [(verdicts[i], verdicts[i + 1]) for i in range(0, len(verdicts), 2)]


def command_of(text: str, model: str) -> LaunchCommand:
    """The command with folders in place of its models."""
    command = read_launch(text).command
    folders = {
        "model_path": MODELS / model,
        "tokenizer_path": MODELS / model,
        "speculative_draft_model_path": MODELS / DRAFT,
    }
    flags = [
        replace(use, values=(str(folders[use.dest]),)) if use.dest in folders else use
        for use in command.flags
    ]
    return replace(command, flags=tuple(flags))


def clean(text: str) -> str:
    return " ".join(text.replace(str(MODELS), "{models}").split())[:MAX_ERROR]


def row_of(
    example: Example, way: tuple[str, str, str], pair: tuple[SglangVerdict, SglangVerdict]
) -> dict[str, Any]:
    before, after = pair
    row: dict[str, Any] = {"release": way[0], "gpu": way[1], "model": way[2]}
    for name, verdict in (("before", before), ("after", after)):
        if verdict.exception in ("ImportError", "ModuleNotFoundError"):  # another platform's packages
            verdict = replace(verdict, verdict="unknown", reason=verdict.error)
        row[name] = verdict.verdict
        said = verdict.error if verdict.verdict == "reject" else verdict.reason
        if said:
            row[f"{name}_said"] = clean(said)
    return row


def worth(row: dict[str, Any] | None) -> int:
    """How much a row shows; 3 needs no further asking."""
    if row is None:
        return -1
    return {"accept": 2, "unknown": 1, "reject": 0}.get(row["after"], 0) + (
        row["after"] == "accept" and row["before"] == "reject"
    )


def record(pythons: dict[str, str], only: set[str], again: bool) -> None:
    held = {} if again and not only else read_recorded()
    wanted = {e.key: e for e in examples()}
    todo = [
        e
        for e in wanted.values()
        if (not only or e.rule.id in only) and (again or e.key not in held or worth(held[e.key]) < 2)
    ]
    best: dict[str, dict[str, Any]] = {}
    plans = {e.key: ways(e, list(pythons)) for e in todo}
    for number in range(max(map(len, plans.values()), default=0)):
        groups: dict[tuple[str, str], list[tuple[Example, str]]] = {}
        for e in todo:
            row = best.get(e.key)
            # a failure in the argument checks must show both sides; one that comes later only that it gets past them
            enough = 3 if e.rule.stage.value == "server_args" and number < 4 else 2
            if len(plans[e.key]) > number and worth(row) < enough:
                release, gpu, model = plans[e.key][number]
                groups.setdefault((release, gpu), []).append((e, model))
        for (release, gpu), batch in sorted(groups.items()):
            pairs = ask(batch, release, gpu, pythons[release])
            for (e, model), pair in zip(batch, pairs, strict=True):
                row = row_of(e, (release, gpu, model), pair)
                if worth(row) > worth(best.get(e.key)):
                    best[e.key] = row
        print(f"round {number + 1}: asked {sum(map(len, groups.values()))}", file=sys.stderr)
        write({**held, **best}, wanted)
    for e in todo:
        if not plans[e.key]:
            best[e.key] = {"after": "not asked", "reason": f"rule and remedy hold for {e.rule.releases.text}"}
    write({**held, **best}, wanted)


def read_recorded() -> dict[str, dict[str, Any]]:
    """Example key -> row."""
    return json.loads(RECORDED.read_text())["examples"] if RECORDED.is_file() else {}


def write(rows: dict[str, dict[str, Any]], wanted: dict[str, Example]) -> None:
    kept = {key: rows[key] for key in sorted(rows) if key in wanted}
    about = (
        "What the real SGLang said to the command examples of the rules, before and after the remedy, on pretended "
        "hosts (no GPU), up to the end of its argument checks. benchmarks/example_commands.py records it."
    )
    RECORDED.write_text(json.dumps({"about": about, "examples": kept}, indent=1) + "\n")


def show() -> None:
    rows = read_recorded()
    print(Counter((row.get("before", "-"), row["after"]) for row in rows.values()))
    for key, row in rows.items():
        if row["after"] != "accept":
            print(f"{row['after']:9} {row.get('release', '')} {row.get('model', '')} {key}")
            print(f"          {row.get('after_said') or row.get('reason')}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("record", "show"))
    parser.add_argument("--sglang", action="append", default=[], metavar="RELEASE=PYTHON")
    parser.add_argument(
        "--rule", action="append", default=[], metavar="ID", help="only the examples of this rule"
    )
    parser.add_argument("--again", action="store_true", help="ask what is recorded already once more")
    args = parser.parse_args()
    if args.what == "show":
        show()
        return
    pythons = dict(item.partition("=")[::2] for item in args.sglang)
    if not pythons:
        parser.error("record needs --sglang RELEASE=PYTHON")
    record(pythons, set(args.rule), args.again)
    show()


if __name__ == "__main__":
    main()
