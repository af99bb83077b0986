"""What a traceback says happened, in one clause of plain words. Nothing that is not in the log."""

from __future__ import annotations

from mtpdoctor.diagnose.asserted import must
from mtpdoctor.log.types import Traceback
from mtpdoctor.patterns import lazy

LONGEST = 160
ENOUGH = 20  # characters that a first line needs to say something by itself
_NONE = lazy(r"'NoneType' object (?:has no attribute '(\w+)'|(is not \w+(?: \w+)?))")
_LACKS = lazy(
    r"(?:type object )?'([\w.]+)' object has no attribute '(\w+)'|type object '([\w.]+)' has no attribute '(\w+)'"
)
_MODULE = lazy(r"(?:partially initialized )?module '([\w.]+)' has no attribute '(\w+)'")
_UNPACK = lazy(r"(not enough|too many) values to unpack \(expected (\d+)(?:, got (\d+))?\)")
_OUT = lazy(
    r"index (-?\d+) (?:is )?out of (?:bounds|range) (?:for dimension (\d+) with size|: \d+ <|for .*size) (\d+)"
)
_LOOKED = lazy(r"([A-Za-z_][\w.]*)\[[^\[\]]*\]")
_CONDITION = lazy(r"^assert\s+(.*?)(?:,\s*(?:f?[\"'(].*)?)?$")
_UNBOUND = lazy(r"(?:cannot access local|local) variable '(\w+)'")
_CALL = lazy(r"([\w.]+)\(\) (got an unexpected keyword argument '(\w+)'|missing .*|takes .*)")
_PARTED = lazy(
    r"mat1 and mat2 shapes cannot be multiplied \((.*)\)|The size of tensor a \((\d+)\) must match the size of tensor b \((\d+)\)"
)
_PARAMETERS = ("params_dict", "param_dict", "state_dict")
_NO_FILE = lazy(r"No such file or directory: (.+)$")
_ONE_SPACE = lazy(r"\s+")


def what_of(traceback: Traceback) -> str:
    """A clause that goes on after "fails: "."""
    kind, said = traceback.type.rsplit(".", 1)[-1], _ONE_SPACE.sub(" ", traceback.message).strip()
    code = traceback.frames[-1].code if traceback.frames else ""
    first = _ONE_SPACE.sub(" ", traceback.message.partition("\n")[0]).strip()
    return _by_message(kind, said, code) or shortened(first if len(first) >= ENOUGH else said) or kind


def condition_of(code: str) -> str:
    """What a line ``assert condition`` asks; "" for other lines and for the last line of one that goes over several."""
    found = _CONDITION.match(code.strip())
    return found[1].rstrip(" (\\") if found else ""


def _by_message(kind: str, said: str, code: str) -> str:
    if none := _NONE.search(said):
        what = f"its .{none[1]} is asked for" if none[1] else f"it {none[2]}"
        return f"something that should be there is None ({what})"
    if lacks := _LACKS.search(said):
        return f"{lacks[1] or lacks[3]} has no {lacks[2] or lacks[4]}"
    if module := _MODULE.search(said):
        return f"the module {module[1]} has no {module[2]}"
    if kind == "KeyError" and said:
        table = _LOOKED.search(code)
        if table and table[1].endswith(_PARAMETERS):
            return f"the weights hold {shortened(said)}, for which the model as it is built here has no parameter"
        return f"{shortened(said)} is not in {table[1]}" if table else f"there is no entry {shortened(said)}"
    if unpack := _UNPACK.search(said):
        got = f"{unpack[3]} values come" if unpack[3] else f"{unpack[1]} values come"
        return f"{got} where {unpack[2]} are expected"
    if out := _OUT.search(said):
        return f"index {out[1]} lies outside of a dimension of {out[3]} entries"
    if unbound := _UNBOUND.search(said):
        return f"{unbound[1]} was never given a value, because no branch of the code fits this case"
    if call := _CALL.search(said):
        return f"{call[1]} is called with other arguments than it takes ({shortened(call[2])})"
    if parted := _PARTED.search(said):
        sizes = parted[1] or f"{parted[2]} and {parted[3]}"
        return f"two tensors do not fit together ({sizes})"
    if kind == "AssertionError" and not said:
        if asked := must(code):
            return shortened(asked)
        asked = condition_of(code)
        return (
            f"the condition {shortened(asked)} does not hold"
            if asked
            else "a condition does not hold that has no message"
        )
    if kind == "ZeroDivisionError":
        return f"it divides by zero at {shortened(code)}" if code else "it divides by zero"
    if kind == "NotImplementedError":
        return (
            f"there is no code for this case: {shortened(said)}" if said else "there is no code for this case"
        )
    if kind == "FileNotFoundError" and (missing := _NO_FILE.search(said)):
        return f"there is no {shortened(missing[1])}"
    return ""


def shortened(text: str) -> str:
    text = text.strip()
    return text if len(text) <= LONGEST else text[: LONGEST - 3].rstrip() + "..."
