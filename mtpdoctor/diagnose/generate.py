"""Remedies computed from the release data instead of written in a rule (``generate:``).

``unknown-flag`` and ``bad-choice`` have one right answer per flag and release, which the learned
flag tables know and no rule could list.
"""

from __future__ import annotations
