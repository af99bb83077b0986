"""Are the edits of remedies possible in every release in which the remedies are offered?

An edit holds in a release whose parser knows the flag (under whatever name it has there), takes it with or
without a value as the edit writes it, and accepts the value where it names its choices.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mtpdoctor.kb.types import EditTemplate, Remedy, Rule
from mtpdoctor.launch.types import Edit, EditOp
from mtpdoctor.release import Release
from mtpdoctor.sglang.flags import flag_table
from mtpdoctor.sglang.options import translate_edit
from mtpdoctor.sglang.releases import known_releases


def impossible_edits(rule: Rule) -> Iterator[str]:
    """A message for each edit that some release of its remedy does not take."""
    for i, remedy in enumerate(rule.remedies):
        with_them = remedy.checkpoints.edits if remedy.checkpoints is not None else ()
        for edit in (*remedy.edits, *with_them):
            if edit.op not in ("set", "add") or "{" in edit.name:
                continue
            wrong: dict[str, list[Release]] = {}
            for release in _offered(rule, remedy):
                reason = _refusal(edit, release)
                if reason:
                    wrong.setdefault(reason, []).append(release)
            for reason, releases in wrong.items():
                value = f" {edit.value}" if edit.value else ""
                yield f"remedy {i}: `{edit.op} {edit.name}{value}`: {reason} in {spans(releases)}: narrow its `releases`"


def _offered(rule: Rule, remedy: Remedy) -> list[Release]:
    return [r for r in known_releases() if r in rule.releases and r in remedy.releases]


def _refusal(edit: EditTemplate, release: Release) -> str:
    """Why the release does not take the edit; "" where it does."""
    edits, _ = translate_edit(Edit(EditOp(edit.op), edit.name, edit.value), release)
    if edits is None:
        return "there is no such flag"
    table = flag_table(release)
    for one in edits:
        spec = table.resolve(one.name) if one.name.startswith("--") else None
        if spec is None or one.op not in (EditOp.SET, EditOp.ADD):
            continue
        if spec.arity == "switch" and one.value:
            return f"{spec.name} takes no value"
        if spec.arity in ("one", "many") and one.op is EditOp.ADD:
            return f"{spec.name} needs a value"
        if spec.choices is None or not one.value or "{" in one.value or "<" in one.value:
            continue
        values = one.value.split() if spec.arity == "many" else [one.value]
        other = [v for v in values if v not in {str(choice) for choice in spec.choices}]
        if other:
            return f"{spec.name} does not take {other[0]}"
    return ""


def spans(releases: Sequence[Release]) -> str:
    """The releases as runs of known ones: "0.4.6 to 0.4.10.post2, 0.5.3"."""
    known = list(known_releases())
    runs: list[list[Release]] = []
    for release in releases:
        if runs and known.index(release) == known.index(runs[-1][-1]) + 1:
            runs[-1].append(release)
        else:
            runs.append([release])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]} to {run[-1]}" for run in runs)
