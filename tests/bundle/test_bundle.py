"""The archive: what is in it, that it is the same twice, that it holds nothing private and no more than it may."""

from __future__ import annotations

import hashlib
import io
import json
import stat
import tarfile
from pathlib import Path

import pytest
from planted import KEPT, PEM_BODY, planted

from mtpdoctor.cli.main import main
from mtpdoctor.kb.load import load_knowledge
from mtpdoctor.log.reading import reading_from_text

DATA = Path(__file__).parents[1] / "data"
ZMQ = DATA / "public_reports" / "zmq_bind_head_address_unindented.log"
RADIX = DATA / "real_logs" / "spec_no_buffer_with_radix.log"


def files_of(path: Path) -> dict[str, bytes]:
    with tarfile.open(path) as tar:
        members = tar.getmembers()
        assert all(m.isfile() and m.mtime == 0 and m.uid == m.gid == 0 and not m.uname for m in members)
        assert [m.name for m in members] == sorted(m.name for m in members)
        return {m.name.removeprefix("mtpdoctor-bundle/"): tar.extractfile(m).read() for m in members}  # type: ignore[union-attr]


def bundle(tmp_path: Path, *arguments: str, name: str = "b.tar.gz") -> dict[str, bytes]:
    out = tmp_path / name
    assert main(["bundle", "--no-probe", "--out", str(out), *arguments]) == 0
    return files_of(out)


def test_what_is_in_it_and_that_the_manifest_lists_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = bundle(tmp_path, str(ZMQ))
    assert set(files) == {
        "command/command.sh",
        "diagnosis.json",
        "diagnosis.txt",
        "logs/zmq_bind_head_address_unindented.log",
        "manifest.json",
    }
    manifest = json.loads(files["manifest.json"])
    assert {f["name"]: (f["bytes"], f["sha256"]) for f in manifest["files"]} == {
        name: (len(data), hashlib.sha256(data).hexdigest())
        for name, data in files.items()
        if name != "manifest.json"
    }
    assert manifest["diagnosis_unchanged"] is True and manifest["differences"] == []
    kinds = {r["kind"]: r for r in manifest["redactions"]}
    assert kinds["ip"] == {
        "kind": "ip",
        "placeholder": "redacted-ip-1",
        "count": 1,
        "first": "logs/zmq_bind_head_address_unindented.log:21",
    }
    everything = b"".join(files.values())
    assert b"10.96.14.3" not in everything and b"sglang-prefill-0" not in everything
    assert json.loads(files["diagnosis.json"])["diagnoses"][0]["rule"] == "MTP0515"
    said = capsys.readouterr().out
    assert "1 IP address, in 1 place" in said and "Nothing was sent anywhere" in said


def test_the_same_bytes_for_the_same_input(tmp_path: Path) -> None:
    for name in ("a.tar.gz", "b.tar.gz"):
        bundle(tmp_path, str(ZMQ), str(RADIX), name=name)
    assert (tmp_path / "a.tar.gz").read_bytes() == (tmp_path / "b.tar.gz").read_bytes()
    assert stat.S_IMODE((tmp_path / "a.tar.gz").stat().st_mode) == 0o600


