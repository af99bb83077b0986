"""A build from source in the commands of fixes: what calls itself ``0.5.9.dev123`` no package index and no image has. Pure.

The release that it led to stands in its place, where that is known; else the build's own checkout is installed again.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mtpdoctor.patterns import lazy
from mtpdoctor.records import replace
from mtpdoctor.release import leads_to
from mtpdoctor.sglang.releases import known_releases

if TYPE_CHECKING:
    from mtpdoctor.case import Case
    from mtpdoctor.diagnose.types import Fix
    from mtpdoctor.release import Release

_PIP = lazy(r"pip3? (?:install|download)\b")
_CHECKOUT = "pip install -e python   # in the checkout that this build was made from"
_IMAGE = "docker pull lmsysorg/sglang:dev"


def as_published(fixes: Sequence[Fix], case: Case) -> tuple[Fix, ...]:
    """The fixes, with what can be installed in place of a development state."""
    state = case.release
    if state is None or not state.is_devrelease:
        return tuple(fixes)
    named = re.compile(
        rf"(?<![\w.]){re.escape(str(state))}(?:\+[\w.]+)?(?![\w.]*\w)|(?<=:v){re.escape(str(state))}\b"
    )
    target = next((r for r in known_releases() if r >= leads_to(state) and not r.is_prerelease), None)
    return tuple(
        _published(fix, state, target, named) if any(named.search(line) for line in fix.run) else fix
        for fix in fixes
    )


def _published(fix: Fix, state: Release, target: Release | None, named: re.Pattern[str]) -> Fix:
    what = f"{state} is a build from source, which no package index and no image has"
    if target is None:
        run = dict.fromkeys(_without(line, named) for line in fix.run)
        return replace(fix, run=tuple(run), notes=(*fix.notes, what))
    title = re.sub(rf"(?<!from )(?:{named.pattern})", str(target), fix.title)
    note = f"{what}: {target} is the release that it led to; to keep the build, {_CHECKOUT.replace('   # ', ' ')}"
    run = dict.fromkeys(named.sub(str(target), line) for line in fix.run)
    return replace(fix, title=title, run=tuple(run), notes=(*fix.notes, note))


def _without(line: str, named: re.Pattern[str]) -> str:
    if not named.search(line):
        return line
    if _PIP.search(line):
        return _CHECKOUT
    return _IMAGE if line.startswith("docker pull ") else line
