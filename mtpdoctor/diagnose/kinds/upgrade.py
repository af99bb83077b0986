"""A newer release, where the failure is in SGLang's own code or the model is newer than the release."""

from __future__ import annotations

from mtpdoctor.case import Case
from mtpdoctor.diagnose.failures import PEER_ENDED
from mtpdoctor.diagnose.later import outlook_of
from mtpdoctor.diagnose.upgrading import development, later_remedies
from mtpdoctor.kb.types import Match, Remedy, Role, Safety
from mtpdoctor.sglang.releases import known_releases


def upgrade_remedies(match: Match | None, case: Case) -> list[Remedy]:
    """Upgrading as a thing to do by hand: the release from which on the failing place differs, where that is known, else
    how far behind the release in use is."""
    if match is not None and PEER_ENDED.search(
        match.traceback.message if match.traceback else match.line.body
    ):
        return []
    outlook = outlook_of(match.traceback, match.line.body, case) if match is not None else None
    if outlook is None or match is None:
        return _plain(case)
    if match.rule.role is Role.ADVICE and outlook.speaks and not outlook.here:
        return []  # it goes behind everything else (``later.later_fixes``), or nowhere
    return later_remedies(outlook, case)


def _plain(case: Case) -> list[Remedy]:
    newest = known_releases()[-1]
    if case.release is not None and case.release >= newest:
        return [development(newest)]
    if case.release is None:
        title = f"Upgrade SGLang to {newest}"
        why = "the newest release known here; which one runs now the log does not tell"
    else:
        later = sum(1 for r in known_releases() if r > case.release)
        title = f"Upgrade SGLang from {case.release} to {newest}"
        why = f"{later} later release{'s are' if later > 1 else ' is'} known here; whether one differs in what fails is not known"
    return [
        Remedy(
            title=title,
            safety=Safety.MANUAL,
            why=why,
            run=(f"pip install sglang=={newest}",),
            risk="options may have changed; check the command for the new release",
        )
    ]
