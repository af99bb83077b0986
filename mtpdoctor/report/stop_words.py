"""What is said of a log that just stops, in words that every form of the report shares. Pure, cleaned text."""

from __future__ import annotations

from collections.abc import Sequence

from mtpdoctor.diagnose.stop_line import span
from mtpdoctor.diagnose.types import Ended, Late, Stop, StopCause
from mtpdoctor.log.types import Line
from mtpdoctor.records import dataclass
from mtpdoctor.report.clean import Cleaner
from mtpdoctor.report.fold import line_numbers

LATE = 8  # ranks named
OPEN = 4  # things named that would decide
CLUES = 3
GONE = (
    "If it is gone: it may have been killed from outside, or the log may be cut. Give the whole log, and what the "
    "shell, container or scheduler said at its end."
)


@dataclass(frozen=True, slots=True)
class CauseWords:
    """One thing that may hold the launch up."""

    id: str
    title: str
    seen: str  # what speaks for it, "" where nothing does
    lines: tuple[Line, ...]  # where the log shows that
    tell: str
    do: str
    open: str  # what is not known and would decide, "" where nothing is
    references: tuple[str, ...]


def ended_word(ended: Ended | None) -> str | None:
    """What stands in place of READY and UNFINISHED; None: that itself."""
    if ended is None or not ended.sure:
        return None
    return "ENDED" if ended.sign is None else "STOPPED"


def ended_words(ended: Ended, files: Sequence[str], stage: str) -> str:
    """How a launch that had not failed came to its end, as one clause: what it was, what ended it, how it went."""

    def at(*lines: Line | None) -> str:
        return line_numbers([line for line in lines if line is not None], files)

    if ended.sign is None:
        was = f"the server was ready ({at(ended.ready)}), and" if ended.ready else f"{stage}"
        return f"{was} its process has ended with exit code 0 ({at(ended.code_line)})" + (
            "" if ended.ready else ", before it had failed or was ready"
        )
    if not ended.sure:
        return f"Ctrl-C was pressed {stage} ({at(ended.line)}): it ended the launch, or only the showing of its log"
    if ended.ready is not None:
        text = (
            f"the server was ready ({at(ended.ready)}), and was then stopped: {ended.sign} ({at(ended.line)})"
        )
    elif stage.startswith("at serving"):
        text = f"the server was serving, and was then stopped: {ended.sign} ({at(ended.line)})"
    else:
        text = f"it was stopped {stage}, before it had failed or was ready: {ended.sign} ({at(ended.line)})"
    if ended.code is None:
        return text
    how = "it ended" if ended.in_order else "it did not end in time and was killed"
    return f"{text}; {how}, exit code {ended.code} ({at(ended.code_line)})"


