"""What messages of SGLang ask of the options that they name, in both directions."""

from pathlib import Path

import pytest

from mtpdoctor.diagnose.kinds.asked import asked
from mtpdoctor.release import parse_release
from mtpdoctor.sglang.flags import flag_table

ROWS = [
    line.split(" || ")
    for line in (Path(__file__).parents[1] / "data" / "asked.txt").read_text("utf-8").splitlines()
    if not line.startswith("#")
]


@pytest.mark.parametrize(("release", "message", "wanted"), ROWS, ids=[row[1][:60] for row in ROWS])
def test_what_a_message_asks_of_each_option(release: str, message: str, wanted: str) -> None:
    said = [
        ("-" if one.verb == "away" else "+")
        + one.spec.name
        + (f"={one.value}" if one.value and one.verb == "towards" else "")
        for one in asked(message, flag_table(parse_release(release)))
        if one.verb == "away" or (one.verb == "towards" and (one.value or one.spec.arity == "switch"))
    ]
    assert said == wanted.split()
