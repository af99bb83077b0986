"""Which models a release, and a version of transformers, knows: read off small sources of every shape."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtpdoctor.cli.kb_learn import add_learn_arguments, run_learn
from mtpdoctor.errors import UserError
from mtpdoctor.sglang.learn_models import LearnedModels, learn_models, read_models, write_models
from mtpdoctor.sglang.learn_transformers import learn_transformers, update_transformers
from mtpdoctor.sglang.source import FolderSource
from mtpdoctor.sglang.store import read_table
from tests.sglang.trees import write_tree, write_wheel

MODELS = {
    "sglang/srt/models/one.py": "class OneForCausalLM:\n    pass\n\nEntryClass = OneForCausalLM\n",
    "sglang/srt/models/several.py": """\
from sglang.srt.models.one import OneForCausalLM
class TwoForCausalLM(OneForCausalLM):
    pass
class TwoForCausalLMMTP(OneForCausalLM):
    pass
EntryClass = [TwoForCausalLM, TwoForCausalLMMTP]
EntryClass += [type("MadeForCausalLM", (TwoForCausalLM,), {})]
""",
    "sglang/srt/models/renamed.py": """\
from sglang.srt.models import hidden
from sglang.srt.models.hidden.deep import DeepForCausalLM as Shown
if True:
    class OtherModel:
        pass
    Alias = OtherModel
Generated = type("GeneratedModel", (OtherModel,), {})
EntryClass = [Shown, Alias, *[Generated]]
""",
    "sglang/srt/models/hidden/deep.py": "class DeepForCausalLM:\n    pass\nclass LostForCausalLM:\n    pass\nEntryClass = LostForCausalLM\n",
    "sglang/srt/models/helper.py": "class HelperForCausalLM:\n    pass\n",
    "sglang/srt/models/broken.py": "class X(:\nEntryClass = X\n",
}
PROCESSORS = {
    "sglang/srt/multimodal/processors/pictures.py": """\
from sglang.srt.models.one import OneForCausalLM
from sglang.srt.models.renamed import Alias as Renamed
try:
    from sglang.srt.models.later import LaterForCausalLM
except ImportError:
    LaterForCausalLM = None
class Pictures(Base):
    models = [m for m in [OneForCausalLM, LaterForCausalLM] if m is not None]
class Sounds(Base):
    models: list = [Renamed]
    other = [TwoForCausalLM]
class Nothing(Base):
    models = []
""",
    "sglang/srt/managers/multimodal_processors/older.py": """\
from sglang.srt.models.several import TwoForCausalLM
class Older(Base):
    models = [TwoForCausalLM]
""",
    "sglang/srt/multimodal/elsewhere.py": "class Elsewhere:\n    models = [ThreeForCausalLM]\n",
}
CONFIGS = {
    "sglang/srt/configs/__init__.py": "from sglang.srt.configs.all import AConfig, BConfig, CConfig, Base\n",
    "sglang/srt/configs/all.py": """\
class Base(PretrainedConfig):
    model_type = "base_kind"
class AConfig(PretrainedConfig):
    model_type = "a_kind"
class BConfig(PretrainedConfig):
    model_type: str = "b_kind"
class CConfig(Base):
    pass
class TheirsConfig(SomethingOfTransformers):
    pass
CONFIG_MAPPING._extra_content["extra_kind"] = AConfig
for kind, made in {"looped": AConfig, "looped_too": BConfig}.items():
    CONFIG_MAPPING.register(kind, made)
for made in (AConfig, Base):
    AutoConfig.register(made.model_type, made, exist_ok=True)
""",
    "sglang/srt/utils/hf_transformers_utils.py": """\
from sglang.srt.configs import AConfig, BConfig, CConfig
_CONFIG_REGISTRY = [AConfig, CConfig]
_CONFIG_REGISTRY = {cls.model_type: cls for cls in _CONFIG_REGISTRY}
_CONFIG_REGISTRY["set_kind"] = BConfig
_CONFIG_REGISTRY.update({cls.model_type: cls for cls in [BConfig]})
for name, cls in _CONFIG_REGISTRY.items():
    AutoConfig.register(name, cls)
def get_config(model):
    try:
        return AutoConfig.from_pretrained(model)
    except ValueError as e:
        if not "caught_kind" in str(e):
            raise e
    if "by-name" in str(model).lower():
        pass
    if config.architectures[0] == "RenamedForCausalLM":
        config.architectures = ["OneForCausalLM"]
