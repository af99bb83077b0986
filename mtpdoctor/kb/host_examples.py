"""The hosts of examples: a saved host in short form, and the check of rules against them.

Short forms beside the fields of ``probe --json``: ``gpus: 8xsm90@140`` (as ``--gpu``) with ``gpu:`` for
fields of every one of them, and ``python:`` for the environment that holds SGLang. What is not written is
not known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mtpdoctor.errors import UserError
from mtpdoctor.host.saved import SCHEMA, host_from_document, load_host
from mtpdoctor.host.spec import parse_gpu_spec
from mtpdoctor.kb.load import origin_problem
from mtpdoctor.kb.types import Rule
from mtpdoctor.kb.yaml_source import Problem
from mtpdoctor.patterns import lazy
from mtpdoctor.records import dataclass

if TYPE_CHECKING:
    from mtpdoctor.host.types import HostFacts

_STAND_IN = lazy(r"<[a-z][a-z_-]*>")  # what templates leave where a fact is not known
_PYTHON = {"executable": "/opt/venv/bin/python", "version": None, "origin": "example"}


@dataclass(frozen=True, slots=True)
class Said:
    """What one rule says of a host: ``text`` is its title and cause, ``fix`` its first remedy in words."""

    rule: str
    text: str
    fix: str


# (host, release, command) -> what is found; with a command, what stands in its check
Finder = Callable[["HostFacts", "str | None", "str | None"], Sequence[Said]]


def host_of(written: Mapping[str, Any]) -> HostFacts:
    """The host of an example. Raises UserError for a field that does not exist or has another type."""
    from dataclasses import fields

    from mtpdoctor.host.types import HostFacts as Host

    data = dict(written)
    each = data.pop("gpu", {})
    python = data.pop("python", None)
    known = {f.name for f in fields(Host)}
    wrong = sorted(set(data) - known)
    if wrong:
        from mtpdoctor.kb.yaml_source import nearest

        raise UserError(f"no saved host has the field {wrong[0]!r}{nearest(wrong[0], known)}")
    if isinstance(data.get("gpus"), str):
        short = parse_gpu_spec(data["gpus"])
        data["gpus"] = [
            {"index": g.index, "name": f"SM{g.sm} GPU", "sm": g.sm, "memory_gib": g.memory_gib} | each
            for g in short.gpus or ()
        ]
        data.setdefault("platform", "cuda")
    if python is not None:
        data["pythons"] = [_PYTHON | python]
        data.setdefault("packages", python.get("packages", {}))
    return host_from_document({"schema": SCHEMA, **data}, "host")


def check(
    rules: Sequence[Rule], find: Finder | None, titles: Mapping[str, str], healthy: Sequence[Path], ci: bool
) -> list[Problem]:
    """Problems of host rules: each speaks on its own bad hosts, no other does that is not declared, and
    none on an ok or a healthy one."""
    about = [r for r in rules if r.scope == "host"]
    if find is None:
        message = f"{len(about)} rules on hosts not checked: nothing to look at hosts with"
        return [origin_problem(about[0], message, level="error" if ci else "note")] if about else []
    out: list[Problem] = []
    for rule in about:
        for kind, ask in (("bad_host", _bad), ("ok_host", _ok)):
            for example in rule.examples.get(kind, ()):
                said = [f"{kind} example: {m}" for m in ask(rule, example, find, titles)]
                out += [origin_problem(rule, m, example["line"]) for m in said]
    ids = {rule.id: rule for rule in about}
    for path in healthy if about else ():
        for found in find(load_host(path), None, None):
            if found.rule in ids:
                out.append(origin_problem(ids[found.rule], f"speaks on the healthy host {path.name}"))
    return out


def _found(example: dict[str, Any], find: Finder) -> Sequence[Said]:
    return find(host_of(example["host"]), example.get("release"), example.get("command"))


def _bad(rule: Rule, example: dict[str, Any], find: Finder, titles: Mapping[str, str]) -> Iterator[str]:
    try:
        found = _found(example, find)
    except UserError as error:
        yield str(error)
        return
    own = next((f for f in found if f.rule == rule.id), None)
    if own is None:
        yield "the rule does not speak"
        return
    if example.get("said", "") not in own.text:
        yield f"it says {own.text!r}, without {example['said']!r}"
    if example.get("fix", "") not in own.fix:
        yield f"the first fix is {own.fix!r}, without {example['fix']!r}"
    if _STAND_IN.search(own.text):
        yield f"a fact is missing in {own.text!r}"
    for other in found:
        if other.rule not in {rule.id, *example.get("also", ())}:
            yield f"{other.rule} ({titles.get(other.rule, '')}) speaks too; narrow it or declare `also`"


def _ok(rule: Rule, example: dict[str, Any], find: Finder, _: Mapping[str, str]) -> Iterator[str]:
    try:
        found = _found(example, find)
    except UserError as error:
        yield str(error)
        return
    if any(f.rule == rule.id for f in found):
        yield "the rule speaks"
