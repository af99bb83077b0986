"""Remedies computed for whole kinds of failures (``generate:`` of rules of role advice).

Each takes what the rule matched (captures, traceback) and the case, and gives remedies that are risky
or manual: the kind of a failure is known, not the failure.
"""

from __future__ import annotations

from mtpdoctor.case import Case
from mtpdoctor.kb.types import Match, Remedy


def kind_remedies(generator: str, match: Match, case: Case) -> list[Remedy]:
    """Raises ValueError for a generator that there is not."""
    if generator == "package":
        from mtpdoctor.diagnose.kinds.package import package_remedies

        return package_remedies(match, case)
    if generator == "backend":
        from mtpdoctor.diagnose.kinds.backend import backend_remedies

        return backend_remedies(match, case)
    if generator == "said":
        from mtpdoctor.diagnose.kinds.said import said_remedies

        return said_remedies(match, case)
    if generator == "upgrade":
        from mtpdoctor.diagnose.kinds.upgrade import upgrade_remedies

        return upgrade_remedies(case)
    if generator == "split":
        from mtpdoctor.diagnose.kinds.split import split_remedies

        return split_remedies(case)
    raise ValueError(f"no generator {generator!r}")
