"""Parts of a SARIF 2.1.0 log (OASIS, sections 3.13 to 3.58) that every document of ours is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from mtpdoctor import __version__

SCHEMA_URI = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
UNKNOWN_RULE = "unknown-failure"
FINGERPRINT = "mtpdoctor/v1"  # what is fingerprinted so counts up when fingerprints change


class Run:
    """Collects the results of one run, with the rules and files that they name."""

    def __init__(self) -> None:
        self._rules: dict[str, tuple[int, dict[str, Any]]] = {}
        self._artifacts: dict[str, tuple[int, dict[str, Any]]] = {}
        self.results: list[dict[str, Any]] = []
        self.notifications: list[dict[str, Any]] = []

    def rule(self, rule_id: str, descriptor: Mapping[str, Any]) -> int:
        """The rule's index; the first description of it stays."""
        return self._rules.setdefault(rule_id, (len(self._rules), {"id": rule_id, **descriptor}))[0]

    def artifact(self, name: str) -> dict[str, Any]:
        """The location of a file, which is listed among the artifacts."""
        uri = uri_of(name)
        new = (len(self._artifacts), {"location": {"uri": uri}, "roles": ["analysisTarget"]})
        return {"uri": uri, "index": self._artifacts.setdefault(uri, new)[0]}

    def physical(self, name: str, region: Mapping[str, Any] | None) -> dict[str, Any]:
        out: dict[str, Any] = {"artifactLocation": self.artifact(name)}
        if region:
            out["region"] = dict(region)
        return out

    def notify(
        self, level: str, text: str, name: str | None = None, region: Mapping[str, Any] | None = None
    ) -> None:
        """Something about the run itself: input that was odd or could not be read, a log that just stops."""
        notification: dict[str, Any] = {"level": level, "message": {"text": text}}
        if name is not None:
            notification["locations"] = [{"physicalLocation": self.physical(name, region)}]
        self.notifications.append(notification)

    def document(self, properties: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The whole SARIF log."""
        driver = {
            "name": "mtpdoctor",
            "fullName": f"mtpdoctor {__version__}",
            "version": __version__,
            "semanticVersion": __version__,
            "shortDescription": {"text": "Root causes of failed launches of SGLang servers"},
            "rules": [rule for _, rule in self._rules.values()],
        }
        run: dict[str, Any] = {
            "tool": {"driver": driver},
            "invocations": [{"executionSuccessful": True, "toolExecutionNotifications": self.notifications}],
            "artifacts": [artifact for _, artifact in self._artifacts.values()],
            "results": self.results,
            "columnKind": "unicodeCodePoints",
        }
        if properties:
            run["properties"] = dict(properties)
        return {"$schema": SCHEMA_URI, "version": "2.1.0", "runs": [run]}


def descriptor(
    title: str, cause: str, *, help_markdown: str, references: Sequence[str] = (), level: str = "error"
) -> dict[str, Any]:
    """What a viewer shows of a rule."""
    out: dict[str, Any] = {
        "shortDescription": {"text": title},
        "fullDescription": {"text": cause},
        "help": {"text": cause, "markdown": help_markdown},
        "defaultConfiguration": {"level": level},
    }
    web = [r for r in references if r.startswith(("https://", "http://"))]
    if web:
        out["helpUri"] = quote(web[0], safe=_SAFE)
    return out


def line_region(number: int, text: str) -> dict[str, Any]:
    """One whole line of a log."""
    return {"startLine": max(number, 1), "snippet": {"text": text}}


# Reserved and unreserved characters of RFC 3986, and % for what is quoted already.
_SAFE = "/:?#@!$&'()*+,;=~-._%"


def uri_of(name: str) -> str:
    """A file's name as given, as a URI reference: relative names stay relative."""
    if "://" in name:
        return quote(name, safe=_SAFE)
    if name.startswith("/"):
        return "file://" + quote(name)
    path = quote(name.replace("\\", "/"))
    # A colon in the first segment would read as a scheme, which quote() has escaped already.
    return path or "."
