"""The words of the rule format: its keys, and the values that some of them take."""

from __future__ import annotations

RULE_KEYS = (
    "id", "title", "role", "stage", "source", "evidence", "confidence", "releases", "elsewhere", "unseen", "unfixed", "match",
    "requires", "unless", "when", "root", "generic", "explains", "predicts", "scope", "matters", "severity", "cause", "here",
    "misleading", "remedies", "refs", "families", "examples",
)  # fmt: skip
REQUIRED = ("id", "title", "role", "stage", "source", "evidence", "cause")
NOTE_KEYS = ("releases", "why")
HERE_KEYS = ("when", "cause")
UNFIXED_KEYS = ("through", "since", "file", "text", "lacks")
PATTERN_KEYS = ("pattern", "span", "literal")
REMEDY_KEYS = (
    "title",
    "releases",
    "when",
    "edits",
    "run",
    "safety",
    "risk",
    "why",
    "generate",
    "checkpoints",
)
WANTED_KEYS = ("formats", "original", "makers", "smaller", "edits")
MIN_SOURCE = 8  # characters from which a source text is no chance
CONFIDENCE = {"confirmed": 0.95, "stated": 0.85, "symptom": 0.6}
SCOPES = ("launch", "host")
SEVERITIES = ("fatal", "degrades", "info")
ROOTS = ("match", "exception", "last-exception")
GENERATORS = (
    "unknown-flag",
    "bad-choice",
    "ambiguous-flag",
    "package",
    "backend",
    "said",
    "upgrade",
    "split",
    "entry",
    "module",
    "architecture",
    "model-type",
    "symbol",
    "third-party",
    "block",
    "host-cache",
    "keyword",
    "own-import",
    "tensor-name",
    "callee",
    "backend-part",
    "optional-name",
    "bare-flag",
    "link-target",
    "devices",
    "value",
    "versions",
    "native-library",
)
