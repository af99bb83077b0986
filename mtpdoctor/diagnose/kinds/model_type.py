"""A config.json whose ``model_type`` nobody recognises: which transformers, and which SGLang, does."""

from __future__ import annotations

from difflib import get_close_matches

from mtpdoctor.case import Case
from mtpdoctor.diagnose.kinds.architecture import development, release_in_use, upgrade
from mtpdoctor.facts import UNKNOWN
from mtpdoctor.kb.types import Match, Remedy, Safety
from mtpdoctor.patterns import lazy
from mtpdoctor.records import dataclass
from mtpdoctor.release import Release
from mtpdoctor.sglang.architectures import (
    Known,
    architecture,
    classes_of,
    first_with_type,
    in_transformers,
    model_types,
    models_of,
    registered_type,
    transformers_pin,
    transformers_type,
)
from mtpdoctor.sglang.releases import known_releases, newest_release

_NAME = lazy(r"[\w.+-]+$")
_LIKE = 0.85  # how alike two names must be for one to be a misspelling of the other
_SOON = 3  # releases after the one that a development state is named after
_ALONE = (
    "SGLang imports names from the transformers that it pins and patches its classes: another version can end in "
    "ImportError at start or in wrong settings, and this release may have no class for the model"
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """One ``model_type``: ``theirs`` over versions of transformers, ``own`` over releases that register it."""

    name: str
    theirs: Known
    own: Known
    release: Release | None
    words: str  # the release, or the releases that the log can be of
    installed: str | None  # the transformers in use, where it is known
    pin: str | None  # the one that the release asks for
    here: bool | None  # the release, with its own transformers, reads it

    @property
    def upgraded(self) -> Release | None:
        """The first later release (of all, where this one is not known) that reads it and has a class for it;
        where none has a class, the first that reads it."""
        served = first_with_type(self.name, self.release, with_class=True)
        return served or first_with_type(self.name, self.release)


def wanted_of(match: Match, case: Case) -> Wanted | None:
    """The type that the message (else the model's config) names."""
    name = match.captures.get("type") or case.facts.look("model.model_type")
    if not isinstance(name, str) or not _NAME.match(
        name
    ):  # what a log says goes into texts that are filled in
        return None
    theirs, own = transformers_type(name), registered_type(name)
    release, words = release_in_use(case)
    models = models_of(release)
    pin = transformers_pin(release)
    installed = case.facts.look("host.package.transformers")
    here = None
    if models is not None and models.exact:
        here = models.registers(name) or in_transformers(theirs, pin)
    return Wanted(
        name, theirs, own, release, words, installed if isinstance(installed, str) else None, pin, here
    )


def model_type_said(match: Match, case: Case) -> str:
    """What is known of the type, in one or two sentences; "" when none is named."""
    wanted = wanted_of(match, case)
    return _sentence(wanted) if wanted is not None else ""


def model_type_remedies(match: Match, case: Case) -> list[Remedy]:
    wanted = wanted_of(match, case)
    if wanted is None:
        return []
    said = _sentence(wanted)
    if wanted.here:
        return _as_pinned(wanted)
    alone = _transformers_alone(wanted, case)
    unreleased = alone is not None and case.facts.look("log.development") is not UNKNOWN
    remedies: list[Remedy] = [alone] if alone is not None and unreleased else []
    upgraded = wanted.upgraded
    if upgraded is not None:
        pin = transformers_pin(upgraded)
        brings = "which reads it" if wanted.own.has(upgraded) else f"which brings transformers {pin}"
        why = f"{said} {_class_said(wanted, upgraded)}"
        if not unreleased:
            why += f"Upgrading transformers alone breaks the pin: {_ALONE}"
        remedies.append(upgrade(upgraded, brings, why))
    elif wanted.theirs.spans:
        first = wanted.theirs.first
        remedies.append(development(said))
        if wanted.theirs.at(wanted.theirs.known[-1]) is not None and len(remedies) == 1:
            remedies.append(
                Remedy(
                    title=f"Try transformers {first} or later with this SGLang, at your own risk",
                    safety=Safety.MANUAL,
                    why=said,
                    run=(f'pip install --upgrade "transformers>={first}"', "python -m pip check"),
                    risk=_ALONE,
                )
            )
    if alone is not None and not unreleased:
        remedies.append(alone)
    remedies += _misspelt(wanted)
    if not remedies:
        own = _of_its_own(wanted, said)
        remedies += [*own, development(said)] if _long_ago(wanted) else [development(said), *own]
    if not wanted.theirs.spans and not wanted.own.spans:
        remedies.append(_LOOK)
    return remedies


def _long_ago(wanted: Wanted) -> bool:
    """Many releases came out since the one in use: had the model been of wide use, one would read it."""
    return wanted.release is not None and sum(r > wanted.release for r in known_releases()) > _SOON


def _of_its_own(wanted: Wanted, said: str) -> list[Remedy]:
    name = wanted.name
    return [
        Remedy(
            title=f"Serve `{name}` with the engine that its authors use (their own code, transformers): SGLang has no class for it",
            safety=Safety.MANUAL,
            why=f"{said} No option changes that; it is an architecture of somebody's own, or the name is wrong",
        ),
        Remedy(
            title="Or write what is missing: a configuration class in the checkpoint (auto_map in config.json) and a model class for SGLang in a package that SGLANG_EXTERNAL_MODEL_PACKAGE names",
            safety=Safety.MANUAL,
            why="transformers then reads the configuration with --trust-remote-code, and SGLang registers the class of the package (0.5.6 and later)",
        ),
    ]


_LOOK = Remedy(
    title="Check model_type in config.json",
    safety=Safety.MANUAL,
    why="a converted checkpoint may carry a wrong name",
    run=(
        'python -c "import json,sys; c=json.load(open(sys.argv[1])); '
        "print(c.get('model_type'), c.get('architectures'), c.get('auto_map'))\" MODEL/config.json",
    ),
)


def _transformers_alone(wanted: Wanted, case: Case) -> Remedy | None:
    """A newer transformers, where this SGLang has a class for the model, or is a development state that may have it."""
    first = wanted.theirs.first
    if first is None or wanted.theirs.at(wanted.theirs.known[-1]) is None:
        return None
    classes = classes_of(wanted.name)
    native = (
        next((name for name in classes if architecture(name).has(wanted.release)), None)
        if wanted.release
        else None
    )
    state = case.facts.fact("log.development")
    if native is None and (state is None or not _may_have(classes, wanted.release)):
        return None
    has = f"SGLang {wanted.words} has a class for it ({native}), and only its transformers is too old"
    if native is None and state is not None:
        has = f"{state.value} is a development state, which may have the class ({classes[0]}) before the next release has it"
    return Remedy(
        title=f"Install transformers {first} or later, which knows {wanted.name}",
        safety=Safety.MANUAL,
        why=f"{_sentence(wanted)} {has}.",
        run=(f"pip install 'transformers=={first}'   # or a later one", "python -m pip check"),
        risk="SGLang imports names from the transformers that it pins; another version can end in ImportError at start",
    )


def _may_have(classes: tuple[str, ...], release: Release | None) -> bool:
    """Does one of the next two releases have a class for it?"""
    if release is None:
        return bool(classes)
    later = [r for r in known_releases() if r > release][:_SOON]
    return any(architecture(name).has(r) for name in classes for r in later)


def _sentence(wanted: Wanted) -> str:
    name, release = wanted.name, wanted.release
    parts = []
    first = wanted.theirs.first
    if first is not None:
        on = f"from {first} on" if first != wanted.theirs.known[0] else f"in {first} and later"
        last = wanted.theirs.spans[-1][1]
        if last != wanted.theirs.known[-1]:
            on = f"up to {last}"
        parts.append(f"transformers knows `{name}` {on}")
    else:
        parts.append(f"no transformers up to {wanted.theirs.known[-1]} knows `{name}`")
    if wanted.own.first is not None:
        parts.append(f"SGLang registers it itself from {wanted.own.first} on")
    if release is not None and wanted.pin is not None:
        parts.append(f"SGLang {wanted.words} pins transformers {wanted.pin}")
    if wanted.installed is not None and wanted.installed != wanted.pin:
        parts.append(f"{wanted.installed} is installed")
    if not wanted.here and wanted.upgraded is None:
        parts.append(f"no SGLang release up to {newest_release()} reads it")
    text = "; ".join(parts)
    return f"{text[0].upper()}{text[1:]}."


def _class_said(wanted: Wanted, release: Release) -> str:
    """Whether SGLang has a class for such a model in that release."""
    classes = classes_of(wanted.name)
    if not classes or wanted.own.has(release):
        return ""
    native = next((name for name in classes if architecture(name).has(release)), None)
    if native is not None:
        return f"SGLang {release} has a class for it ({native}). "
    return f"SGLang {release} has no class for it ({classes[0]}) and leaves it to transformers, where that fits. "


def _as_pinned(wanted: Wanted) -> list[Remedy]:
    """The release reads this type with the transformers that it pins: so another one is installed."""
    run = ['python -c "import sglang, transformers; print(sglang.__version__, transformers.__version__)"']
    if wanted.pin is not None:
        run.insert(0, f'pip install "transformers=={wanted.pin}"')
    title = f"Install transformers {wanted.pin}, which SGLang {wanted.words} asks for"
    if wanted.pin is None:
        title = f"Reinstall SGLang {wanted.words} with the packages that it asks for"
    return [
        Remedy(
            title=title,
            safety=Safety.MANUAL,
            why=f"{_sentence(wanted)} With that, this release reads the model: another transformers, or another "
            "SGLang than the log names, is installed",
            run=tuple(run),
            risk="other programs in the same environment may want another transformers",
        )
    ]


def _misspelt(wanted: Wanted) -> list[Remedy]:
    if wanted.theirs.spans or wanted.own.spans:
        return []
    like = get_close_matches(wanted.name, model_types(), n=1, cutoff=_LIKE)
    if not like:
        return []
    return [
        Remedy(
            title=f"Check `model_type` in config.json: is {like[0]} meant?",
            safety=Safety.MANUAL,
            why=f"{wanted.name} is no type that transformers or SGLang has had; {like[0]} is the nearest",
            run=("grep model_type MODEL_DIR/config.json",),
        )
    ]
