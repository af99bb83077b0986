"""Which release a log is from."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtpdoctor.paths import releases_folder
from mtpdoctor.release import parse_release as R
from mtpdoctor.sglang.dating import (
    argument_fields,
    by_fields,
    by_packages,
    date,
    date_by_frames,
    kernel_packages,
    version_in,
)
from mtpdoctor.sglang.flags import flag_table
from mtpdoctor.sglang.learn_frames import learn_frames, read_frames, write_frames
from mtpdoctor.sglang.releases import known_releases, release_facts
from mtpdoctor.sglang.source import open_source
from tests.sglang.trees import ARGPARSE, FIELDS, write_tree


@pytest.mark.parametrize(
    ("line", "release"),
    [
        ("Successfully installed sglang-0.5.13.post1 torch-2.11.0", "0.5.13.post1"),
        ("sglang==0.5.9", "0.5.9"),
        ("image: lmsysorg/sglang:v0.5.10.post1-cu130", "0.5.10.post1"),
        ("  docker run lmsysorg/sglang:v0.5.16", "0.5.16"),
        ("SGLang v0.5.20 starting", "0.5.20"),
        ("'sglang_version': '0.5.23'", "0.5.23"),
        ("/venv/lib/python3.12/site-packages/sglang-0.5.11.dist-info/METADATA", "0.5.11"),
        ("torch==2.11.0", None),
        ("sglang.srt.server_args 1.2.3", None),
        ("sglang-kernel==0.4.3", None),
        ("sglang: 0.0.0.dev13972+g4f080703c.d20260615", None),
    ],
)
def test_version_lines(line, release):
    assert version_in(line) == (R(release) if release else None)


def server_args(release: str, drop: int = 0) -> str:
    fields = [f for f in release_facts(R(release)).fields if not f.startswith("watermark_")]
    return (
        "server_args=ServerArgs(" + ", ".join(f"{name}=None" for name in fields[: len(fields) - drop]) + ")"
    )


@pytest.mark.parametrize("release", [str(r) for r in known_releases()])
def test_fields_of_server_args_date_the_log(release):
    dated = date(server_args=server_args(release))
    assert R(release) in dated.releases
    fields = set(release_facts(R(release)).fields)
    for other in dated.releases:
        assert set(release_facts(other).fields) == fields
    assert dated.reasons


def test_values_do_not_confuse_the_field_names():
    line = """x server_args=ServerArgs(a='b, c=1', d="it's (", e=[1, (2, 'f=3')], g={'h': <X: 1>}, i=None) tail=1"""
    assert argument_fields(line) == (("a", "d", "e", "g", "i"), True)
    assert argument_fields(line[:40]) == (("a", "d"), False)
    assert argument_fields("nothing") == ((), False)


def test_a_cut_line_still_dates():
    fields, complete = argument_fields(server_args("0.5.13.post1")[:4000])
    assert not complete and len(fields) > 100
    assert R("0.5.13.post1") in by_fields(fields, complete)


def test_too_few_fields_date_nothing():
    assert by_fields(("model_path", "tp_size"), True) == ()
    assert date(server_args="ServerArgs(a=1, b=2, c=3, d=4)").releases == ()


def test_a_usage_text_dates():
    flags = [spec.name for spec in flag_table(R("0.5.16")).specs]
    dated = date(usage=["usage: sglang serve [-h] " + " ".join(f"[{name} X]" for name in flags)])
    assert dated.release == R("0.5.16") and "usage text" in dated.reasons[0]
    assert date(usage=["usage: sglang serve [--tp-size N]"]).releases == ()


def test_a_named_release_decides():
    dated = date(version=R("0.5.9"), server_args=server_args("0.5.23"))
    assert dated.release == R("0.5.9") and dated.text == "0.5.9"


def test_frames_narrow():
    spans = read_frames(releases_folder())
    first = spans["0.5.10.post1"]["sglang/srt/server_args.py"]["check_server_args"][0][0]
    frame = ("/usr/lib/python3.12/site-packages/sglang/srt/server_args.py", first + 3, "check_server_args")
    found = date_by_frames([frame])
    assert "0.5.10.post1" in found and "0.4.6" not in found and "0.5.23" not in found
    assert date_by_frames([("/x/torch/nn.py", 3, "forward")]) == frozenset()
    assert date(frames=[frame]).reasons


def test_contradicting_frames_say_nothing():
    spans = read_frames(releases_folder())
    frames = []
    for release in ("0.4.6", "0.5.10.post1"):
        first = spans[release]["sglang/srt/server_args.py"]["check_server_args"][0][0]
        frames.append(("/x/sglang/srt/server_args.py", first + 1, "check_server_args"))
    assert all(date_by_frames([frame]) for frame in frames)
    assert date(frames=frames).releases == ()


def test_kernel_package_dates():
    assert kernel_packages("pip: sgl-kernel==0.3.21, sglang-kernel 0.4.1") == {
        "sgl-kernel": "0.3.21",
        "sglang-kernel": "0.4.1",
    }
    found = by_packages({"sgl-kernel": "0.3.21"})
    assert R("0.5.9") in found and R("0.5.10") not in found
    assert by_packages({"sglang_kernel": ""})[0] == R("0.5.10rc0")
    assert by_packages({"torch": "2.9.1"}) == ()


def test_frames_are_learned_and_kept(tmp_path):
    old = learn_frames(open_source(write_tree(tmp_path / "old", ARGPARSE)))
    new = learn_frames(open_source(write_tree(tmp_path / "new", FIELDS)))
    write_frames(tmp_path, {"1.0.0": old})
    write_frames(tmp_path, {"1.1.0": new})
    assert read_frames(tmp_path) == {"1.0.0": old, "1.1.0": new}


@given(st.text(max_size=200))
def test_any_line_is_read(line):
    version_in(line)
    argument_fields("ServerArgs(" + line)
    kernel_packages(line)
