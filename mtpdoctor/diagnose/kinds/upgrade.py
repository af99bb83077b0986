"""A newer release, where the failure is in SGLang's own code or the model is newer than the release."""

from __future__ import annotations

from mtpdoctor.case import Case
from mtpdoctor.kb.types import Remedy, Safety
from mtpdoctor.sglang.releases import known_releases


def upgrade_remedies(case: Case) -> list[Remedy]:
    """Upgrading as a thing to do by hand; how far behind the release in use is."""
    newest = known_releases()[-1]
    if case.release is not None and case.release >= newest:
        return [
            Remedy(
                title=f"Try SGLang's development image, newer than release {newest}",
                safety=Safety.MANUAL,
                why=f"{case.release} is the newest release known here; a fix may be merged and not released",
                run=("docker pull lmsysorg/sglang:dev",),
                risk="a development state is less tested",
            )
        ]
    if case.release is None:
        title, why = "Upgrade SGLang", f"the newest release known here is {newest}"
    else:
        later = sum(1 for r in known_releases() if r > case.release)
        title = f"Upgrade SGLang from {case.release} to {newest}"
        why = f"{later} later release{'s are' if later > 1 else ' is'} known here; check that one has the fix"
    return [
        Remedy(
            title=title,
            safety=Safety.MANUAL,
            why=why,
            run=("pip install --upgrade sglang",),
            risk="options may have changed; check the command for the new release",
        )
    ]
