"""What holds for every launch file of every form."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mtpdoctor.errors import UserError
from mtpdoctor.launch.document import LaunchDocument, read_launch
from mtpdoctor.launch.types import Edit, EditOp, Form

from .corpus import corpus, name_of, text_of
from .tables import TABLE

FILES = corpus()
every_file = pytest.mark.parametrize("path", FILES, ids=name_of)
some_file = st.sampled_from(FILES)
quick = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))

word = st.text(st.sampled_from("abzAZ019_-./:=+,@ '\"$\\{}[]#&*!|>%`;()?~é"), min_size=1, max_size=12).filter(
    lambda v: not v.startswith("-") and v.strip() == v and "$" not in v.replace("$ ", "")
)


def read(path: Path) -> LaunchDocument:
    return read_launch(text_of(path), name=path.name, table=TABLE)


def tp_value(document: LaunchDocument) -> tuple[str, ...] | None:
    return document.command.value("tp_size")


def in_group(document: LaunchDocument) -> list[int]:
    index = document.commands.index(document.command)
    return list(next(g for g in document.launches if index in g))


def changed_text(before: str, after: str) -> tuple[str, str]:
    """What differs once the common beginning and end are taken off."""
    start = 0
    while start < min(len(before), len(after)) and before[start] == after[start]:
        start += 1
    end = 0
    while end < min(len(before), len(after)) - start and before[-1 - end] == after[-1 - end]:
        end += 1
    return before[start : len(before) - end], after[start : len(after) - end]


@every_file
def test_the_form_is_recognised(path: Path) -> None:
    assert read(path).form is Form(path.parent.name)


@every_file
def test_without_edits_the_text_is_the_same_to_the_byte(path: Path) -> None:
    document = read(path)
    assert document.apply(()).text == text_of(path)
    assert document.diff(document.apply(())) == ""


@every_file
def test_model_and_program_are_read(path: Path) -> None:
    for command in read(path).commands:
        assert command.program[-1] in ("sglang.launch_server", "serve", "launch_server.py")
        assert command.value("model_path") or command.positionals or command.value("config")


@every_file
def test_another_value_touches_only_the_value(path: Path) -> None:
    document = read(path)
    old = tp_value(document)
    assert old and len(old) == 1
    edited = document.apply([Edit(EditOp.SET, "--tensor-parallel-size", "512")])
    assert all(edited.commands[i].value("tp_size") == ("512",) for i in in_group(edited))
    spelling = [f.name for f in document.command.flags if f.dest == "tp_size"]
    assert [f.name for f in edited.command.flags if f.dest == "tp_size"] == spelling
    lines = list(zip(document.text.split("\n"), edited.text.split("\n"), strict=True))
    touched = [(a, b) for a, b in lines if a != b]
    assert 0 < len(touched) <= len(in_group(document))
    for before, after in touched:
        gone, new = changed_text(before, after)
        assert len(gone) <= len(old[0]) + 6 and len(new) <= 6  # quotes or "$TP" at most


@every_file
def test_setting_a_value_back_gives_the_text_back(path: Path) -> None:
    document = read(path)
    old = tp_value(document)
    assert old
    written_out = re.search(rf"tp\b\S*[\s\"',:=-]+{old[0]}\b|size\S*[\s\"':=]+{old[0]}\b", document.text)
    if not written_out:
        pytest.skip("the value is a variable here")
    edits = [Edit(EditOp.SET, "--tp", "64"), Edit(EditOp.SET, "--tp", old[0])]
    assert document.apply(edits).text == document.text


@every_file
def test_a_switch_added_and_removed_again_leaves_no_trace(path: Path) -> None:
    document = read(path)
    if "disable-radix-cache" in document.text:
        pytest.skip("it is there already")
    added = document.apply([Edit(EditOp.ADD, "--disable-radix-cache")])
    assert all(added.commands[i].value("disable_radix_cache") == () for i in in_group(added))
    assert added.apply([Edit(EditOp.ADD, "--disable-radix-cache")]).text == added.text
    removed = added.apply([Edit(EditOp.REMOVE, "--disable-radix-cache")])
    assert removed.text == document.text


@every_file
def test_a_variable_added_and_removed_again_leaves_no_trace(path: Path) -> None:
    document = read(path)
    if document.form is Form.SGLANG_CONFIG:
        with pytest.raises(UserError, match="environment"):
            document.apply([Edit(EditOp.ENV, "NEW_ONE", "1")])
        return
    added = document.apply([Edit(EditOp.ENV, "NEW_ONE", "1")])
    assert all(added.commands[i].env["NEW_ONE"] == "1" for i in in_group(added))
    removed = added.apply([Edit(EditOp.UNSET, "NEW_ONE")])
    assert removed.commands == document.commands
    made_for_it = re.search(r"^\W*(env|environment)\b", document.text, re.M) is None
    if document.form not in (Form.COMPOSE, Form.KUBERNETES) or not made_for_it:
        assert removed.text == document.text


@every_file
def test_removing_a_flag_keeps_every_other(path: Path) -> None:
    document = read(path)
    for use in document.command.flags:
        if path.name == "mapping.yaml" and use.dest == "model_path":
            with pytest.raises(UserError, match="cannot be made"):  # another option is an alias of it
                document.apply([Edit(EditOp.REMOVE, use.name)])
            continue
        edited = document.apply([Edit(EditOp.REMOVE, use.name)])
        for i in in_group(document):
            rest = [f for f in document.commands[i].flags if f.dest != use.dest]
            assert list(edited.commands[i].flags) == rest
            assert edited.commands[i].env == document.commands[i].env


@every_file
def test_comments_survive_removal(path: Path) -> None:
    document = read(path)
    comments = re.findall(r"^[ \t]*#.*$", document.text, re.M)
    edits = [Edit(EditOp.REMOVE, f.name) for f in document.command.flags]
    try:
        edited = document.apply(edits)
    except UserError:
        pytest.skip("nothing but flags in it")
    left = [c.strip() for c in re.findall(r"#.*$", edited.text, re.M)]
    assert all(c.strip() in left for c in comments)


@every_file
def test_removing_variables_removes_just_these(path: Path) -> None:
    document = read(path)
    for name in document.command.env:
        if re.search(rf"\$\(?\{{?{name}\b", document.text):
            continue  # used elsewhere in the text: others may change with it
        edited = document.apply([Edit(EditOp.UNSET, name)])
        for i in in_group(document):
            assert {**document.commands[i].env} == {
                **edited.commands[i].env,
                **{k: v for k, v in document.commands[i].env.items() if k == name},
            }
            assert name not in edited.commands[i].env
            assert edited.commands[i].flags == document.commands[i].flags


@quick
@given(some_file, word)
def test_any_value_set_is_read_again(path: Path, value: str) -> None:
    document = read(path)
    edit = Edit(EditOp.SET, "--attention-backend", value)
    if path.name == "eval.sh" and re.search(r"[\s*?\[\]]", value):
        with pytest.raises(UserError, match="no place"):  # a variable split into words cannot hold it
            document.apply([edit])
        return
    edited = document.apply([edit])
    for i in in_group(document):
        assert edited.commands[i].value("attention_backend") == (value,)
    again = edited.apply([Edit(EditOp.SET, "--attention-backend", value)])
    assert again.text == edited.text


@quick
@given(some_file, word)
def test_any_value_of_a_variable_is_read_again(path: Path, value: str) -> None:
    document = read(path)
    if document.form is Form.SGLANG_CONFIG:
        return
    edited = document.apply([Edit(EditOp.ENV, "SOME_NAME", value)])
    assert all(edited.commands[i].env["SOME_NAME"] == value for i in in_group(document))
    other = edited.apply([Edit(EditOp.ENV, "SOME_NAME", "2")])
    assert all(other.commands[i].env["SOME_NAME"] == "2" for i in in_group(document))
    assert edited.apply([Edit(EditOp.ENV, "SOME_NAME", value)]).text == edited.text


_EDITS = st.one_of(
    st.builds(Edit, st.just(EditOp.SET), st.sampled_from(["--tp", "--quantization", "--model-path"]), word),
    st.builds(Edit, st.just(EditOp.SET), st.just("--cuda-graph-bs"), st.sampled_from(["1", "1 2", "4 8 16"])),
    st.builds(Edit, st.just(EditOp.ADD), st.sampled_from(["--enable-metrics", "--trust-remote-code"])),
    st.builds(
        Edit, st.just(EditOp.REMOVE), st.sampled_from(["--tp-size", "--trust-remote", "--host", "--port"])
    ),
)


@quick
@given(some_file, st.lists(_EDITS, max_size=5))
def test_edits_do_what_they_say_and_doing_them_twice_changes_nothing_more(
    path: Path, edits: list[Edit]
) -> None:
    document = read(path)
    if path.name == "mapping.yaml":
        edits = [e for e in edits if e.name != "--model-path"]  # its anchor is used by another option
    if path.name == "eval.sh":
        edits = [e for e in edits if not re.search(r"[\s*?\[\]]", e.value or "")]
    edited = document.apply(edits)
    last = {TABLE.resolve(e.name).dest: e for e in edits}  # type: ignore[union-attr]
    for i in in_group(document):
        before, after = document.commands[i], edited.commands[i]
        assert [f for f in before.flags if f.dest not in last] == [
            f for f in after.flags if f.dest not in last
        ]
        assert after.env == before.env
        for dest, edit in last.items():
            if edit.op is EditOp.REMOVE:
                assert after.value(dest) is None
            elif edit.op is EditOp.SET:
                wanted = tuple((edit.value or "").split()) if dest == "cuda_graph_bs" else (edit.value,)
                assert after.value(dest) == wanted
            else:
                assert after.value(dest) == ()
    assert edited.apply(list(last.values())).text == edited.text
