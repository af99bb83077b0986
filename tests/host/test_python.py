"""Python environments are found and described from files alone, in the order in which a launch takes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from trees import base, editable, installed, library, venv

from mtpdoctor.errors import UserError
from mtpdoctor.host.python import python_environments
from mtpdoctor.host.saved import host_from_document, host_to_json
from mtpdoctor.host.types import HostFacts, PythonEnvironment


@pytest.fixture
def found(tmp_path: Path) -> Any:
    def find(python: str | None = None, **environ: str) -> tuple[PythonEnvironment, ...]:
        for name in ("cwd", "home", "root"):
            (tmp_path / name).mkdir(exist_ok=True)
        running = tmp_path / "own" / "bin" / "python"
        return python_environments(
            python,
            environ,
            cwd=tmp_path / "cwd",
            home=tmp_path / "home",
            running=str(running) if running.is_file() else None,
            root=tmp_path / "root",
        )

    return find


def test_nothing_there_is_no_error(found: Any) -> None:
    assert found() == ()


def test_the_first_environment_with_sglang_goes_first(found: Any, tmp_path: Path) -> None:
    installed(venv(tmp_path / "own"), "mtpdoctor", "1.0")
    installed(venv(tmp_path / "active"), "torch", "2.9.1")
    installed(venv(tmp_path / "cwd" / ".venv"), "sglang", "0.5.9")
    installed(venv(tmp_path / "root" / "opt" / "venv"), "sglang", "0.5.13.post1")
    got = found(VIRTUAL_ENV=str(tmp_path / "active"))
    assert [(e.origin, e.packages.get("sglang")) for e in got] == [
        (".venv in the current folder", "0.5.9"),
        ("running interpreter", None),
        ("VIRTUAL_ENV", None),
        ("/opt/venv", "0.5.13.post1"),
    ]
    assert got[0].version == "3.12.3"


def test_a_named_python_counts_whatever_is_in_it(found: Any, tmp_path: Path) -> None:
    venv(tmp_path / "named")
    installed(venv(tmp_path / "cwd" / ".venv"), "sglang", "0.5.9")
    for named in (tmp_path / "named", tmp_path / "named" / "bin" / "python"):
        got = found(str(named))
        assert got[0].origin == "--python" and "sglang" not in got[0].packages
        assert got[1].packages["sglang"] == "0.5.9"


@pytest.mark.parametrize("named", ["nowhere/bin/python", "empty"])
def test_a_named_python_that_is_none_is_bad_input(found: Any, tmp_path: Path, named: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="--python"):
        found(str(tmp_path / named))


def test_environments_of_tools(found: Any, tmp_path: Path) -> None:
    home = tmp_path / "home"
    installed(venv(home / "miniconda3" / "envs" / "serve", cfg=False), "sglang", "0.5.1")
    installed(venv(home / ".local" / "share" / "uv" / "tools" / "sglang"), "sglang", "0.5.2")
    installed(base(home / ".pyenv" / "versions" / "3.11.7", "3.11", ("python", "python3")), "sglang", "0.5.3")
    installed(venv(tmp_path / "elsewhere", cfg=False), "sglang", "0.5.4")
    (home / ".conda").mkdir()
    (home / ".conda" / "environments.txt").write_text(f"{tmp_path / 'elsewhere'}\n/gone\n")
    installed(venv(tmp_path / "root" / "sgl-workspace" / "x" / ".venv"), "sglang", "0.5.5")
    got = {e.packages["sglang"]: e for e in found()}
    assert {v: e.origin for v, e in got.items()} == {
        "0.5.1": "conda", "0.5.2": "uv tool", "0.5.3": "pyenv", "0.5.4": "conda", "0.5.5": "/sgl-workspace",
    }  # fmt: skip
    assert got["0.5.3"].version == "3.11"


def test_the_command_on_path_tells_its_python(found: Any, tmp_path: Path) -> None:
    installed(venv(tmp_path / "tool"), "sglang", "0.5.9")
    scripts = tmp_path / "scripts"
    scripts.mkdir()
    for text in (
        f"#!{tmp_path}/tool/bin/python\nimport sglang\n",
        f"#!/bin/sh\n'''exec' {tmp_path}/tool/bin/python \"$0\" \"$@\"\n' '''\n",
    ):
        (scripts / "sglang").write_text(text)
        (first,) = found(PATH=str(scripts))
        assert first.origin == "the command sglang on PATH" and first.packages["sglang"] == "0.5.9"
    (scripts / "sglang").write_text("#!/usr/bin/perl\n")
    assert found(PATH=str(scripts)) == ()


def test_a_pyenv_shim_leads_to_the_version_in_force(found: Any, tmp_path: Path) -> None:
    pyenv = tmp_path / "pyenv"
    for minor, sglang in (("3.11", "0.5.9"), ("3.12", "0.5.13")):
        installed(base(pyenv / "versions" / minor, minor, ("python",)), "sglang", sglang)
    (pyenv / "shims").mkdir()
    (pyenv / "shims" / "python").write_text("#!/usr/bin/env bash\n")
    (pyenv / "version").write_text("3.11\n")
    assert found(PATH=str(pyenv / "shims"))[0].packages["sglang"] == "0.5.9"
    assert found(PATH=str(pyenv / "shims"), PYENV_VERSION="3.12")[0].packages["sglang"] == "0.5.13"


def test_debian_keeps_packages_in_dist_packages(found: Any, tmp_path: Path) -> None:
    usr = tmp_path / "root" / "usr"
    base(usr)
    local = usr / "local" / "lib" / "python3.12" / "dist-packages"
    system = usr / "lib" / "python3" / "dist-packages"
    installed(local, "sglang", "0.5.13")
    installed(system, "numpy", "1.26.4")
    (got,) = found()
    assert got.packages == {"numpy": "1.26.4", "sglang": "0.5.13"}
    assert got.folders == (str(local), str(system))


def test_a_virtual_environment_sees_its_base_only_where_it_says_so(found: Any, tmp_path: Path) -> None:
    under = base(tmp_path / "base")
    installed(under, "torch", "2.9.1")
    user = tmp_path / "home" / ".local" / "lib" / "python3.12" / "site-packages"
    installed(user, "triton", "3.5.1")
    for system in (False, True):
        installed(venv(tmp_path / "v", home=tmp_path / "base" / "bin", system=system), "sglang", "0.5.9")
        got = found(VIRTUAL_ENV=str(tmp_path / "v"))[0].packages
        assert ("torch" in got, "triton" in got) == (system, system)
    assert "triton" not in found(VIRTUAL_ENV=str(tmp_path / "v"), PYTHONNOUSERSITE="1")[0].packages


def test_pth_files_add_folders_and_pythonpath_goes_first(found: Any, tmp_path: Path) -> None:
    site = venv(tmp_path / "v")
    more, first = tmp_path / "more", tmp_path / "first"
    installed(more, "torch", "2.9.1")
    (site / "zz.pth").write_text(f"# a comment\n\n{more}\nimport os; os.x()\n/does/not/exist\n")
    installed(site, "sglang", "0.5.9")
    installed(first, "sglang", "0.5.1")
    got = found(VIRTUAL_ENV=str(tmp_path / "v"), PYTHONPATH=str(first))[0]
    assert got.packages == {"sglang": "0.5.1", "torch": "2.9.1"}
    assert got.duplicates == {"sglang": ("0.5.1", "0.5.9")}
    assert got.duplicate_folders == {"sglang": (str(first), str(site))}


@pytest.mark.parametrize("finder", [True, False])
def test_an_editable_install_is_one_copy(found: Any, tmp_path: Path, finder: bool) -> None:
    site = venv(tmp_path / "v")
    source = tmp_path / "checkout" / "python"
    editable(site, "sglang", "0.5.13", source, finder=finder)
    got = found(VIRTUAL_ENV=str(tmp_path / "v"), PYTHONPATH=str(source))[0]
    assert got.packages["sglang"] == "0.5.13"
    assert got.duplicates == {} and got.shadows == ()


def test_a_folder_named_sglang_shadows_the_installed_one(found: Any, tmp_path: Path) -> None:
    installed(venv(tmp_path / "v"), "sglang", "0.5.9", package="sglang")
    here = tmp_path / "cwd" / "sglang"
    here.mkdir(parents=True)
    environ = {"VIRTUAL_ENV": str(tmp_path / "v")}
    assert found(**environ)[0].shadows == ()  # a folder without __init__.py gives way to a package
    (here / "__init__.py").write_text("")
    assert found(**environ)[0].shadows == (str(here),)
    assert found(**environ, PYTHONSAFEPATH="1")[0].shadows == ()


def test_a_bare_folder_shadows_an_editable_install(found: Any, tmp_path: Path) -> None:
    """The finder of an editable install is asked last, after the folders: it is the usual accident of
    starting beside a checkout."""
    editable(venv(tmp_path / "v"), "sglang", "0.5.13", tmp_path / "cwd" / "sglang" / "python", finder=True)
    got = found(VIRTUAL_ENV=str(tmp_path / "v"))[0]
    assert got.shadows == (str(tmp_path / "cwd" / "sglang"),)


def test_requirements_are_read_with_their_markers(found: Any, tmp_path: Path) -> None:
    site = venv(tmp_path / "v", "3.10.4")
    installed(
        site, "sglang", "0.5.9",
        "License: several lines",
        "        ",
        "        of a license",
        "Requires-Python: >=3.10",
        "Requires-Dist: torch==2.9.1",
        "Requires-Dist: flashinfer_python[cu13]==0.6.3",
        "Requires-Dist: tomli; python_version < '3.11'",
        "Requires-Dist: newer==1; python_version >= '3.11'",
        "Requires-Dist: pytest; extra == 'test'",
        "Requires-Dist: ???",
    )  # fmt: skip
    installed(site, "torch", "2.9.1", "Requires-Dist: triton (==3.5.1)")
    got = found(VIRTUAL_ENV=str(tmp_path / "v"))[0]
    assert got.requires_python == ">=3.10"
    assert got.requires == {
        "sglang": {"torch": "==2.9.1", "flashinfer-python": "==0.6.3", "tomli": ""},
        "torch": {"triton": "==3.5.1"},
    }


@pytest.mark.parametrize(
    ("torch", "version_py", "cuda"),
    [
        ("2.14.1", "__version__ = '2.14.1+cu130'\ncuda: Optional[str] = '13.0'\n", "13.0"),
        ("2.5.1+cu124", "cuda = '12.4'\n", "12.4"),
        ("2.9.1+cu128", None, "12.8"),
        ("2.9.1+rocm7.0", "cuda: Optional[str] = None\nhip: Optional[str] = '7.0'\n", None),
        ("2.9.1", None, None),
    ],
)
def test_torch_tells_its_cuda(
    found: Any, tmp_path: Path, torch: str, version_py: str | None, cuda: str | None
) -> None:
    site = venv(tmp_path / "v")
    installed(site, "sglang", "0.5.9")
    installed(site, "torch", torch, package="torch")
    if version_py is not None:
        (site / "torch" / "version.py").write_text(version_py)
    library(site / "torch" / "lib" / "libtorch_cuda.so", (), [[75, 80], [90]])
    got = found(VIRTUAL_ENV=str(tmp_path / "v"))[0]
    assert got.torch_cuda == cuda and got.torch_sms == (75, 80, 90)


@pytest.mark.parametrize(
    ("name", "version", "where", "needed", "cuda"),
    [
        ("sglang-kernel", "0.4.7", "sm100/common_ops.abi3.so", ["libtorch.so", "libcudart.so.13"], "13"),
        ("sgl-kernel", "0.3.21+cu128", "sm90/common_ops.abi3.so", ["libcudart.so.12"], "12.8"),
        ("sgl-kernel", "0.1.0", "common_ops.cpython-310-x86_64-linux-gnu.so", ["libcudart.so.12"], "12"),
        ("sgl-kernel", "0.3.21+cu130", "sm90/common_ops.abi3.so", ["libcudart.so.12"], "12"),
    ],
)
def test_the_kernel_package_tells_its_cuda_and_gpus(
    found: Any, tmp_path: Path, name: str, version: str, where: str, needed: list[str], cuda: str
) -> None:
    site = venv(tmp_path / "v")
    installed(site, "sglang", "0.5.9")
    installed(site, name, version, package="sgl_kernel")
    library(site / "sgl_kernel" / where, needed, [[80, 89, 90, 90, 100], [120]])
    library(site / "sgl_kernel" / "flash_ops.abi3.so", needed, [[86]])  # of one feature: does not count
    got = found(VIRTUAL_ENV=str(tmp_path / "v"))[0]
    assert (got.kernel_cuda, got.kernel_sms) == (cuda, (80, 89, 90, 100, 120))


@pytest.mark.parametrize(
    "content",
    [b"", b"not an ELF", b"\x7fELF\x02\x01\x01" + b"\xff" * 80, b"\x7fELF\x02\x01\x01" + b"\0" * 57],
)
def test_a_damaged_library_says_nothing(found: Any, tmp_path: Path, content: bytes) -> None:
    site = venv(tmp_path / "v")
    installed(site, "sglang", "0.5.9")
    installed(site, "sgl-kernel", "0.3.21", package="sgl_kernel")
    (site / "sgl_kernel" / "common_ops.abi3.so").write_bytes(content)
    got = found(VIRTUAL_ENV=str(tmp_path / "v"))[0]
    assert (got.kernel_cuda, got.kernel_sms) == (None, ())


def test_odd_entries_in_site_packages_are_passed_over(found: Any, tmp_path: Path) -> None:
    site = venv(tmp_path / "v")
    installed(site, "sglang", "0.5.9")
    (site / "~gl_kernel-0.3.1.dist-info").mkdir()  # an uninstall that was broken off
    (site / "-info").mkdir()
    (site / "old-1.2-py3.12.egg-info").write_text("")
    (site / "nameless.egg-info").mkdir()
    (site / "Zope.Interface-5.0.dist-info").mkdir()
    assert found(VIRTUAL_ENV=str(tmp_path / "v"))[0].packages == {
        "old": "1.2",
        "sglang": "0.5.9",
        "zope-interface": "5.0",
    }


def test_an_environment_survives_saving(found: Any, tmp_path: Path) -> None:
    site = venv(tmp_path / "v")
    installed(site, "sglang", "0.5.9", "Requires-Dist: torch==2.9.1", "Requires-Python: >=3.10")
    got = found(VIRTUAL_ENV=str(tmp_path / "v"))
    host = HostFacts(platform="none", gpus=(), packages=dict(got[0].packages), pythons=got)
    assert host_from_document(host_to_json(host), "saved").pythons == got
