"""A kernel whose build fails: the root is what the compiler said, not that a build failed."""

from __future__ import annotations

import pytest

from mtpdoctor.diagnose.engine import diagnose
from mtpdoctor.kb.load import load_knowledge
from mtpdoctor.log.reading import reading_from_text

BUILD = """\
[1/3] c++ -MMD -MF warp.o.d -O2 -c /c/warp.cpp -o warp.o
[2/3] /usr/local/cuda/bin/nvcc -O2 -c /c/warp.cu -o warp_cuda.o
FAILED: [code=1] warp_cuda.o
/usr/local/cuda/bin/nvcc -O2 -Xcompiler -Werror -c /c/warp.cu -o warp_cuda.o
/c/warp.cu(12): warning #177-D: variable "a" was declared but never referenced
/c/warp.cu(41): error: namespace "warp" has no member "drive"
/c/warp.cu(42): error: identifier "late" is undefined
2 errors detected in the compilation of "/c/warp.cu".
ninja: build stopped: subcommand failed.
"""
FRAMES = """\
[2026-11-29 13:46:42 TP0] Scheduler hit an exception: Traceback (most recent call last):
  File "/x/sglang/srt/managers/scheduler.py", line 7, in run_scheduler_process
    scheduler = Scheduler(
  File "/usr/lib/python3/site-packages/flashinfer/jit/cpp_ext.py", line 9, in run_ninja
    raise RuntimeError(msg) from e
"""


@pytest.mark.parametrize(
    "log",
    [
        BUILD + FRAMES + "RuntimeError: Error building extension 'warp'\n",
        FRAMES + "RuntimeError: Ninja build failed. Ninja output:\n" + BUILD,
        BUILD
        + FRAMES
        + "subprocess.CalledProcessError: Command '['ninja', '-v']' returned non-zero exit status 1.\n",
    ],
)
def test_the_root_is_the_compilers_first_error(log: str) -> None:
    knowledge = load_knowledge()
    found = diagnose(reading_from_text(log, knowledge.literals), knowledge).diagnoses[0]
    assert found.root.text == '/c/warp.cu(41): error: namespace "warp" has no member "drive"'
    assert found.fixes


@pytest.mark.parametrize(
    "said",
    [
        "/usr/bin/ld: cuda_0.o: file not recognized: Stale file handle",
        "/usr/bin/ld: cuda_0.o: file not recognized: file truncated",
        "fatbin: Input/output error",
    ],
)
def test_what_the_linker_says_of_its_files_goes_before_its_end(said: str) -> None:
    knowledge = load_knowledge()
    build = f"FAILED: [code=1] warp.so \nc++ cuda_0.o -shared -lcudart -o warp.so\n{said}\ncollect2: error: ld returned 1 exit status\nninja: build stopped: subcommand failed.\n"
    log = FRAMES + "RuntimeError: ninja exited with status 1\nstdout:\n" + build
    found = diagnose(reading_from_text(log, knowledge.literals), knowledge).diagnoses[0]
    assert found.root.text == said


def test_a_build_that_says_nothing_keeps_its_exception() -> None:
    knowledge = load_knowledge()
    log = FRAMES + "RuntimeError: Error building extension 'warp'\n"
    found = diagnose(reading_from_text(log, knowledge.literals), knowledge).diagnoses[0]
    assert "Error building extension" in found.root.text
