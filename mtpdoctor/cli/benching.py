"""``mtpdoctor run --bench``: the launch with speculation against the same launch without, on the same prompts."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from mtpdoctor.cli.watching import Screen, Watched, exit_code_of, print_report
from mtpdoctor.diagnose.given import Given
from mtpdoctor.errors import EXIT_OK, UserError
from mtpdoctor.launch.document import LaunchDocument
from mtpdoctor.text import safe
from mtpdoctor.watch.bench import Comparison, Spread, compare
from mtpdoctor.watch.session import LaunchSession
from mtpdoctor.watch.target import Target
from mtpdoctor.watch.types import Ended, Generated


def bench(given: Given, screen: Screen, *, ready_timeout: float, patience: float, as_json: bool) -> int:
    """Launch, measure and end both, one after the other. Raises UserError when one does not come up."""
    assert given.document is not None

    def launched(document: LaunchDocument) -> contextlib.AbstractContextManager[Target]:
        return _running(replace(given, document=document), screen, ready_timeout, patience)

    comparison = compare(given.document, launched, told=lambda text: screen.say(f"mtpdoctor: {safe(text)}"))
    if as_json:
        import json

        print(json.dumps(_to_json(comparison), ensure_ascii=True, indent=2))
    else:
        print("\n".join(map(safe, comparison.lines())))
    return EXIT_OK


@contextlib.contextmanager
def _running(given: Given, screen: Screen, ready_timeout: float, patience: float) -> Iterator[Target]:
    """The launch while it generates; ended when the block is left, at once where something went wrong."""
    from mtpdoctor.watch.plan import plan_of

    session = LaunchSession(plan_of(given, pty=False, ready_timeout=ready_timeout), patience=patience)
    decided = threading.Event()
    seen: dict[type, Any] = {}

    def drive() -> None:
        try:
            for event in session.events():
                screen.show(event, event.at)
                seen[type(event)] = event
                if isinstance(event, (Generated, Ended)):
                    decided.set()
        except UserError as error:
            seen[UserError] = error
        finally:
            decided.set()

    thread = threading.Thread(target=drive, name="mtpdoctor-launch")
    thread.start()
    try:
        while not decided.wait(0.2):  # in short turns, so that Ctrl-C is heard
            pass
        generated: Generated | None = seen.get(Generated)
        if generated is None or not generated.ok:
            session.end(hard=True)
            thread.join()
            _raise(seen)
        yield session.target
        session.end()
    except BaseException:
        session.end(hard=True)
        raise
    finally:
        while thread.is_alive():
            thread.join(0.2)
        screen.done()


def _raise(seen: dict[type, Any]) -> None:
    if UserError in seen:
        raise seen[UserError]
    watched = Watched(seen[Ended], seen.get(Generated), False)
    print_report(watched)
    raise UserError(
        "nothing was measured: the launch does not generate",
        hint="what it died of stands above" if watched.ended.report else "see its log: mtpdoctor runs --log",
        exit_code=exit_code_of(watched, until_ready=True) or 3,
    )


def _to_json(comparison: Comparison) -> dict[str, Any]:
    both = zip(comparison.gains, comparison.speculating.measured, comparison.plain.measured, strict=True)
    return {
        "schema": 1,
        "max_tokens": comparison.plan.max_tokens,
        "repetitions": comparison.plan.repetitions,
        "accept_length": comparison.speculating.accept_length,
        "same_answers": comparison.same_answers,
        "concurrencies": [
            {
                "concurrency": gain.concurrency,
                "gain": round(gain.median, 4),
                "gain_from": round(gain.least, 4),
                "gain_to": round(gain.most, 4),
                "certain": gain.certain,
                "with": {"per_request": _spread(a.per_request), "total": _spread(a.total)},
                "without": {"per_request": _spread(b.per_request), "total": _spread(b.total)},
            }
            for gain, a, b in both
        ],
    }


def _spread(spread: Spread) -> dict[str, float]:
    return {"median": round(spread.median, 2), "least": round(spread.least, 2), "most": round(spread.most, 2)}
