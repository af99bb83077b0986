"""A rule made of one regex, to try it out."""

from __future__ import annotations

from mtpdoctor.kb.types import ALWAYS, Pattern, Role, Rule
from mtpdoctor.log.types import Stage
from mtpdoctor.release import ReleaseRange


def trial_rule(pattern: Pattern) -> Rule:
    """A rule that fires wherever the pattern matches, and says nothing else."""
    return Rule(
        id="MTP0000",
        title="trial",
        role=Role.CAUSE,
        stage=Stage.ENV,
        source="trial",
        evidence="symptom",
        confidence=0.6,
        releases=ReleaseRange.parse("*"),
        match=(pattern,),
        requires=(),
        unless=(),
        when=ALWAYS,
        predicts=None,
        severity="fatal",
        generic=False,
        explains=(),
        root="match",
        cause="",
        misleading=None,
        remedies=(),
        refs=(),
        families=(),
        examples={},
        origin="trial:1",
    )
