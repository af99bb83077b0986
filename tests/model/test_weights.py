"""Weight files: by part and type from their headers, and everything that can be wrong with them."""

from __future__ import annotations

import json
import os
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from model_folders import CONFIG, header, write_model, write_shard

from mtpdoctor.errors import UserError
from mtpdoctor.facts import UNKNOWN
from mtpdoctor.model.config import read_model
from mtpdoctor.model.facts import model_facts
from mtpdoctor.model.parts import Parts
from mtpdoctor.model.types import WeightFacts
from mtpdoctor.model.weights import read_weights

ONE, TWO = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"
SHARDS = {
    ONE: {
        "model.embed_tokens.weight": ("BF16", 100),
        "model.layers.0.self_attn.q_proj.weight": ("F8_E4M3", 64),
    },
    TWO: {
        "model.layers.0.self_attn.q_proj.weight_scale_inv": ("F32", 1),
        "model.layers.1.mlp.experts.3.up_proj.weight": ("F8_E4M3", 1000),
        "lm_head.weight": ("BF16", 100),
    },
}


def weights_of(folder: Path) -> WeightFacts:
    weights = read_model(folder).weights
    assert weights is not None
    return weights


def test_bytes_by_part_and_type(tmp_path: Path) -> None:
    write_model(tmp_path, SHARDS)
    model = read_model(tmp_path)
    weights = model.weights
    assert weights is not None and model.problems == ()
    assert {(g.part, g.dtype): (g.bytes, g.tensors) for g in weights.groups} == {
        ("attention", "F32"): (4, 1),
        ("attention", "F8_E4M3"): (64, 1),
        ("embedding", "BF16"): (200, 1),
        ("experts", "F8_E4M3"): (1000, 1),
        ("lm_head", "BF16"): (200, 1),
    }
    assert (weights.total_bytes, weights.complete, weights.has_mtp) == (1468, True, False)
    assert weights.bytes_of("attention", "experts") == 1068
    assert (weights.format, weights.files) == ("safetensors", (ONE, TWO))
    assert read_model(tmp_path, weights=False).weights is None


PARTS = [
    ("model.embed_tokens.weight", "embedding"),
    ("language_model.model.embed_tokens.weight", "embedding"),
    ("transformer.wte.weight", "embedding"),
    ("lm_head.weight", "lm_head"),
    ("model.layers.3.self_attn.qkv_proj.weight", "attention"),
    ("model.layers.3.self_attn.kv_a_proj_with_mqa.weight", "replicated"),
    ("model.layers.3.self_attn.kv_a_layernorm.weight", "norm"),
    ("model.layers.3.self_attn.indexer.wq_b.weight", "replicated"),
    ("model.layers.3.self_attn.q_b_proj.weight_scale_inv", "attention"),
    ("model.layers.3.self_attn.sinks", "attention"),
    ("model.layers.3.self_attn.out_proj.weight", "attention"),
    ("model.language_model.layers.0.linear_attn.in_proj_qkv.weight", "linear_attention"),
    ("model.language_model.layers.0.linear_attn.norm.weight", "linear_attention"),
    ("backbone.layers.0.mixer.in_proj.weight", "linear_attention"),
    ("backbone.layers.0.mixer.A_log", "linear_attention"),
    ("model.layers.0.mamba.conv1d.weight", "linear_attention"),
    ("model.layers.0.conv.in_proj.weight", "linear_attention"),
    ("model.layers.1.self_attn.q_proj.weight", "linear_attention"),  # layer 1 is KDA (Kimi Linear)
    ("model.layers.4.mlp.gate.weight", "replicated"),
    ("model.layers.4.mlp.gate.e_score_correction_bias", "replicated"),
    ("model.layers.4.block_sparse_moe.gate.weight", "replicated"),
    ("model.layers.4.mlp.router.weight", "replicated"),
    ("model.layers.4.mlp.gate_proj.weight", "mlp"),
    ("model.layers.4.mlp.gate_up_proj.weight", "mlp"),
    ("backbone.layers.4.mixer.up_proj.weight", "mlp"),
    ("model.layers.4.mlp.experts.17.down_proj.weight", "experts"),
    ("model.layers.4.mlp.experts.gate_up_proj_blocks", "experts"),
    ("model.layers.4.block_sparse_moe.experts.0.w1.weight", "experts"),
    ("model.layers.4.mlp.shared_experts.gate_proj.weight", "shared_experts"),
    ("model.layers.4.mlp.shared_expert.gate_proj.weight", "shared_experts"),
    ("model.layers.4.mlp.shared_expert_gate.weight", "replicated"),
    ("model.layers.4.input_layernorm.weight", "norm"),
    ("model.norm.weight", "norm"),
    ("model.layers.61.mlp.experts.0.up_proj.weight", "mtp"),
    ("model.layers.61.embed_tokens.weight", "mtp_embedding"),
    ("model.layers.61.shared_head.head.weight", "mtp_embedding"),
    ("model.layers.61.shared_head.norm.weight", "mtp"),
    ("mtp.layers.0.self_attn.q_proj.weight", "mtp"),
    ("mtp.fc.weight", "mtp"),
    ("model.mtp_layers.0.input_proj.weight", "mtp"),
    ("visual.blocks.0.attn.qkv.weight", "vision"),
    ("model.visual.merger.linear_fc1.weight", "vision"),
    ("vision_tower.vision_model.encoder.layers.0.self_attn.q_proj.weight", "vision"),
    ("multi_modal_projector.mm_input_projection_weight", "vision"),
    ("something.nobody.knows", "other"),
]


