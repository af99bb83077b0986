"""A kernel that says which number type it takes, and an option of this command that gives it another one.

"expected BF16", "only supports float16": the cache that the command asks for in FP8, or another --dtype, is what reaches it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mtpdoctor.diagnose.components import own_path
from mtpdoctor.diagnose.remedies import fix_of
from mtpdoctor.diagnose.unknown import root_traceback
from mtpdoctor.diagnose.written import said_by
from mtpdoctor.kb.types import EditTemplate, Remedy, Safety
from mtpdoctor.patterns import lazy

if TYPE_CHECKING:
    from mtpdoctor.case import Case
    from mtpdoctor.diagnose.causality import Cause
    from mtpdoctor.diagnose.types import Fix
    from mtpdoctor.kb.load import Knowledge

_TAKES = lazy(
    r"(?i)\b(?:expect(?:s|ed)?|only (?:supports?|takes?|accepts?|works? with)|supports? only|requires?|must be|needs?)\b"
    r"(?:(?!\b(?:but|not|got|found|instead)\b|fp8|float8)[^.;\n]){0,60}?"
    r"\b(?:torch\.)?(?P<type>bf16|bfloat16|fp16|float16|half(?!\s+(?:of|the|as|an?)\b))\b"
)
_NAMES = {
    "bf16": "bfloat16",
    "bfloat16": "bfloat16",
    "fp16": "float16",
    "float16": "float16",
    "half": "float16",
}
_NARROW = ("fp8", "fp4", "int8", "nvfp4", "mxfp4")
_OF_CACHE = lazy(r"(?i)\bkv\b|\bcache|attention|\d?KV\b")
_NEAR = 4  # innermost frames


def typed_otherwise(cause: Cause, case: Case, knowledge: Knowledge) -> Fix | None:
    """The launch with the type that the message asks for; None where the command does not ask for another."""
    traceback = root_traceback(cause)
    said = said_by(traceback, cause.root)
    taken = _TAKES.search(said)
    if taken is None or case.document is None:
        return None
    wanted = _NAMES[taken["type"].lower()]
    cache, dtype = case.facts.look("flag.kv_cache_dtype"), case.facts.look("flag.dtype")
    frames = traceback.frames[-_NEAR:] if traceback is not None else ()
    near = _OF_CACHE.search(said) or any("attention" in own_path(frame.path) for frame in frames)
    if isinstance(cache, str) and cache.startswith(_NARROW) and near:
        remedy = Remedy(
            title="Keep the KV cache in the model's own type",
            safety=Safety.RISKY,
            why=f"the message asks for {taken['type']}, and --kv-cache-dtype {cache} makes the cache another one",
            edits=(EditTemplate("remove", "--kv-cache-dtype"),),
            risk="each token takes twice the memory or more",
        )
    elif isinstance(dtype, str) and _NAMES.get(dtype, wanted) != wanted:
        remedy = Remedy(
            title=f"Compute in the type that the message asks for, --dtype {wanted}",
            safety=Safety.RISKY,
            why=f"it asks for {taken['type']}, and the command for --dtype {dtype}",
            edits=(EditTemplate("set", "--dtype", wanted),),
            risk="numbers change a little",
        )
    else:
        return None
    return fix_of(remedy, case, knowledge)
