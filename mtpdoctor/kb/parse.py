"""One rule from YAML nodes, with every problem at its line."""

from __future__ import annotations

from mtpdoctor.kb.condition_source import ConditionError, parse_condition
from mtpdoctor.kb.conditions import fact_names
from mtpdoctor.kb.fact_names import check_fact_name
from mtpdoctor.kb.literals import MIN_LITERAL, NoLiteral, group_names, required_literal
from mtpdoctor.kb.node_reader import NodeReader
from mtpdoctor.kb.parse_examples import read_examples
from mtpdoctor.kb.rule_words import (
    CONFIDENCE,
    GENERATORS,
    HERE_KEYS,
    MIN_SOURCE,
    NOTE_KEYS,
    PATTERN_KEYS,
    REMEDY_KEYS,
    REQUIRED,
    ROOTS,
    RULE_KEYS,
    SCOPES,
    SEVERITIES,
    UNFIXED_KEYS,
    WANTED_KEYS,
)
from mtpdoctor.kb.templates import TemplateError, parse_edit, placeholders
from mtpdoctor.kb.types import (
    ALWAYS,
    Condition,
    EditTemplate,
    Here,
    Pattern,
    ReleaseNote,
    Remedy,
    Role,
    Rule,
    Safety,
    Span,
    Unfixed,
    Wanted,
)
from mtpdoctor.kb.yaml_source import Node, Problem, nearest
from mtpdoctor.log.types import Stage
from mtpdoctor.patterns import lazy
from mtpdoctor.release import release_or_none

_ID = lazy(r"MTP[0-9]{4}$")