@pytest.mark.parametrize(("name", "part"), PARTS, ids=[name for name, _ in PARTS])
def test_the_part_of_a_tensor(name: str, part: str) -> None:
    assert Parts(61, linear_layers=frozenset({1})).part(name) == part


def test_missing_shards(tmp_path: Path) -> None:
    write_model(tmp_path, SHARDS)
    (tmp_path / TWO).unlink()
    model = read_model(tmp_path)
    assert weights_of(tmp_path).missing == (TWO,)
    assert weights_of(tmp_path).has_mtp is None  # the missing file may hold them
    assert any(p.startswith("1 of 2 weight files that the index names are missing") for p in model.problems)
    facts = model_facts(model)
    assert facts["model.weights_missing"] == 1
    assert facts.look("model.has_mtp") is UNKNOWN and facts.look("model.weights_gib") is UNKNOWN


@pytest.mark.parametrize("lacking", [1, 1500])  # within the tensors; within the header
def test_a_file_that_is_cut_off(tmp_path: Path, lacking: int) -> None:
    write_model(tmp_path, SHARDS)
    head, size = header(SHARDS[TWO])
    with open(tmp_path / TWO, "r+b") as stream:
        stream.truncate(max(len(head) + size - lacking, 20))
    model = read_model(tmp_path)
    assert weights_of(tmp_path).truncated == (TWO,)
    assert not weights_of(tmp_path).complete
    assert any(p.startswith(f"{TWO} is cut off") for p in model.problems)


def test_pointers_and_empty_files(tmp_path: Path) -> None:
    write_model(tmp_path, SHARDS)
    (tmp_path / ONE).write_text("version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 4\n")
    (tmp_path / TWO).write_bytes(b"")
    model, weights = read_model(tmp_path), weights_of(tmp_path)
    assert (weights.lfs_pointers, weights.empty) == ((ONE,), (TWO,))
    assert any("1 of 2 weight files are Git LFS pointers" in p for p in model.problems)
    assert any("1 of 2 weight files are empty" in p for p in model.problems)
    facts = model_facts(model)
    assert (facts["model.weights_pointers"], facts["model.weights_empty"]) == (1, 1)


HOSTILE = [
    (struct.pack("<Q", 2**63) + b"{}", "over the format's limit"),
    (b"PK\x03\x04" + b"\0" * 40, "no safetensors file"),
    (struct.pack("<Q", 4) + b"{\xff}}", "header is not valid JSON"),
    (struct.pack("<Q", 200_000) + b'{"a":' * 40_000, "nested too deeply|not valid JSON"),
    (struct.pack("<Q", 2) + b"[]", "no safetensors file"),
    (b"1234567", "7 bytes long"),
    (struct.pack("<Q", 12) + b'{"t": "text"', "not valid JSON"),
    (struct.pack("<Q", 32) + b'{"t":{"data_offsets":[5,1]}}    ', "no valid data_offsets"),
    (struct.pack("<Q", 32) + b'{"t":{"data_offsets":["a",1]}}  ', "no valid data_offsets"),
]


@pytest.mark.parametrize(("content", "says"), HOSTILE)
def test_hostile_headers_are_findings(tmp_path: Path, content: bytes, says: str) -> None:
    import re

    write_model(tmp_path, {"model.safetensors": {"lm_head.weight": ("BF16", 1)}})
    (tmp_path / "model.safetensors").write_bytes(content)
    model = read_model(tmp_path)
    assert any(re.search(says, p) for p in model.problems), model.problems
    assert weights_of(tmp_path).unreadable == ("model.safetensors",)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
