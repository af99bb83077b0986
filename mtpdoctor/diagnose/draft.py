"""Facts for a rule on a failure in a log: the root line, its traceback, whose message it is, where SGLang raises it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mtpdoctor.case import Case
from mtpdoctor.diagnose.causality import Cause, find_causes
from mtpdoctor.diagnose.failures import chain
from mtpdoctor.diagnose.given import Given
from mtpdoctor.diagnose.the_case import case_of
from mtpdoctor.diagnose.unknown import root_traceback
from mtpdoctor.errors import UserError
from mtpdoctor.kb.draft import Draft, look_alike, next_id, rare_literal
from mtpdoctor.kb.generalise import generalise
from mtpdoctor.kb.knowledge import Knowledge
from mtpdoctor.kb.literals import required_literal
from mtpdoctor.kb.match import match_rules
from mtpdoctor.kb.placeholders import Placeholders
from mtpdoctor.kb.types import Match, Role, Rule
from mtpdoctor.log.types import Attempt, Line, LogReading, Traceback

if TYPE_CHECKING:
    from mtpdoctor.sglang.raise_sites import RaiseSite
    from mtpdoctor.sglang.source import SourceTree

SHOWN_FRAMES = 3  # of a traceback, in the example
SHOWN_MESSAGE = 8  # lines of its message
MAX_PROPOSALS = 3
# package folder -> `source` of a rule
PACKAGES = {
    "sgl_kernel": "sgl-kernel",
    "huggingface_hub": "huggingface",
    "deep_gemm": "deepgemm",
    "safetensors_rust": "safetensors",
    "torch": "torch",
}
_PACKAGE = re.compile(r"(?:site|dist)-packages/([\w]+)")
_NATIVE = ((re.compile(r"NCCL (?:WARN|ERROR)|\bnccl\w+Error"), "nccl"), (re.compile(r"(?i)oom-kill|Killed process"), "kernel"),
           (re.compile(r"CUDA error"), "cuda"), (re.compile(r"gloo"), "gloo"))  # fmt: skip


@dataclass(frozen=True, slots=True)
class Failure:
    """What a rule is drafted from. ``known`` are the rules that fire on its root line already."""

    root: Line
    traceback: Traceback | None
    stage: str
    case: Case
    known: tuple[Rule, ...]


def failure_in(reading: LogReading, knowledge: Knowledge, number: int | None = None) -> Failure:
    """The root failure of the last attempt, or the one at line ``number``.

    Raises UserError when there is none, or the line is not in the log.
    """
    attempt = reading.attempt
    if attempt is None:
        raise UserError("there is nothing in the log")
    case, _ = case_of(reading, attempt, Given())
    matches = match_rules(knowledge, reading, attempt, case.facts, advice=False)
    if number is not None:
        line = _line(reading, number)
        traceback = _traceback_of(attempt, line)
        stage = _stage_at(attempt, line)
        if traceback is not None and traceback.exception is not None:
            line = traceback.exception
    else:
        causes = find_causes(attempt, matches).causes
        if not causes:
            raise UserError(
                "nothing in the last launch attempt looks like a failure", hint="name its line: --line N"
            )
        line, traceback, stage = causes[0].root, _tb(causes[0]), _stage(causes[0], attempt)
    return Failure(line, traceback, stage, case, _known(matches, line))


def draft_of(
    failure: Failure,
    knowledge: Knowledge,
    sources: Mapping[str, SourceTree],
    healthy: Iterable[str] = (),
    least_id: int | None = None,
) -> Draft:
    """The draft. ``sources`` are the releases at hand, ``healthy`` lines of servers that are fine."""
    message = _message(failure)
    sites = _sites(failure, sources)
    own = sites.get(str(failure.case.release))
    site = own or next(reversed(sites.values()), None)
    hide = Placeholders()
    example, root = _example(failure, hide)
    regex, literal, span = _regex(failure, hide(message), site)
    source = "sglang" if sites else source_of(failure)
    remarks = [f"{rule.id} ({rule.title}) fires on this line already" for rule in failure.known]
    releases, said = _releases(source, sites, sources, failure.case)
    reads, proposals = _guards(site, failure.case)
    candidates = (*healthy, *_example_lines(knowledge.rules))
    if literal is None and not span:
        literal = rare_literal(regex, candidates)
    command = _command(failure.case, hide)
    draft = Draft(
        id=next_id(knowledge.rules, least_id),
        stage=failure.stage,
        source=source,
        regex=regex,
        literal=literal,
        traceback=span,
        releases=releases,
        example=example,
        root=root,
        also=(),
        command=command,
        release=str(failure.case.release)
        if failure.case.release and failure.case.release_is_certain
        else None,
        ok=_ok(message, regex, candidates, span),
        remarks=(*remarks, *said, *_where(site)),
        reads=reads,
        proposals=proposals,
    )
    return _with_also(draft, knowledge)


def source_of(failure: Failure) -> str:
    """Whose message it is: the package of the last frame, else what the line itself says."""
    if failure.traceback is not None and failure.traceback.frames:
        path = failure.traceback.frames[-1].path.replace("\\", "/")
        package = _PACKAGE.search(path)
        if package is None:
            return "sglang" if "/sglang/" in path else "python"
        name = package[1]
        return PACKAGES.get(name, name)
    for pattern, name in _NATIVE:
        if pattern.search(failure.root.body):
            return name
    return "sglang"


# -- the place in the log ------------------------------------------------------------------------------


def _line(reading: LogReading, number: int) -> Line:
    lines = (
        reading.hits.line(0, number) if reading.files and 1 <= number <= reading.files[0].line_count else ()
    )
    line = next((each for each in lines if each.text.strip()), None)
    if line is None:
        count = reading.files[0].line_count if reading.files else 0
        raise UserError(f"line {number} is not in the log or is empty", hint=f"it has {count} lines")
    return line


def _traceback_of(attempt: Attempt, line: Line) -> Traceback | None:
    for event in attempt.events:
        if event.traceback is None:
            continue
        for member in chain(event.traceback):
            if any(each.key == line.key for each in member.lines):
                return member
    return None


def _stage_at(attempt: Attempt, line: Line) -> str:
    for event in attempt.events:
        lines = [
            event.line,
            *(each for t in (chain(event.traceback) if event.traceback else ()) for each in t.lines),
        ]
        if any(each.key == line.key for each in lines):
            return event.stage.value
    before = [mark.stage for mark in attempt.marks if mark.line.key <= line.key]
    return (max(before, key=lambda s: s.order) if before else attempt.stage).value


def _tb(cause: Cause) -> Traceback | None:
    return root_traceback(cause)


def _stage(cause: Cause, attempt: Attempt) -> str:
    event = cause.failure.event
    return (event.stage if event is not None else attempt.stage).value


def _known(matches: Sequence[Match], line: Line) -> tuple[Rule, ...]:
    found = {m.rule.id: m.rule for m in matches if m.line.key == line.key}
    return tuple(found.values())


# -- the pattern ---------------------------------------------------------------------------------------


def _message(failure: Failure) -> str:
    """The line that the rule is to find: with the exception's type, without SGLang's time and rank."""
    return failure.root.body.strip()


def _regex(failure: Failure, message: str, site: RaiseSite | None) -> tuple[str, str | None, bool]:
    """The regex, the literal where it must be given, and whether it is held against the whole traceback."""
    traceback = failure.traceback
    bare = traceback is not None and re.fullmatch(r"[\w.]+:?", message) is not None
    if bare and traceback is not None and traceback.frames and traceback.frames[-1].code.strip():
        frame = traceback.frames[-1]
        code = re.escape(frame.code.strip()).replace("\\ ", " ")
        return rf"in {frame.function}\n\s*{code}[\s\S]*{re.escape(message.rstrip(':'))}", None, True
    pieces = site.pieces if site is not None and site.template else None
    regex = generalise(message, pieces)
    try:
        required_literal(regex)
    except ValueError:
        return regex, max(re.split(r"[\"'\\<>&]", message), key=len).strip(), False
    return regex, None, False


# -- SGLang's sources ----------------------------------------------------------------------------------


def _sites(failure: Failure, sources: Mapping[str, SourceTree]) -> dict[str, RaiseSite]:
    """Release -> the statement that prints the message, for the releases that have it, in the order given."""
    from mtpdoctor.sglang.raise_sites import find_site, index_sites, site_at

    frames = failure.traceback.frames if failure.traceback is not None else ()
    if frames and "/sglang/" not in frames[-1].path:
        return {}
    text = _message(failure)
    bare = re.fullmatch(r"[\w.]+:?", text) is not None
    own = str(failure.case.release) if failure.case.release else None
    first: list[str] = []  # where it was found in another release
    word = ""  # of its fixed text: files without it need no reading
    out: dict[str, RaiseSite] = {}
    order = sorted(sources, key=lambda r: r != own)  # the log's own release tells the file
    for release in order:
        index = index_sites(sources[release])
        found: Sequence[RaiseSite] = ()
        if bare or release == own:
            frame = frames[-1] if frames else None
            here = site_at(sources[release], frame.path, frame.lineno, frame.function) if frame else None
            found = [here] if here is not None and release == own else []
        if not found and not bare:
            found = find_site(index, text, first) if first else ()
            found = found or find_site(index, text, _holding(word, sources[release]) if word else None)
        if found:
            out[release] = found[0]
            word = word or max(re.findall(r"\w{8,}", " ".join(found[0].pieces)), key=len, default="")
            first = list(dict.fromkeys([found[0].file, *first]))
    return {release: out[release] for release in sources if release in out}


def _holding(word: str, source: SourceTree) -> list[str]:
    return [path for path in source.files() if word in (source.read(path) or "")]


def _releases(
    source: str, sites: Mapping[str, RaiseSite], sources: Mapping[str, SourceTree], case: Case
) -> tuple[str, list[str]]:
    """The range, and what it rests on."""
    from mtpdoctor.sglang.claims import range_text

    if source != "sglang":
        return "*", [
            f'the message is not SGLang\'s own ({source}): releases "*"; say in `cause` which versions it concerns'
        ]
    if sites:
        found, every = list(sites), list(sources)
        if len(every) == 1:
            return f">={every[0]}", [
                f"releases: only SGLang {every[0]} was at hand, which has the message; the end is open"
            ]
        text = range_text(found, every)
        return text, [
            f"releases: of {len(every)} at hand ({every[0]} to {every[-1]}) {len(found)} have the message"
        ]
    without = "no source at hand has the message" if sources else "no source was at hand"
    if case.release is None or not case.release_is_certain:
        told = (
            f"the log is from {case.release_range}" if case.release_range else "the log does not say its own"
        )
        return "*", [f'releases: {told}, and {without}: narrow "*" with --source DIR']
    return f">={case.release}", [
        f"releases: the log is from {case.release}, {without}: narrow it with --source DIR"
    ]


def _where(site: RaiseSite | None) -> tuple[str, ...]:
    return (f"raised in {site.file}:{site.line}, {site.function}: {site.code}",) if site is not None else ()


def _guards(site: RaiseSite | None, case: Case) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Flags that the guards of the statement read, and edits that would make one false."""
    if site is None:
        return (), ()
    from mtpdoctor.sglang.flags import flag_table
    from mtpdoctor.sglang.guards import candidate_edits, config_read, flags_read

    table = flag_table(case.release)
    values = {name[4:]: case.facts[name] for name in case.facts if name.startswith("arg.")}
    reads = [
        *(spec.name for spec in flags_read(site, table)),
        *(f"config.json: {f}" for f in config_read(site)),
    ]
    edits = ["; ".join(map(str, c.edits)).replace("; ", ", ") for c in candidate_edits(site, values, table)]
    return tuple(reads), tuple(dict.fromkeys(edits))[:MAX_PROPOSALS]