def test_nothing_that_was_planted_is_in_any_file(tmp_path: Path) -> None:
    log = tmp_path / "gpu-node-17.jroe.log"
    lines = [line for line, _ in planted()]
    log.write_text(RADIX.read_text(encoding="utf-8") + "\n".join([*lines, *KEPT]) + "\n", encoding="utf-8")
    host = tmp_path / "host.json"
    host.write_text(json.dumps({"schema": 1, "platform": "cuda", "name": "gpu-node-17", "driver": "570.86.15",
        "env": {"HF_HOME": "/home/jroe/.cache", "HTTPS_PROXY": "http://u:Tr0ub4dor&3x@proxy.acme-ml.io:3128"},
        "gpus": [{"index": 0, "name": "NVIDIA H200", "sm": 90, "memory_gib": 139.8, "free_gib": 9.8,
                  "processes": [{"pid": 42, "used_gib": 130.0, "command": "/home/mmeier/x.py --key k", "user": "mmeier"}]}]}))  # fmt: skip
    folder = tmp_path / "projx_secret"
    folder.mkdir()
    script = folder / "launch.sh"
    script.write_text(
        "#!/bin/sh\nexport HF_TOKEN=hf"
        + "_"
        + "QzVbNmAsDfGhJkLpOiUyTrEwQaZxSwEdCv\npython -m sglang.launch_server --model-path /home/jroe/Qwen3-8B --dist-init-addr gpu-node-17:5000\n"
    )
    files = bundle(tmp_path, str(log), "--host", str(host), "--command-file", str(script))
    left = []
    for name, data in files.items():
        text = data.decode("utf-8")
        left += [(name, v) for _, values in planted() for v in values if v in text]
        left += [(name, v) for v in (*PEM_BODY, "jroe", "mmeier", "gpu-node-17", "acme-ml") if v in text]
        assert not any(v in name for v in ("jroe", "gpu-node-17"))
    assert left == []
    saved = json.loads(files["host.json"])
    assert saved["driver"] == "570.86.15" and saved["gpus"][0]["memory_gib"] == 139.8
    assert "redacted-user" in saved["gpus"][0]["processes"][0]["user"]
    assert files["command/launch.sh"].startswith(b"#!/bin/sh\nexport HF_TOKEN=redacted-secret-")
    kept = next(d for n, d in files.items() if n.startswith("logs/")).decode()
    assert [line for line in KEPT if line not in kept] == []


def test_weights_never_but_the_config_of_the_model(tmp_path: Path) -> None:
    model = tmp_path / "models" / "acme-ft"
    model.mkdir(parents=True)
    (model / "config.json").write_text(
        json.dumps(
            {
                "architectures": ["Qwen3ForCausalLM"],
                "model_type": "qwen3",
                "_name_or_path": "/home/jroe/run7",
                "hidden_size": 64,
                "num_hidden_layers": 2,
                "num_attention_heads": 4,
                "vocab_size": 100,
            }
        )
    )
    (model / "model.safetensors").write_bytes(b"WEIGHTS" * 10)
    files = bundle(
        tmp_path,
        str(RADIX),
        "--command",
        f"python -m sglang.launch_server --model-path {model}",
        "--model",
        str(model),
    )
    config = json.loads(files["model/config.json"])
    assert config["hidden_size"] == 64 and config["_name_or_path"].startswith("/home/redacted-user-1/")
    assert b"WEIGHTS" not in b"".join(files.values()) and not any("safetensors" in n for n in files)


