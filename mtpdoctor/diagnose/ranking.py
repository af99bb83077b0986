"""Which fix goes first where no rule knows the failure: by how often fixes of its kind were the right ones.

``knowledge/advice/helped.json`` holds, for each kind of fix, how often it was offered for the labelled launches of the
tests while the rules that know them were left out, and how often their labels call it right
(``benchmarks/first_fix.py --learn``). A kind that was seen a few times only is drawn towards its
family (the kinds whose titles begin with the same two words), and that towards ``START``. The order in
which advice comes (the surest kind of failure first, in each the order of its file) counts as well: a fix passes those before it
where its share makes up for the places.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from mtpdoctor.kb.types import Safety
from mtpdoctor.launch.types import EditOp
from mtpdoctor.paths import own_knowledge_folder
from mtpdoctor.patterns import lazy

if TYPE_CHECKING:
    from mtpdoctor.diagnose.types import Fix

Counts = Mapping[str, tuple[int, int]]

FILE = "advice/helped.json"
NONE = (0, 0)
PLACE = 0.08  # of share that one place is worth; cross-validated over the labelled sets, flat between 0.05 and 0.1
START = 0.55  # share that a kind is taken to have before it was seen; 0.5 to 0.65 order as well
WEIGHT = 2  # looks that what was taken before is worth
# What the tables of SGLang's functions and messages say of an upgrade, by the words of its reason.
_REASONS = (
    ("which is what this failure misses", "mended"),
    ("runs under other conditions", "guarded"),
    (" otherwise from", "names concerned"),
    ("in nothing that", "something else changed"),
    ("the very line", "line gone"),
    ("last release with this message", "message gone"),
    ("where it dies, changed", "function changed"),
    ("any more from", "function gone"),
    ("what calls it differs", "callers differ"),
    ("still has this check", "check stands"),
    ("what the check asks", "check differs"),
    ("whether one differs", "not known"),
)
_GUESSED = (
    "Upgrade SGLang, own release not known",
    "Upgrade SGLang, not known",
    "Upgrade SGLang, something else changed",
)
_SAID = ("Do as the message says", "Do as the log says")
# What the message itself names, and what keeps a feature: before giving it up, or a guess at it.
_NAMED = (
    "Do as the message says",
    "Take a value that the message lists",
    "Start both servers with the same",
    "Load the draft model without",
    "Read the draft model by",
)
_GIVES_UP = (
    "Serve without",
    "Leave ",
    "See whether each server works alone",
    "Do what the message says about",
    "Try without",
    "Take less host memory",
    "Try the other ",
    "Tensor parallelism over the same GPUs",
    "Change what the failing check looks at: remove",
    "Look at the settings that the message speaks of",
)
_END = lazy(r"[:(,;<]| - | --|\d")


def kind_of(title: str, why: str) -> str:
    """The kind of a fix: its title without what belongs to the single launch; of an upgrade what speaks for it."""
    if title.startswith("Upgrade SGLang from"):
        return "Upgrade SGLang, " + next((kind for words, kind in _REASONS if words in why), "?")
    if title.startswith("Upgrade SGLang to") and "which one runs now the log does not tell" in why:
        return "Upgrade SGLang, own release not known"
    if title.startswith("Do as the log says: --disable-cuda-graph"):
        return "Do as the log says --disable-cuda-graph"
    end = _END.search(title)
    return (title[: end.start()] if end else title).strip()


def ranked(fixes: Sequence[Fix]) -> tuple[Fix, ...]:
    """The fixes in the order in which to try them. Safe ones stay where they are, before all others that come later."""
    table = _table()
    safe = [f for f in fixes if f.safety == Safety.SAFE.value]
    rest = [(n, f) for n, f in enumerate(fixes) if f not in safe]
    rest.sort(key=lambda nf: (-round(_share(nf[1], table) - PLACE * nf[0], 4), nf[0]))
    return (*safe, *_named_first(_said_before_guessed([f for _, f in rest])))


def _named_first(fixes: list[Fix]) -> list[Fix]:
    """What the message names goes before the first fix that gives something up, guesses at what it is about or leaves it open."""
    at = next((n for n, f in enumerate(fixes) if f.title.startswith(_GIVES_UP)), len(fixes))
    named = [f for f in fixes[at:] if f.title.startswith(_NAMED) and not _allows(f)]
    return [*fixes[:at], *named, *(f for f in fixes[at:] if f not in named)]


def _said_before_guessed(fixes: list[Fix]) -> list[Fix]:
    """What the failure itself tells one to do goes before an upgrade for which nothing speaks."""
    said = next((n for n, f in enumerate(fixes) if f.title.startswith(_SAID)), 0)
    guessed = [f for f in fixes[:said] if kind_of(f.title, f.why) in _GUESSED]
    return [
        *(f for f in fixes[:said] if f not in guessed),
        *fixes[said : said + 1],
        *guessed,
        *fixes[said + 1 :],
    ]


def _allows(fix: Fix) -> bool:
    """Does it switch a variable on, as those that go past a check?"""
    return any(e.op is EditOp.ENV and e.value != "0" for e in fix.edits)


def family_of(kind: str) -> str:
    return " ".join(kind.split()[:2])


def _share(fix: Fix, table: Counts) -> float:
    kind = kind_of(fix.title, fix.why)
    share = START
    for right, offered in (table.get(f"{family_of(kind)} ...", NONE), table.get(kind, NONE)):
        share = (right + WEIGHT * share) / (offered + WEIGHT)
    return share


@lru_cache(maxsize=1)
def _table() -> Counts:
    """Kind or family -> how often right, how often offered. It is the doctor's own: rules of others are ranked by it too."""
    try:
        text = (own_knowledge_folder() / FILE).read_text(encoding="utf-8")
        return {str(kind): (right, offered) for kind, (right, offered) in json.loads(text)["kinds"].items()}
    except (OSError, ValueError, KeyError, TypeError):
        return {}  # the order in which advice comes stands
