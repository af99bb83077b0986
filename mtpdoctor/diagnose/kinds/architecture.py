"""A model whose class SGLang does not find: which release has it, or why this one cannot load it."""

from __future__ import annotations

from difflib import SequenceMatcher, get_close_matches
from typing import Any

from mtpdoctor.case import Case
from mtpdoctor.kb.types import EditTemplate, Match, Remedy, Safety
from mtpdoctor.patterns import lazy
from mtpdoctor.records import dataclass
from mtpdoctor.release import Release, release_or_none
from mtpdoctor.sglang.architectures import (
    Known,
    architecture,
    architectures,
    models_of,
    transformers_class,
    transformers_pin,
    wrappable,
)
from mtpdoctor.sglang.releases import newest_release
from mtpdoctor.sglang.support import wraps

_NAME = lazy(r"\w+")
_END = lazy(r"(?:For[A-Z]\w+|LMHeadModel|Model)$")
_LIKE_STEM = 0.7
_LIKE = 0.88  # how alike two names must be for one to be a misspelling of the other


@dataclass(frozen=True, slots=True)
class Wanted:
    """One architecture and the release in use. ``module`` holds its class there; ``known`` is where else it is."""

    name: str
    known: Known
    release: Release | None
    words: str  # the release, or the releases that the log can be of
    module: str | None
    exact: bool  # the facts are of this very release

    @property
    def later(self) -> Release | None:
        if self.release is not None:
            return self.known.first_after(self.release)
        return next((r for r in self.known.known if not r.is_prerelease and self.known.has(r)), None)

    @property
    def earlier(self) -> Release | None:
        return self.known.last_before(self.release) if self.release is not None else None


def release_in_use(case: Case) -> tuple[Release | None, str]:
    """The release to go by, and how to say it. Where a log only narrows it down it is the oldest of them: what
    that one has, the others have too."""
    release = case.release
    if release is None or case.release_is_certain or not case.release_range:
        return release, str(release)
    oldest = release_or_none(case.release_range.partition(" to ")[0])
    return oldest or release, case.release_range


def wanted_of(match: Match, case: Case) -> list[Wanted]:
    """The architectures that the message (else the model's config) names."""
    said = match.captures.get("archs") or match.captures.get("arch") or match.captures.get("cls")
    named: Any = _NAME.findall(said) if said else case.facts.look("model.architecture")
    names = list(named) if isinstance(named, list) else [named] if isinstance(named, str) else []
    release, words = release_in_use(case)
    models = models_of(release)
    return [
        Wanted(
            name,
            architecture(name),
            release,
            words,
            models.module(name) if models is not None else None,
            models is not None and models.exact,
        )
        for name in names[:4]
    ]


def architecture_said(match: Match, case: Case) -> str:
    """One sentence on where the class is; "" when the message names none."""
    wanted = wanted_of(match, case)
    return _sentence(_telling(wanted)) if wanted else ""


def architecture_remedies(match: Match, case: Case) -> list[Remedy]:
    wanted = wanted_of(match, case)
    if not wanted:
        return []
    first = _telling(wanted)
    if first.module is not None:
        return _not_imported(first)
    remedies: list[Remedy] = []
    if first.later is not None:
        remedies.append(upgrade(first.later, f"the first release that has {first.name}", _sentence(first)))
    elif first.earlier is not None:
        remedies.append(_go_back(first, first.earlier))
    remedies += _misspelt(first)
    remedies += [r for w in wanted if (r := _wrapped(w, case)) is not None][:1]
    if first.later is None and first.earlier is None:
        if not remedies and not transformers_class(first.name).spans:
            remedies += _own_class(first)
        remedies.append(development(_sentence(first)))
    return remedies


def _telling(wanted: list[Wanted]) -> Wanted:
    """Of several architectures SGLang takes the first that it has: one of this release, else the soonest."""
    here = next((w for w in wanted if w.module is not None), None)
    if here is not None:
        return here
    later = [w for w in wanted if w.later is not None]
    if later:
        return min(later, key=lambda w: (w.later, wanted.index(w)))
    return next((w for w in wanted if w.earlier is not None), wanted[0])


def _sentence(wanted: Wanted) -> str:
    name, this = wanted.name, wanted.words
    if wanted.module is not None:
        place = f"srt/models/{wanted.module}.py"
        if wanted.exact:
            return f"SGLang {this} has {name} ({place}), so that file could not be imported here."
        return f"The nearest known release has {name} ({place}), so {this} should know it too."
    if wanted.later is not None:
        since = f"{name} is known from SGLang {wanted.later} on"
        if wanted.release is None:
            return f"{since}; which release this is, is not known."
        return f"{since}; this is {this}."
    if wanted.earlier is not None:
        return f"{name} was last in SGLang {wanted.earlier}; this is {this}."
    more = f"; this is {this}" if wanted.release is not None else ""
    return f"No SGLang release up to {newest_release()} has {name}{more}."