def test_pipes_links_and_locked_files_hold_nothing_up(tmp_path: Path) -> None:
    write_model(tmp_path, SHARDS)
    (tmp_path / ONE).unlink()
    os.mkfifo(tmp_path / ONE)
    (tmp_path / TWO).unlink()
    (tmp_path / TWO).symlink_to(tmp_path / TWO)
    model, weights = read_model(tmp_path), weights_of(tmp_path)
    assert weights.unreadable == (ONE, TWO)
    assert any(f"{ONE}: it is not a regular file" in p for p in model.problems)
    if os.geteuid() != 0:
        (tmp_path / "config.json").chmod(0)
        with pytest.raises(UserError, match=r"cannot be read as a config\.json: Permission denied"):
            read_model(tmp_path)


def test_an_index_that_points_elsewhere_is_not_followed(tmp_path: Path) -> None:
    write_model(tmp_path / "m", {})
    write_shard(tmp_path / "secret.safetensors", {"lm_head.weight": ("BF16", 1)})
    index = {"weight_map": {"a": "../secret.safetensors", "b": "/etc/hostname", "c": "x\0y", "d": ""}}
    (tmp_path / "m" / "model.safetensors.index.json").write_text(json.dumps(index))
    model = read_model(tmp_path / "m")
    assert any("names files outside of the folder" in p for p in model.problems)
    assert model.weights is None or not model.weights.files


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("{", "not valid JSON"),
        ('{"weight_map": []}', "'weight_map' must be an object"),
        ('{"weight_map": {"a": 1}}', "'weight_map' must be an object"),
        ("version https://git-lfs.github.com/spec/v1", "Git LFS pointer"),
    ],
)
def test_an_index_that_is_damaged(tmp_path: Path, content: str, says: str) -> None:
    write_model(tmp_path, SHARDS)
    (tmp_path / "model.safetensors.index.json").write_text(content)
    model = read_model(tmp_path)
    assert any(says in p for p in model.problems)
    assert weights_of(tmp_path).total_bytes == 1468  # the files are there all the same


def test_the_index_names_tensors_that_no_file_holds(tmp_path: Path) -> None:
    write_model(tmp_path, SHARDS)
    index = json.loads((tmp_path / "model.safetensors.index.json").read_text())
    index["weight_map"]["model.layers.1.mlp.up_proj.weight"] = ONE
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    assert any(
        "1 tensors that the index names are in none of its files" in p for p in read_model(tmp_path).problems
    )


MTP = {"mtp.layers.0.self_attn.q_proj.weight": ("BF16", 10), "mtp.fc.weight": ("BF16", 10)}


def test_mtp_layers_dropped_or_uncounted(tmp_path: Path) -> None:
    counted = CONFIG | {"num_nextn_predict_layers": 1}
    write_model(tmp_path / "dropped", SHARDS, counted)
    dropped = read_model(tmp_path / "dropped")
    assert any("counts 1 MTP layer, but the weight files hold no MTP tensors" in p for p in dropped.problems)
    assert model_facts(dropped)["model.has_mtp"] is False and dropped.mtp_layers == 1
    write_model(tmp_path / "whole", {ONE: MTP, TWO: SHARDS[TWO]}, counted)
    whole = read_model(tmp_path / "whole")
    assert whole.problems == () and model_facts(whole)["model.has_mtp"] is True
    write_model(tmp_path / "uncounted", {ONE: MTP, TWO: SHARDS[TWO]})
    uncounted = read_model(tmp_path / "uncounted")
    assert any("MTP tensors" in p and "does not count" in p for p in uncounted.problems)
    assert uncounted.mtp_layers == 1
    write_model(tmp_path / "none", SHARDS)
    assert read_model(tmp_path / "none").mtp_layers == 0  # the files are whole and hold none


def test_layers_numbered_on_after_the_others_are_mtp(tmp_path: Path) -> None:
    shard = {"model.layers.2.eh_proj.weight": ("BF16", 8), "model.layers.2.embed_tokens.weight": ("BF16", 8)}
    write_model(tmp_path, {ONE: shard}, CONFIG | {"num_nextn_predict_layers": 1})
    weights = weights_of(tmp_path)
    assert (weights.has_mtp, weights.mtp_layers) == (True, 1)
    assert (weights.bytes_of("mtp"), weights.bytes_of("mtp_embedding")) == (16, 16)


