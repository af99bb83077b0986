"""A model that the release does not know: which one does is read off the sources, and said after a failure and
before a launch. The releases and versions named here were looked up by hand in SGLang's and transformers' files."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mtpdoctor.cli.main import main
from mtpdoctor.release import parse_release as R
from mtpdoctor.sglang.architectures import (
    architecture,
    first_with_type,
    in_transformers,
    models_of,
    reads_type,
    transformers_class,
    transformers_type,
    wrappable,
)
from mtpdoctor.sglang.learn import learn_tree
from mtpdoctor.sglang.source import FolderSource
from tests.sglang.trees import ARGPARSE, write_tree

ROOT = Path(__file__).resolve().parents[2]
UNSUPPORTED = "ValueError: Model architectures [{}] are not supported for now. Supported architectures: dict_keys(['LlamaForCausalLM'])"
NO_MODULE = (
    "ValueError: Cannot find model module. '{}' is not a registered model in the Transformers library (only relevant "
    "if the model is meant to be in Transformers) and 'AutoModel' is not present in the model config's 'auto_map' "
    "(relevant if the model is custom)."
)
NO_TYPE = (
    "ValueError: The checkpoint you are trying to load has model type `{}` but Transformers does not recognize this "
    "architecture. This could be because of an issue with the checkpoint, or because your version of Transformers is "
    "out of date."
)
IGNORED = (
    "[2026-01-01 10:00:00] Ignore import error when loading sglang.srt.models.{}: No module named 'helper'"
)


def document(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    capsys.readouterr()
    main(list(words))
    return json.loads(capsys.readouterr().out)


def diagnosed(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, line: str, release: str | None, *more: str
) -> dict[str, Any]:
    """The root cause of a log that ends in ``line``, with every command of its remedies under ``run``."""
    log = tmp_path / "server.log"
    log.write_text(
        "\n".join(
            [
                *more,
                "[2026-01-01 10:00:01] Scheduler hit an exception: Traceback (most recent call last):",
                line,
                "",
            ]
        )
    )
    named = ["--sglang", release] if release else []
    command = "python -m sglang.launch_server --model-path /models/m"
    found = document(capsys, "diagnose", "--json", *named, "--command", command, str(log))["diagnoses"][0]
    found["run"] = [word for fix in found["fixes"] for word in fix.get("run", ())]
    return found


# -- the facts ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "before", "first", "module"),
    [
        ("Qwen3_5MoeForConditionalGeneration", "0.5.8.post1", "0.5.9", "qwen3_5"),
        ("Qwen3_5ForCausalLMMTP", "0.5.8.post1", "0.5.9", "qwen3_5_mtp"),
        ("Glm4MoeForCausalLM", "0.4.9.post4", "0.4.9.post5", "glm4_moe"),
        ("DeepseekV32ForCausalLM", "0.5.2", "0.5.3", "deepseek_v2"),
        ("DeepseekV4ForCausalLM", "0.5.11", "0.5.12", "deepseek_v4"),
        ("GptOssForCausalLM", "0.4.10.post2", "0.5.1", "gpt_oss"),
        ("Gemma3nForConditionalGeneration", "0.4.8", "0.4.8.post1", "gemma3n_mm"),
        ("Gemma4ForConditionalGeneration", "0.5.10.post1", "0.5.11", "gemma4_mm"),
        ("Glm4ForCausalLM", "0.4.7.post1", "0.4.8", "glm4"),
    ],
)
def test_first_release_of_an_architecture(name: str, before: str, first: str, module: str) -> None:
    known = architecture(name)
    assert known.first == R(first)
    assert known.first_after(R(before)) == R(first)
    old, new = models_of(R(before)), models_of(R(first))
    assert old is not None and new is not None
    assert old.module(name) is None and new.module(name) == module
    assert known.has(R("0.5.23"))


def test_old_gone_and_unheard_of_architectures() -> None:
    old = architecture("Gemma3ForConditionalGeneration")
    assert old.first == old.known[0]
    gone = architecture("VILAForConditionalGeneration")
    assert (gone.first, gone.last_before(R("0.5.9"))) == (R("0.4.7.post1"), R("0.5.4"))
    assert not gone.has(R("0.5.4.post1")) and gone.first_after(R("0.5.4")) is None
    assert architecture("Qwen9ForCausalLM").first is None


@pytest.mark.parametrize(
    ("kind", "before", "first"),
    [
        ("qwen3_5", "5.1.0", "5.2.0"),
        ("gpt_oss", "4.54.1", "4.55.0"),
        ("glm4_moe", "4.53.3", "4.54.0"),
        ("gemma4_assistant", "5.7.0", "5.8.0"),
        ("qwen3_next", "4.56.2", "4.57.0"),
        ("deepseek_v32", "5.10.2", "5.11.0"),
    ],
)
def test_first_transformers_of_a_type(kind: str, before: str, first: str) -> None:
    known = transformers_type(kind)
    assert (in_transformers(known, before), in_transformers(known, first)) == (False, True)
    assert (
        in_transformers(known, first + ".post1") is True
    )  # one that was not looked at: as the one before it
    assert in_transformers(known, None) is None and in_transformers(known, "4.40.0") is None


def test_what_the_wrapper_can_use() -> None:
    assert wrappable(transformers_class("GptOssForCausalLM"), "5.8.1") is True
    assert wrappable(transformers_class("MptForCausalLM"), "5.8.1") is False
    assert wrappable(transformers_class("GptOssForCausalLM"), "4.54.0") is None


@pytest.mark.parametrize(
    ("kind", "before", "first"),
    [
        ("qwen3_5_moe", "0.5.8.post1", "0.5.9"),  # registered by SGLang: transformers 4.57.1 does not have it
        ("gemma4", "0.5.10.post1", "0.5.11"),  # 5.3.0 against 5.6.0
        ("deepseek_v32", "0.5.2", "0.5.3"),  # the refusal of transformers is caught
        ("gpt_oss", "0.4.10.post2", "0.5.1"),  # 4.54.1 against 4.55.2
        ("gemma4_assistant", "0.5.12.post1", "0.5.13"),  # 5.6.0 against 5.8.1
    ],
)
def test_first_release_that_reads_a_type(kind: str, before: str, first: str) -> None:
    assert not reads_type(kind, R(before)) and reads_type(kind, R(first))
    assert first_with_type(kind, R(before)) == R(first)


# -- after a failure ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        UNSUPPORTED.format("'Gemma4ForConditionalGeneration'"),
        NO_MODULE.format("Gemma4ForConditionalGeneration"),
    ],
)
def test_a_later_release_has_it(capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str) -> None:
    found = diagnosed(capsys, tmp_path, text, "0.5.10")
    assert "Gemma4ForConditionalGeneration is known from SGLang 0.5.11 on; this is 0.5.10." in found["cause"]
    assert found["fixes"][0]["title"].startswith("Upgrade SGLang to 0.5.11 or later")
    assert found["fixes"][0]["safety"] == "manual"
    assert 'pip install --upgrade "sglang>=0.5.11"' in found["run"]
    assert "docker pull lmsysorg/sglang:v0.5.11" in found["run"]
    assert not any(fix["edits"] for fix in found["fixes"])  # transformers 5.3.0 does not have it: no fallback


def test_this_release_has_it(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Then its file could not be imported, and no upgrade is asked for."""
    text = NO_MODULE.format("Glm4MoeForCausalLM")
    for more in ((), (IGNORED.format("glm4_moe"),)):
        found = diagnosed(capsys, tmp_path, text, "0.5.13.post1", *more)
        assert "SGLang 0.5.13.post1 has Glm4MoeForCausalLM (srt/models/glm4_moe.py)" in found["cause"]
        assert 'python -c "import sglang.srt.models.glm4_moe"' in found["run"]
        assert not any("sglang>=" in word for word in found["run"])
    found = diagnosed(
        capsys, tmp_path, UNSUPPORTED.format("'Glm4MoeForCausalLM'"), "0.5.1", IGNORED.format("glm4_moe")
    )
    assert found["rule"] == "MTP0631"  # the line that names the reason is the cause


