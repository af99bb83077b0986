"""What a log says to do, sentence by sentence; advice on finding out more is none."""

from __future__ import annotations

from collections.abc import Iterator

from mtpdoctor.patterns import lazy

MAX_TEXT = 6000  # characters of a message that are read
MAX_SENTENCE = 700
_SPLIT = lazy(
    r"(?<=[.!?;])\s+(?=[A-Z\"'`(\[-]|e\.g|i\.e)|\n+|(?:^|\s)\(?\d{1,2}[.)]\s+(?=\S)|\s[•*-]\s+(?=[A-Za-z])"
)
_ABBREVIATED = lazy(r"(?:e\.g\.|i\.e\.|etc\.|vs\.|cf\.)$")
# How to find out more, or how to hide it: of no help to a launch.
_DEBUG = lazy(
    r"(?i)\b(?:for debug\w*|to debug|debugging|stack ?-?trace|back ?-?trace|for more (?:info\w*|details?|context)|more information|"
    r"suppress\w*|verbose|to silence|to hide|full error|log[- ]?level|report (?:this|an? )?(?:issue|bug)|file an issue|core ?dump|"
    r"environment variable\w* (?:to )?(?:see|get|print|enable) )"
)
_NOT_FOR_ALL = lazy(
    r"(?i)\bonly if you (?:know|are sure)\b|\bat your own risk\b|^for (?:example|instance)\b|^e\.g\."
)
# Lines that hold what a user sent or a model answered.
_FOREIGN_TEXT = lazy(
    r"GenerateReqInput|ChatCompletion|'messages'|\"messages\"|\bprompt[=:]|'text':|\btext=|input_ids|\"role\"|'role'|<\|im_|sampling_params"
)
_USAGE = lazy(r"^\s*usage: |^\s*--[a-z]|server_args=|ServerArgs\(|^\s*\[?-h\]?")
# The list that SGLang prints below any failed capture, whatever made it fail.
SOLUTIONS = "Possible solutions:"


def sentences(text: str) -> Iterator[str]:
    """Sentences and items of lists in ``text`` that may say what to do, in order."""
    if _FOREIGN_TEXT.search(text):
        return
    before = ""
    for part in _SPLIT.split(text[:MAX_TEXT]):
        part = f"{before} {part}".strip() if before else part.strip()
        before = ""
        if _ABBREVIATED.search(part):
            before = part
            continue
        if (
            8 <= len(part) <= MAX_SENTENCE
            and not _DEBUG.search(part)
            and not _NOT_FOR_ALL.search(part)
            and not _USAGE.search(part)
        ):
            yield " ".join(part.split())


def is_other_text(line: str) -> bool:
    """Is the line a usage text, the arguments in force, or what passed through the server?"""
    return _FOREIGN_TEXT.search(line) is not None or _USAGE.search(line) is not None
