"""Whether a release of SGLang that a fix installs can run where the log was written: its Python, and the driver that the CUDA
of its torch asks for. What the log does not show is not judged. Pure.

Python: ``Requires-Python`` of SGLang's wheels. Drivers: the CUDA toolkit's release notes (CUDA 12 runs on 525 and newer, CUDA 13
on 580 and newer).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from mtpdoctor.case import Case
from mtpdoctor.diagnose.installs import sglang_asked
from mtpdoctor.diagnose.types import Fix
from mtpdoctor.facts import UNKNOWN
from mtpdoctor.log.types import Attempt
from mtpdoctor.patterns import lazy
from mtpdoctor.records import replace
from mtpdoctor.release import Release, release_or_none
from mtpdoctor.sglang.releases import known_releases, release_facts
from mtpdoctor.sglang.torch_versions import cuda_of, python_since

_RELEASE = lazy(r"(?<![\w.])(0\.\d+\.\d+(?:\.?(?:post|rc)\d+)?)(?![\w.]*\d)")
_LATER = lazy(r"(?<![\w-])sglang(?:\[[\w,-]*\])?>=\d[\w.]*(?!\s*,)")
_PYTHON = lazy(r"/python3\.(\d+)/(?:site|dist)-packages/sglang/")
_DRIVERS = {12: 525, 13: 580}  # the least major version of the driver, by that of CUDA


def with_needs(fixes: Sequence[Fix], case: Case, attempt: Attempt) -> tuple[Fix, ...]:
    """The fixes, with a note on those whose release does not run on this driver or Python, and the newest one that does in
    the commands of those that only ask for a newer one."""
    if not any(True for fix in fixes for _ in sglang_asked(fix.run)):
        return tuple(fixes)
    driver, python = _driver(case), _python(attempt)
    return tuple(_fitted(fix, driver, python, case) for fix in fixes)


def _fitted(fix: Fix, driver: str | None, python: int | None, case: Case) -> Fix:
    wanted = max(_read(release for sign, release in sglang_asked(fix.run) if sign != "~="), default=None)
    unmet = tuple(_unmet(wanted, driver, python)) if wanted is not None else ()
    if wanted is None:
        return fix
    if not unmet:
        return _bounded(fix, wanted, driver, python)
    said, newest = "; ".join(unmet), _newest_that_runs(wanted, driver, python, case)
    if newest is None:
        return replace(fix, notes=(*fix.notes, said))
    said += f"; the newest release for what is there is {newest}"
    asked = max(_read(_RELEASE.findall(f"{fix.title} {fix.why}")), default=newest)
    run = fix.run
    if wanted == known_releases()[-1] and asked <= newest:
        run = tuple(line.replace(f"sglang=={wanted}", f"sglang=={newest}") for line in run)
    return replace(fix, run=run, notes=(*fix.notes, said))


def _bounded(fix: Fix, wanted: Release, driver: str | None, python: int | None) -> Fix:
    """``wanted`` runs here; "or later" would install the newest, which may not: then up to the last one that does."""
    newest = known_releases()[-1]
    unmet = tuple(_unmet(newest, driver, python)) if newest > wanted else ()
    if not unmet or all(sign != ">=" for sign, _ in sglang_asked(fix.run)):
        return fix
    last = next(r for r in reversed(known_releases()) if r == wanted or not any(_unmet(r, driver, python)))
    run = tuple(_LATER.sub(rf"\g<0>,<={last}", line) for line in fix.run)
    return replace(
        fix, run=run, notes=(*fix.notes, f"{unmet[0]}; the newest release for what is there is {last}")
    )


def _read(releases: Iterable[str]) -> Iterator[Release]:
    return (release for text in releases if (release := release_or_none(text)) is not None)


def _unmet(release: Release, driver: str | None, python: int | None) -> Iterator[str]:
    cuda = _cuda(release)
    least = _DRIVERS.get(cuda) if cuda is not None else None
    if driver is not None and least is not None and int(driver.partition(".")[0]) < least:
        yield (
            f"SGLang {release} installs torch for CUDA {cuda}, whose driver has to be {least} or newer; the log shows {driver}"
        )
    since = python_since(release)
    if python is not None and since is not None and python < since:
        yield f"SGLang {release} needs Python 3.{since}; the log shows 3.{python}"


def _newest_that_runs(wanted: Release, driver: str | None, python: int | None, case: Case) -> Release | None:
    """Before ``wanted``, and newer than the one in use."""
    if case.release is None:
        return None
    fits = [r for r in known_releases() if case.release < r < wanted and not any(_unmet(r, driver, python))]
    return fits[-1] if fits else None


def _cuda(release: Release) -> int | None:
    found = cuda_of(release_facts(release).pins.get("torch", "").removeprefix("=="))
    return int(found.partition(".")[0]) if found else None


def _driver(case: Case) -> str | None:
    driver, platform = case.facts.look("host.driver"), case.facts.look("host.platform")
    known = isinstance(driver, str) and driver.partition(".")[0].isdigit()
    return str(driver) if known and platform in (UNKNOWN, "cuda") else None


def _python(attempt: Attempt) -> int | None:
    """The minor version of the Python in which SGLang is installed, by the paths of its frames."""
    paths = (frame.path for event in attempt.events if event.traceback for frame in event.traceback.frames)
    found = next((m for path in paths if (m := _PYTHON.search(path))), None)
    return int(found[1]) if found else None
