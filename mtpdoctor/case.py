"""All facts of one launch, each with where it came from.

A case is what rules and remedies are evaluated over. Facts of several sources are merged by trust
(the doctor's own flags, the launch command, the log, the host, the model, the release); what two
sources say differently is kept as a contradiction and shown, not hidden.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from mtpdoctor.facts import UNKNOWN, Fact, Facts, Source, make_facts
from mtpdoctor.patterns import lazy
from mtpdoctor.records import dataclass, replace
from mtpdoctor.release import Release, release_or_none
from mtpdoctor.sglang.arguments import default_arguments
from mtpdoctor.sglang.backends import gpu_facts, kind_facts
from mtpdoctor.sglang.dating import version_in
from mtpdoctor.sglang.flags import flag_table
from mtpdoctor.sglang.options import same_option

if TYPE_CHECKING:
    from mtpdoctor.host.types import HostFacts
    from mtpdoctor.launch.document import LaunchDocument
    from mtpdoctor.launch.types import FlagUse, LaunchCommand
    from mtpdoctor.log.types import Attempt, LogReading
    from mtpdoctor.model.types import ModelFacts


@dataclass(frozen=True, slots=True)
class Case:
    """One launch. ``document`` is the launch command in the form it was given, if it is known;
    ``reconstructed`` tells that it was put together from the log's server arguments."""

    facts: Facts
    reading: LogReading | None = None
    attempt: Attempt | None = None
    document: LaunchDocument | None = None
    command_where: str | None = None
    reconstructed: bool = False
    lost: tuple[str, ...] = ()  # options of a reconstructed command whose values the log does not tell
    release_is_certain: bool = True
    release_range: str | None = None
    model: ModelFacts | None = None  # all that is known of the model, for the memory sum

    @property
    def release(self) -> Release | None:
        value = self.facts.look("release")
        return release_or_none(value) if isinstance(value, str) else None

    def with_release(self, release: Release, reason: str, among: str, *, certain: bool) -> Case:
        """The case with a release that was worked out; not ``certain``: the newest ``among`` several."""
        named = make_facts({"release": str(release)}, Source.DERIVED, reason)
        facts = self.facts.merged(named)
        if _shows_arguments(self.document, facts):
            facts = facts.merged(release_defaults(str(release)))
        facts = facts.merged(_of_support(self.model, facts))
        return replace(
            self,
            facts=facts.without_contradictions_on("arg."),
            release_is_certain=certain,
            release_range=among,
        )

    def without_release(self) -> Case:
        """The same launch where nothing is known of its release, nor of what that would set by itself."""
        kept = {
            name: fact
            for name in self.facts
            if (fact := self.facts.fact(name)) and name != "release" and fact.source is not Source.RELEASE
        }
        facts = Facts(kept, self.facts.contradictions, self.facts.closed)
        return replace(self, facts=facts, release_is_certain=True, release_range=None)

    def with_document(self, document: LaunchDocument) -> Case:
        """The same launch under another command, as if it had been typed so. What the log says was
        in force under the old command no longer counts."""
        kept = {
            name: fact
            for name in self.facts
            if (fact := self.facts.fact(name))
            and not name.startswith(("flag.", "arg.", "step.", "container.", "memory."))
            and not (name.startswith("env.") and fact.source is Source.COMMAND)
        }
        where = "fixed command"
        facts = command_facts(document.command, where).merged(
            typed_arguments(document.command, where),
            Facts(kept, self.facts.contradictions),
            release_defaults(str(self.release)) if self.release else Facts({}),
        )
        return replace(self, document=document, facts=facts.without_contradictions_on("arg.", "log."))


