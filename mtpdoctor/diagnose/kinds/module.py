"""What to install for a Python module that is missing: its name is often not the package's.

What is known of single modules stands in ``knowledge/releases/modules.json``, what a release pins in the learned tables.
"""

from __future__ import annotations

from mtpdoctor.case import Case
from mtpdoctor.diagnose.kinds.package import distributions, install_remedy, usable_name
from mtpdoctor.kb.types import Match, Remedy, Safety
from mtpdoctor.paths import releases_folder
from mtpdoctor.patterns import lazy
from mtpdoctor.release import parse_release
from mtpdoctor.sglang.releases import ReleaseFacts, release_facts
from mtpdoctor.sglang.store import read_table

_PIN = lazy(r"\{pin:([\w.-]+)\}")


def module_remedies(match: Match, case: Case) -> list[Remedy]:
    """Capture ``module``: the import name, dotted or not, or a distribution's name."""
    module = match.captures.get("module", "").partition(".")[0]
    if not usable_name(module):
        return [_complete(case)]
    release = release_facts(case.release)
    row = read_table(releases_folder() / "modules.json")["modules"].get(module)
    if row is not None and "until" in row:
        row = row if case.release is None or case.release <= parse_release(row["until"]) else None
    names = distributions(module)
    pinned = next((n for n in names if n in release.pins), None)
    if row is not None:
        return [_of_row(row, release, case), _complete(case)]
    if pinned is not None and case.release is not None:
        return [install_remedy(module, pinned, case), _complete(case)]
    return [_complete(case), install_remedy(module, pinned or names[-1], case)]


def _of_row(row: dict[str, object], release: ReleaseFacts, case: Case) -> Remedy:
    run = row["run"]
    assert isinstance(run, list)
    return Remedy(
        title=str(row["title"]),
        safety=Safety.MANUAL,
        why=str(row["why"]),
        run=tuple(_filled(str(line), release, case) for line in run),
    )


def _filled(line: str, release: ReleaseFacts, case: Case) -> str:
    kernel = next((n for n in ("sglang-kernel", "sgl-kernel") if n in release.pins), "sglang-kernel")
    line = line.replace("{release}", str(case.release) if case.release is not None else "RELEASE")
    line = line.replace("{kernel}", _pin(kernel, release, case))
    return _PIN.sub(lambda m: _pin(m[1], release, case), line)


def _pin(name: str, release: ReleaseFacts, case: Case) -> str:
    spec = release.pins.get(name, "") if case.release is not None else ""
    return name + spec if spec.startswith("==") else name


def _complete(case: Case) -> Remedy:
    name = f"sglang=={case.release}" if case.release is not None else "sglang"
    extras = case.release is not None and case.release < parse_release("0.5.3")
    wanted = name.replace("sglang", "sglang[all]", 1) if extras else name
    return Remedy(
        title="Install SGLang with its dependencies",
        safety=Safety.MANUAL,
        why="brings every package that the release asks for, in the version it pins"
        + ("" if case.release is not None else '; before 0.5.3 as "sglang[all]"'),
        run=("python -m pip check", f'pip install "{wanted}"'),
    )
