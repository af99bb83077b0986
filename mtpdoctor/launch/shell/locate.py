"""From the words of one command to the server it starts: directly, in a container, or in a nested shell."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from mtpdoctor.launch.forms import docker
from mtpdoctor.launch.layers import Layer, Splice
from mtpdoctor.launch.shell.programs import find_program
from mtpdoctor.launch.shell.scope import Scope
from mtpdoctor.launch.words import Binding, Site, Word
from mtpdoctor.patterns import lazy
from mtpdoctor.records import dataclass, field, replace

AddEnv = Callable[[str, str], list[Splice]]
_ENV_WORD = lazy(r"(--env=)?([A-Za-z_]\w*)=(.*)", re.S)
_SCRIPT = lazy(r"-[a-z]*c\Z")  # bash -lc 'script' name arguments
_ENV_OPTIONS = ("--env", "-x", "-e", "-E")


@dataclass(slots=True)
class Surroundings:
    """What stands around a command. ``layer_of`` gives the text inside a quoted word, for reading it as
    shell; ``nested`` reads such a text; ``env_adder`` is used where nothing more fitting exists."""

    bindings: list[Binding]
    env_adder: Callable[[Sequence[Word], int], AddEnv]
    layer_of: Callable[[Word], Layer | None]
    nested: Callable[[Layer, Sequence[Binding], Scope, AddEnv | None], list[Site]]
    scope: Scope
    inner_add_env: AddEnv | None = None  # passed into nested shells; None: they add it themselves
    scheduler: Mapping[str, str] = field(default_factory=dict)
    env_reaches_container: Sequence[Binding] = ()


def locate(words: Sequence[Word], around: Surroundings) -> list[Site]:
    """The servers that a command starts."""
    values = [w.value for w in words]
    engine = docker.find_engine(values)
    if engine is not None:
        return _container(words, engine, around)
    program = find_program(values)
    if program is None:
        return _nested_words(words, around)
    start, end = program
    carriers = [i for i in range(start) if _ENV_WORD.match(words[i].value)]
    return [
        Site(
            program=tuple(words[start:end]),
            args=tuple(words[end:]),
            bindings=(*around.bindings, *(_carried(words, i) for i in carriers)),
            add_env=_carried_add(words, carriers[-1]) if carriers else around.env_adder(words, start),
            env_files=tuple(around.scope.env_files),
            scheduler=around.scheduler,
            before=tuple(words[:start]),
        )
    ]


def _container(words: Sequence[Word], at: int, around: Surroundings) -> list[Site]:
    run = docker.read_run(words, at)
    inside = [words[run.entrypoint]] if run.entrypoint is not None and run.entrypoint < len(words) else []
    inside += words[run.rest :]
    # The client's own environment does not reach the container, but "-e NAME" passes a variable on.
    bindings = [
        b if b.value != f"${b.name}" else replace(b, value=around.scope.text(b.value) or b.value)
        for b in run.bindings
    ]
    bindings = [*around.env_reaches_container, *bindings]

    def add_env(name: str, value: str) -> list[Splice]:
        return docker.add_option(words, at, run, ("-e", f"{name}={value}"))

    def edit(op: str, value: str) -> list[Splice]:
        return docker.edit_run(words, at, run, op, value)

    scope = around.scope.child({b.name: b.value for b in bindings})
    scope.variables = {name: replace(var, exported=False) for name, var in scope.variables.items()}
    scope.env_files = run.env_files
    inner = replace(
        around, bindings=bindings, env_adder=lambda *_: add_env, inner_add_env=add_env, scope=scope
    )
    return [replace(site, container=run.facts, edit_container=edit) for site in locate(inside, inner)]


def _nested_words(words: Sequence[Word], around: Surroundings) -> list[Site]:
    """Shell inside a word: ``bash -c '...'``, ``ssh host "..."``, ``tmux new -d '...'``."""
    sites: list[Site] = []
    for i, word in enumerate(words):
        if "sglang" not in word.value and "launch_server" not in word.value:
            continue
        if re.search(r"\s", word.value) and (inner := around.layer_of(word)) is not None:
            scope = around.scope.child()
            if i and _SCRIPT.match(words[i - 1].value):
                scope.give_arguments(words[i + 2 :])  # behind the name ($0)
            found = around.nested(inner, around.bindings, scope, around.inner_add_env)
            sites += [replace(site, carriers=(words[0].value, *site.carriers)) for site in found]
    return sites


def _option_before(words: Sequence[Word], i: int) -> int:
    """Where ``--env NAME=value`` (``-x`` of mpirun) begins; ``i`` for the bare ``NAME=value`` of ``env``."""
    return i - 1 if i and words[i - 1].value in _ENV_OPTIONS else i


def _carried(words: Sequence[Word], i: int) -> Binding:
    """A variable that a word in front of the program sets."""
    word = words[i]
    option, name, value = _ENV_WORD.match(word.value).groups("")  # type: ignore[union-attr]
    return Binding(
        name,
        value,
        lambda new: word.host.replace(word, f"{option}{name}={new}"),
        lambda: word.host.remove(words[_option_before(words, i) : i + 1]),
    )


def _carried_add(words: Sequence[Word], i: int) -> AddEnv:
    """Another variable behind that of ``words[i]``, in the same way."""
    word = words[i]
    option = _ENV_WORD.match(word.value).group(1) or ""  # type: ignore[union-attr]
    before = [w.value for w in words[_option_before(words, i) : i]]

    def add(name: str, value: str) -> list[Splice]:
        return word.host.insert_after(word, [[*before, f"{option}{name}={value}"]])

    return add