def test_a_dry_run_writes_nothing_and_an_archive_is_not_replaced(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "b.tar.gz"
    arguments = ["bundle", "--no-probe", "--out", str(out), str(ZMQ)]
    assert main([*arguments, "--dry-run"]) == 0
    assert not out.exists() and "Would go in" in capsys.readouterr().out
    assert main(arguments) == 0
    before = out.read_bytes()
    assert main(arguments) == 2 and "is there already" in capsys.readouterr().err
    out.write_bytes(b"old")
    assert main([*arguments, "--force"]) == 0 and out.read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["b.tar.gz"]
    assert main(["bundle", "--no-probe", "--out", str(tmp_path / "c.tar.gz")]) == 2
    assert main(["bundle", "--no-probe", "--out", str(tmp_path / "no" / "c.tar.gz"), str(ZMQ)]) == 2
    assert (
        main(["bundle", "--no-probe", "--out", str(tmp_path / "d.tar.gz"), str(tmp_path / "nothing.log")])
        == 2
    )


def test_the_map_stays_here_and_names_keep_their_placeholders(tmp_path: Path) -> None:
    kept = tmp_path / "map.json"
    log = tmp_path / "a.log"
    log.write_text("--dist-init-addr node7.acme.internal:5000 --api-key secret-key-4711\n")
    bundle(tmp_path, str(log), "--keep-map", str(kept), name="a.tar.gz")
    first = json.loads(kept.read_text())
    assert first["values"] == {"redacted-host-1": "node7.acme.internal"}
    assert "secret-key-4711" not in kept.read_text() and len(first["digests"]) == 2
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    log.write_text(
        "--dist-init-addr node8.acme.internal:5000\n--dist-init-addr node7.acme.internal:5000 --api-key secret-key-4711\n"
    )
    files = bundle(tmp_path, str(log), "--keep-map", str(kept), name="b.tar.gz")
    lines = files["logs/a.log"].decode().split("\n")
    assert lines[0] == "--dist-init-addr redacted-host-2:5000"
    assert lines[1] == "--dist-init-addr redacted-host-1:5000 --api-key redacted-secret-1"
    kept.write_text("{}")
    assert (
        main(["bundle", "--no-probe", str(log), "--keep-map", str(kept), "--out", str(tmp_path / "c.tar.gz")])
        == 2
    )


def test_a_log_over_the_limit_keeps_its_ends_and_what_the_diagnosis_rests_on(tmp_path: Path) -> None:
    head = RADIX.read_text(encoding="utf-8").rstrip("\n").split("\n")
    start = "\n".join(head[:1])
    noise = [
        f"[2026-11-29 13:47:51] step {i} of something that says little at 10.42.7.19" for i in range(60_000)
    ]
    middle = "\n".join([start, *noise[:30_000], *head[1:], *noise[30_000:]])
    log = tmp_path / "big.log"
    log.write_text(middle + "\n", encoding="utf-8")
    files = bundle(tmp_path, str(log), "--max-log-size", "0.5")
    text = files["logs/big.log"].decode()
    assert text.count("\n") == middle.count("\n") + 1 and len(text) < 600_000
    manifest = json.loads(files["manifest.json"])
    assert manifest["diagnosis_unchanged"] is True
    assert "lines left out" in next(f["note"] for f in manifest["files"] if f["name"] == "logs/big.log")
    knowledge = load_knowledge()
    root = json.loads(files["diagnosis.json"])["diagnoses"][0]["root"]
    (line,) = reading_from_text(middle, knowledge.literals).hits.line(0, root["line"])
    assert line.text == root["text"]
    lines = text.split("\n")
    gaps = [i for i, x in enumerate(lines) if "lines left out]" in x]
    assert len(gaps) == 2 and all(lines[i + 1] == "" for i in gaps)
    assert (
        sum(int(lines[i].split(":")[1].split()[0]) for i in gaps) == sum(1 for x in lines[:-1] if not x) + 2
    )


def test_standard_input_compressed_and_odd_logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import gzip

    packed = tmp_path / "x.log.gz"
    packed.write_bytes(gzip.compress(RADIX.read_bytes()))
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(ZMQ.read_bytes())))
    files = bundle(tmp_path, str(packed), "-")
    assert {"logs/1-x.log", "logs/2-standard-input.log"} <= set(files)
    odd = tmp_path / "odd.log"
    odd.write_bytes(
        b"\xfe \x00 \x1b[31mred\x1b[0m caf\xe9 \x1b]0;title\x07 10.42.7.19:5000\r\n"
        + "na\u00efve \u202e\n".encode()
        + b"end"
    )
    text = bundle(tmp_path, str(odd), name="odd.tar.gz")["logs/odd.log"].decode("utf-8")
    assert "\x1b" not in text and "10.42" not in text and text.count("\n") == 2


def test_the_probe_of_this_host_goes_in(tmp_path: Path) -> None:
    out = tmp_path / "b.tar.gz"
    assert main(["bundle", "--out", str(out), "--json"]) == 0
    host = json.loads(files_of(out)["host.json"])
    assert host["schema"] == 1 and host["cpus"] and host["pretended"] is False


def test_an_empty_log_is_refused(tmp_path, capsys):
    (tmp_path / "empty.log").write_text("")
    arguments = ["bundle", "--no-probe", "--out", str(tmp_path / "c.tar.gz"), str(tmp_path / "empty.log")]
    assert main(arguments) == 2 and not (tmp_path / "c.tar.gz").exists()
    assert "nothing in it" in capsys.readouterr().err
