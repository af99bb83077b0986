"""By which options and variables the failing code was reached, in words, for the cause of a failure that no rule knows.

From the table of gates, as the edits of ``gated`` are: what encloses the frames, as far as the command asks for it or
the log shows that SGLang chose it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mtpdoctor.case import Case
from mtpdoctor.diagnose.components import options_of
from mtpdoctor.diagnose.gated import NEAR, asked_for, gates_on, option_of
from mtpdoctor.diagnose.unknown import is_own
from mtpdoctor.facts import UNKNOWN, Source
from mtpdoctor.log.types import Frame
from mtpdoctor.records import dataclass
from mtpdoctor.sglang.flags import flag_table
from mtpdoctor.sglang.gates import IS, OFF, OVER, Gate

FAR = 8  # own frames looked at: what lies further out is the server itself
MOST = 3  # options named
NEAREST = 3  # own frames whose names count
SHORT = 40  # characters of a value that is shown
_KINDS = ("_algorithm", "_backend", "_format", "_mode")  # their values name code, not files or secrets
_NO_MATTER = ("1", "auto")


@dataclass(frozen=True, slots=True)
class Reached:
    """Options and variables with their values, as typed: ``asked`` for by the command, the nearest to the exception
    first; ``chosen``: what SGLang took by itself; ``near``: of the command, what bears on the part that failed."""

    asked: tuple[str, ...] = ()
    chosen: tuple[str, ...] = ()
    near: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Sentences, "" where nothing is known."""
        said = ""
        if self.asked:
            said = f"The code that failed runs only with {_joined(self.asked)}, which this launch asks for."
        elif self.chosen:
            said = f"The code that failed runs with {self.chosen[0]}, which SGLang chose by itself."
        if self.near:
            said += f" Options of this launch that bear on it: {', '.join(self.near)}."
        return said.strip()


def reached_by(frames: Sequence[Frame], case: Case) -> Reached:
    """``frames``: the innermost last."""
    if case.release is None or not frames:
        return Reached()
    asked: dict[str, str] = {}
    chosen: dict[str, str] = {}
    for distance, _, gate in gates_on(frames, case.release):
        if gate.name in asked or gate.how == OFF or distance >= FAR:
            continue
        if asked_for(gate, case):
            asked[gate.name] = _with_value(gate, case)
        elif distance < NEAR and gate.how == IS and _shown(gate, case):
            chosen.setdefault(gate.name, _with_value(gate, case))
    near = _bearing(frames, case, {*asked, *chosen})
    return Reached(tuple(asked.values())[:MOST], tuple(chosen.values())[:1], near)


def _bearing(frames: Sequence[Frame], case: Case, said: set[str]) -> tuple[str, ...]:
    """Options of the command that bear on the part that failed, beside those of ``said``."""
    own = [frame for frame in reversed(frames) if is_own(frame.path)][:NEAREST]
    table = flag_table(case.release)
    out: dict[str, str] = {}
    for name in options_of(own):
        value = case.facts.look(f"flag.{name}")
        spec = table.by_dest(name)
        if name in said or spec is None or value in (UNKNOWN, None, False) or str(value) in _NO_MATTER:
            continue
        short = spec.arity != "switch" and isinstance(value, (str, int)) and len(str(value)) <= SHORT
        out[name] = f"{spec.name} {value}" if short else spec.name
    return tuple(out.values())[:MOST]


def _shown(gate: Gate, case: Case) -> bool:
    """Does the log show that the server took one of the gate's values?"""
    fact = case.facts.fact(f"arg.{gate.name}")
    if fact is None or fact.source is not Source.LOG or option_of(gate, case) is None:
        return False
    return str(fact.value).lower().replace("-", "_") in {v.lower().replace("-", "_") for v in gate.values}


def _with_value(gate: Gate, case: Case) -> str:
    if gate.name.startswith("$"):
        return f"{gate.name[1:]}={case.facts.look(f'env.{gate.name[1:]}')}"
    spec = option_of(gate, case)
    assert spec is not None
    value = case.facts.look(f"arg.{gate.name}")
    told = gate.how in (IS, OVER) or str(value) in {str(choice) for choice in spec.choices or ()}
    told = told or spec.dest.endswith(_KINDS)
    return f"{spec.name} {value}" if told and spec.arity != "switch" else spec.name


def _joined(words: Iterable[str]) -> str:
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last
