"""The whole triage: what goes in, what comes out, in every form."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import zstandard
from triage_logs import server_args, traceback

from mtpdoctor.cli.main import main
from mtpdoctor.triage.find import find
from mtpdoctor.triage.opening import Limits
from mtpdoctor.triage.types import Triage

ROOT = Path(__file__).resolve().parents[2]
REAL = ROOT / "tests" / "data" / "real_logs"
SPEC = REAL / "spec_no_buffer_with_radix.log"
PORT = REAL / "port_in_use.log"
READY = REAL / "ready_dense.log"
SCHEMA = json.loads((ROOT / "mtpdoctor" / "report" / "triage.schema.json").read_text())


def triage_json(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, dict[str, Any]]:
    code = main(["triage", "--json", "--jobs", "0", *map(str, arguments)])
    document = json.loads(capsys.readouterr().out)
    jsonschema.validate(document, SCHEMA)
    return code, document


def rules(document: dict[str, Any]) -> dict[str | None, int]:
    return {g["rule"]: g["count"] for g in document["groups"]}


def test_unfinished_launches_tell_where_they_stand(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    healthy = ROOT / "tests" / "healthy" / "unfinished_059_loading.log"
    waiting = ROOT / "tests" / "data" / "public_reports" / "unfinished_waiting_for_node1.log"
    for log in (healthy, waiting):
        shutil.copy(log, tmp_path / log.name)
    code, document = triage_json(capsys, tmp_path)
    assert code == 0 and document["groups"] == []
    told = {Path(m["name"]).stem: m["stop"] for m in document["unfinished"]}
    assert told["unfinished_059_loading"].startswith("ends at weights; 2 of 4 shards; if it hangs: Weights")
    assert "behind: TP3" in told["unfinished_waiting_for_node1"]
    assert main(["triage", "--jobs", "0", str(tmp_path)]) == 0
    page = " ".join(capsys.readouterr().out.split())
    assert "ends at weights; 2 of 4 shards" in page


def test_a_folder_of_many_things(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a" / "deep").mkdir(parents=True)
    shutil.copy(SPEC, tmp_path / "a" / "one.log")
    (tmp_path / "a" / "deep" / "two.log.gz").write_bytes(gzip.compress(SPEC.read_bytes()))
    (tmp_path / "a" / "three.log.zst").write_bytes(zstandard.ZstdCompressor().compress(PORT.read_bytes()))
    (tmp_path / "ready.log.xz").write_bytes(lzma.compress(READY.read_bytes()))
    (tmp_path / "nginx.log.bz2").write_bytes(bz2.compress(b'10.0.0.1 - "GET / HTTP/1.1" 200\n' * 9))
    (tmp_path / "config.json").write_text('{\n "architectures": ["X"]\n}\n')
    (tmp_path / "model.safetensors").write_bytes(b"\0" * 64)
    (tmp_path / "odd.dat").write_bytes(b"\x7fELF" + bytes(range(256)))
    (tmp_path / "empty.log").touch()
    code, document = triage_json(capsys, tmp_path)
    assert code == 1
    assert rules(document) == {"MTP0200": 2, "MTP0510": 1}
    assert [m["name"] for m in document["ready"]] == [str(tmp_path / "ready.log.xz")]
    assert document["unreadable"] == []
    assert sum(document["skipped"].values()) == 5
    assert document["skipped"]["without a sign of SGLang"] == 1


def test_what_a_group_tells(capsys: pytest.CaptureFixture[str]) -> None:
    _, document = triage_json(capsys, SPEC)
    (group,) = document["groups"]
    (member,) = group["members"]
    assert group["parts"] == ["MTP0200", "arch=Qwen3_5MoeForConditionalGeneration"]
    assert group["releases"] == ["0.5.13 to 0.5.13.post1"]
    assert group["models"] == ["Qwen3.5-tiny"]
    assert group["first_seen"] is None or group["first_seen"].startswith("2026-11-29T")
    assert "extra_buffer" in member["fix"]["command"] and member["fix"]["verified"] == "rules"
    line = SPEC.read_text().split("\n")[member["root"]["line"] - 1]
    assert member["root"]["text"] in line


def test_names_on_standard_input(tmp_path: Path) -> None:
    odd = tmp_path / "with\nline feed.log"
    shutil.copy(PORT, odd)
    for data in (f"{SPEC}\n{PORT}\n", f"{SPEC}\0{odd}\0"):
        with find(["-"], stdin=io.BytesIO(data.encode())) as found:
            assert len(found.items) == 2 and not found.errors


def archive_of(kind: str, members: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in members.items():
                archive.writestr(name, data)
        return out.getvalue()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
        link = tarfile.TarInfo("link.log")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
    packed = {
        "tar": bytes,
        "gz": gzip.compress,
        "xz": lzma.compress,
        "zst": zstandard.ZstdCompressor().compress,
    }
    return packed[kind](out.getvalue())  # type: ignore[operator]


@pytest.mark.parametrize("kind", ["zip", "tar", "gz", "xz", "zst"])
def test_archives_are_read_and_nothing_is_written_where_they_say(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    members = {
        "../../escape.log": SPEC.read_bytes(),
        "run/server.log.gz": gzip.compress(PORT.read_bytes()),
        "run/model.bin": b"\0" * 100,
        "run/inner.zip": b"PK\x03\x04",
    }
    suffix = {"zip": ".zip", "tar": ".tar"}.get(kind, f".tar.{kind}")
    inside = tmp_path / "deep" / "deeper"
    inside.mkdir(parents=True)
    (inside / f"bundle{suffix}").write_bytes(archive_of(kind, members))
    before = sorted(tmp_path.rglob("*"))
    code, document = triage_json(capsys, inside)
    assert code == 1 and rules(document) == {"MTP0200": 1, "MTP0510": 1}
    assert sorted(tmp_path.rglob("*")) == before
    files = [m["files"][0] for g in document["groups"] for m in g["members"]]
    assert sorted(f.rpartition("!")[2] for f in files) == ["escape.log", "run/server.log.gz"]


def test_bombs_are_bounded(tmp_path: Path) -> None:
    limits = Limits(unpacked=1 << 20)
    text = b"[2026-11-29 10:00:00] server_args=ServerArgs(model_path='/m')\n" + b"x" * 99 + b"\n"
    (tmp_path / "bomb.zip").write_bytes(archive_of("zip", {"a.log": text + b"y" * (64 << 20)}))
    with find([str(tmp_path)], limits=limits) as found:
        assert found.items[0].size == 1 << 20
        assert any("more than 1 MiB" in note for note in found.notes)
        places = list(found.places.values())
    assert not any(Path(p).exists() for p in places)


def test_a_single_log_that_unpacks_to_too_much_is_read_up_to_there(
    tmp_path: Path, triaged: Callable[..., Triage]
) -> None:
    bomb = tmp_path / "bomb.log.gz"
    bomb.write_bytes(gzip.compress(SPEC.read_bytes() + b"\0" * (64 << 20)))
    result = triaged(bomb, limits=Limits(unpacked=1 << 20))
    assert result.groups[0].fingerprint.rule == "MTP0200"
    assert result.bytes == 1 << 20


def test_a_damaged_archive_and_a_missing_file_do_not_stop_the_rest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bad.zip").write_bytes(b"PK\x03\x04 and nothing")
    code, document = triage_json(capsys, tmp_path / "bad.zip", tmp_path / "missing.log", SPEC)
    assert code == 1 and rules(document) == {"MTP0200": 1}
    assert [Path(m["name"]).name for m in document["unreadable"]] == ["bad.zip", "missing.log"]
    assert all(m["error"] for m in document["unreadable"])


def test_exit_codes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    odd = tmp_path / "odd.log"
    odd.write_text(server_args() + "\n" + traceback("OddError: no idea"))
    empty = tmp_path / "nothing"
    empty.mkdir()
    assert triage_json(capsys, READY)[0] == 0
    assert triage_json(capsys, SPEC, READY)[0] == 1
    assert triage_json(capsys, SPEC, odd)[0] == 3
    assert triage_json(capsys, tmp_path / "gone.log")[0] == 2
    assert main(["triage", "--jobs", "0", str(empty)]) == 2
    assert main(["triage", "--baseline", str(odd), str(SPEC)]) == 2
    assert main(["triage", "--one-launch", "--each-file", str(SPEC)]) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_new_known_back_and_gone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def run(*arguments: object) -> dict[str, Any]:
        document = triage_json(capsys, *arguments)[1]
        (tmp_path / "last.json").write_text(json.dumps(document))
        return document

    run(SPEC, PORT)
    second = run("--baseline", tmp_path / "last.json", PORT, REAL / "unknown_model_type.log")
    assert {g["rule"]: g["status"] for g in second["groups"]} == {"MTP0510": "known", "MTP0447": "new"}
    assert [g["rule"] for g in second["gone"]] == ["MTP0200"]
    third = run("--baseline", tmp_path / "last.json", SPEC)
    assert {g["rule"]: g["status"] for g in third["groups"]} == {"MTP0200": "back"}
    assert {g["rule"] for g in third["gone"]} == {"MTP0510", "MTP0447"}


@pytest.mark.parametrize("form", ["text", "markdown", "html", "sarif", "json"])
def test_every_format_names_causes_and_launches_and_hides_secrets(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    log = Path("secret.log")
    command = (
        "HF_TOKEN=hf_abcdefghij0123456789 python -m sglang.launch_server --api-key sesame-4711-open --tp 2"
    )
    log.write_text(
        f"$ {command} --model-path /m/x\n\x1b[31mred\x1b[0m\n" + SPEC.read_text().partition("\n")[2]
    )
    out = tmp_path / "answer"
    assert main(["triage", "--jobs", "0", "--format", form, "--out", str(out), str(log), str(SPEC)]) == 1
    text = out.read_text(encoding="utf-8")
    assert "MTP0200" in text and "secret.log" in text
    assert "hf_abcdefghij" not in text and "sesame-4711" not in text and "\x1b" not in text


def test_what_tells_an_unknown_failure_apart_shows_no_secret(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    token = "hf_" + "aB3dE6gH9jK2mN5pQ8rS"
    (tmp_path / "a.log").write_text(
        "$ python -m sglang.launch_server --model-path M\nTraceback (most recent call last):\n"
        f'  File "/w/sglang/srt/x.py", line 29, in run\n    x()\nOSError: {token} is gated\n'
    )
    main(["triage", "--jobs", "0", "--format", "json", str(tmp_path / "a.log")])
    page = capsys.readouterr().out
    assert "is gated" in page and token not in page


def test_text_fits_its_width(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert main(["triage", "--jobs", "0", str(REAL)]) == 1
    text = capsys.readouterr().out
    assert text.startswith("23 of 25 launches failed")
    assert max(len(row) for row in text.splitlines() if " | " in row or row.startswith("  Why")) <= 60


def test_the_last_of_several_launches_in_one_file_counts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "server.log"
    log.write_text(PORT.read_text() + SPEC.read_text())
    _, document = triage_json(capsys, log)
    assert rules(document) == {"MTP0200": 1}
    assert document["groups"][0]["members"][0]["attempts"] == 2
    main(["triage", "--jobs", "0", str(log)])
    assert "the last of 2 launches in it" in " ".join(capsys.readouterr().out.split())


def test_urls(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fsspec = pytest.importorskip("fsspec", reason="fsspec (extra: remote) is not installed")
    memory = fsspec.filesystem("memory")
    memory.pipe("/bucket/a/one.log", SPEC.read_bytes())
    memory.pipe("/bucket/a/two.log.gz", gzip.compress(SPEC.read_bytes()))
    memory.pipe("/bucket/b/port.log", PORT.read_bytes())
    memory.pipe("/bucket/b/config.json", b'{\n"a": 1}\n')
    memory.pipe("/bucket/c.tar.gz", archive_of("gz", {"x/ready.log": READY.read_bytes()}))
    try:
        code, document = triage_json(capsys, "memory://bucket")
        assert code == 1 and rules(document) == {"MTP0200": 2, "MTP0510": 1} and len(document["ready"]) == 1
        _, document = triage_json(capsys, "memory://bucket/*/p*.log", f"file://{SPEC}")
        assert rules(document) == {"MTP0200": 1, "MTP0510": 1}
        _, document = triage_json(capsys, "memory://bucket/none.log")
        assert "no such file" in document["unreadable"][0]["error"]
    finally:
        memory.rm("/bucket", recursive=True)


def test_a_missing_driver_is_one_clear_line(capsys: pytest.CaptureFixture[str]) -> None:
    for url in ("s3://bucket/a.log", "gs://bucket/a.log", "hdfs://host/a.log"):
        scheme = url.partition("://")[0]
        driver = {"s3": "s3fs", "gs": "gcsfs", "hdfs": "pyarrow"}[scheme]
        try:
            __import__(driver)
        except ImportError:
            code, document = triage_json(capsys, url)
            assert code == 2
            extra = {"gs": "gcs"}.get(scheme, scheme)
            assert f"pip install 'mtpdoctor[{extra}]'" in document["unreadable"][0]["error"]


def test_light_as_any_command() -> None:
    code = (
        "import sys; from mtpdoctor.cli.main import main; main(['triage', '--jobs', '0', sys.argv[1]]);"
        "sys.exit(str({'textual', 'ray', 'fsspec', 'torch'} & set(sys.modules)) if"
        " {'textual', 'ray', 'fsspec', 'torch'} & set(sys.modules) else 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(SPEC)], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