def test_an_mtp_file_apart_from_the_index(tmp_path: Path) -> None:
    write_model(tmp_path, SHARDS, CONFIG | {"num_nextn_predict_layers": 1})
    write_shard(tmp_path / "mtp.safetensors", {"model.layers.2.eh_proj.weight": ("BF16", 8)})
    model = read_model(tmp_path)
    assert weights_of(tmp_path).has_mtp is True
    assert any("mtp.safetensors is not named by the index" in p for p in model.problems)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("pytorch_model-00001-of-00001.bin", "bin"),
        ("model.gguf", "gguf"),
        ("consolidated.safetensors", "consolidated"),
    ],
)
def test_other_formats_are_named(tmp_path: Path, name: str, kind: str) -> None:
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    (tmp_path / "tokenizer.json").write_text("{}")
    (tmp_path / "training_args.bin").write_bytes(b"x")
    if kind == "consolidated":
        write_shard(tmp_path / name, {"output.weight": ("BF16", 512)})
    else:
        (tmp_path / name).write_bytes(b"x" * 1024)
    weights = weights_of(tmp_path)
    assert (weights.format, weights.total_bytes, weights.files) == (kind, 1024, (name,))
    assert model_facts(read_model(tmp_path))["model.weights_format"] == kind


def test_a_folder_without_weights(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    assert read_model(tmp_path).problems == ()  # a config alone: nothing else is expected
    assert model_facts(read_model(tmp_path)).look("model.weights_format") is UNKNOWN
    (tmp_path / "tokenizer.json").write_text("{}")
    model = read_model(tmp_path)
    assert model.problems == ("no weight files (*.safetensors, *.bin) in the folder",)
    facts = model_facts(model)
    assert facts.look("model.weights_format") is None
    assert facts["model.has_tokenizer"] is True and facts["model.has_processor"] is False
    assert facts.look("model.quantization") is None  # a missing file says nothing about config.json


def test_a_weight_file_given_for_the_model(tmp_path: Path) -> None:
    with open(tmp_path / "model.gguf", "wb") as stream:
        stream.truncate(17 << 20)
    with pytest.raises(UserError, match="17 MiB long") as error:
        read_model(tmp_path / "model.gguf")
    assert error.value.hint == "give the model's folder or its config.json"


def test_a_model_of_the_hub_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    revision = "0123456789abcdef0123456789abcdef01234567"
    repo = tmp_path / "hub" / "models--acme--Tiny-1B"
    write_model(repo / "stored", SHARDS)
    snapshot = repo / "snapshots" / revision
    snapshot.mkdir(parents=True)
    (repo / "blobs").mkdir()
    for file in (repo / "stored").iterdir():
        blob = repo / "blobs" / f"b{file.name}"
        file.rename(blob)
        (snapshot / file.name).symlink_to(blob)
    (repo / "refs").mkdir()
    (repo / "refs" / "main").write_text(revision)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.chdir(tmp_path)
    model = read_model("acme/Tiny-1B")
    assert (model.path, model.revision, model.problems) == ("acme/Tiny-1B", revision, ())
    assert model.weights is not None and model.weights.total_bytes == 1468
    (repo / "blobs" / f"b{TWO}").unlink()
    (repo / "blobs" / "abc.incomplete").write_text("")
    broken = read_model("acme/Tiny-1B")
    assert broken.weights is not None and broken.weights.missing == (TWO,)
    assert any("downloads are not finished" in p for p in broken.problems)
    (repo / "blobs" / "bconfig.json").unlink()
    with pytest.raises(UserError):
        read_model("acme/Tiny-1B")
    with pytest.raises(UserError, match="the link leads nowhere"):
        read_model(snapshot)


_values: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(st.binary(max_size=64), _values, st.integers(0, 2**64 - 1))
def test_any_bytes_in_a_weight_file_are_read_without_a_crash(
    tmp_path_factory: pytest.TempPathFactory, noise: bytes, value: Any, length: int
) -> None:
    folder = tmp_path_factory.getbasetemp()
    text = json.dumps({"t": value, "u": {"dtype": "BF16", "data_offsets": value}}).encode()
    for content in (noise, struct.pack("<Q", length) + noise, struct.pack("<Q", len(text)) + text):
        (folder / "model.safetensors").write_bytes(content)
        weights, problems = read_weights(folder)
        assert weights is not None and (weights.complete or problems)


@given(_values)
def test_any_index_is_read_without_a_crash(tmp_path_factory: pytest.TempPathFactory, value: Any) -> None:
    folder = tmp_path_factory.mktemp("index")
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": value}))
    weights, problems = read_weights(folder)
    assert problems or weights is not None
