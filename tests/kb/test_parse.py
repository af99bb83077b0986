"""Every error in the knowledge is refused, at its line, in words that help."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mtpdoctor.kb.load import KnowledgeError, load_knowledge
from mtpdoctor.kb.types import Role, Safety, Span, Unfixed
from mtpdoctor.log.types import Stage
from mtpdoctor.release import parse_release

from .rules import HEAD, knowledge, parsed, rule_text, write

GOOD = """
confidence: 0.97
releases: ">=0.5.10,<0.5.14"
elsewhere: [{releases: ">=0.5.14", why: said of something else}]
unseen: [{releases: "==0.5.12", why: said in other words}, {releases: "==0.5.13", why: not printed}]
unfixed: [{through: 0.5.13, file: [srt/a.py, srt/b.py], text: assert slots}, {through: 0.5.13, since: 0.5.12, file: srt/a.py, lacks: the mending}]
match:
- 'Speculative decoding for (?P<arch>\\S+) is not compatible'
- pattern: 'assert self\\.page_size == 1[\\s\\S]*AssertionError'
  span: traceback
requires: ['another message']
unless: ['a third message']
when: {host.platform: cuda, flag.tp_size: {gt: $host.gpu.count}}
root: exception
generic: true
explains: [MTP0002]
predicts: {all: [{flag.disable_radix_cache: absent}, {not: {model.is_hybrid: false}}]}
severity: degrades
misleading: That {arch} is unsupported.
remedies:
- title: Use the extra_buffer strategy
  edits: [set --mamba-scheduler-strategy extra_buffer, 'env SGLANG_ENABLE_SPEC_V2=1']
  safety: safe
  why: keeps the prefix cache
- title: Look
  run: ['dmesg -T']
  safety: manual
  why: it says who killed it
