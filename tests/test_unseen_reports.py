"""The public reports of ``data/unseen_reports*``: measured once before any rule was written for them, held since.

Their READMEs tell the figures of the first measurement and what each label means. The sets are no longer held out: the
knowledge was widened by what it showed. So all of them hold here: the root line of every failed launch, a right remedy, no
wrong one marked safe, nothing said of the launches that are well; but for the few whose label says what is still ``open``.

``python tests/test_unseen_reports.py [NAME...]`` prints what is said of each (with names: only those, with every remedy).
"""

from __future__ import annotations

import json
import re
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from own_knowledge import own_knowledge

if __name__ == "__main__":  # run as a script: the checkout is not installed
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mtpdoctor.diagnose.engine import diagnose
from mtpdoctor.diagnose.exact import doubts
from mtpdoctor.diagnose.given import Given
from mtpdoctor.diagnose.the_case import case_of
from mtpdoctor.launch.document import LaunchDocument, read_launch
from mtpdoctor.launch.flags import flag_dest
from mtpdoctor.log.reading import read_logs
from mtpdoctor.report.json import to_json
from mtpdoctor.sglang.flags import flag_table
from mtpdoctor.sglang.options import same_option

CORPORA = sorted((Path(__file__).parent / "data").glob("unseen_reports*"))
SETS: dict[Path, dict[str, dict[str, Any]]] = {
    folder: json.loads((folder / "labels.json").read_text(encoding="utf-8")) for folder in CORPORA
}
FOLDER = {name: folder for folder, labels in SETS.items() for name in labels}
LABELS = {name: label for labels in SETS.values() for name, label in labels.items()}
FAILED = [n for n, label in LABELS.items() if label["outcome"] == "failed"]
QUIET = [n for n in LABELS if n not in FAILED]
# What works there, but not as wanted; every other finding is a false one.
FINDINGS = {
    "h01_ready_sm120_noise": ("MTP0081",),
    "h02_ready_mtp_probes": ("MTP0070", "MTP0073"),
    "b30_hicache_hang": ("MTP0083",),
    "ch03": ("MTP0079",),
    "d_ok_qwen36_compose": ("MTP0070",),
    "e_gb10_graph_hang": ("MTP0080",),
    "e_ok_ready_noise": ("MTP0070", "MTP0081"),
    "f_ok_pd_prefill_k8s": ("MTP0058",),
    "h_ok_retract_jit": ("MTP0086",),
    "i_ok_glm_bad_grammars": ("MTP0070",),
    "j_ok_gemma_usage_thread_trace": ("MTP0086",),
    "j_ok_mimo_mtp_probe_refused": ("MTP0055", "MTP0058"),
    "k_ready_after_gid_table_change": ("MTP0079", "MTP0080"),
    "k_ready_without_custom_allreduce": ("MTP0070", "MTP0081"),
    "k_still_loading_two_sparks": ("MTP0089",),
    "k_stopped_by_scancel": ("MTP0078",),
    "l_ok_noisy_ready": ("MTP0079",),
    "l_ok_pd_decode_ready": ("MTP0080", "MTP0914"),
    "l_ok_gid_table_changed": ("MTP0058", "MTP0080"),
    "l_still_loading_131_shards": ("MTP0081",),
    "l_still_capturing_36": ("MTP0080", "MTP0081"),
    "m_ok_ready_noisy_h100": ("MTP0081",),
    "n_ok_warnings_h20": ("MTP0070",),
    "o_ok_spark4_nemotron_ready": ("MTP0070", "MTP0080", "MTP0081"),
    "o_unfinished_deepgemm_jit": ("MTP0080",),
    "p_ready_w7900_aiter": ("MTP0078", "MTP0081"),
    "q_ok_ready_rtxpro_warnings": ("MTP0081",),
}


@cache
def report(name: str) -> dict[str, Any]:
    knowledge = own_knowledge()
    return to_json(diagnose(read_logs([str(FOLDER[name] / f"{name}.log")], knowledge.literals), knowledge))


def outcomes(name: str) -> set[str]:
    """A launch that a person stopped has no failure: it is unfinished, or was ready before."""
    words = set(LABELS[name]["outcome"].split("_or_"))
    return words - {"stopped"} | {"unfinished", "ready"} if "stopped" in words else words


def text_of(fix: dict[str, Any], command: bool = True) -> str:
    """What a remedy proposes: title, why, each edit, what is to be run, and the command that it leads to."""
    edits = (
        f"{e['name']}={e['value']}" if e["op"] == "env" else f"{e['op']} {e['name']} {e['value'] or ''}"
        for e in fix["edits"]
    )
    shown = [fix["title"], fix["why"] or "", *edits, *fix.get("run", [])]
    return " ".join([*shown, fix.get("command") or ""] if command else shown)


def first(name: str) -> dict[str, Any]:
    found = report(name)["diagnoses"]
    assert found, f"nothing is said of {name}"
    return found[0]


def says_the_root(name: str) -> bool:
    said = first(name)["root"]["text"]
    return any(part in said for part in LABELS[name]["root_line"])


def right_fixes(name: str) -> list[int]:
    texts = [text_of(f) for f in first(name)["fixes"]]
    return [
        n
        for n, text in enumerate(texts)
        if any(re.search(p, text, re.I | re.S) for p in LABELS[name]["remedy_any"])
    ]


