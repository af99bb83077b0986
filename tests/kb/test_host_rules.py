"""Rules on hosts in YAML: what is accepted, what is refused with its line, and that they survive compiling."""

from __future__ import annotations

from pathlib import Path

import pytest

from mtpdoctor.kb.lint_static import check
from mtpdoctor.kb.load import load_knowledge

from .rules import parsed, rule_text, write

GOOD = """
scope: host
predicts: {host.shm_gib: {lt: 1}, env.NCCL_DEBUG: absent, release: '>=0.5.0'}
matters: {arg.tp_size: {gt: 1}}
severity: degrades
remedies: [{title: Mount it larger, run: ['mount {host.shm_gib}'], safety: manual, why: it is small}]
examples:
  bad_host: [{host: {shm_gib: 0.1}, said: x, fix: mount, also: [MTP0001]}]
  ok_host: [{host: {shm_gib: 64}, command: python -m sglang.launch_server, release: 0.5.9}]
"""


def test_a_rule_on_hosts_is_read_and_survives_compiling(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MTPDOCTOR_CACHE", str(tmp_path / "cache"))
    (rule,), problems = parsed(tmp_path / "k", rule_text(GOOD))
    assert problems == [] and rule.scope == "host"
    assert rule.examples["bad_host"][0]["host"] == {"shm_gib": 0.1}
    first = load_knowledge(tmp_path / "k")
    again = load_knowledge(tmp_path / "k")
    assert list((tmp_path / "cache").rglob("*.bin"))
    for known in (first, again):
        assert [r.id for r in known.about_hosts()] == ["MTP0001"] and list(known.predictions()) == []
        assert known.by_id["MTP0001"].matters == rule.matters
        assert known.by_id["MTP0001"].predicts == rule.predicts


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("scope: host\nmatch: [long enough]", "a rule on hosts needs `predicts`"),
        ("scope: machine\npredicts: {host.cpus: 1}", "scope: 'machine' is none of launch, host"),
        ("scope: host\npredicts: {arg.tp_size: 2}", "reads host.*, env.* and release, not arg.tp_size"),
        ("scope: host\npredicts: {model.layers: 2}", "not model.layers"),
        ("predicts: {host.cpus: 1}\nmatters: {arg.tp_size: 2}", "`matters` belongs to `scope: host`"),
        ("scope: host\npredicts: {host.gpu.mg: true}", "did you mean host.gpu.mig"),
        ("scope: host\npredicts: {host.cpus: 1}\nexamples: {bad_host: [{said: x}]}", "needs `host:`"),
        ("scope: host\npredicts: {host.cpus: 1}\nexamples: {bad_host: [{host: 8}]}", "needs `host:`"),
        (
            "scope: host\npredicts: {host.cpus: 1}\nexamples: {ok_host: [{host: {cpus: 1}, fix: x}]}",
            "unknown key 'fix'",
        ),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, body: str, said: str) -> None:
    rules, problems = parsed(tmp_path, rule_text(body))
    assert rules == [] and any(said in str(p) for p in problems), [str(p) for p in problems]


def test_examples_belong_to_their_kind_of_rule(tmp_path: Path) -> None:
    bare = "predicts: {host.cpus: 1}\nremedies: [{title: t, safety: manual, why: w}]\n"
    rules, problems = parsed(
        tmp_path,
        rule_text("scope: host\n" + bare, "MTP0001"),
        rule_text(bare + "examples: {ok_host: [{host: {cpus: 8}}]}", "MTP0002"),
    )
    assert problems == []
    found = [str(p) for p in check(rules, {r.id for r in rules})]
    assert [sum(f"examples.{kind}_host" in f for f in found) for kind in ("bad", "ok")] == [1, 2]
    assert any("MTP0001" in f and "bad_host is missing" in f for f in found)
    assert any("MTP0002" in f and "ok_host belongs to `scope: host`" in f for f in found)


def test_lint_wants_somebody_to_look_at_hosts(tmp_path: Path) -> None:
    from mtpdoctor.kb.lint import lint

    write(tmp_path / "knowledge", rule_text(GOOD))
    for ci, level in ((True, "error"), (False, "note")):
        (problem,) = [
            p for p in lint(tmp_path / "knowledge", healthy=[], ci=ci) if "hosts not checked" in p.message
        ]
        assert problem.level == level