- generate: unknown-flag
refs: [https://github.com/sgl-project/sglang/pull/19391]
families: [spec-mamba-no-buffer-radix]
examples:
  bad:
  - log: |
      ValueError: Speculative decoding for X is not compatible
    release: 0.5.10
    gpu: 4xsm120@95
    also: [MTP0002]
  ok:
  - log: nothing of the kind
"""


def test_a_full_rule_is_read_field_by_field(tmp_path: Path) -> None:
    rules, problems = parsed(tmp_path, rule_text(GOOD))
    assert problems == []
    rule = rules[0]
    assert [(n.releases.text, n.why) for n in rule.elsewhere] == [(">=0.5.14", "said of something else")]
    assert [n.releases.text for n in rule.unseen] == ["==0.5.12", "==0.5.13"]
    assert rule.unfixed == (
        Unfixed("0.5.13", ("srt/a.py", "srt/b.py"), "assert slots"),
        Unfixed("0.5.13", ("srt/a.py",), "the mending", "0.5.12", lacks=True),
    )
    assert (rule.id, rule.role, rule.stage, rule.confidence) == (
        "MTP0001",
        Role.CAUSE,
        Stage.SERVER_ARGS,
        0.97,
    )
    assert rule.match[0].literal == "Speculative decoding for"
    assert rule.match[1].literal == "assert self.page_size == 1"
    assert [p.span for p in rule.match] == [Span.LINE, Span.TRACEBACK]
    assert parse_release("0.5.13") in rule.releases and parse_release("0.5.14") not in rule.releases
    assert (rule.root, rule.generic, rule.severity, rule.explains) == (
        "exception",
        True,
        "degrades",
        ("MTP0002",),
    )
    assert [(e.op, e.name, e.value) for e in rule.remedies[0].edits] == [
        ("set", "--mamba-scheduler-strategy", "extra_buffer"),
        ("env", "SGLANG_ENABLE_SPEC_V2", "1"),
    ]
    assert [r.safety for r in rule.remedies[:2]] == [Safety.SAFE, Safety.MANUAL]
    assert rule.remedies[2].generate == "unknown-flag"
    assert rule.examples["bad"][0]["release"] == "0.5.10"
    assert rule.origin == "rules.yaml:2"


def test_evidence_gives_the_default_confidence(tmp_path: Path) -> None:
    texts = [
        rule_text("match: [some long text]", f"MTP000{i}").replace("evidence: confirmed", f"evidence: {kind}")
        for i, kind in enumerate(("confirmed", "stated", "symptom"))
    ]
    assert [r.confidence for r in knowledge(tmp_path, *texts).rules] == [0.95, 0.85, 0.6]


# what is added to a rule -> its line in that text (from 1), and words of the message
BROKEN = {
    "unknown key": ("match: [long enough]\nrelases: '*'", 2, "unknown key 'relases'.*did you mean releases"),
    "duplicate key": (
        "match: [long enough]\nmatch: [long enough]",
        2,
        "duplicate key 'match' .first on line 9",
    ),
    "no literal": ("match:\n- 'long enough'\n- 'a+b'", 3, "no literal of 6"),
    "bad regex": ("match: ['long enough (']", 1, "not a regex"),
    "literal too short": ("match:\n- {pattern: abc, literal: abc}", 2, "shorter than 6"),
    "bad role": ("match: [long enough]\nroot: macth", 2, "'macth' is none of match.*did you mean match"),
    "bad release": ("match: [long enough]\nreleases: 'since 0.5'", 2, "not a release comparison"),
    "elsewhere without a reason": (
        "match: [long enough]\nelsewhere:\n- releases: '<0.5'",
        3,
        "`elsewhere` needs `why`",
    ),
    "unseen without releases": ("match: [long enough]\nunseen:\n- why: so", 3, "`unseen` needs `releases`"),
    "unseen in words": (
        "match: [long enough]\nunseen: [in 0.5.9]",
        2,
        "takes a list of `releases:` with `why:`",
    ),
    "unfixed without a place": (
        "match: [long enough]\nunfixed:\n- {through: 0.5.23, text: assert slots}",
        3,
        "`unfixed` needs `file`",
    ),
    "unfixed with text and lacks": (
        "match: [long enough]\nunfixed:\n- {through: 0.5.23, file: a.py, text: assert slots, lacks: the mending}",
        3,
        "`unfixed` needs `text` or `lacks`",
    ),
    "unfixed through no release": (
        "match: [long enough]\nunfixed:\n- {through: now, file: a.py, text: assert slots}",
        3,
        "'now' is no release",
    ),
    "elsewhere with more": (
        "match: [long enough]\nelsewhere:\n- {releases: '<0.5', why: so, when: then}",
        3,
        "unknown key 'when' in `elsewhere`",
    ),
    "bad confidence": ("match: [long enough]\nconfidence: 95", 2, "number in .0, 1."),
    "unknown fact": ("match: [long enough]\nwhen: {host.gpu.smm: 90}", 2, "did you mean host.gpu.sm"),
    "unknown prefix": ("match: [long enough]\nwhen: {gpu: 90}", 2, "unknown fact 'gpu'"),
    "flag as typed": ("match: [long enough]\nwhen: {flag.tp-size: 90}", 2, "e.g. flag.tp_size"),
    "bad comparison": ("match: [long enough]\nwhen: {flag.tp_size: {gr: 1}}", 2, "unknown comparison 'gr'"),
    "bad number": ("match: [long enough]\nwhen: {flag.tp_size: {gt: many}}", 2, "takes a number"),
    "null value": ("match: [long enough]\nwhen: {flag.tp_size: null}", 2, "write `absent`"),
    "ambiguous bool": ("match: [long enough]\nwhen: {flag.x: off}", 2, "ambiguous"),
    "no such group": ("match: [long enough]\nwhen: {capture.arch: x}", 2, "no pattern has a group 'arch'"),
    "log in predicts": ("predicts: {log.stage: weights}", 1, "before launch"),
    "nothing": ("refs: []", 0, "needs `match` or `predicts`"),
    "severity alone": ("match: [long enough]\nseverity: info", 2, "belongs to `predicts`"),
    "alias": ("match: &m [long enough]\nunless: *m", 1, "alias"),
    "placeholder": ("match: [long enough]\nmisleading: for {arch}", 2, "neither a fact nor a named group"),
    "bad filter": ("match: [long enough]\nmisleading: '{flag.tp_size|plux:1}'", 2, "did you mean plus"),
    "bad edit": (
        "match: [long enough]\nremedies:\n- {title: t, why: w, safety: safe, edits: [sett --x 1]}",
        3,
        "unknown edit 'sett'",
    ),
    "set without value": (
        "match: [long enough]\nremedies:\n- {title: t, why: w, safety: safe, edits: [set --x]}",
        3,
        "needs a value",
    ),
    "risky without risk": (
        "match: [long enough]\nremedies:\n- {title: t, why: w, safety: risky, edits: [add --x]}",
        3,
        "says what may go wrong",
    ),
    "safe without edits": (
        "match: [long enough]\nremedies:\n- {title: t, why: w, safety: safe}",
        3,
        "needs `edits`",
    ),
    "beside generate": (
        "match: [long enough]\nremedies:\n- {generate: bad-choice, title: t}",
        3,
        "nothing else stands beside",
    ),
    "example without log": ("match: [long enough]\nexamples:\n  bad:\n  - root: x", 4, "needs `log`"),
    "example release": (
        "match: [long enough]\nexamples:\n  ok:\n  - {log: x, release: new}",
        4,
        "not a release",
    ),
    "example gpu": ("match: [long enough]\nexamples:\n  ok:\n  - {log: x, gpu: 4 big ones}", 4, "4xsm120@95"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_rule_is_refused_at_its_line(name: str, tmp_path: Path) -> None:
    body, line, message = BROKEN[name]
    rules, problems = parsed(tmp_path, rule_text(body))
    assert rules == []
    head = len(HEAD.splitlines()) + 1
    expected = line + head if line else 2
    found = [(p.line, p.message) for p in problems]
    assert any(at == expected and re.search(message, text) for at, text in found), found


def test_a_missing_field_is_named(tmp_path: Path) -> None:
    text = rule_text("match: [long enough]").replace("  cause: Something is wrong.\n", "")
    _, problems = parsed(tmp_path, text)
    assert [str(p) for p in problems] == ["rules.yaml:2: MTP0001: `cause` is missing"]


def test_all_problems_of_all_files_are_told_at_once(tmp_path: Path) -> None:
    write(tmp_path / "k", rule_text("match: [x]"), name="a.yaml")
    write(tmp_path / "k", rule_text("match: [long enough]\nrot: match", "MTP0002"), name="b.yaml")
    (tmp_path / "k" / "c.yaml").write_text("rules: [\n- {a: b\n", encoding="utf-8")
    (tmp_path / "k" / "d.yaml").write_bytes(b"rules: \xff\xfe")
    (tmp_path / "k" / "e.yaml").write_text("", encoding="utf-8")
    with pytest.raises(KnowledgeError) as caught:
        load_knowledge(tmp_path / "k", use_cache=False)
    assert [Path(p.file).name for p in caught.value.problems] == [
        "a.yaml",
        "b.yaml",
        "c.yaml",
        "d.yaml",
        "e.yaml",
    ]
    assert "k/b.yaml:10: MTP0002: unknown key 'rot'" in str(caught.value)


def test_an_id_is_taken_once(tmp_path: Path) -> None:
    body = "match: [long enough]"
    _, problems = parsed(tmp_path, rule_text(body), rule_text(body))
    assert [p.message for p in problems] == ["id MTP0001 is taken by rules.yaml:2"]


def test_releases_and_hidden_folders_hold_no_rules(tmp_path: Path) -> None:
    write(tmp_path / "k" / "weights", rule_text("match: [long enough]"))
    for other in ("releases", ".git"):
        (tmp_path / "k" / other).mkdir()
        (tmp_path / "k" / other / "x.yaml").write_text("no: rules", encoding="utf-8")
    assert list(load_knowledge(tmp_path / "k", use_cache=False).by_id) == ["MTP0001"]
