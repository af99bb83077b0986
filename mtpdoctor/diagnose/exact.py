"""Is a printed command the launch that the log shows, with nothing changed but the fix?

A proof says that a command's flags and values exist. It is no proof where words of the command are not what the server
would get: JSON whose quotation marks are gone, arguments that only a run could tell, words that belong to no option,
fields of a log that no option says again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from mtpdoctor.errors import UserError
from mtpdoctor.launch.document import read_launch
from mtpdoctor.launch.shell.programs import has_more_options
from mtpdoctor.launch.types import Edit, EditOp
from mtpdoctor.patterns import lazy
from mtpdoctor.sglang.flags import FlagSpec, flag_table

if TYPE_CHECKING:
    from mtpdoctor.launch.document import LaunchDocument
    from mtpdoctor.launch.types import FlagUse
    from mtpdoctor.log.types import Attempt
    from mtpdoctor.release import Release

NOT_EXACT = "the command is not known to the last word: see the notes"

_OPEN_LIST = lazy(
    r"\$(?:[@*]|\{[@*][^{}]*\}|\{\w+\[[@*]\][^{}]*\}|\w*(?:ARGS|OPTS|OPTIONS|FLAGS|EXTRA)\w*|\{\w*(?:ARGS|OPTS|OPTIONS|FLAGS|EXTRA)\w*[^{}]*\})\Z"
)
_JSON_BEGINS = lazy(r"\s*(?:\{(?![{%])|\[\s*[\"{\[])")


def is_bad_json(value: str) -> bool:
    """A value that is meant to be JSON by how it begins, and is none. A template (``{{``, ``{%``) is not meant so."""
    if not _JSON_BEGINS.match(value) or "$" in value or "<hidden>" in value:
        return False
    try:
        json.loads(value)
    except (ValueError, RecursionError):
        return True
    return False


_JSON_FAILED = lazy(r"JSON|[Ee]xpecting (?:value|property)|invalid (?:json|loads)")


def bad_json(document: LaunchDocument) -> Iterator[tuple[FlagUse, str]]:
    """Options whose value ought to be JSON and is none."""
    for use in document.command.flags:
        for value in use.values:
            if is_bad_json(value):
                yield use, value


def with_json_of_log(document: LaunchDocument, attempt: Attempt) -> LaunchDocument:
    """The document with its JSON as the server got it, where the command has lost quotation marks on the way into the
    log: as the server printed its argument, or as the line shows it where no failure speaks of JSON."""
    if not any(bad_json(document)):
        return document
    if not any(_JSON_FAILED.search(event.summary) for event in attempt.events):
        from mtpdoctor.log.command_line import with_json_quoted

        if (text := with_json_quoted(document.text)) != document.text:
            return read_launch(text)
    edits = []
    for use, _ in bad_json(document):
        shown = next((o.value for o in attempt.observations if o.name == f"arg.{use.dest}"), None)
        text = json.dumps(shown) if isinstance(shown, (dict, list)) else str(shown)
        if (
            len(use.values) == 1
            and isinstance(text, str)
            and _JSON_BEGINS.match(text)
            and not is_bad_json(text)
        ):
            edits.append(Edit(EditOp.SET, use.name, text))
    if not edits:
        return document
    try:
        return document.apply(edits)
    except UserError:
        return document


def strays(document: LaunchDocument) -> tuple[str, ...]:
    """Words that belong to no option; the model in front of all options is none."""
    command = document.command
    words = [w for w in command.positionals if not w.startswith("$") and not w.startswith("`")]
    site = document.sites[document.commands.index(command)]
    first = site.args[0].value if site.args else ""
    if words and words[0] == first and not first.startswith("-"):
        words = words[1:]
    return tuple(words)


def open_lists(document: LaunchDocument) -> tuple[str, ...]:
    """Words that stand for any number of arguments, which only a run could tell: ``"$@"``, ``$EXTRA_ARGS``."""
    return tuple(dict.fromkeys(w for w in document.command.positionals if _OPEN_LIST.match(w)))


def doubts(document: LaunchDocument, lost: Sequence[str] = ()) -> tuple[str, ...]:
    """Why the command cannot be called proven, in words; empty where nothing speaks against it."""
    out = [
        f"the value of {use.name} is no JSON as it stands: write it in single quotes, its names and words in double ones"
        for use, _ in bad_json(document)
    ]
    if words := strays(document):
        out.append(f"{', '.join(words)} belongs to no option: SGLang's parser refuses it")
    if found := open_lists(document):
        out.append(f"what {', '.join(found)} stands for is not known")
    if lost:
        out.append(f"the log does not tell the whole of {', '.join(lost)}: add it as it was")
    return tuple(out)


def of_another_server(document: LaunchDocument) -> bool:
    """Does the command start the server for image and video models?"""
    if document.command.program[-1:] == ("sglang.launch_server",):
        return False
    from mtpdoctor.sglang.other_parsers import starts_diffusion

    return starts_diffusion(document.command)


def flag_problems(document: LaunchDocument, releases: Sequence[Release]) -> tuple[str, ...]:
    """Flags and values of the command that one of the releases does not know."""
    out: dict[str, None] = {}
    own = has_more_options(document.command.program)
    if of_another_server(document):
        from mtpdoctor.sglang.other_parsers import diffusion_problems

        return tuple(dict.fromkeys(p for r in releases for p in diffusion_problems(document.command, r)))
    for release in releases:
        table = flag_table(release)
        for use in document.command.flags:
            spec = table.resolve(use.name)
            if spec is None and own and use.name not in flag_table(None):
                continue  # of the program that carries the server
            if spec is None:
                out[f"{use.name} is not known to SGLang {release}"] = None
            elif spec.arity == "switch" and use.values:
                out[f"{use.name} takes no value: SGLang's parser refuses {' '.join(use.values)}"] = None
            elif _refuses(spec, use):
                out[f"{use.name} {use.values[0]} is not a choice of SGLang {release}"] = None
    return tuple(out)


def _refuses(spec: FlagSpec, use: FlagUse) -> bool:
    """A value outside the choices; one that the shell fills in ($...) cannot be judged."""
    if not spec.choices or not use.values or spec.arity != "one" or "$" in use.values[0]:
        return False
    return use.values[0] not in {str(choice) for choice in spec.choices}