def upgrade(release: Release, what: str, why: str) -> Remedy:
    return Remedy(
        title=f"Upgrade SGLang to {release} or later, {what}",
        safety=Safety.MANUAL,
        why=why,
        run=(f'pip install --upgrade "sglang>={release}"', f"docker pull lmsysorg/sglang:v{release}"),
        risk="options may have changed; check the command for the new release",
    )


def development(why: str) -> Remedy:
    return Remedy(
        title=f"Upgrade SGLang beyond {newest_release()}, or try its development state: no release known here has it",
        safety=Safety.MANUAL,
        why=why,
        run=("docker pull lmsysorg/sglang:dev",),
        risk="a development state is less tested",
    )


def _own_class(wanted: Wanted) -> list[Remedy]:
    """For a model that neither SGLang nor transformers has had in any release: its class has to come from outside."""
    name = wanted.name
    return [
        Remedy(
            title=f"Serve {name} by the engine that its authors support - the training program's own (transformers: engine type hf, or vLLM with their plugin)",
            safety=Safety.MANUAL,
            why=f"neither SGLang up to {newest_release()} nor transformers has {name}; it is a model of its authors' own code",
        ),
        Remedy(
            title=f"Or give SGLang the class: a package with {name} in it, named in SGLANG_EXTERNAL_MODEL_PACKAGE",
            safety=Safety.MANUAL,
            why="SGLang registers the EntryClass of every module of that package beside its own models; the class has to be written for SGLang",
            run=(
                f"export SGLANG_EXTERNAL_MODEL_PACKAGE=my_models   # my_models/ursa.py: EntryClass = {name}".replace(
                    "ursa", "model"
                ),
            ),
        ),
        Remedy(
            title="Or take a checkpoint whose config.json brings its code (auto_map with AutoModel and the .py files), with --trust-remote-code",
            safety=Safety.MANUAL,
            why="SGLang can wrap such a class by way of transformers, where it is written for that",
            run=("grep -A6 auto_map MODEL_DIR/config.json; ls MODEL_DIR/*.py",),
        ),
    ]


def _not_imported(wanted: Wanted) -> list[Remedy]:
    module = f"sglang.srt.models.{wanted.module}"
    return [
        Remedy(
            title=f"Find out why {wanted.module}.py cannot be imported; upgrading is not needed for {wanted.name}",
            safety=Safety.MANUAL,
            why=f"{_sentence(wanted)} A line 'Ignore import error when loading {module}' names the reason; "
            "else the SGLang that runs is not the one that the log names, or SGLANG_DISABLED_MODEL_ARCHS leaves it out",
            run=(
                f'python -c "import {module}"',
                'python -c "import sglang; print(sglang.__version__, sglang.__file__)"',
            ),
        )
    ]


def _go_back(wanted: Wanted, last: Release) -> Remedy:
    return Remedy(
        title=f"Serve it with SGLang {last}, the last release that has {wanted.name}",
        safety=Safety.MANUAL,
        why=_sentence(wanted),
        run=(f'pip install "sglang=={last}"', f"docker pull lmsysorg/sglang:v{last}"),
        risk="an older release lacks later fixes and options",
    )


def _misspelt(wanted: Wanted) -> list[Remedy]:
    if wanted.known.spans or transformers_class(wanted.name).spans:
        return []
    models = models_of(wanted.release)
    names = [n for n in architectures() if models is None or models.module(n) is not None]
    like = get_close_matches(wanted.name, names, n=1, cutoff=_LIKE)
    if not like:
        return []
    # The ends of these names are long and alike; a misspelling is one of what stands before.
    stem, other = _END.sub("", wanted.name), _END.sub("", like[0])
    if SequenceMatcher(None, stem, other).ratio() < _LIKE_STEM:
        return []
    return [
        Remedy(
            title=f"Check `architectures` in config.json: is {like[0]} meant?",
            safety=Safety.MANUAL,
            why=f"{wanted.name} is no name that SGLang or transformers has had; {like[0]} is the nearest",
            run=("grep -A2 architectures MODEL_DIR/config.json",),
        )
    ]


def _wrapped(wanted: Wanted, case: Case) -> Remedy | None:
    """Letting transformers compute the model, where that release can and transformers has the class."""
    release = wanted.release
    if release is None or not wraps(release) or case.facts.look("flag.model_impl") == "transformers":
        return None
    installed = case.facts.look("host.package.transformers")
    version = installed if isinstance(installed, str) else transformers_pin(release)
    # A class that transformers says cannot be wrapped is refused: from 0.5.10 on later, by the wrapper itself.
    if not wrappable(transformers_class(wanted.name), version):
        return None
    return Remedy(
        title="Let transformers compute the model",
        safety=Safety.RISKY,
        why=f"transformers {version} has {wanted.name}, and SGLang {wanted.words} can wrap it",
        edits=(EditTemplate("set", "--model-impl", "transformers"),),
        risk="slower, and without much of what SGLang does for its own models",
    )