class RuleParser(NodeReader):
    """Parses the rules of one file; problems are appended to ``problems``, nothing is raised."""

    def __init__(self, file: str, problems: list[Problem]) -> None:
        super().__init__(file, problems)
        self.groups: frozenset[str] = frozenset()

    def rules(self, root: Node) -> list[Rule]:
        """The rules of a file that have no problem."""
        if not root.is_map:
            self.error(root.line, f"expected `rules:` with a list, not {root.kind}")
            return []
        self.keys(root, ("rules",), "the file")
        listed = root.value.get("rules")
        if listed is None or not listed.is_list:
            self.error(root.line, "expected `rules:` with a list")
            return []
        found = []
        for node in listed.value:
            before = len(self.problems)
            rule = self.rule(node)
            if rule is not None and len(self.problems) == before:
                found.append(rule)
        return found

    def rule(self, node: Node) -> Rule | None:
        self.rule_id, self.groups = "", frozenset()
        if not node.is_map:
            self.error(node.line, f"a rule is a mapping, not {node.kind}")
            return None
        self.rule_id = self.text(node, "id")
        if self.rule_id and not _ID.match(self.rule_id):
            self.error(node.line_of("id"), f"id {self.rule_id!r} is not MTP and four digits")
        self.keys(node, RULE_KEYS, "a rule")
        for key in REQUIRED:
            if key not in node.value:
                self.error(node.line, f"`{key}` is missing")
        match = self.patterns(node, "match")
        self.groups = frozenset().union(*(self._names(p.regex) for p in match)) if match else frozenset()
        predicts = self.condition(node, "predicts") if "predicts" in node.value else None
        if predicts is not None and any(n.startswith(("capture.", "log.")) for n in fact_names(predicts)):
            self.error(
                node.line_of("predicts"), "a prediction is made before launch: no log.* or capture.* facts"
            )
        if "match" not in node.value and predicts is None:
            self.error(node.line, "a rule needs `match` or `predicts`")
        evidence = self.choice(node, "evidence", CONFIDENCE, "confirmed")
        severity = self.choice(node, "severity", SEVERITIES, "fatal")
        if "severity" in node.value and predicts is None:
            self.error(node.line_of("severity"), "`severity` belongs to `predicts`")
        scope, matters = self.scope(node, predicts)
        cause = self.text(node, "cause")
        self.template(cause, node, "cause")
        title = self.text(node, "title")
        self.template(title, node, "title")
        misleading = self.text(node, "misleading") or None
        self.template(misleading or "", node, "misleading")
        explains = self.texts(node, "explains")
        for other in explains:
            if not _ID.match(other):
                self.error(node.line_of("explains"), f"explains: {other!r} is no rule id")
        return Rule(
            id=self.rule_id,
            title=title,
            role=self.member(node, "role", Role, Role.CAUSE),
            stage=self.member(node, "stage", Stage, Stage.ENV),
            source=self.text(node, "source"),
            evidence=evidence,
            confidence=self.confidence(node, CONFIDENCE[evidence]),
            releases=self.releases(node),
            match=match,
            requires=self.patterns(node, "requires"),
            unless=self.patterns(node, "unless"),
            when=self.condition(node, "when"),
            predicts=predicts,
            severity=severity,
            generic=self.flag(node, "generic"),
            explains=explains,
            root=self.choice(node, "root", ROOTS, "match"),
            cause=cause,
            misleading=misleading,
            remedies=tuple(self.remedy(item) for item in self.list(node, "remedies")),
            refs=self.texts(node, "refs"),
            families=self.texts(node, "families"),
            examples=read_examples(self, node),
            origin=f"{self.file}:{node.line}",
            scope=scope,
            matters=matters,
            elsewhere=self.notes(node, "elsewhere"),
            unseen=self.notes(node, "unseen"),
            unfixed=self.unfixed(node),
            here=self.here(node),
        )

    def scope(self, node: Node, predicts: Condition | None) -> tuple[str, Condition]:
        scope = self.choice(node, "scope", SCOPES, "launch")
        if scope == "host":
            names = fact_names(predicts) if predicts is not None else ()
            wrong = [n for n in names if n != "release" and not n.startswith(("host.", "env."))]
            if predicts is None:
                self.error(node.line_of("scope"), "a rule on hosts needs `predicts`")
            elif wrong:
                self.error(
                    node.line_of("predicts"),
                    f"a rule on hosts reads host.*, env.* and release, not {wrong[0]}",
                )
        elif "matters" in node.value:
            self.error(node.line_of("matters"), "`matters` belongs to `scope: host`")
        return scope, self.condition(node, "matters")

    # --- parts ------------------------------------------------------------------------------------

    def patterns(self, node: Node, key: str) -> tuple[Pattern, ...]:
        items = self.list(node, key)
        if key in node.value and key == "match" and not items:
            self.error(node.line_of(key), "`match` is empty")
        return tuple(p for p in (self.pattern(item) for item in items) if p is not None)

    def notes(self, node: Node, key: str) -> tuple[ReleaseNote, ...]:
        """Releases with a reason each (`elsewhere`, `unseen`)."""
        found = []
        for item in self.list(node, key):
            if not item.is_map:
                self.error(item.line, f"`{key}` takes a list of `releases:` with `why:`, not {item.kind}")
                continue
            self.keys(item, NOTE_KEYS, f"`{key}`")
            for needed in NOTE_KEYS:
                if not self.text(item, needed):
                    self.error(item.line, f"`{key}` needs `{needed}`")
            found.append(ReleaseNote(self.releases(item), self.text(item, "why")))
        return tuple(found)

    def here(self, node: Node) -> tuple[Here, ...]:
        """What decides the cause by the facts of the launch."""
        found = []
        for item in self.list(node, "here"):
            if not item.is_map:
                self.error(item.line, f"`here` takes a list of `when:` with `cause:`, not {item.kind}")
                continue
            self.keys(item, HERE_KEYS, "`here`")
            cause = self.text(item, "cause")
            if "when" not in item.value or not cause:
                self.error(item.line, "`here` needs `when` and `cause`")
            self.template(cause, item, "cause")
            found.append(Here(self.condition(item, "when"), cause))
        return tuple(found)

    def unfixed(self, node: Node) -> tuple[Unfixed, ...]:
        found = []
        for item in self.list(node, "unfixed"):
            if not item.is_map:
                self.error(
                    item.line, f"`unfixed` takes a list of `through:`, `file:` and `text:`, not {item.kind}"
                )
                continue
            self.keys(item, UNFIXED_KEYS, "`unfixed`")
            through, since, stands, lacks = (
                self.text(item, key) for key in ("through", "since", "text", "lacks")
            )
            text = stands or lacks
            files = (
                self.texts(item, "file")
                if item.value.get("file", item).is_list
                else (self.text(item, "file"),)
            )
            for key, value in (
                ("through", through),
                ("file", all(files) and files),
                ("text", bool(stands) != bool(lacks)),
            ):
                if not value:
                    self.error(
                        item.line, f"`unfixed` needs `{key}`" + (" or `lacks`" if key == "text" else "")
                    )
            for release in filter(None, (through, since)):
                if release_or_none(release) is None:
                    self.error(item.line, f"`unfixed`: {release!r} is no release")
            if "\n" in text or 0 < len(text) < MIN_SOURCE:
                self.error(
                    item.line, f"`unfixed`: the text is part of one line, of {MIN_SOURCE} characters or more"
                )
            found.append(Unfixed(through, files, text, since, bool(lacks)))
        return tuple(found)

    def pattern(self, node: Node) -> Pattern | None:
        span, literal = Span.LINE, ""
        if node.is_map:
            self.keys(node, PATTERN_KEYS, "a pattern")
            regex = self.text(node, "pattern")
            span = self.member(node, "span", Span, Span.LINE)
            literal = self.text(node, "literal")
        else:
            regex = node.raw if isinstance(node.value, str) else ""
        if not regex:
            self.error(node.line, "a pattern is a regex or a mapping with `pattern:`")
            return None
        if literal:
            if len(literal.strip()) < MIN_LITERAL:
                self.error(node.line, f"literal {literal!r} is shorter than {MIN_LITERAL} characters")
            elif "\n" in literal:
                self.error(node.line, "a literal stands on one line")
        else:
            try:
                literal = required_literal(regex)
            except NoLiteral as error:
                self.error(node.line, f"pattern {regex!r}: {error}")
                return None
            except ValueError as error:
                self.error(node.line, f"pattern {regex!r}: {error}")
                return None
        return Pattern(regex, literal, span)

    def _names(self, regex: str) -> frozenset[str]:
        try:
            return group_names(regex)
        except ValueError:
            import regex as engine

            try:
                return frozenset(engine.compile(regex).groupindex)
            except engine.error as error:
                self.error(0, f"pattern {regex!r}: not a regex: {error}")
                return frozenset()

    def condition(self, node: Node, key: str) -> Condition:
        if key not in node.value:
            return ALWAYS
        try:
            condition = parse_condition(node.value[key])
        except ConditionError as error:
            self.error(error.line or node.line_of(key), f"{key}: {error}")
            return ALWAYS
        for name in fact_names(condition):
            if name.startswith("capture.") and name[8:] not in self.groups:
                hint = nearest(name[8:], self.groups)
                self.error(node.line_of(key), f"{key}: no pattern has a group {name[8:]!r}{hint}")
        return condition

    def remedy(self, node: Node) -> Remedy:
        if not node.is_map:
            self.error(node.line, f"a remedy is a mapping, not {node.kind}")
            return Remedy("", Safety.MANUAL, "")
        self.keys(node, REMEDY_KEYS, "a remedy")
        if "generate" in node.value:
            if len(node.value) > 1:
                self.error(node.line, "nothing else stands beside `generate`")
            name = self.choice(node, "generate", GENERATORS, GENERATORS[0])
            return Remedy("", Safety.SAFE, "", generate=name)
        for key in ("title", "safety", "why"):
            if key not in node.value:
                self.error(node.line, f"a remedy needs `{key}`")
        for key in ("title", "why", "risk"):
            self.template(self.text(node, key), node, key)
        edits = tuple(e for e in (self.edit(item) for item in self.list(node, "edits")) if e is not None)
        run = self.texts(node, "run")
        for command in run:
            self.template(command, node, "run")
        safety = self.member(node, "safety", Safety, Safety.MANUAL)
        risk = self.text(node, "risk") or None
        if safety is Safety.RISKY and risk is None:
            self.error(node.line, "a risky remedy says what may go wrong (`risk:`)")
        if safety is not Safety.MANUAL and not edits:
            self.error(node.line, f"a {safety.value} remedy needs `edits` (else it is manual)")
        return Remedy(
            title=self.text(node, "title"),
            safety=safety,
            why=self.text(node, "why"),
            edits=edits,
            run=run,
            risk=risk,
            when=self.condition(node, "when"),
            releases=self.releases(node),
            checkpoints=self.wanted(node, safety),
        )

    def wanted(self, node: Node, safety: Safety) -> Wanted | None:
        """Published checkpoints that mend it; whether their formats are known is lint's to say."""
        asked = node.value.get("checkpoints")
        if asked is None:
            return None
        if not asked.is_map or not asked.value:
            self.error(node.line_of("checkpoints"), f"`checkpoints` takes {', '.join(WANTED_KEYS)}")
            return None
        self.keys(asked, WANTED_KEYS, "`checkpoints`")
        if safety is Safety.SAFE:
            self.error(node.line_of("checkpoints"), "other weights are never safe: write risky or manual")
        return Wanted(
            self.texts(asked, "formats"),
            self.flag(asked, "original"),
            self.texts(asked, "makers"),
            self.flag(asked, "smaller"),
            tuple(e for e in (self.edit(item) for item in self.list(asked, "edits")) if e is not None),
        )

    def edit(self, node: Node) -> EditTemplate | None:
        if not isinstance(node.value, str):
            self.error(node.line, f"an edit is text like `set --flag value`, not {node.kind}")
            return None
        try:
            edit = parse_edit(node.value)
        except TemplateError as error:
            self.error(node.line, f"edit {node.value!r}: {error}")
            return None
        self._placeholders(node.value, node.line, "edit")
        return edit

    def template(self, text: str, node: Node, key: str) -> None:
        self._placeholders(text, node.line_of(key), key)

    def _placeholders(self, text: str, line: int, what: str) -> None:
        try:
            found = placeholders(text)
        except TemplateError as error:
            self.error(line, f"{what}: {error}")
            return
        for name in (n for p in found for n in p.facts):
            if name.removeprefix("capture.") in self.groups:
                continue
            if "." in name or name == "release":
                problem = (
                    check_fact_name(name)
                    if not name.startswith("capture.")
                    else f"no pattern has a group {name}"
                )
            else:
                problem = (
                    f"{{{name}}} is neither a fact nor a named group of `match`{nearest(name, self.groups)}"
                )
            if problem:
                self.error(line, f"{what}: {problem} (write {{{{ for a brace)")