# -- examples ------------------------------------------------------------------------------------------


def _example(failure: Failure, hide: Placeholders) -> tuple[tuple[str, ...], str | None]:
    """The lines to show, and what tells the root line among them."""
    message = hide(_message(failure))
    traceback = failure.traceback
    if traceback is None or not traceback.frames:
        return (message,), None
    lines = [
        "Scheduler hit an exception: Traceback (most recent call last):"
        if traceback.rank
        else "Traceback (most recent call last):"
    ]
    for frame in traceback.frames[-SHOWN_FRAMES:]:
        lines.append(f'  File "{hide(frame.path)}", line {frame.lineno}, in {frame.function}')
        if frame.code.strip():
            lines.append(f"    {hide(frame.code.strip())}")
    lines.append(message)
    lines += [hide(line) for line in traceback.message.split("\n")[1:SHOWN_MESSAGE] if line.strip()]
    return tuple(lines), message[:60].strip() or None


def _command(case: Case, hide: Placeholders) -> str | None:
    """The launch command with ``M`` for its model and secrets masked; None where it is not one line of shell."""
    from mtpdoctor.launch.document import read_launch
    from mtpdoctor.launch.render import command_line
    from mtpdoctor.records import replace

    if case.document is None or case.reconstructed:
        return None
    command = case.document.command
    stands = {
        "model_path": "M",
        "speculative_draft_model_path": "D",
        "tokenizer_path": "T",
        "host": "0.0.0.0",
    }
    flags = tuple(replace(u, values=(stands[u.dest],)) if u.dest in stands else u for u in command.flags)
    flags = tuple(u for u in flags if u.dest not in ("served_model_name", "api_key", "log_level"))
    text = hide(command_line(replace(command, flags=flags, env={})))
    if "<" in text or "\n" in text:
        return None
    try:
        read_launch(text)
    except UserError:
        return None
    return text


def _example_lines(rules: Iterable[Rule]) -> Iterable[str]:
    for rule in rules:
        for kind in ("ok", "bad"):
            for example in rule.examples.get(kind, ()):
                yield from (line.strip() for line in example["log"].split("\n") if line.strip())


def _ok(message: str, regex: str, candidates: Iterable[str], whole: bool) -> str | None:
    """A look-alike; a pattern over a whole traceback is silent on any single line."""
    hide = Placeholders()
    found = look_alike(message, "(?!)" if whole else regex, candidates)
    return hide(found) if found is not None else None


def _with_also(draft: Draft, knowledge: Knowledge) -> Draft:
    """The specific causes that fire on the example beside the draft, declared."""
    from mtpdoctor.diagnose.examples import facts_of
    from mtpdoctor.kb.lint import Hooks
    from mtpdoctor.kb.lint_examples import matches_in
    from mtpdoctor.records import replace

    example = {"log": "\n".join(draft.example), "command": draft.command, "release": draft.release}
    matches, _, _ = matches_in(str(example["log"]), knowledge, example, Hooks(facts_of=facts_of))
    others = {m.rule.id for m in matches if m.rule.role is Role.CAUSE and not m.rule.generic}
    return replace(draft, also=tuple(sorted(others)))
