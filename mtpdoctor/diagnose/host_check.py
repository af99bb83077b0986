"""What is wrong with a host, from facts alone: no log, no launch.

The findings are rules with ``scope: host`` (docs/knowledge-format.md). A rule speaks only where all that it
asks for is known: of a pretended host, of which nothing is known but its GPUs, little is said.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mtpdoctor.case import Case, build_case
from mtpdoctor.diagnose.types import Fix
from mtpdoctor.facts import Facts, Source, make_facts
from mtpdoctor.host.facts import host_facts
from mtpdoctor.host.types import HostFacts, PythonEnvironment
from mtpdoctor.kb.conditions import evaluate
from mtpdoctor.kb.resolution import resolved
from mtpdoctor.kb.templates import fill, resolve_remedy
from mtpdoctor.launch.types import Form
from mtpdoctor.release import release_or_none
from mtpdoctor.sglang.releases import release_facts

if TYPE_CHECKING:
    from mtpdoctor.kb.knowledge import Knowledge
    from mtpdoctor.kb.types import Rule
    from mtpdoctor.launch.types import LaunchCommand

_RANK = {"fatal": 0, "degrades": 1, "info": 2}
_ELSEWHERE = (Form.DOCKER, Form.COMPOSE, Form.KUBERNETES)


@dataclass(frozen=True, slots=True)
class HostFinding:
    """One thing that is wrong with the host. ``severity``: fatal (no launch starts), degrades, info."""

    rule: str
    title: str
    cause: str
    severity: str
    remedies: tuple[Fix, ...] = ()
    misleading: str | None = None
    references: tuple[str, ...] = ()


def host_findings(
    host: HostFacts, knowledge: Knowledge, release: str | None = None
) -> tuple[HostFinding, ...]:
    """What the rules find of ``host``, the worst first.

    ``release`` is the SGLang that is meant to run here, where it is not the installed one: then nothing is
    said of the installed packages."""
    host = with_pins(_for_release(host, release))
    named = release or host.packages.get("sglang")
    facts = host_facts(host)
    if named is not None and release_or_none(named) is not None:
        facts = facts.merged(make_facts({"release": named}, Source.PROBE, "installed"))
    found = [_finding(rule, facts) for rule in _speaking(knowledge, facts)]
    return tuple(sorted(found, key=lambda f: (_RANK.get(f.severity, 3), f.rule)))


def host_rules_of(case: Case, host: HostFacts | None, knowledge: Knowledge) -> Iterator[Rule]:
    """The host rules that speak of ``host`` as this launch meets it, and are of consequence for it."""
    if host is None or case.document is None:
        return
    met = host_of_launch(host, case.document.command, str(case.release) if case.release else None)
    facts = (host_facts(met) if met is not None else Facts({})).merged(case.facts)
    every = [rule for rule in _speaking(knowledge, facts) if rule.severity != "info"]
    if not every:
        return
    facts = resolved(facts, knowledge.resolution).facts
    yield from (rule for rule in every if evaluate(rule.matters, facts))


def _speaking(knowledge: Knowledge, facts: Facts) -> Iterator[Rule]:
    named = facts.look("release")
    release = release_or_none(named) if isinstance(named, str) else None
    for rule in knowledge.about_hosts(release):
        if rule.predicts is not None and rule.releases.holds(release) and evaluate(rule.predicts, facts):
            yield rule


def _finding(rule: Rule, facts: Facts) -> HostFinding:
    return HostFinding(
        rule=rule.id,
        title=fill(rule.title, facts),
        cause=fill(rule.cause, facts),
        severity=rule.severity,
        remedies=tuple(_remedies(rule, facts)),
        misleading=fill(rule.misleading, facts) if rule.misleading else None,
        references=rule.refs,
    )


def _remedies(rule: Rule, facts: Facts) -> Iterable[Fix]:
    """The rule's remedies as there is no launch to edit: edits are shown, not applied."""
    named = facts.look("release")
    release = release_or_none(named) if isinstance(named, str) else None
    for remedy in rule.remedies:
        if (
            remedy.generate
            or evaluate(remedy.when, facts) is False
            or remedy.releases.holds(release) is False
        ):
            continue
        filled = resolve_remedy(remedy, facts)
        yield Fix(
            title=filled.title,
            safety=filled.safety.value,
            why=filled.why,
            risk=filled.risk,
            edits=filled.edits,
            run=filled.run,
            command=None,
            verified="none",
        )


# --- the host as a launch finds it ------------------------------------------------------------------


def host_of_launch(host: HostFacts | None, command: LaunchCommand, release: str | None) -> HostFacts | None:
    """What of ``host`` a launch by ``command`` meets.

    A container brings its own packages, limits and environment; another interpreter, or another release
    than the installed one, other packages. What is set by the command goes before the host's."""
    if host is None or host.pretended:
        return host
    if command.form in _ELSEWHERE or command.container:
        return _outside_of_containers(host)
    host = replace(host, env={**host.env, **_known(command.env)})
    if not _is_environment_of(command, host.python):
        host = replace(host, packages={}, pythons=None)
    return with_pins(_for_release(host, release))


def _known(env: object) -> dict[str, str]:
    pairs = env.items() if hasattr(env, "items") else ()
    return {name: value for name, value in pairs if isinstance(value, str) and "$" not in value}


def _outside_of_containers(host: HostFacts) -> HostFacts:
    return replace(
        host, packages={}, pythons=None, env={}, shm_gib=None, shm_free_gib=None, limits={}, nvcc=None, disks=None,
        container=None, cgroup_memory_gib=None, cgroup_cpus=None,
    )  # fmt: skip


def _is_environment_of(command: LaunchCommand, python: PythonEnvironment | None) -> bool:
    """Whether the command runs in this environment: it names no interpreter by its path, or this one."""
    program = command.program[0] if command.program else ""
    if python is None or "/" not in program or "$" in program:
        return True
    return os.path.dirname(os.path.expanduser(program)) == os.path.dirname(python.executable)


def _for_release(host: HostFacts, release: str | None) -> HostFacts:
    installed = host.packages.get("sglang")
    if release is None or installed is None or release_or_none(release) == release_or_none(installed):
        return host
    return replace(host, packages={}, pythons=None)


def with_pins(host: HostFacts) -> HostFacts:
    """The host, its SGLang's requirements filled in from what is known of the release where the installed
    metadata is not at hand (a host that was saved without it)."""
    version = release_or_none(host.packages.get("sglang"))
    if version is None:
        return host
    python = host.python or PythonEnvironment("", None, "saved host", packages=host.packages)
    if "sglang" in python.requires:
        return host
    known = release_facts(version)
    pins = known.pins if known.exact else {}
    wanted = {name: spec for name, spec in pins.items() if spec and name in python.packages}
    python = replace(python, requires={**python.requires, "sglang": wanted})
    return replace(host, pythons=(python, *(host.pythons or ())[1:]))


def example_case(host: HostFacts, release: str | None, command: str) -> Case:
    """The case of a launch on an example's host."""
    from mtpdoctor.launch.document import read_launch

    document = read_launch(command)
    met = host_of_launch(host, document.command, release)
    named = release or (met.packages.get("sglang") if met is not None else None)
    return build_case(document=document, command_where="example", host=met, release=named)