def build_case(
    *,
    reading: LogReading | None = None,
    attempt: Attempt | None = None,
    document: LaunchDocument | None = None,
    command_where: str | None = None,
    reconstructed: bool = False,
    typed: LaunchDocument | None = None,
    lost: tuple[str, ...] = (),
    host: HostFacts | None = None,
    model: ModelFacts | None = None,
    release: str | None = None,
) -> Case:
    """Merge what is known. ``release``, ``host`` and ``model`` are what the person or the host says; ``typed`` is the
    part of a reconstructed command that was surely typed."""
    said = typed or document
    layers: list[Facts] = []
    if release:
        layers.append(make_facts({"release": release}, Source.USER, "--sglang"))
    if host is not None and host.pretended:
        layers.append(_of_host(host))
    if document is not None and said is not None:
        layers.append(command_facts(said.command, command_where or "command"))
        layers.append(_of_carrier(document, command_where or "command"))
    if reading is not None and attempt is not None:
        shown = log_facts(reading, attempt)
        layers += [shown, gpu_facts(shown), _platform_shown(attempt), _cuda_of_torch(shown)]
    if said is not None:
        layers.append(typed_arguments(said.command, command_where or "command"))
    if host is not None and not host.pretended:
        layers.append(_of_host(host))
    if model is not None:
        layers.append(_of_model(model))
    facts = Facts({}).merged(*layers)
    sizes = _sizes(facts) if reading is not None else Facts({})
    facts = facts.merged(_sparse_kind(facts), _platform_of_device(facts), sizes)
    facts = facts.merged(_platform_of_image(facts))
    facts = facts.merged(_platform_of_packages(facts), _files_of_lacked(facts), _files_of_unprocessed(facts))
    if reading is not None:
        facts = _as_launched(facts, document)
    known = facts.look("release")
    if isinstance(known, str):
        defaults = release_defaults(known) if _shows_arguments(document, facts) else Facts({})
        facts = facts.merged(defaults, _of_support(model, facts))
    return Case(
        facts=facts.without_contradictions_on("arg.", "log."),
        reading=reading,
        attempt=attempt,
        document=document,
        command_where=command_where,
        reconstructed=reconstructed,
        lost=lost,
        model=model,
    )


def _shows_arguments(document: LaunchDocument | None, facts: Facts) -> bool:
    """Is anything seen of the launch's arguments? Only then is what is not named at the release's default."""
    if document is not None:
        return True
    said = (facts.fact(name) for name in facts if name.startswith("arg."))
    return any(fact is not None and fact.source is Source.LOG for fact in said)


def _cuda_of_torch(shown: Facts) -> Facts:
    """``host.torch.cuda`` by the version that the log shows ("2.9.1+cu130")."""
    torch = shown.fact("host.package.torch")
    local = str(torch.value).partition("+cu")[2] if torch is not None else ""
    if torch is None or not local.isdigit():
        return Facts({})
    cuda = f"{local[:-1]}.{local[-1]}"
    values = {"host.torch.cuda": cuda, "host.torch.cuda_major": int(local[:-1])}
    return make_facts(values, Source.LOG, torch.where)


def _as_launched(facts: Facts, document: LaunchDocument | None) -> Facts:
    """Of the machine that the log shows what this launch meets: the GPUs that it may use, its container and that one's own
    /dev/shm."""
    from mtpdoctor.launch.types import Form

    changed: dict[str, Fact | None] = {}
    count = facts.fact("host.gpu.count")
    if count is not None and count.source is Source.LOG:
        for name in ("env.CUDA_VISIBLE_DEVICES", "container.gpus"):
            named = facts.fact(name)
            few = _few_of(named.value, name) if named is not None else None
            if named is not None and few is not None and 0 < few < count.value:
                changed[count.name] = count = Fact(count.name, few, named.source, named.where)
    image, shm = facts.fact("container.image"), facts.fact("host.shm_gib")
    if image is not None and facts.look("host.container") is UNKNOWN:
        changed["host.container"] = Fact("host.container", True, Source.COMMAND, image.where)
    if image is not None and document is not None and facts.look("container.ipc") in (None, UNKNOWN):
        from mtpdoctor.launch.forms.sizes import gib_of

        told = facts.fact("container.shm_size")
        size = gib_of(str(told.value)) if told is not None else None
        usual = document.form is not Form.KUBERNETES and "/dev/shm" not in document.text
        if size is not None or (told is None and usual):
            changed["host.shm_gib"] = Fact("host.shm_gib", size or 0.0625, Source.COMMAND, image.where)
            if shm is not None and shm.value != (size or 0.0625):
                changed["host.shm_free_gib"] = None  # of the machine around the container
    if not changed:
        return facts
    kept = {name: fact for name in facts if (fact := facts.fact(name)) and name not in changed}
    kept |= {name: fact for name, fact in changed.items() if fact is not None}
    return Facts(kept, facts.contradictions, facts.closed)


