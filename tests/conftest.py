"""What holds for every test, whoever runs it and wherever."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

# Under nohup, or as a background job of a script, signals are ignored, and every process that a test starts would
# inherit that: tests of how a launch is ended would wait for ever.
for _signal, _usual in (
    (signal.SIGINT, signal.default_int_handler),
    (signal.SIGQUIT, signal.SIG_DFL),
    (signal.SIGHUP, signal.SIG_DFL),
):
    if signal.getsignal(_signal) is signal.SIG_IGN:
        signal.signal(_signal, _usual)

# What changes what is printed, or what is known of the host, by the whim of whoever runs them.
for _name in tuple(os.environ):
    if _name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES") or _name.startswith(
        ("MTPDOCTOR_", "SGLANG_")
    ):
        del os.environ[_name]

# How long an example takes on a busy machine is no property of the code; and the same examples every time, so that a
# run says something of the change it is made for. HYPOTHESIS_PROFILE=explore looks for new ones.
settings.register_profile("steady", deadline=None, derandomize=True, database=None)
settings.register_profile("explore", deadline=None, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))


def pytest_collection_finish() -> None:
    """What the collection made stays to the end: nothing to look through again and again."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


@pytest.fixture(scope="session", autouse=True)
def _nobodys_folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Apart from the user's: a cache for the run (its processes share the compiled knowledge), and for each process a
    folder of what was launched."""
    own = tmp_path_factory.getbasetemp()
    ours = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MTPDOCTOR_CACHE", str(ours / "cache-of-the-run"))
        patch.setenv("MTPDOCTOR_STATE", str(own / "state-of-nobody"))
        yield


@pytest.fixture
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state folder of the test's own, ``tmp_path / "state"``; not there yet."""
    monkeypatch.setenv("MTPDOCTOR_STATE", str(tmp_path / "state"))
    return tmp_path / "state"
