"""Whether an SGLang release knows a model, from facts alone: no log, no launch."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from mtpdoctor.case import build_case
from mtpdoctor.diagnose.host_check import HostFinding, host_of_launch
from mtpdoctor.diagnose.one_cause import ABOUT_MODELS, with_facts
from mtpdoctor.diagnose.preflight import foreseen
from mtpdoctor.diagnose.remedies import fixes_of
from mtpdoctor.kb.templates import fill
from mtpdoctor.kb.types import Match
from mtpdoctor.launch.document import read_launch
from mtpdoctor.log.types import Line

if TYPE_CHECKING:
    from mtpdoctor.host.types import HostFacts
    from mtpdoctor.kb.knowledge import Knowledge
    from mtpdoctor.model.types import ModelFacts

_NOWHERE = Line(0, 0, 0, "", None, None, "", "")


def model_findings(
    model: ModelFacts, host: HostFacts, knowledge: Knowledge, release: str | None = None
) -> tuple[HostFinding, ...]:
    """What stands against serving ``model`` with ``release`` (None: the SGLang that is installed on ``host``):
    that the release does not know it. Empty where the release is not known."""
    named = release or host.packages.get("sglang")
    document = read_launch(f"python -m sglang.launch_server --model-path {shlex.quote(model.path)}")
    case = build_case(
        document=document,
        host=host_of_launch(host, document.command, named),
        model=model,
        release=named,
    )
    if case.release is None:
        return ()
    out = []
    for seen in foreseen(knowledge, case.facts):
        rule = seen.rule
        if seen.certain and any(remedy.generate in ABOUT_MODELS for remedy in rule.remedies):
            match = Match(rule, _NOWHERE, {}, True)
            out.append(
                HostFinding(
                    rule=rule.id,
                    title=seen.title,
                    cause=with_facts(fill(rule.cause, case.facts), match, case),
                    severity=rule.severity,
                    remedies=fixes_of(match, case, knowledge),
                    misleading=rule.misleading,
                    references=rule.refs,
                )
            )
    return tuple(out)