_DEVICE = r"(?:\d{1,2}|(?:GPU|MIG)-[\w/-]+)"
_DEVICES = lazy(rf"[\"']*(?:device=)?[\"']*({_DEVICE}(?:,{_DEVICE})*)[\"']*\Z")


def _few_of(value: object, name: str) -> int | None:
    """How many GPUs "0,1" or "device=0,1" names; a mere number of docker's --gpus says how many."""
    if name == "container.gpus" and isinstance(value, str) and value.isdigit():
        return int(value)
    found = _DEVICES.match(value) if isinstance(value, str) else None
    return len(set(found[1].split(","))) if found else None


def _sizes(facts: Facts) -> Facts:
    """Pipeline stages by the ranks' names, where no argument tells; ranks name their stage wherever there are several."""
    if facts.look("arg.pp_size") is not UNKNOWN:
        return Facts({})
    stages, ranks = facts.fact("log.pp_ranks"), facts.fact("log.tp_ranks")
    if stages is None:
        return make_facts({"arg.pp_size": 1}, Source.DERIVED, "no rank names a stage")
    found = {"arg.pp_size": Fact("arg.pp_size", max(stages.value, 2), Source.LOG, stages.where)}
    if facts.look("arg.tp_size") is UNKNOWN:
        value, where = (ranks.value, ranks.where) if ranks is not None else (1, stages.where)
        found["arg.tp_size"] = Fact("arg.tp_size", value, Source.LOG, where)
    return Facts(found)


def _files_of_lacked(facts: Facts) -> Facts:
    """``log.lacked_files``: the files of SGLang that hold the classes which it says it does not have, in any release."""
    lacked = facts.fact("log.lacked")
    if lacked is None:
        return Facts({})
    from mtpdoctor.sglang.architectures import architecture, transformers_class

    files = sorted({span[2] for name in lacked.value for span in architecture(name).spans})
    # A class that transformers has had and no release of SGLang is in no file of it, so none is to blame; one that
    # neither has had may be newer than what is known here.
    if not files and not all(transformers_class(name).spans for name in lacked.value):
        return Facts({})
    return make_facts({"log.lacked_files": tuple(files)}, Source.DERIVED, lacked.where)


def _files_of_unprocessed(facts: Facts) -> Facts:
    """``log.processor_files``: the files of SGLang's processors for the classes that it says it has none for; None where no
    release is known to have one, an empty list where this very release has none. ``log.processor_from``: then the first later
    release that has."""
    named = facts.fact("log.unprocessed")
    if named is None:
        return Facts({})
    from mtpdoctor.release import release_or_none
    from mtpdoctor.sglang.architectures import models_of, processor

    known = [processor(name) for name in named.value]
    found: tuple[str, ...] | None = (
        tuple(sorted({span[2] for one in known for span in one.spans[-1:]})) or None
    )
    release, first = facts.look("release"), None
    models = models_of(release_or_none(release)) if isinstance(release, str) else None
    if found and models is not None and models.exact:
        here = (models.processor(name) for name in named.value)
        found = tuple(sorted({file for file in here if file is not None}))
        later = [since for one in known if (since := one.first_after(models.release)) is not None]
        first = str(min(later)) if later and not found else None
    values = {"log.processor_files": found, "log.processor_from": first}
    return make_facts(values, Source.DERIVED, named.where)


