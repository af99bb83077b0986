"""What a log says to do, sentence by sentence; advice on finding out more is none."""

from __future__ import annotations

from collections.abc import Iterator

from mtpdoctor.log.prompt import PROMPT, TRACE
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
# For a case that need not be this one, or said by a library below every error of its kind.
_NOT_FOR_ALL = lazy(
    r"(?i)\bonly if you (?:know|are sure)\b|\bat your own risk\b|^for (?:example|instance)\b|^e\.g\.|^if reserved but unallocated|"
    r"\byou can update transformers\b|\binstalling transformers from source\b|\bmetrics? reporting\b"
)
_BARE = lazy(
    r"^(?:\W{0,3}|\S*[$#%>] ?)(?:sudo )?(?:RUN )?(?:\S*python3? -m )?(?:uv )?(?:pip3?|apt(?:-get)?) install\b|^\++ "
)  # a shell's line
_INFORMS = lazy(r"^I\d{4} \d\d:|^(?:INFO|DEBUG)\b|\bINFO[ :|\]]")
_ITEM = lazy(r"^\(?\d{1,2}[.)]\s+")
# Lines that hold what a user sent or a model answered.
_FOREIGN_TEXT = lazy(
    r"GenerateReqInput|ChatCompletion|'messages'|\"messages\"|\bprompt[=:]|'text':|\btext=|input_ids|\"role\"|'role'|<\|im_|sampling_params"
)
_USAGE = lazy(r"^\s*usage: |^\s+--[a-z]|server_args=|ServerArgs\(|^\s*\[?-h\]?")
# A launch as it was typed or is shown; a hint that names the program has one option with it, or two. What stands behind a
# prompt was typed, whatever program it starts (a client, a benchmark, sglang.compile_deep_gemm).
_LAUNCH = lazy(
    r"(?:\blaunch_server|\bsglang serve|\bdynamo\.sglang|\bpython3? -m \w[\w.]*)\b(?:[^\n]*?\s--[a-z]){3}|^\s*(?:\S*[$#%>]|\++) .*(?:\blaunch_server|\bsglang serve|\bdynamo\.sglang)\b"
)
_TYPED = lazy(rf"^\s*(?:{PROMPT}|{TRACE})\s+(?:\w+=\S* )*[\w./-]+(?:\s|$)")
# The list that SGLang prints below any failed capture, whatever made it fail.
SOLUTIONS = "Possible solutions:"


def sentences(text: str) -> Iterator[str]:
    """Sentences and items of lists in ``text`` that may say what to do, in order."""
    if _FOREIGN_TEXT.search(text):
        return
    before = ""
    for part in _SPLIT.split(text[:MAX_TEXT]):
        part = _ITEM.sub("", f"{before} {part}".strip() if before else part.strip())
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
    """Is the line a usage text, the arguments in force, what passed through the server, what a shell ran (the launch
    among it), or for information only?"""
    return any(p.search(line) for p in (_FOREIGN_TEXT, _USAGE, _BARE, _LAUNCH, _TYPED, _INFORMS))