class StopWords:
    def __init__(
        self, stop: Stop, clean: Cleaner, files: Sequence[str], stage: str, ended: Ended | None = None
    ) -> None:
        """``stage``: as the report says it, "at weights (loading the weights)"."""
        self.stop = stop
        self._ended = ended
        self._clean = clean
        self._files = files
        self._stage = stage

    # -- what is said first -----------------------------------------------------------------------------
    @property
    def word(self) -> str:
        return ended_word(self._ended) or "UNFINISHED"

    def headline(self) -> str:
        """After the word: where it stands."""
        stop = self.stop
        if self._ended is not None:
            return ended_words(self._ended, self._files, self._stage)
        if stop.answers is not None:
            return "it answers requests, though the log does not say that it is ready"
        return f"the log ends {self._stage}, with neither an error nor a ready server"

    def first(self) -> str:
        """What is likeliest: mostly that nothing is wrong."""
        stop = self.stop
        if stop.answers is not None:
            where = line_numbers([stop.answers], self._files)
            return f"A request was answered ({where}), so that it serves: the line that says so may be cut or left out."
        done = f" {self._clean.line(stop.progress)} were done." if stop.progress else ""
        if self._ended is not None:
            whether = (
                f"It had been quiet for {span(stop.silent_s)} then, longer than the stage may be."
                if stop.overdue and stop.silent_s is not None
                else "Nothing in the log says that anything was wrong."
            )
            who = "Somebody or something ended it." if ended_word(self._ended) == "STOPPED" else ""
            return f"{who}{done} {whether}".strip()
        if stop.overdue and stop.silent_s is not None:
            where = line_numbers([stop.silent_until], self._files) if stop.silent_until else ""
            return (
                f"It was quiet for {span(stop.silent_s)}, up to {where}, longer than this stage may be ({span(stop.quiet_s)}): "
                f"it is slow, or stands still.{done}"
            )
        return (
            f"It may simply still be running: this stage may be quiet for {span(stop.quiet_s)}.{done} The log does not tell "
            "how long ago its last line was written; read it again in a while."
        )

    # -- what is known ----------------------------------------------------------------------------------
    def facts(self, *, sign: bool = True) -> list[tuple[str, str]]:
        """(word, what is known). ``sign``: with the last sign of life."""
        stop = self.stop
        out: list[tuple[str, str]] = []
        if stop.last is not None and sign:
            out.append(("Last sign of life", self.sign(stop.last)))
        if stop.late:
            out.append(("Behind", self.late()))
        if times := self.times():
            out.append(("Times", times))
        if stop.quiet_why and stop.answers is None:
            out.append((f"May be quiet for {span(stop.quiet_s)}", self._clean.line(stop.quiet_why)))
        return out

    def sign(self, line: Line) -> str:
        return ", ".join([line_numbers([line], self._files), *self.by(line)])

    def by(self, line: Line) -> list[str]:
        """Which rank wrote it, and when, as far as the log tells."""
        return [self._clean.line(text) for text in (line.rank, line.time) if text]

    def late(self) -> str:
        """Ranks that are behind: how far each has got, and those that have written nothing."""
        heard = [self._late(one, one.last) for one in self.stop.late if one.last is not None]
        silent = [self._clean.line(one.rank) for one in self.stop.late if one.last is None]
        shown = heard[:LATE] + ([f"and {len(heard) - LATE} more"] if len(heard) > LATE else [])
        if silent:
            names = ", ".join(silent[:LATE]) + (
                f" and {len(silent) - LATE} more" if len(silent) > LATE else ""
            )
            shown.append(f"{names} {'has' if len(silent) == 1 else 'have'} written nothing")
        return f"{'; '.join(shown)} (of {self.stop.ranks} ranks)"

    def _late(self, late: Late, last: Line) -> str:
        return f"{self._clean.line(late.rank)} got to {late.stage} ({line_numbers([last], self._files)})"

    def times(self) -> str:
        stop = self.stop
        out: list[str] = []
        if stop.before is not None and stop.before_s:
            out.append(f"{stop.before} took {span(stop.before_s)}")
        if stop.stage_s:
            out.append(f"{stop.stage} had gone on for {span(stop.stage_s)} at the last sign of life")
        if stop.silent_s and stop.silent_until is not None and not stop.overdue:
            where = line_numbers([stop.silent_until], self._files)
            out.append(f"then quiet for {span(stop.silent_s)} up to {where}, no longer than the stage may be")
        return "; ".join(out)

    # -- what may hold it up ----------------------------------------------------------------------------
    def heading(self) -> str:
        return "What usually holds it up here" if self.stop.overdue else "If it does not go on"

    def causes(self) -> list[CauseWords]:
        return [self._cause(cause) for cause in self.stop.causes]

    def _cause(self, cause: StopCause) -> CauseWords:
        clean = self._clean
        seen, lines = [], []
        for clue in cause.clues[:CLUES]:
            where = f" ({line_numbers([clue.line], self._files)})" if clue.line is not None else ""
            lines += [clue.line] if clue.line is not None else []
            seen.append(clean.line(clue.text) + where)
        rest = len(cause.open) - OPEN
        named = [clean.line(name) for name in cause.open[:OPEN]] + ([f"{rest} more"] if rest > 0 else [])
        return CauseWords(
            id=cause.id,
            title=clean.line(cause.title),
            seen="; ".join(seen),
            lines=tuple(lines),
            tell=clean.line(cause.tell),
            do=clean.line(cause.do),
            open=", ".join(named),
            references=tuple(clean.line(url) for url in cause.references),
        )

    def end(self) -> str:
        """What to do where it is no longer there; "" where that is known."""
        gone = self._ended is not None and self._ended.sure
        return "" if gone or self.stop.answers is not None else GONE
