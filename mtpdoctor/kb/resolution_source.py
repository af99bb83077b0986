"""Reading ``knowledge/resolution/*.yaml`` (docs/knowledge-format.md, "Resolution"), and its cached form."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mtpdoctor.facts import UNKNOWN
from mtpdoctor.kb.codec import condition_in, condition_out
from mtpdoctor.kb.condition_source import ConditionError, parse_condition
from mtpdoctor.kb.fact_names import check_fact_name
from mtpdoctor.kb.resolution import EVERY, MODEL, PREFIXES, Resolution, Step
from mtpdoctor.kb.templates import TemplateError, placeholders
from mtpdoctor.kb.types import ALWAYS
from mtpdoctor.kb.yaml_source import Node, Problem, nearest, parse_yaml
from mtpdoctor.release import ReleaseRange

FOLDER = "resolution"
_STEP_KEYS = ("when", "releases", "set", "steps", "first", "note")
_WORDS = {"absent": None, "unknown": UNKNOWN}


def resolution_files(folder: Path) -> list[Path]:
    """The files of the resolution in a folder of knowledge, sorted; none when it has none."""
    return sorted((folder / FOLDER).glob("*.yaml"))


def read_resolution(files: Iterable[Path], problems: list[Problem], base: Path | None = None) -> Resolution:
    """The resolution written in the files; what is wrong is appended to ``problems``."""
    reader = _Reader(problems)
    for path in files:
        name = str(path.relative_to(base)) if base and path.is_relative_to(base) else str(path)
        root = parse_yaml(path.read_text(encoding="utf-8"), name, problems)
        if root is not None:
            reader.file(root, name)
    return reader.done()


class _Reader:
    def __init__(self, problems: list[Problem]) -> None:
        self.problems = problems
        self.name = ""
        self.blocks: dict[str, tuple[Step, ...]] = {}
        self.orders: list[tuple[ReleaseRange, tuple[str, ...]]] = []
        self.kinds: list[dict[str, Any]] = []
        self.asked: list[tuple[str, int, str]] = []  # block names used in orders, with their place

    def error(self, line: int, message: str) -> None:
        self.problems.append(Problem(self.name, line, message))

    def file(self, root: Node, name: str) -> None:
        self.name = name
        if not root.is_map:
            self.error(root.line, f"expected `blocks:` or `order:`, not {root.kind}")
            return
        for key, value in root.items():
            if key == "blocks" and value.is_map:
                for block, steps in value.items():
                    if block in self.blocks:
                        self.error(value.line_of(block), f"block {block!r} is written twice")
                    self.blocks[block] = self.steps(steps)
            elif key == "kinds" and value.is_list:
                self.kinds.extend(self.kind(entry) for entry in value.value)
            elif key == "order" and value.is_list:
                for entry in value.value:
                    self.order(entry)
            else:
                self.error(
                    root.line_of(key), f"unexpected {key!r}{nearest(key, ('blocks', 'order', 'kinds'))}"
                )

    def order(self, node: Node) -> None:
        names = node.value.get("blocks") if node.is_map else None
        releases = node.value.get("releases") if node.is_map else None
        if names is None or releases is None or not names.is_list:
            self.error(node.line, "an order needs `releases:` and a list of `blocks:`")
            return
        for item in names.value:
            self.asked.append((self.name, item.line, str(item.value)))
        self.orders.append((self.range(releases), tuple(str(item.value) for item in names.value)))

    def kind(self, node: Node) -> dict[str, Any]:
        if not node.is_map or MODEL not in node.value:
            self.error(node.line, f"a kind is a mapping of facts with {MODEL}")
            return {}
        for name in node.value:
            problem = check_fact_name(name)
            if problem or not name.startswith("model."):
                self.error(node.line_of(name), problem or f"{name} is no fact of a model")
        return {name: self.value(value) for name, value in node.items()}

    def range(self, node: Node) -> ReleaseRange:
        try:
            return ReleaseRange.parse(node.raw)
        except ValueError as error:
            self.error(node.line, str(error))
            return EVERY

    def steps(self, node: Node) -> tuple[Step, ...]:
        if not node.is_list:
            self.error(node.line, f"a list of steps is needed, not {node.kind}")
            return ()
        return tuple(self.step(item) for item in node.value)

    def step(self, node: Node) -> Step:
        if not node.is_map:
            self.error(node.line, f"a step is a mapping, not {node.kind}")
            return Step()
        for key in node.value:
            if key not in _STEP_KEYS:
                self.error(node.line_of(key), f"unknown key {key!r} in a step{nearest(key, _STEP_KEYS)}")
        get = node.value.get
        if not (get("set") or get("steps") or get("first")):
            self.error(node.line, "a step needs `set:`, `steps:` or `first:`")
        when = ALWAYS
        if "when" in node.value:
            try:
                when = parse_condition(node.value["when"])
            except ConditionError as error:
                self.error(error.line or node.line, str(error))
        return Step(
            when,
            self.range(node.value["releases"]) if "releases" in node.value else EVERY,
            self.sets(node.value["set"]) if "set" in node.value else (),
            self.steps(node.value["steps"]) if "steps" in node.value else (),
            self.steps(node.value["first"]) if "first" in node.value else (),
            str(get("note").value) if get("note") else "",
            f"{self.name}:{node.line}",
        )

    def sets(self, node: Node) -> tuple[tuple[str, Any], ...]:
        if not node.is_map:
            self.error(node.line, f"`set:` is a mapping of argument: value, not {node.kind}")
            return ()
        return tuple((self.target(key, node.line_of(key)), self.value(value)) for key, value in node.items())

    def target(self, key: str, line: int) -> str:
        name = key if key.startswith(PREFIXES) else f"arg.{key}"
        problem = check_fact_name(name)
        if problem:
            self.error(line, problem)
        return name

    def value(self, node: Node) -> Any:
        if node.is_map or node.is_list or node.value is None:
            self.error(node.line, f"a single value is needed, not {node.kind} (`absent` for none)")
            return None
        value = node.value
        if isinstance(value, str):
            if value in _WORDS:
                return _WORDS[value]
            if value.startswith("$"):
                problem = check_fact_name(value[1:])
                if problem:
                    self.error(node.line, problem)
            elif value.startswith("{"):
                try:
                    whole = len(placeholders(value)) == 1 and value.endswith("}") and value.count("{") == 1
                    if not whole:
                        self.error(node.line, f"one {{fact|filter}} is needed, not {value!r}")
                except TemplateError as error:
                    self.error(node.line, str(error))
        return value

    def done(self) -> Resolution:
        for name, line, block in self.asked:
            if block not in self.blocks:
                self.problems.append(
                    Problem(name, line, f"there is no block {block!r}{nearest(block, self.blocks)}")
                )
        return Resolution(self.blocks, tuple(self.orders), tuple(self.kinds))


# --- cached form ------------------------------------------------------------------------------------


def resolution_out(resolution: Resolution) -> dict[str, Any]:
    """JSON data; :func:`resolution_in` gives an equal resolution back."""
    return {
        "blocks": {name: [_step_out(s) for s in steps] for name, steps in resolution.blocks.items()},
        "orders": [[releases.text, list(names)] for releases, names in resolution.orders],
        "kinds": [dict(kind) for kind in resolution.kinds],
    }


def resolution_in(data: dict[str, Any]) -> Resolution:
    """The resolution of :func:`resolution_out`'s data."""
    return Resolution(
        {name: tuple(_step_in(s) for s in steps) for name, steps in data["blocks"].items()},
        tuple((ReleaseRange.parse(text), tuple(names)) for text, names in data["orders"]),
        tuple(data["kinds"]),
    )


def _step_out(step: Step) -> list[Any]:
    return [
        condition_out(step.when),
        step.releases.text,
        [[name, {"unknown": True} if value is UNKNOWN else value] for name, value in step.sets],
        [_step_out(s) for s in step.steps],
        [_step_out(s) for s in step.first],
        step.note,
        step.origin,
    ]


def _step_in(data: list[Any]) -> Step:
    when, releases, sets, steps, first, note, origin = data
    return Step(
        condition_in(when),
        ReleaseRange.parse(releases),
        tuple((name, UNKNOWN if isinstance(value, dict) else value) for name, value in sets),
        tuple(_step_in(s) for s in steps),
        tuple(_step_in(s) for s in first),
        note,
        origin,
    )
