"""Names of people's accounts: learned where they are surely one, replaced wherever they stand."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mtpdoctor.anonymise.tokens import is_placeholder
from mtpdoctor.anonymise.words import GENERIC, PROSE
from mtpdoctor.patterns import lazy

_Q = r"(?:\\*[\"'])?"
_U = r"(?P<u>[A-Za-z_][A-Za-z0-9_.-]*[A-Za-z0-9_]|[A-Za-z])"
_PLACES = tuple(
    lazy(p, flags)
    for p, flags in (
        (
            rf"(?<![A-Za-z0-9])/?(?:home|Users|export/home|nfs/home|gpfs/home|u/home|data/home|scratch/users|var/spool/mail)/{_U}",
            0,
        ),
        (rf"(?i)[A-Z]:\\+Users\\+{_U}", 0),
        (
            rf"(?<![A-Za-z0-9])(?:user|username|user_name|logname|login|owner|author|sudo_user|run_?as_?user|slurm_job_user|"
            rf"remote_user|submitter|requested_by|account){_Q}[=:][ \t]*{_Q}{_U}(?![\w(@])",
            re.I,
        ),
        (rf"(?<![\w-])--(?:user|username|owner|uid){_Q}(?:=|[ \t]+){_Q}{_U}", 0),
        (rf"\buid=\d+\({_U}\)", 0),
        (rf"(?<![\w.@/:-]){_U}@[A-Za-z0-9][\w.-]*(?=:[~/]|[ ][^\n\]]*\][$#]|:\S*[$#%] |[\"']?$)", re.M),
        (rf"\b(?:ssh|scp|rsync)[ \t]+(?:-\w+[ \t]+)*{_U}@", 0),
        (rf"\bfor user {_Q}{_U}", 0),
        (rf"\busers?:? \\*[\"']{_U}(?=\\*[\"'])", 0),
        (rf"\b(?:logged in as|running as|run as|as user):? {_Q}{_U}", re.I),
        (rf"\blogin {_U} password ", 0),
        (rf"\bsudo: +{_U} :", 0),
        (rf"\b(?:session opened for|by) user {_Q}{_U}", 0),
    )
)
_NO_USER = (
    GENERIC
    | PROSE
    | frozenset({"git", "hf", "sglang", "huggingface", "llama", "qwen", "assistant", "system", "tool"})
)


def found_users(text: str, keep: frozenset[str]) -> Iterator[tuple[str, bool]]:
    """Names of accounts in ``text``, and whether they may be replaced wherever else they stand."""
    for _, _, name in in_place(text):
        low = name.lower()
        yield name, len(name) > 2 and low not in keep


def in_place(text: str) -> Iterator[tuple[int, int, str]]:
    """Where an account is named: start, end, name."""
    for pattern in _PLACES:
        for m in pattern.finditer(text):
            name = m["u"]
            if name.lower() not in _NO_USER and not is_placeholder(name) and not name.startswith("redacted-"):
                yield m.start("u"), m.end("u"), name
