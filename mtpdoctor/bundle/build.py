"""From what is known of a launch to the files of a bundle."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from mtpdoctor import __version__
from mtpdoctor.anonymise.redactor import Redactor
from mtpdoctor.bundle.same import differences
from mtpdoctor.bundle.types import Bundle, Entry, LogText, Material
from mtpdoctor.diagnose.types import Report
from mtpdoctor.kb.load import Knowledge
from mtpdoctor.text import safe

SCHEMA = 1
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_]{2,}")

# the redacted logs (name, text), command and host -> their diagnosis, and files that show it
Diagnose = Callable[
    [list[tuple[str, str]], "str | None", "Mapping[str, Any] | None"], "tuple[Report | None, dict[str, str]]"
]


def vocabulary(knowledge: Knowledge) -> frozenset[str]:
    """Words, in lower case, that rules look for and options are named by: never taken for somebody's name outside of
    a name's place."""
    from mtpdoctor.sglang.flags import flag_table

    words: set[str] = set()
    for literal in knowledge.literals:
        words.update(word.lower() for word in _WORD.findall(literal))
    for spec in flag_table(None).specs:
        words.update(part for part in spec.dest.lower().split("_") if len(part) > 2)
    return frozenset(words)


def redactor_for(material: Material, keep: frozenset[str], **options: Any) -> Redactor:
    """A redactor that has learned the names of everything that goes in."""
    redactor = Redactor(keep=keep, hosts=material.seeds_hosts, users=material.seeds_users, **options)
    for log in material.logs:
        redactor.learn(log.text)
    for text in (
        material.command,
        *(json.dumps(d, ensure_ascii=False, indent=1) for d in _documents(material)),
    ):
        if text:
            redactor.learn(text)
    return redactor


def _documents(material: Material) -> list[Mapping[str, Any]]:
    return [d for d in (material.host, *(config for _, config in material.configs)) if d is not None]


def build(material: Material, redactor: Redactor, diagnose: Diagnose) -> Bundle:
    """The bundle of ``material``. ``diagnose`` is asked for the diagnosis of the redacted logs: nothing in it is
    more than what they say."""
    entries: list[Entry] = []
    logs: list[tuple[str, str]] = []
    for number, log in enumerate(material.logs, 1):
        name = f"logs/{_log_name(log.name, number, len(material.logs), redactor)}"
        logs.append((name, redactor.redact(log.text, name)))
        entries.append(Entry(name, logs[-1][1].encode("utf-8", "replace"), _note(log)))
    command = None
    if material.command is not None:
        name = f"command/{_file_name(material.command_name, redactor)}"
        command = redactor.redact(material.command, name)
        entries.append(Entry(name, command.encode("utf-8", "replace"), "the launch command, in its own form"))
    host = None
    if material.host is not None:
        host = redactor.value(material.host, "host.json")
        if isinstance(material.host.get("name"), str) and material.host["name"]:
            host["name"] = redactor.host_name(material.host["name"], "host.json")
        entries.append(Entry("host.json", _json(host), "mtpdoctor probe --json; read by --host"))
    for name, config in material.configs:
        entries.append(
            Entry(name, _json(redactor.value(config, name)), "the model's config.json; no weights")
        )
    if material.packages:
        text = "".join(f"{n}=={v}\n" for n, v in material.packages)
        entries.append(
            Entry("packages.txt", redactor.redact(text, "packages.txt").encode(), "installed packages")
        )
    differ: tuple[str, ...] = ()
    if logs:
        report, files = diagnose(logs, command, host)
        for name, text in files.items():
            entries.append(
                Entry(
                    name,
                    redactor.redact(text, name).encode("utf-8", "replace"),
                    "made from the redacted logs",
                )
            )
        if report is not None and material.report is not None:
            differ = differences(material.report, report, redactor.mapped)
    entries.sort(key=lambda e: e.name)
    manifest = _manifest(entries, redactor, differ, bool(logs))
    entries.append(Entry("manifest.json", _json(manifest), "this list"))
    return Bundle(tuple(entries), redactor.redactions(), differ, manifest)


def _note(log: LogText) -> str:
    if not log.left_out:
        return ""
    return f"{log.left_out} of {log.lines} lines left out: empty here, so that line numbers stay"


def _manifest(
    entries: list[Entry], redactor: Redactor, differ: tuple[str, ...], diagnosed: bool
) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "mtpdoctor": __version__,
        "files": [
            {
                "name": e.name,
                "bytes": len(e.data),
                "sha256": hashlib.sha256(e.data).hexdigest(),
                "note": e.note,
            }
            for e in entries
        ],
        "redactions": [
            {"kind": r.kind, "placeholder": r.placeholder, "count": r.count, "first": r.first}
            for r in redactor.redactions()
        ],
        "diagnosis_unchanged": not differ if diagnosed else None,
        "differences": [redactor.mapped(text) for text in differ],
    }


def _json(value: Any) -> bytes:
    return (json.dumps(value, ensure_ascii=True, indent=1) + "\n").encode()


def _log_name(name: str, number: int, total: int, redactor: Redactor) -> str:
    base = "standard-input.log" if name in ("-", "standard input") else _file_name(name, redactor)
    base = re.sub(r"\.(?:gz|zst|xz|bz2)$", "", base)
    return f"{number:0{len(str(total))}}-{base}" if total > 1 else base


def _file_name(name: str, redactor: Redactor) -> str:
    base = re.split(r"[/\\]", name.rstrip("/\\"))[-1] or "log"
    shown = redactor.redact(safe(base), "file names")
    return re.sub(r"[^\w.+@-]+", "_", shown)[:120].lstrip(".") or "log"