def _sparse_kind(facts: Facts) -> Facts:
    """``model.is_dsa``, which no configuration says by itself: by the log, the backend in force, or the model's name."""
    name = "model.is_dsa"
    backend = facts.fact("arg.attention_backend")
    if facts.look(name) is UNKNOWN and backend is not None and backend.value in ("nsa", "dsa"):
        return Facts({name: Fact(name, True, backend.source, backend.where)})
    known = kind_facts(facts).fact(name)
    return Facts({name: known}) if known is not None else Facts({})


def _platform_shown(attempt: Attempt) -> Facts:
    from mtpdoctor.log.platforms import platform_of

    shown = platform_of(attempt)
    return (
        Facts({})
        if shown is None
        else make_facts({"host.platform": shown[0]}, Source.LOG, str(shown[1].number))
    )


def _platform_of_device(facts: Facts) -> Facts:
    """``host.platform`` by --device, where nothing else tells it."""
    from mtpdoctor.log.platforms import OF_DEVICE

    device = facts.fact("arg.device")
    if device is None or device.value not in OF_DEVICE or facts.look("host.platform") is not UNKNOWN:
        return Facts({})
    return Facts(
        {"host.platform": Fact("host.platform", OF_DEVICE[device.value], device.source, device.where)}
    )


def _platform_of_image(facts: Facts) -> Facts:
    """``host.platform`` by the tag of the command's image (-rocm..., -cann...), where nothing else tells it."""
    from mtpdoctor.log.platforms import platform_said

    image = facts.fact("container.image")
    if image is None or facts.look("host.platform") is not UNKNOWN:
        return Facts({})
    platform = platform_said(str(image.value))
    if platform is None:
        return Facts({})
    return Facts({"host.platform": Fact("host.platform", platform, image.source, image.where)})


# A package that is for one make only; a torch without a GPU may stand there by mistake, so that it tells nothing.
_OF_PACKAGE = {"torch-npu": "npu", "sgl-kernel-npu": "npu", "sgl-kernel-cpu": "cpu", "sglang-kernel-cpu": "cpu", "amd-aiter": "rocm"}  # fmt: skip


def _platform_of_packages(facts: Facts) -> Facts:
    """``host.platform`` by the packages that the log shows, where nothing else tells it."""
    if facts.look("host.platform") is not UNKNOWN:
        return Facts({})
    torch = facts.fact("host.package.torch")
    local = str(torch.value).partition("+")[2] if torch is not None else ""
    shown = {p: f for n, p in _OF_PACKAGE.items() if (f := facts.fact(f"host.package.{n}")) and f.value}
    if torch is not None and local.startswith(("rocm", "xpu")):
        shown.setdefault(local[: 4 if local.startswith("rocm") else 3], torch)
    if len(shown) != 1:
        return Facts({})
    platform, fact = next(iter(shown.items()))
    return Facts({"host.platform": Fact("host.platform", platform, fact.source, fact.where)})


def _of_host(host: HostFacts) -> Facts:
    from mtpdoctor.host.facts import host_facts

    return host_facts(host)


def _of_model(model: ModelFacts) -> Facts:
    from mtpdoctor.model.facts import model_facts

    return model_facts(model)


def _of_support(model: ModelFacts | None, facts: Facts) -> Facts:
    """Whether the release knows the model."""
    named = facts.look("release")
    if model is None or not model.raw or not isinstance(named, str):
        return Facts({})
    from mtpdoctor.sglang.support import support_facts

    installed = facts.look("host.package.transformers") if facts.look("host.package.sglang") else None
    values = support_facts(
        model.raw,
        release_or_none(named),
        installed if isinstance(installed, str) else None,
        mistral="params.json" in model.files,
    )
    return make_facts(values, Source.DERIVED, f"SGLang {named}")