def test_no_release_has_it(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    found = diagnosed(capsys, tmp_path, UNSUPPORTED.format("'Qwen9ForCausalLM'"), "0.4.6")
    assert "No SGLang release up to 0.5.23 has Qwen9ForCausalLM; this is 0.4.6." in found["cause"]
    assert not any("pip install" in word for word in found["run"])


def test_a_slip_of_the_pen(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    found = diagnosed(capsys, tmp_path, NO_MODULE.format("Glm4MoEForCausalLM"), "0.5.13")
    assert any("is Glm4MoeForCausalLM meant?" in fix["title"] for fix in found["fixes"])


def test_a_class_that_later_releases_dropped(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    found = diagnosed(capsys, tmp_path, NO_MODULE.format("VILAForConditionalGeneration"), "0.5.9")
    assert "VILAForConditionalGeneration was last in SGLang 0.5.4; this is 0.5.9." in found["cause"]
    assert 'pip install "sglang==0.5.4"' in found["run"]


def test_of_several_architectures_the_soonest_counts(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    both = "'Qwen9ForCausalLM', 'Gemma4ForConditionalGeneration', 'GptOssForCausalLM'"
    found = diagnosed(capsys, tmp_path, UNSUPPORTED.format(both), "0.4.10")
    assert "GptOssForCausalLM is known from SGLang 0.5.1 on" in found["cause"]
    assert 'pip install --upgrade "sglang>=0.5.1"' in found["run"]


def test_the_release_is_not_known(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    found = diagnosed(capsys, tmp_path, UNSUPPORTED.format("'GptOssForCausalLM'"), None)
    assert (
        "GptOssForCausalLM is known from SGLang 0.5.1 on; which release this is, is not known."
        in found["cause"]
    )
    found = diagnosed(capsys, tmp_path, UNSUPPORTED.format("'Qwen9ForCausalLM'"), "0.9.0")
    assert "No SGLang release up to 0.5.23 has Qwen9ForCausalLM; this is 0.9.0." in found["cause"]


@pytest.mark.parametrize("release", ["0.4.6", "0.5.9", "0.5.10", "0.5.23"])
def test_transformers_does_not_stand_in_for_a_class_it_refuses(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, release: str
) -> None:
    """Releases from 0.5.10 on go on with --model-impl transformers, and their wrapper refuses later."""
    text = "ValueError: MptForCausalLM has no SGlang implementation and the Transformers implementation is not compatible with SGLang."
    found = diagnosed(capsys, tmp_path, text, release)
    assert not [fix for fix in found["fixes"] if fix["edits"]]


@pytest.mark.parametrize(
    ("kind", "release", "wanted", "said"),
    [
        (
            "gemma4",
            "0.5.10.post1",
            "0.5.11",
            "knows `gemma4` from 5.5.0 on; SGLang 0.5.10.post1 pins transformers 5.3.0",
        ),
        ("qwen3_5", "0.5.8", "0.5.9", "SGLang registers it itself from 0.5.9 on"),
        (
            "gemma4_assistant",
            "0.5.12",
            "0.5.13",
            "knows `gemma4_assistant` from 5.8.0 on; SGLang 0.5.12 pins transformers 5.6.0",
        ),
    ],
)
def test_an_unknown_type_names_the_release_whose_pin_suffices(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, kind: str, release: str, wanted: str, said: str
) -> None:
    found = diagnosed(capsys, tmp_path, NO_TYPE.format(kind), release)
    assert found["rule"] == "MTP0447" and said in found["cause"]
    assert f'pip install --upgrade "sglang>={wanted}"' in found["run"]
    assert "Upgrading transformers alone breaks the pin" in found["fixes"][0]["why"]
    assert not any("transformers>=" in word for word in found["run"])


def test_the_release_reads_the_type_so_another_transformers_is_installed(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    found = diagnosed(capsys, tmp_path, NO_TYPE.format("gemma4"), "0.5.13.post1")
    assert found["run"][0] == 'pip install "transformers==5.8.1"'
    assert not any("sglang>=" in word for word in found["run"])


def test_a_type_newer_than_every_pin(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """0.5.23 pins transformers 5.19.0; what came with 5.20.0 needs another one, at one's own risk."""
    newer = next(
        name
        for name in _types_since("5.20.0")
        if first_with_type(name, None) is None and in_transformers(transformers_type(name), "5.24.0")
    )
    found = diagnosed(capsys, tmp_path, NO_TYPE.format(newer), "0.5.23")
    assert "no SGLang release up to 0.5.23 reads it" in found["cause"]
    fix = next(f for f in found["fixes"] if "own risk" in f["title"])
    assert fix["run"] == ['pip install --upgrade "transformers>=5.20.0"', "python -m pip check"]
    assert "ImportError" in fix["risk"]


def _types_since(version: str) -> list[str]:
    from mtpdoctor.paths import releases_folder
    from mtpdoctor.sglang.store import read_table

    table = read_table(releases_folder() / "transformers.json")["model_types"]
    return [name for name, spans in table.items() if spans[0][0] == version]


def test_a_type_that_nobody_knows(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    found = diagnosed(capsys, tmp_path, NO_TYPE.format("qwen3_mo"), "0.5.13")
    assert "No transformers up to 5.24.0 knows `qwen3_mo`" in found["cause"]
    assert any("is qwen3_moe meant?" in fix["title"] for fix in found["fixes"])
    found = diagnosed(capsys, tmp_path, NO_TYPE.format("{env.HOME} x"), "0.5.13")
    assert "transformers>=" not in str(found["run"]) and str(Path.home()) not in str(found["fixes"])


# -- before a launch ----------------------------------------------------------------------------------------


def model(folder: Path, architecture: str | list[str], kind: str, **more: Any) -> Path:
    names = [architecture] if isinstance(architecture, str) else architecture
    config = {
        "architectures": names,
        "model_type": kind,
        "num_hidden_layers": 2,
        "hidden_size": 64,
        "num_attention_heads": 2,
    }
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config | more))
    return folder


def foreseen(capsys: pytest.CaptureFixture[str], folder: Path, release: str, *flags: str) -> dict[str, str]:
    command = ["python", "-m", "sglang.launch_server", "--model-path", str(folder), *flags]
    found = document(capsys, "check", "--json", "--sglang", release, "--gpu", "1xsm90@80", "--", *command)
    wanted = ("MTP0636", "MTP1570", "MTP1571", "MTP1572")
    return {p["rule"]: p["severity"] for p in found["problems"] if p["rule"] in wanted}


@pytest.mark.parametrize(
    ("name", "kind", "release", "found"),
    [
        ("Qwen3_5MoeForConditionalGeneration", "qwen3_5_moe", "0.5.8.post1", {"MTP0636": "fatal"}),
        ("Qwen3_5MoeForConditionalGeneration", "qwen3_5_moe", "0.5.9", {}),
        ("Gemma4ForConditionalGeneration", "gemma4", "0.5.10.post1", {"MTP1572": "fatal"}),
        ("Gemma4ForConditionalGeneration", "gemma4", "0.5.11", {}),
        ("DeepseekV32ForCausalLM", "deepseek_v32", "0.5.2", {"MTP1572": "fatal"}),
        ("DeepseekV32ForCausalLM", "deepseek_v32", "0.5.3", {}),
        ("Glm4ForCausalLM", "glm4", "0.4.6", {"MTP1572": "fatal"}),  # its transformers 4.51.1 predates glm4
        ("Glm4ForCausalLM", "glm4", "0.4.8", {}),
        ("Mistral3ForConditionalGeneration", "mistral3", "0.4.6.post4", {"MTP1570": "fatal"}),
        ("Mistral3ForConditionalGeneration", "mistral3", "0.4.6.post5", {}),
        ("Qwen9ForCausalLM", "qwen3", "0.5.23", {"MTP1570": "fatal"}),
        ("Qwen9ForCausalLM", "qwen9", "0.9.0", {}),  # nothing is known of that release
        ("MptForCausalLM", "mpt", "0.5.13", {"MTP1570": "fatal"}),
        ("GlmForCausalLM", "glm", "0.5.13", {"MTP1571": "degrades"}),
        ("GlmForCausalLM", "glm", "0.4.6", {"MTP1570": "fatal"}),  # that release does not wrap
        ("LongcatCausalLM", "longcat", "0.5.23", {}),  # no class of that name: the release makes it another
        (["Qwen9ForCausalLM", "Qwen3ForCausalLM"], "qwen3", "0.5.13", {}),
    ],
)
def test_a_check_foresees_it(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    name: str,
    kind: str,
    release: str,
    found: dict[str, str],
) -> None:
    assert foreseen(capsys, model(tmp_path / "m", name, kind), release) == found


def test_a_check_leaves_alone_what_may_well_start(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = model(tmp_path / "m", "Qwen9ForCausalLM", "qwen3")
    assert foreseen(capsys, folder, "0.5.13", "--model-impl", "transformers") == {}
    assert foreseen(capsys, folder, "0.5.9", "--model-impl", "transformers") == {"MTP1570": "fatal"}
    refused = model(tmp_path / "refused", "MptForCausalLM", "mpt")
    assert foreseen(capsys, refused, "0.5.13", "--model-impl", "sglang") == {}
    override = json.dumps({"architectures": ["Qwen3ForCausalLM"]})
    assert foreseen(capsys, folder, "0.5.13", "--json-model-override-args", override) == {}
    own = model(tmp_path / "own", "OwnModel", "own", auto_map={"AutoConfig": "c.C", "AutoModel": "m.M"})
    assert foreseen(capsys, own, "0.5.13", "--trust-remote-code") == {}


def test_the_check_says_where_to_go(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    folder = model(tmp_path / "m", "Mistral3ForConditionalGeneration", "mistral3")
    command = ["python", "-m", "sglang.launch_server", "--model-path", str(folder)]
    found = document(
        capsys, "check", "--json", "--sglang", "0.4.6.post4", "--gpu", "1xsm90@80", "--", *command
    )
    problem = next(p for p in found["problems"] if p["rule"] == "MTP1570")
    assert found["verdict"] == "reject"
    assert problem["title"] == "SGLang 0.4.6.post4 has no class for Mistral3ForConditionalGeneration"
    assert (
        "Mistral3ForConditionalGeneration is known from SGLang 0.4.6.post5 on; this is 0.4.6.post4."
        in problem["cause"]
    )
    assert problem["fixes"][0]["run"][0] == 'pip install --upgrade "sglang>=0.4.6.post5"'


@pytest.mark.parametrize(("release", "rules"), [("0.5.10.post1", ["MTP1572"]), ("0.5.11", [])])
def test_a_probe_says_it_too(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, release: str, rules: list[str]
) -> None:
    folder = model(tmp_path / "m", "Gemma4ForConditionalGeneration", "gemma4")
    host = tmp_path / "host.json"
    capsys.readouterr()
    host.write_text(json.dumps(document(capsys, "probe", "--json", "--timeout", "1")))
    found = document(
        capsys, "probe", "--json", "--host", str(host), "--sglang", release, "--model", str(folder)
    )
    ours = [f for f in found["findings"] if f["rule"] in ("MTP0636", "MTP1570", "MTP1571", "MTP1572")]
    assert [f["rule"] for f in ours] == rules
    assert all("0.5.11" in json.dumps(f) for f in ours)


# -- a release that was learned from its installation -------------------------------------------------------


def test_a_learned_release_knows_its_own_models(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MTPDOCTOR_CACHE", str(tmp_path / "cache"))
    models = {
        "sglang/srt/models/qwen9.py": "class Qwen9ForCausalLM:\n    pass\nEntryClass = [Qwen9ForCausalLM]\n"
    }
    tree = FolderSource(write_tree(tmp_path / "site", ARGPARSE | models), "site")
    learn_tree(tree, "1.0.0", tmp_path / "cache")
    learned = models_of(R("1.0.0"))
    assert learned is not None and learned.exact
    assert learned.module("Qwen9ForCausalLM") == "qwen9" and learned.module("LlamaForCausalLM") is None
    found = diagnosed(capsys, tmp_path, NO_MODULE.format("Qwen9ForCausalLM"), "1.0.0")
    assert "SGLang 1.0.0 has Qwen9ForCausalLM (srt/models/qwen9.py)" in found["cause"]
    nearest = models_of(R("0.9.0"))
    assert nearest is not None and not nearest.exact


def test_other_failures_do_not_load_the_tables() -> None:
    code = (
        "import sys; from mtpdoctor.cli.main import main; main(['diagnose', 'sample_logs/port_in_use.log']);"
        "sys.exit('mtpdoctor.sglang.architectures' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
