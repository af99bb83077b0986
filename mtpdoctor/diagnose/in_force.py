"""What an edit would change nothing about: it is in force already, or the release has no such option."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mtpdoctor.facts import UNKNOWN, Facts, Source
from mtpdoctor.kb.resolution import each_kind
from mtpdoctor.launch.types import Edit, EditOp
from mtpdoctor.patterns import lazy
from mtpdoctor.sglang.flags import flag_table
from mtpdoctor.sglang.options import same_option

if TYPE_CHECKING:
    from mtpdoctor.case import Case
    from mtpdoctor.kb.load import Knowledge
    from mtpdoctor.launch.document import LaunchDocument
    from mtpdoctor.release import Release

_OPTION = lazy(r"(?<![\w-])--[a-z][a-z0-9-]*[a-z0-9]")
_OTHER_RELEASE = lazy(
    r"(?i)\b(?:upgrade|newer|later|older|earlier|downgrade|releases? (?:that|with|which))\b"
)
_DEVICE = lazy(r"nvidia\.com/gpu|/dev/(?:nvidia|kfd|dri|davinci)")
_WORDS = {"true": "1", "on": "1", "yes": "1", "false": "0", "off": "0", "no": "0"}


def without_those_in_force(edits: Sequence[Edit], facts: Facts, release: Release | None) -> tuple[Edit, ...]:
    """The edits that change something: not a variable or option that has that value already.

    Where something is removed along with them they may be its new spelling, whose value is in force by the old one.
    """
    if any(e.op is EditOp.REMOVE for e in edits):
        return tuple(e for e in edits if e.op is not EditOp.ENV or not _in_force(e, facts, release))
    return tuple(e for e in edits if not _in_force(e, facts, release))


def written_bare(edit: Edit, document: LaunchDocument | None) -> bool:
    """Is the option that ``edit`` sets written twice, and once without its value? Setting it then takes that place away."""
    if document is None or edit.op is not EditOp.SET:
        return False
    uses = [use for use in document.command.flags if use.name == edit.name]
    return len(uses) > 1 and any(not use.values for use in uses)


def chosen_again(edits: Sequence[Edit], before: Case, fixed: LaunchDocument, knowledge: Knowledge) -> bool:
    """Do the edits only take out options whose typed values the release chooses by itself for this GPU and model?"""
    if any(e.op is not EditOp.REMOVE for e in edits):
        return False
    table = flag_table(before.release)
    dests = {spec.dest for e in edits if (spec := table.resolve(e.name)) is not None}
    typed = {dest: before.facts.look(f"flag.{dest}") for dest in dests}
    if not typed or any(value in (UNKNOWN, None, True) for value in typed.values()):
        return False
    launches = each_kind(before.with_document(fixed).facts, knowledge.resolution)
    # Whatever the model is: the first kind that gets another value decides.
    return all(
        str(launch.facts.look(f"arg.{dest}")) == str(value)
        for launch in launches
        for dest, value in typed.items()
    )


def _in_force(edit: Edit, facts: Facts, release: Release | None) -> bool:
    if edit.op is EditOp.ENV:
        have = facts.look(f"env.{edit.name}")
        if (
            edit.value is not None and ":" in edit.value
        ):  # settings with names of their own: case and signs count
            return have == edit.value
        return edit.value is not None and _same(have, edit.value)
    if edit.op not in (EditOp.SET, EditOp.ADD):
        return _container_has(edit, facts)
    spec = flag_table(release).resolve(edit.name) or flag_table(None).resolve(edit.name)
    if spec is None:
        return False
    wanted = edit.value if edit.op is EditOp.SET else "true"
    for dest in same_option(spec.dest):
        typed = facts.look(f"flag.{dest}")
        if edit.op is EditOp.ADD and spec.arity == "switch" and isinstance(typed, str):
            return False  # --switch=true, which a parser refuses
        if typed not in (UNKNOWN, None):
            return _same(typed, wanted)
        shown = facts.fact(f"arg.{dest}")
        if shown is not None and shown.source is Source.LOG and shown.value is not None:
            return _same(shown.value, wanted)
    return False


def _container_has(edit: Edit, facts: Facts) -> bool:
    """Shared memory of that size or more, or the host's; the host's IPC; the GPUs."""
    if edit.op in (EditOp.SHM_SIZE, EditOp.IPC) and facts.look("container.ipc") == "host":
        return edit.op is EditOp.SHM_SIZE or edit.value == "host"
    if edit.op is EditOp.SHM_SIZE and isinstance(size := facts.look("container.shm_size"), str):
        from mtpdoctor.launch.forms.sizes import gib_of

        have, wanted = gib_of(size), gib_of(edit.value or "")
        return size == "unlimited" or (have is not None and wanted is not None and have >= wanted)
    if edit.op is EditOp.GPUS and (
        facts.look("container.runtime") == "nvidia" or _DEVICE.search(str(facts.look("container.device")))
    ):
        return edit.value == "all"  # the runtime or the devices hand them over without --gpus
    return edit.op is EditOp.GPUS and _same(facts.look("container.gpus"), edit.value)


def _same(have: object, wanted: str | None) -> bool:
    if have is UNKNOWN or have is None or wanted is None or isinstance(have, (list, tuple, dict)):
        return False
    a, b = str(have).strip().lower(), wanted.strip().strip("'\"").lower()
    return a == b or _WORDS.get(a, a) == _WORDS.get(b, b)


def names_missing_option(text: str, release: Release | None) -> bool:
    """Does the text of a remedy speak of an option that other releases have and this one has not?"""
    if release is None or _OTHER_RELEASE.search(text):
        return False
    here, anywhere = flag_table(release), flag_table(None)
    return any(
        here.resolve(name) is None and anywhere.resolve(name) is not None for name in _OPTION.findall(text)
    )
