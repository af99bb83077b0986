"""What the Fix region says, in plain words. No Textual here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mtpdoctor.kb.fact_names import fact_words
from mtpdoctor.tui.fix.offers import Offer

if TYPE_CHECKING:
    from mtpdoctor.diagnose.check import CheckReport
    from mtpdoctor.tui.session import Session

SAFETY = {
    "safe": "keeps what was asked for",
    "risky": "costs something: read the risk",
    "manual": "a person must do or decide it",
}
PROOF = {
    "none": "not proven",
    "parsed": "its flags and values exist in this release",
    "rules": "its flags and values exist in this release; nothing known stands in its way",
    "sglang": "SGLang's own argument checks accept it",
}
MOST = 4  # facts named


@dataclass(frozen=True, slots=True)
class Verdict:
    """``kind``: "good", "bad", "open" (not decided), "busy", "none". ``points`` are one line each."""

    kind: str
    head: str
    points: tuple[str, ...] = ()


def verdict_of(session: Session) -> Verdict:
    """What is known of the chosen command."""
    chosen = session.chosen
    if chosen.problem:
        what = "the command" if chosen.by_hand else "these edits"
        return Verdict("bad", f"{what[0].upper()}{what[1:]} cannot be used: {chosen.problem}")
    if chosen.command is None:
        return _as_it_is(session)
    if chosen.check is None:
        return Verdict("busy", "Checking ...")
    return check_verdict(chosen.check)


def _as_it_is(session: Session) -> Verdict:
    """Of the command before anything is switched on."""
    if session.report is None and session.check is not None:
        return check_verdict(session.check)
    if session.report is not None and session.report.outcome == "failed":
        return Verdict("none", "Nothing is switched on: this is the command that failed.")
    return Verdict("none", "Nothing is switched on.")


def check_verdict(check: CheckReport) -> Verdict:
    """The answer of a check in one line, and what goes with it."""
    release = f"SGLang {check.sglang_version}" if check.sglang_version else "this release"
    stops = [p for p in check.problems if p.decisive]
    losses = [
        f"but: {_named(p.title, p.rule)}" for p in check.problems if p.certain and p.severity == "degrades"
    ]
    if check.verdict == "reject":
        head = "Would not start" + (f": {_named(stops[0].title, stops[0].rule)}" if stops else "")
        return Verdict(
            "bad", head, tuple(f"and: {_named(p.title, p.rule)}" for p in stops[1:]) + tuple(losses)
        )
    if check.verdict == "accept":
        return Verdict("good", f"Would start: {release} takes it, no rule foresees a failure", tuple(losses))
    named = [n for p in check.problems if p.severity == "fatal" and not p.certain for n in p.unknown]
    if check.sglang_version is None:
        named.insert(0, "release")
    facts = list(dict.fromkeys(fact_words(n) for n in named))
    more = f" and {len(facts) - MOST} more" if len(facts) > MOST else ""
    hangs = f"; not known here: {', '.join(facts[:MOST])}{more}" if facts else ""
    return Verdict("open", f"No failure is certain{hangs}", tuple(losses))


def _named(title: str, rule: str | None) -> str:
    return f"{title} ({rule})" if rule else title


def why_of(offer: Offer) -> tuple[tuple[str, str], ...]:
    """(label, text) of what is to be known of a remedy before it is switched on."""
    fix = offer.fix
    out = [(fix.safety.capitalize(), SAFETY.get(fix.safety, ""))]
    if fix.risk:
        out.append(("Risk", fix.risk))
    if fix.why:
        out.append(("Why", fix.why))
    out += [("Note", note) for note in fix.notes]
    if fix.edits:
        out.append(("Proof", PROOF.get(fix.verified, fix.verified)))
    return tuple(out)


def empty_words(session: Session) -> str:
    """What stands in place of the list where there is nothing to offer."""
    report = session.report
    if report is None and session.logs:
        if session.errors:
            return "Nothing to fix: the log could not be diagnosed (2 says why)."
        return "The log is being read ..."
    if report is None and session.base is None:
        return (
            "Nothing to fix yet.\n\nOpen the log of a failed launch (1), or start the doctor with a command:\n"
            "  mtpdoctor -- python -m sglang.launch_server --model-path ..."
        )
    if report is None:
        if session.check is None:
            return "The command is being checked ..."
        if session.check.verdict == "reject":
            return "No rule has a remedy for this. Edit the command by hand: i"
        return "Nothing stands in this command's way that is known. Edit it by hand: i; launch it: l"
    if report.diagnoses:
        if session.base is None:
            return "No rule has a remedy for this, and the log does not show the launch command."
        return "No rule has a remedy for this. Edit the command by hand: i"
    if report.outcome == "ready":
        return "Nothing to fix: the server came up, and all of it works as wanted."
    if report.outcome == "unfinished":
        return "Nothing to fix: the log ends before the launch has failed or is ready."
    return "Nothing to fix: no failed launch is seen in this log."