""",
}


def source(folder: Path, *trees: dict[str, str]) -> FolderSource:
    for tree in trees:
        write_tree(folder, tree)
    return FolderSource(folder, "test")


def test_architectures_bear_the_names_of_their_classes(tmp_path: Path) -> None:
    """One class, lists, imports under another name, aliases, classes made by ``type``; folders are not looked into."""
    assert learn_models(source(tmp_path, MODELS)).architectures == {
        "OneForCausalLM": "one",
        "TwoForCausalLM": "several",
        "TwoForCausalLMMTP": "several",
        "MadeForCausalLM": "several",
        "DeepForCausalLM": "renamed",
        "OtherModel": "renamed",
        "GeneratedModel": "renamed",
    }


def test_model_types_in_every_form_of_registration(tmp_path: Path) -> None:
    learned = learn_models(source(tmp_path, MODELS, CONFIGS))
    assert learned.model_types == {
        "a_kind",
        "b_kind",
        "base_kind",
        "set_kind",
        "extra_kind",
        "looped",
        "looped_too",
        "caught_kind",
    }


def test_names_that_the_configuration_treats_are_kept_apart(tmp_path: Path) -> None:
    assert learn_models(source(tmp_path, MODELS, CONFIGS)).mentioned == {"RenamedForCausalLM"}


def test_the_file_of_processors_that_takes_an_architecture(tmp_path: Path) -> None:
    """Lists and filtered lists, imports under another name or only tried, and the folder of older releases."""
    assert learn_models(source(tmp_path, MODELS, PROCESSORS)).processors == {
        "OneForCausalLM": "pictures",
        "LaterForCausalLM": "pictures",
        "OtherModel": "pictures",
        "TwoForCausalLM": "older",
    }


names = st.text("ABCabc_", min_size=1, max_size=6)


@given(
    st.dictionaries(
        st.sampled_from(["0.4.6", "0.5.9", "0.5.10rc0", "0.5.10"]),
        st.builds(
            LearnedModels,
            st.dictionaries(names, names, min_size=1, max_size=5),
            st.sets(names),
            st.sets(names),
            st.dictionaries(names, names, max_size=3),
        ),
    )
)
def test_what_is_written_is_read_again(
    tmp_path_factory: pytest.TempPathFactory, learned: dict[str, LearnedModels]
) -> None:
    folder = tmp_path_factory.mktemp("facts")
    write_models(folder, learned)
    assert read_models(folder) == learned


# -- transformers -------------------------------------------------------------------------------------------

OLD = {
    "transformers/__init__.py": '__version__ = "4.51.0"\n',
    "transformers/models/auto/configuration_auto.py": """\
from collections import OrderedDict
CONFIG_MAPPING_NAMES = OrderedDict([("one", "OneConfig"), ("gone", "GoneConfig")])
MODEL_NAMES_MAPPING = OrderedDict([("one", "One"), ("shown", "Only a name for people")])
""",
    "transformers/models/auto/modeling_auto.py": """\
MODEL_MAPPING_NAMES = OrderedDict([("one", "OneModel")])
MODEL_FOR_CAUSAL_LM_MAPPING_NAMES = OrderedDict([("one", ("OneForCausalLM", "OneForBoth"))])
""",
    "transformers/models/one/modeling_one.py": """\
class OnePreTrainedModel(PreTrainedModel):
    _supports_attention_backend = True
class OneModel(OnePreTrainedModel):
    pass
class OneForCausalLM(OnePreTrainedModel):
    pass
class OneForBoth(OnePreTrainedModel):
    pass
class OneForExport(OnePreTrainedModel):
    pass
class OneForNobody(OnePreTrainedModel):
    pass
__all__ = ["OneModel", "OneForCausalLM", "OneForExport"]
""",
}
NEW = {
    "transformers/__init__.py": '__version__ = "5.6.0"\n',
    "transformers/models/auto/auto_mappings.py": 'CONFIG_MAPPING_NAMES = OrderedDict([("one", "OneConfig")])\n',
    "transformers/models/auto/configuration_auto.py": """\
from .auto_mappings import CONFIG_MAPPING_NAMES
CONFIG_MAPPING_NAMES.update({"added": "AddedConfig"})
CONFIG_MAPPING_NAMES = OrderedDict(**{"gpt-sw3": "GPT2Config"}, **CONFIG_MAPPING_NAMES)
""",
    "transformers/models/auto/modeling_auto.py": """\
MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES = OrderedDict([("added", "AddedForConditionalGeneration")])
""",
    "transformers/models/added/modeling_added.py": "class AddedForConditionalGeneration(Base):\n    pass\n",
}


def test_a_wheel_of_transformers(tmp_path: Path) -> None:
    learned = learn_transformers(write_wheel(tmp_path / "transformers-4.51.0-py3-none-any.whl", OLD))
    assert learned.version == "4.51.0"
    assert learned.model_types == {"one": ["OneForBoth", "OneForCausalLM"], "gone": []}
    assert learned.classes == {
        "OneModel": True,
        "OneForCausalLM": True,
        "OneForBoth": True,
        "OneForExport": True,
    }


def test_newer_versions_keep_the_table_elsewhere(tmp_path: Path) -> None:
    learned = learn_transformers(write_tree(tmp_path, NEW))
    assert learned.model_types == {
        "one": [],
        "added": ["AddedForConditionalGeneration"],
        "gpt-sw3": [],
    }
    assert learned.classes == {"AddedForConditionalGeneration": False}


def test_versions_become_spans(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    add_learn_arguments(parser)
    facts = tmp_path / "facts"
    for number, tree in enumerate((NEW, OLD)):
        folder = write_tree(tmp_path / str(number), tree)
        assert run_learn(parser.parse_args(["--transformers", str(folder), "--folder", str(facts)])) == 0
    assert "transformers 5.6.0: 3 model types, 1 classes" in capsys.readouterr().out
    table = read_table(facts / "transformers.json")
    assert table["releases"] == ["4.51.0", "5.6.0"]
    assert table["model_types"]["gone"] == [["4.51.0", "4.51.0", []]]
    assert [span[:2] for span in table["model_types"]["added"]] == [["5.6.0", None]]
    before = (facts / "transformers.json").read_bytes()
    update_transformers(facts, [tmp_path / "1"])
    assert (facts / "transformers.json").read_bytes() == before


def test_what_is_no_transformers_is_said(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="holds no transformers"):
        learn_transformers(tmp_path)
    (tmp_path / "x.whl").write_bytes(b"no zip")
    with pytest.raises(UserError, match="cannot be read as a wheel"):
        learn_transformers(tmp_path / "x.whl")
    parser = argparse.ArgumentParser()
    add_learn_arguments(parser)
    with pytest.raises(UserError, match="nothing to learn"):
        run_learn(parser.parse_args(["--transformers"]))
