"""A tensor of the checkpoint that the model's class does not have: what its name tells, and whether a later release reads it."""

from __future__ import annotations

from mtpdoctor.case import Case
from mtpdoctor.diagnose.later import own_frames, releases_here
from mtpdoctor.diagnose.tensor_names import ADAPTER, DRAFT, NORM, saved_by, telling_parts
from mtpdoctor.diagnose.upgrading import development
from mtpdoctor.kb.types import Match, Remedy, Safety
from mtpdoctor.log.types import Frame
from mtpdoctor.paths import releases_folder
from mtpdoctor.release import Release
from mtpdoctor.sglang.changes import concerns
from mtpdoctor.sglang.history import history_of
from mtpdoctor.sglang.lines import gone_from
from mtpdoctor.sglang.releases import known_releases


def tensor_remedies(match: Match, case: Case) -> list[Remedy]:
    """By the name that the rule caught. The upgrade only where a later release's loader treats a part of it otherwise."""
    name = match.captures.get("name", "")
    out = [*_by_name(name, match)]
    newer = _upgrade(name, match, case)
    return [*newer, *out] if newer and not out else [*out, *newer]


def tensor_said(match: Match, case: Case) -> str:
    """What the name tells, and what is known of later releases."""
    name = match.captures.get("name", "")
    said = []
    saved = saved_by(name)
    if saved is not None:
        prefix, program, own = saved
        said.append(
            f'Names that begin with "{prefix}" are those that {program} writes; this class reads '
            + (f"the model's own: {own}." if own else "them without that prefix.")
        )
    elif ADAPTER.search(name):
        said.append("The name is one of an adapter that was not merged into the model.")
    elif (part := NORM.search(name)) is not None:
        said.append(
            f"The attention of the checkpoint has {part['part']}, the class here was built without: the checkpoint is of another generation "
            "of the model (another language model inside) than the class."
        )
    file = _file(match)
    if file and case.release is not None and _since(name, match, case) is None:
        newest = known_releases()[-1]
        if case.release < newest and _stands(match, case):
            said.append(f"In no release up to {newest} does the loader of {file} treat this name otherwise.")
    return " ".join(said)


def _by_name(name: str, match: Match) -> list[Remedy]:
    saved = saved_by(name)
    if saved is not None:
        prefix, program, own = saved
        return [
            Remedy(
                title=f"Rename the tensors of the checkpoint: {prefix}* to {own or 'the name without it'}",
                safety=Safety.MANUAL,
                why=f"{program} wrote them under these names; the original checkpoint of the model has the names that the class reads",
                run=(
                    "# with safetensors: load_file(shard), rename the keys, save_file(..., metadata={'format': 'pt'}); the same in "
                    "weight_map of model.safetensors.index.json",
                ),
            ),
            Remedy(
                title="Or merge and save the model again with the version of transformers that the original config.json names"
                if own
                else "Or save the model again without the wrapper",
                safety=Safety.MANUAL,
                why="it then writes the original names",
                run=("grep transformers_version <original model>/config.json",) if own else (),
            ),
        ]
    if ADAPTER.search(name):
        return [
            Remedy(
                title="Merge the adapter into the base model, or serve it with --lora-paths beside the base model",
                safety=Safety.MANUAL,
                why="the checkpoint holds the tensors of an adapter, not those of a whole model",
            )
        ]
    file = _file(match) or "this class"
    if (part := NORM.search(name)) is not None:
        return [
            Remedy(
                title=f"Serve it with code that knows this generation of the model: the branch that its authors name, or another engine; {file} of "
                "SGLang does not support it",
                safety=Safety.MANUAL,
                why=f"the class builds attention without {part['part']}, which this checkpoint has (as Qwen3 has and Qwen2 has not)",
            ),
            Remedy(
                title="Or serve the generation before, which the class was written for",
                safety=Safety.MANUAL,
                why="its tensors have the names that the class reads",
            ),
        ]
    if DRAFT.search(name):
        return [
            Remedy(
                title="Use a checkpoint without the layers for drafting (MTP), or a release whose class skips them",
                safety=Safety.MANUAL,
                why="the tensor belongs to the layers that predict further tokens, which the main model does not have",
            )
        ]
    return []


def _frame(match: Match) -> Frame | None:
    frames = own_frames(match.traceback)
    return frames[0] if frames else None


def _file(match: Match) -> str:
    frame = _frame(match)
    return frame.path[frame.path.rfind("sglang/") :].removeprefix("sglang/") if frame else ""


def _since(name: str, match: Match, case: Case) -> tuple[Release, str] | None:
    """The first later release whose loader treats a part of the name otherwise, and the part."""
    frame, span = _frame(match), releases_here(case)
    if frame is None or span is None:
        return None
    found = [
        (since[0], part)
        for part in telling_parts(name)
        if (since := concerns(releases_folder(), frame.path, frame.function, part, span[1]))
    ]
    return min(found, default=None)


def _stands(match: Match, case: Case) -> bool:
    """Is the loader there in all later releases, with the line that fails?"""
    frame, span = _frame(match), releases_here(case)
    if frame is None or span is None:
        return False
    history = history_of(releases_folder(), frame.path, frame.function)
    if history is None or history.since(span[1]) is None or history.gone(span[1]) is not None:
        return False
    return gone_from(releases_folder(), history.file, frame.function, frame.code, span[1]) is None


def _upgrade(name: str, match: Match, case: Case) -> list[Remedy]:
    newest = known_releases()[-1]
    if case.release is None or _frame(match) is None:
        return [
            _newest(f"which release this is, is not known; the newest known here is {newest}", newest, None)
        ]
    if case.release >= newest:
        return [development(newest)]
    found = _since(name, match, case)
    if found is not None:
        since, part = found
        why = f"the loader in {_file(match)} treats {part} otherwise from {since} on; whether that mends this failure is not known"
        return [_newest(why, newest, case.release)]
    if _by_name(name, match) or _stands(match, case) or releases_here(case) is None:
        return []
    why = f"the loader in {_file(match)} is another in later releases; whether that mends this failure is not known"
    return [_newest(why, newest, case.release)]


def _newest(why: str, newest: Release, release: Release | None) -> Remedy:
    return Remedy(
        title=f"Upgrade SGLang{f' from {release}' if release else ''} to {newest}",
        safety=Safety.MANUAL,
        why=why,
        run=(f"pip install sglang=={newest}",),
        risk="options may have changed; check the command for the new release",
    )