def command_facts(command: LaunchCommand, where: str) -> Facts:
    """``flag.*`` and ``env.*`` of a command; closed: a flag that is not there was not typed, unless the command has
    words such as ``"$@"`` that stand for arguments nobody knows."""
    values: dict[str, Any] = {}
    for use in command.flags:
        values.update({f"flag.{dest}": value for dest, value in _written(use)})
    values.update({f"env.{name}": value for name, value in command.env.items()})
    container = command.container or {}
    values.update({f"container.{key}": value for key, value in container.items()})
    tagged = version_in(container.get("image") or "")
    if tagged is not None:
        values["release"] = str(tagged)
    known = {"env."} if any(_ARGUMENTS.match(word) for word in command.positionals) else {"flag.", "env."}
    return make_facts(values, Source.COMMAND, where, closed=frozenset(known))


_ARGUMENTS = lazy(r"\$(?:[@*]|\{[@*][^{}]*\}|\{\w+\[[@*]\][^{}]*\})\Z")


def _of_carrier(document: LaunchDocument, where: str) -> Facts:
    """The release by the image that another program starts the server in (apptainer, enroot, srun with pyxis)."""
    site = document.sites[document.commands.index(document.command)]
    for word in site.before:
        if "sglang" in word.value and (tagged := version_in(word.value)) is not None:
            return make_facts({"release": str(tagged)}, Source.COMMAND, where)
    return Facts({})


def typed_arguments(command: LaunchCommand, where: str) -> Facts:
    """``arg.*``: what the command asks to be in force."""
    values = {f"arg.{dest}": value for use in command.flags for dest, value in _written(use)}
    return make_facts(values, Source.COMMAND, where)


def _written(use: FlagUse) -> Iterator[tuple[str, Any]]:
    """Fields that a flag sets, and their values: by its own name, and by every name the option has had. An
    old switch that became a spelling of another option's choice sets that choice."""
    value: Any = True if not use.values else use.values[0] if len(use.values) == 1 else list(use.values)
    yield use.name.lstrip("-").replace("-", "_"), value
    spec = flag_table(None).get(use.name)
    chosen = spec.const if spec is not None and spec.const is not None and not use.values else value
    if not use.values and use.name.startswith("--no-") and not use.dest.startswith("no_"):
        chosen = False  # the negative form of a switch that has both
    for dest in same_option(use.dest):
        yield dest, chosen


def release_defaults(release: str) -> Facts:
    """``arg.*`` as the release sets them when nothing is typed; None where it decides at start."""
    known = release_or_none(release)
    if known is None:
        return Facts({})
    return _defaults(known, release, os.environ.get("MTPDOCTOR_KNOWLEDGE"))


@lru_cache(maxsize=128)  # every release
def _defaults(known: Release, release: str, knowledge: str | None) -> Facts:
    values: dict[str, Any] = {}
    for dest, value in default_arguments(known).items():
        values[f"arg.{dest}"] = value
        for other in same_option(dest)[1:]:
            values.setdefault(f"arg.{other}", value)
    return make_facts(values, Source.RELEASE, release)


def log_facts(reading: LogReading, attempt: Attempt) -> Facts:
    """What the log's lines say (observations), with file:line. Of several values the first counts,
    but for running figures (acceptance length) the last. ``log.stage`` is how far it got."""
    facts = {"log.stage": Fact("log.stage", attempt.stage.value, Source.LOG)}
    for observation in attempt.observations:
        where = f"{reading.files[observation.line.file].name}:{observation.line.number}"
        names = [observation.name]
        if observation.name.startswith("arg."):
            names = [f"arg.{dest}" for dest in same_option(observation.name[4:])]
        for name in names:
            if name not in facts or name in _LAST_COUNTS:
                facts[name] = Fact(name, observation.value, Source.LOG, where)
    return Facts(facts)


_LAST_COUNTS = frozenset({"log.accept_len"})
