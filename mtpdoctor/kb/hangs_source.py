"""Reading the knowledge of hangs: the YAML files of ``knowledge/hangs``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mtpdoctor.errors import UserError
from mtpdoctor.kb.hangs import CONDITIONS, WEIGHTS, HangCause, Hangs, Test, pattern
from mtpdoctor.log.types import Stage
from mtpdoctor.records import replace
from mtpdoctor.release import ReleaseRange

if TYPE_CHECKING:
    from mtpdoctor.kb.yaml_source import Node, Problem

FOLDER = "hangs"
_ID = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*\Z")
_VALUES: dict[str, tuple[Any, ...]] = {
    "state": ("disk sleep", "zombie", "running", "sleeping", "stopped"),
    "cpu": ("busy", "some", "idle"),
    "gpu": ("busy", "some", "idle"),
    "io": ("reading", "some", "still"),
    "ranks": ("behind", "even"),
    "several": (True, False),
    "nodes": (True, False),
    "local": (True, False),
    "compiler": (True, False),
}
_REQUIRED = ("id", "title", "stages", "if", "seen", "tell", "do", "examples")
_ALLOWED = {*_REQUIRED, "releases", "refs", "usual", "against"}


def load_hangs(folder: Path | None = None) -> Hangs:
    """The knowledge of hangs under a knowledge folder, else the doctor's own where that has none.

    Raises UserError naming what is wrong in which file.
    """
    from mtpdoctor.paths import knowledge_folder, own_knowledge_folder

    chosen = folder or knowledge_folder()
    return _load(chosen if (chosen / FOLDER).is_dir() else own_knowledge_folder())


@lru_cache(maxsize=4)
def _load(folder: Path) -> Hangs:
    problems: list[Problem] = []
    hangs = read_hangs(hang_files(folder), problems, folder.parent)
    if hangs is None:
        said = "\n  ".join(str(p) for p in problems) or f"{folder / FOLDER}: no such folder"
        raise UserError(f"the knowledge of hangs cannot be read:\n  {said}", hint="see docs/hangs.md")
    return hangs


def hang_files(folder: Path) -> list[Path]:
    """Its YAML files, in the order in which causes of equal weight are told."""
    return sorted((folder / FOLDER).glob("*.yaml"))


def read_hangs(files: Sequence[Path], problems: list[Problem], base: Path | None = None) -> Hangs | None:
    """All files as one; None where anything is wrong, which is appended to ``problems``."""
    from mtpdoctor.kb.yaml_source import Problem

    before = len(problems)
    parts: dict[str, tuple[str, Node]] = {}
    listed: list[tuple[str, Node]] = []
    for name, root in _roots(files, problems, base):
        for key, node in root.items():
            if key == "causes":
                listed.append((name, node))
            elif key not in ("stages", "chatter", "compiling"):
                problems.append(Problem(name, root.line_of(key), f"unknown key {key!r}"))
            elif key in parts:
                problems.append(Problem(name, root.line_of(key), f"`{key}:` stands in {parts[key][0]} too"))
            else:
                parts[key] = (name, node)
    reader = _Reader(problems)
    about = reader.general(parts) if len(problems) == before else None
    if about is None:
        return None
    compiling = {"stack": about["stack"], "line": about["line"], "last": about["line"]}
    causes = [cause for name, node in listed for cause in reader.causes(node, name, compiling)]
    if not causes and len(problems) == before:
        problems.append(Problem(FOLDER, 1, "no causes"))
    if len(problems) > before:
        return None
    return Hangs(
        quiet_s=about["quiet_s"],
        quiet_why=about["quiet_why"],
        chatter=about["chatter"],
        compilers=about["compilers"],
        compiling_stack=about["stack"],
        compiling_line=about["line"],
        causes=tuple(causes),
    )


def _roots(files: Sequence[Path], problems: list[Problem], base: Path | None) -> Iterator[tuple[str, Node]]:
    from mtpdoctor.kb.yaml_source import Problem, parse_yaml

    for path in files:
        name = str(path.relative_to(base)) if base and path.is_relative_to(base) else str(path)
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            problems.append(Problem(name, 1, f"cannot be read: {error}"))
            continue
        root = parse_yaml(text, name, problems)
        if root is not None and not root.is_map:
            problems.append(Problem(name, root.line, f"a mapping is expected, not {root.kind}"))
        elif root is not None:
            yield name, root


class _Reader:
    def __init__(self, problems: list[Problem]) -> None:
        self.problems = problems
        self._ids: dict[str, str] = {}

    def _say(self, file: str, line: int, message: str) -> None:
        from mtpdoctor.kb.yaml_source import Problem

        self.problems.append(Problem(file, line, message))

    def general(self, parts: dict[str, tuple[str, Node]]) -> dict[str, Any] | None:
        """The stages, what is no progress, and what is compiling."""
        missing = [key for key in ("stages", "chatter", "compiling") if key not in parts]
        if missing:
            self._say(FOLDER, 1, f"missing: {', '.join(f'`{m}:`' for m in missing)}")
            return None
        before = len(self.problems)
        out: dict[str, Any] = {"quiet_s": {}, "quiet_why": {}}
        file, node = parts["stages"]
        for key, value in node.items() if node.is_map else ():
            about = value.plain()
            try:
                stage = Stage(key)
                out["quiet_s"][stage] = float(about["quiet_s"])
                out["quiet_why"][stage] = str(about["why"])
            except (ValueError, TypeError, KeyError):
                self._say(file, node.line_of(key), f"{key}: a stage has quiet_s (seconds) and why")
        lacking = [s.value for s in Stage if s is not Stage.SERVING and s not in out["quiet_s"]]
        if lacking:
            self._say(file, node.line, f"stages without quiet_s: {', '.join(lacking)}")
        file, node = parts["chatter"]
        texts = [str(item.value) for item in node.value] if node.is_list else []
        if not texts:
            self._say(file, node.line, "chatter is a list of patterns")
        out["chatter"] = self._compiled("|".join(f"(?:{_inline(t)})" for t in texts), file, node.line)
        file, node = parts["compiling"]
        about = node.plain() if node.is_map else {}
        names = about.get("processes")
        if not isinstance(names, list) or not all(isinstance(n, str) for n in names):
            self._say(file, node.line, "compiling has processes (names), stacks and lines (patterns)")
            names = []
        out["compilers"] = frozenset(names)
        out["stack"] = self._compiled(about.get("stacks"), file, node.line)
        out["line"] = self._compiled(about.get("lines"), file, node.line)
        return out if len(self.problems) == before else None

    def _compiled(self, text: Any, file: str, line: int) -> re.Pattern[str] | None:
        if not isinstance(text, str) or not text:
            self._say(file, line, "a pattern is expected")
            return None
        try:
            return pattern(text)
        except re.error as error:
            self._say(file, line, f"not a pattern: {error}: {text[:60]}")
            return None

    def causes(self, node: Node, file: str, compiling: dict[str, re.Pattern[str]]) -> list[HangCause]:
        if not node.is_list:
            self._say(file, node.line, f"`causes:` is a list, not {node.kind}")
            return []
        return [c for item in node.value if (c := self._cause(item, file, compiling)) is not None]

    def _cause(self, node: Node, file: str, compiling: dict[str, re.Pattern[str]]) -> HangCause | None:
        if not node.is_map:
            self._say(file, node.line, f"a cause is a mapping, not {node.kind}")
            return None
        before = len(self.problems)
        fields: dict[str, Node] = node.value
        missing = [k for k in _REQUIRED if k not in fields]
        odd = [k for k in fields if k not in _ALLOWED]
        if missing or odd:
            said = [f"missing {', '.join(missing)}"] if missing else []
            said += [f"unknown {', '.join(odd)}"] if odd else []
            self._say(file, node.line, "; ".join(said))
            return None
        cause_id = str(fields["id"].value)
        if not _ID.match(cause_id):
            self._say(file, node.line, f"id {cause_id!r}: lower-case words joined by hyphens")
        if cause_id in self._ids:
            self._say(file, node.line, f"id {cause_id} is taken by {self._ids[cause_id]}")
        self._ids[cause_id] = f"{file}:{node.line}"
        texts = {k: fields[k].value for k in ("title", "tell", "do")}
        for key, text in texts.items():
            if not isinstance(text, str) or not text or text.endswith("."):
                self._say(file, node.line_of(key), f"{key}: words without a full stop at the end")
        stages = self._stages(fields["stages"], file)
        usual = self._stages(fields["usual"], file) if "usual" in fields else ()
        if set(usual) - set(stages):
            self._say(file, node.line_of("usual"), "usual: stages that are among `stages:`")
        try:
            releases = ReleaseRange.parse(fields["releases"].raw if "releases" in fields else "*")
        except ValueError as error:
            self._say(file, node.line_of("releases"), f"releases: {error}")
            return None
        must = self._tests([fields["if"]], file, compiling)
        seen = self._tests(fields["seen"].value if fields["seen"].is_list else [], file, compiling)
        against: tuple[Test, ...] = ()
        if "against" in fields:
            items = fields["against"].value if fields["against"].is_list else []
            against = self._tests(items, file, compiling)
            if not against:
                self._say(file, node.line_of("against"), "against: a list of conditions")
        refs = fields["refs"].plain() if "refs" in fields else []
        if not isinstance(refs, list) or not all(str(r).startswith("https://") for r in refs):
            self._say(file, node.line_of("refs"), "refs are https addresses")
        examples = fields["examples"].plain()
        if not isinstance(examples, dict) or set(examples) - {"first", "not_first"}:
            self._say(file, node.line_of("examples"), "examples are scenes under `first:` and `not_first:`")
        if len(self.problems) > before:
            return None
        return HangCause(
            id=cause_id,
            title=str(texts["title"]),
            stages=stages,
            releases=releases,
            must=must,
            seen=seen,
            against=against,
            tell=str(texts["tell"]),
            do=str(texts["do"]),
            refs=tuple(refs),
            usual=usual,
            origin=f"{file}:{node.line}",
            first=tuple(examples.get("first") or ()),
            not_first=tuple(examples.get("not_first") or ()),
        )

    def _stages(self, node: Node, file: str) -> tuple[Stage, ...]:
        out: list[Stage] = []
        for item in node.value if node.is_list else ():
            try:
                out.append(Stage(str(item.value)))
            except ValueError:
                self._say(file, item.line, f"no stage {item.value!r}")
        if not out:
            self._say(file, node.line, "stages: at least one")
        return tuple(out)

    def _tests(
        self, nodes: Sequence[Node], file: str, compiling: dict[str, re.Pattern[str]]
    ) -> tuple[Test, ...]:
        out: list[Test] = []
        for node in nodes:
            if not node.is_map:
                self._say(file, node.line, f"a condition is a mapping, not {node.kind}")
                continue
            weight = node.value["weight"].value if "weight" in node.value else None
            if weight is not None and not (isinstance(weight, int) and 1 <= weight <= 9):
                self._say(file, node.line, "weight is a number from 1 to 9")
            for name, value in node.items():
                if name != "weight":
                    test = self._test(name, value, file, compiling)
                    out += [replace(test, weight=weight or WEIGHTS.get(name, 1))] if test is not None else []
        return tuple(out)

    def _test(self, name: str, node: Node, file: str, compiling: dict[str, re.Pattern[str]]) -> Test | None:
        if name not in CONDITIONS:
            self._say(file, node.line, f"no condition {name!r}; there are {', '.join(sorted(CONDITIONS))}")
            return None
        if name == "launch":
            from mtpdoctor.kb.condition_source import ConditionError, parse_condition

            try:
                return Test(name, parse_condition(node))
            except ConditionError as error:
                self._say(file, error.line or node.line, str(error))
                return None
        if name in _VALUES:
            if node.value not in _VALUES[name]:
                said = ", ".join(str(v).lower() for v in _VALUES[name])
                self._say(file, node.line, f"{name} is one of {said}")
                return None
            return Test(name, node.value)
        if node.value == "@compiling" and name in compiling:
            return Test(name, compiling[name])
        compiled = self._compiled(node.value, file, node.line)
        return Test(name, compiled) if compiled is not None else None


def _inline(text: str) -> str:
    """``(?i)`` at the head of one alternative, as a group of its own."""
    return f"(?i:{text[4:]})" if text.startswith("(?i)") else text
