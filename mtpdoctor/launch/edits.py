"""Typed edits as splices of the document a command stands in."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from mtpdoctor.errors import UserError
from mtpdoctor.launch.cut_values import words_behind
from mtpdoctor.launch.flags import FlagTable, UseSpan, find_uses, flag_dest
from mtpdoctor.launch.layers import Splice
from mtpdoctor.launch.types import Edit, EditOp, FlagUse, Form, LaunchCommand
from mtpdoctor.launch.words import Site, Word
from mtpdoctor.records import replace

CONTAINER_OPS = (EditOp.SHM_SIZE, EditOp.IPC, EditOp.GPUS, EditOp.IMAGE_TAG)
# en dash, em dash, minus: what a text program makes of "--"
PASTED_DASHES = ("\u2013", "\u2014", "\u2212")


def command_of(site: Site, form: Form, table: FlagTable) -> LaunchCommand:
    """What a site says, free of its notation."""
    values = [w.value for w in site.args]
    uses, loose = find_uses(values, table)
    flags = tuple(
        FlagUse(
            u.name,
            u.dest,
            (u.inline,) if u.inline is not None else tuple(values[u.at + 1 : u.end]),
            u.inline is not None,
        )
        for u in uses
    )
    env: dict[str, str] = {}
    for binding in site.bindings:
        env.pop(binding.name, None)
        env[binding.name] = binding.value
    program = site.program_values if site.program_values is not None else tuple(w.value for w in site.program)
    return LaunchCommand(
        form,
        program,
        flags,
        env,
        tuple(values[i] for i in loose),
        dict(site.container) if site.container is not None else None,
        env_files=site.env_files,
        scheduler=dict(site.scheduler),
    )


def edit_values(edit: Edit, table: FlagTable, written: int | None) -> tuple[str, ...]:
    """The words of a ``set`` edit's value; several only where the flag takes several.

    ``written`` is how many values the existing use has, where no table knows the flag.
    """
    if edit.value is None or edit.value == "":
        return ()
    spec = table.resolve(edit.name)
    many = spec.arity == "many" if spec else (written or 0) > 1
    if not many:
        return (edit.value,)
    try:
        return tuple(shlex.split(edit.value))
    except ValueError:
        return tuple(edit.value.split())


def site_splices(site: Site, edit: Edit, table: FlagTable) -> list[Splice]:
    """Splices that carry out one edit on one command. Raises UserError when the form cannot hold it."""
    if edit.op in CONTAINER_OPS:
        if site.edit_container is None:
            return []
        return site.edit_container(edit.op.value, edit.value or "")
    if edit.op is EditOp.ENV:
        bound = [b for b in site.bindings if b.name == edit.name]
        if not bound:
            return site.add_env(edit.name, edit.value or "")
        return [] if bound[-1].value == (edit.value or "") else bound[-1].replace(edit.value or "")
    if edit.op is EditOp.UNSET:
        return [s for b in site.bindings if b.name == edit.name for s in b.remove()]
    uses, _ = find_uses([w.value for w in site.args], table)
    dest = flag_dest(edit.name, table)
    mine = [_whole(site, u) for u in uses if u.dest == dest]
    if edit.op is EditOp.REMOVE:
        if not mine and edit.name.startswith(PASTED_DASHES):
            return _remove_pasted(site, edit.name)
        return [s for u in mine for s in _remove(site, u)]
    if edit.op is EditOp.ADD:
        spec = table.resolve(edit.name)
        valued = [u for u in mine if u.inline is not None] if spec and spec.arity == "switch" else []
        if valued:  # --switch=true, which a parser refuses
            heads = [(u.name, site.args[u.at]) for u in valued if _arity(u.name, table) == "switch"]
            return [s for name, head in heads for s in head.host.replace(head, name)]
        if any(spec is None or _arity(u.name, table) in (None, spec.arity) for u in mine):
            return []
        return _append(site, uses, [edit.name], table)
    return _set(site, edit, uses, mine, table)


def _arity(name: str, table: FlagTable) -> str | None:
    spec = table.resolve(name)
    return spec.arity if spec else None


def _remove_pasted(site: Site, name: str) -> list[Splice]:
    """A flag that begins with a dash of typeset text is a plain word to any parser; its value follows it."""
    out: list[Splice] = []
    for at, word in enumerate(site.args):
        if word.value != name:
            continue
        end = at + 1
        while end < len(site.args) and not site.args[end].value.startswith(("-", *PASTED_DASHES)):
            end += 1
        out += [s for run in _runs(site.args[at:end]) for s in run[0].host.remove(run)]
    return out


def _whole(site: Site, use: UseSpan) -> UseSpan:
    """The use with the words that the shell has cut off its value."""
    values = site.args[use.at + 1 : use.end]
    value = use.inline if use.inline is not None else values[0].value if len(values) == 1 else ""
    more = words_behind(value, [word.value for word in site.args[use.end :]]) if value else 0
    return replace(use, count=use.count + more) if more else use


def _words(site: Site, use: UseSpan) -> list[Word]:
    return list(site.args[use.at : use.end])


def _runs(words: Sequence[Word]) -> list[list[Word]]:
    """Neighbouring words of one host, together."""
    runs: list[list[Word]] = []
    for word in words:
        if runs and runs[-1][-1].host is word.host and runs[-1][-1].end <= word.start:
            runs[-1].append(word)
        else:
            runs.append([word])
    return runs


def _remove(site: Site, use: UseSpan) -> list[Splice]:
    words = _words(site, use)
    if getattr(words[0].host, "owns_values", False):
        return words[0].host.remove(words[:1])
    return [s for run in _runs(words) for s in run[0].host.remove(run)]


def _set(site: Site, edit: Edit, uses: list[UseSpan], mine: list[UseSpan], table: FlagTable) -> list[Splice]:
    values = edit_values(edit, table, mine[-1].count if mine else None)
    if not mine:
        return _append(site, uses, [edit.name, *values], table)
    try:
        return _rewrite(site, edit, mine, values, table)
    except ValueError:  # its place cannot hold the value: the flag moves
        rest = [u for u in uses if u.dest != mine[-1].dest]
        return [s for u in mine for s in _remove(site, u)] + _append(site, rest, [edit.name, *values], table)


def _rewrite(
    site: Site, edit: Edit, mine: list[UseSpan], values: tuple[str, ...], table: FlagTable
) -> list[Splice]:
    """The last use with other values, in its place and spelling; earlier ones go. Raises ValueError."""
    out = [s for u in mine[:-1] for s in _remove(site, u)]
    use = mine[-1]
    head = site.args[use.at]
    old = (use.inline,) if use.inline is not None else tuple(w.value for w in site.args[use.at + 1 : use.end])
    # An old switch may set the same field as the option: then the option takes its place.
    wanted = _arity(edit.name, table)
    name = use.name if wanted is None or _arity(use.name, table) == wanted else edit.name
    if use.inline is not None and len(values) == 1:
        new = f"{name}={values[0]}"
        for run in _runs(site.args[use.at + 1 : use.end]):
            out += run[0].host.remove(run)
        return out + (head.host.replace(head, new) if new != head.value else [])
    if old == values and name == use.name and use.inline is None:
        return out
    if name != use.name or use.inline is not None:
        out += head.host.replace(head, name)
    words = list(site.args[use.at + 1 : use.end])
    if (set_values := getattr(head.host, "set_values", None)) is not None:
        return out + ([] if old == values else set_values(head, values))
    for word, value in zip(words, values, strict=False):
        if word.value != value:
            out += word.host.replace(word, value)
    for run in _runs(words[len(values) :]):
        out += run[0].host.remove(run)
    if len(values) > len(words):
        last = words[-1] if words else head
        rest = list(values[len(words) :])
        out += last.host.insert_after(last, [rest] if not words else [[v] for v in rest], None)
    return out


def _append(site: Site, uses: list[UseSpan], group: list[str], table: FlagTable) -> list[Splice]:
    """A new flag behind the last one; in front of open words such as ``"$@"``, which then still win."""
    args = site.args
    end = len(args)
    taken = {i for u in uses for i in range(u.at, u.end)}
    while end and args[end - 1].open and end - 1 not in taken:
        end -= 1
    like = next((args[u.at] for u in reversed(uses) if u.end <= end), None)
    valued = [u for u in uses if u.inline is not None or u.count]
    if len(group) == 2 and valued and all(u.inline is not None for u in valued):
        group = [f"{group[0]}={group[1]}"]  # as all the others are written
    candidates = list(reversed(args[:end])) + list(reversed(site.program))
    for word in candidates:
        try:
            if word in site.program and site.append is not None:
                return site.append([group])
            return word.host.insert_after(word, [group], like)
        except ValueError:
            continue  # a notation that cannot hold the value; try the one before
    if site.append is not None:
        return site.append([group])
    raise UserError(
        f"there is no place to write {' '.join(group)} in this command",
        hint="add it by hand where the server's arguments are put together",
    )


def _not_cut(command: LaunchCommand, uses: Sequence[FlagUse]) -> tuple[str, ...]:
    """The words of no option, without those that the shell has cut off the value of one of the uses."""
    words = command.positionals
    for use in uses:
        value = use.values[0] if len(use.values) == 1 else ""
        for start in range(len(words)):
            if more := words_behind(value, words[start:]):
                words = words[:start] + words[start + more :]
                break
    return words


def holds(command: LaunchCommand, before: LaunchCommand, edit: Edit, table: FlagTable) -> bool:
    """Whether ``command`` is ``before`` with exactly this edit done."""
    env, env_before = dict(command.env), dict(before.env)
    if edit.op in CONTAINER_OPS:
        if edit.op is EditOp.IMAGE_TAG and before.container:
            image = (command.container or {}).get("image", "")
            if not image.endswith(f":{edit.value}"):
                return False
        return command.flags == before.flags and env == env_before
    if edit.op in (EditOp.ENV, EditOp.UNSET):
        wanted = {**env_before, edit.name: edit.value or ""}
        if edit.op is EditOp.UNSET:
            wanted.pop(edit.name)
        return command.flags == before.flags and env == wanted and command.positionals == before.positionals
    dest = flag_dest(edit.name, table)
    rest = [f for f in command.flags if f.dest != dest]
    if rest != [f for f in before.flags if f.dest != dest] or env != env_before:
        return False
    now = [f.values for f in command.flags if f.dest == dest]
    if edit.op is EditOp.REMOVE:
        return not now
    if edit.op is EditOp.ADD:
        return bool(now)
    was = [f for f in before.flags if f.dest == dest]
    written = len(was[-1].values) if was else None
    return now == [edit_values(edit, table, written)] and command.positionals == _not_cut(before, was)