def harmful(name: str) -> list[str]:
    texts = [text_of(f, command=False) for f in first(name)["fixes"] if f["safety"] == "safe"]
    return [t for t in texts if any(re.search(p, t, re.I) for p in LABELS[name]["remedy_never"])]


def test_every_log_has_its_label() -> None:
    for folder, labels in SETS.items():
        assert sorted(labels) == sorted(p.stem for p in folder.glob("*.log"))
    assert sum(map(len, SETS.values())) == len(LABELS), "a name is used twice"
    assert len(FAILED) >= 377 and len(QUIET) >= 78


def _known_gap(name: str) -> Any:
    """A launch whose label says what is not right yet (``open``): the test fails once it is."""
    reason = LABELS[name].get("open")
    return pytest.param(name, marks=pytest.mark.xfail(reason=reason, strict=True)) if reason else name


@pytest.mark.parametrize("name", list(map(_known_gap, FAILED)))
def test_root_and_remedy(name: str) -> None:
    label = LABELS[name]
    assert report(name)["outcome"] == "failed"
    assert says_the_root(name), first(name)["root"]
    assert right_fixes(name), (first(name)["rule"], [text_of(f) for f in first(name)["fixes"]])
    assert harmful(name) == []
    assert label["stage"] is None or report(name)["stage"] in label["stage"]


def launched(name: str) -> LaunchDocument | None:
    """The launch that the log shows, or that is put together from what its server printed."""
    if (found := report(name)["command"]) is not None:
        return read_launch(found)
    reading = read_logs([str(FOLDER[name] / f"{name}.log")], own_knowledge().literals)
    return case_of(reading, reading.attempt, Given())[0].document if reading.attempt is not None else None


def options(document: LaunchDocument, but: set[str]) -> list[tuple[str, tuple[str, ...]]]:
    return [(use.dest, use.values) for use in document.command.flags if not same(use.name) & but]


def same(name: str) -> set[str]:
    return set(same_option(flag_dest(name, flag_table(None))))


@pytest.mark.parametrize("folder", CORPORA, ids=[folder.name for folder in CORPORA])
def test_a_printed_command_is_the_launch_with_the_fix_and_nothing_else(folder: Path) -> None:
    """No option of the launch is lost but those that the fix speaks of, and what is called proven has no broken JSON."""
    printed = 0
    for name in SETS[folder]:
        said = report(name)
        fixes = [
            f for part in ("diagnoses", "findings") for d in said[part] for f in d["fixes"] if f["command"]
        ]
        if not fixes:
            continue
        before = launched(name)
        assert before is not None, name
        for fix in fixes:
            after = read_launch(fix["command"])
            touched = {dest for edit in fix["edits"] for dest in same(edit["name"] or "-")}
            assert options(after, touched) == options(before, touched), (name, fix["title"])
            if fix["verified"] != "none":
                assert doubts(after) == (), (name, fix["title"])
            printed += 1
    assert printed > 20


@pytest.mark.parametrize("name", list(map(_known_gap, QUIET)))
def test_no_false_alarm(name: str) -> None:
    said = report(name)
    assert said["outcome"] in outcomes(name)
    assert [d["root"]["text"] for d in said["diagnoses"]] == []
    assert {f["rule"] for f in said["findings"]} == set(FINDINGS.get(name, ()))
    if "stopped" in LABELS[name]["outcome"]:
        assert said["ended"] is not None and said["ended"]["sure"]


def main(names: list[str]) -> None:
    if not names:
        firsts = sum(0 in right_fixes(n) for n in FAILED)
        print(
            f"root {sum(map(says_the_root, FAILED))}, a right remedy {sum(bool(right_fixes(n)) for n in FAILED)}, "
        )
        print(f"as first fix {firsts} of {len(FAILED)}; harmful {sum(bool(harmful(n)) for n in FAILED)}")
    for name in [n for n in LABELS if not names or n.split("_")[0] in names or n in names]:
        label, said = LABELS[name], report(name)
        found = said["diagnoses"][0] if said["diagnoses"] else None
        marks = [] if said["outcome"] in outcomes(name) else [f"OUTCOME {said['outcome']}"]
        if name in FAILED and found:
            marks += [] if says_the_root(name) else ["ROOT"]
            marks += [] if right_fixes(name) else ["REMEDY"]
            marks += [] if 0 in right_fixes(name) or not right_fixes(name) else ["(not first)"]
            marks += ["HARMFUL"] if harmful(name) else []
        if label["stage"] and said["stage"] not in label["stage"]:
            marks.append(f"stage {said['stage']}")
        rule = found and f"{found['rule']} {found['confidence']:.2f} {found['title']}"
        print(f"{name} {' '.join(marks)}\n    {rule}\n    {found and found['root']['text'][:150]}")
        for n, fix in enumerate(found["fixes"] if found else []):
            mark = "*" if name in FAILED and n in right_fixes(name) else " "
            print(f"   {mark}{fix['safety']:7}{text_of(fix, command=bool(names))[: 600 if names else 170]}")


if __name__ == "__main__":
    main(sys.argv[1:])
