"""A program that imports what this SGLang does not have: which release has it, and in which direction to go."""

from __future__ import annotations

from pathlib import Path

import pytest

from mtpdoctor.diagnose.engine import diagnose
from mtpdoctor.diagnose.given import Given
from mtpdoctor.kb.load import load_knowledge
from mtpdoctor.log.reading import read_logs

LOG = """Traceback (most recent call last):
  File "/opt/site-packages/{program}/workers/rollout.py", line 39, in <module>
    {code}
{last}
"""


@pytest.mark.parametrize(
    ("release", "last", "said"),
    [
        (
            "0.4.10",
            "ImportError: cannot import name 'maybe_set_triton_cache_manager' from 'sglang.srt.utils' (/x/sglang/srt/utils.py)",
            "sglang==0.4.9.post3",
        ),
        ("0.5.2", "ModuleNotFoundError: No module named 'sglang.srt.openai_api'", "sglang==0.4."),
        (
            "0.5.2",
            "ImportError: cannot import name 'ServerArgs' from 'sglang.srt.server_args' (/x/sglang/srt/server_args.py)",
            "--force-reinstall",
        ),
        (
            "0.5.2",
            "ImportError: cannot import name 'NobodyHasThis' from 'sglang.srt.utils' (/x/sglang/srt/utils.py)",
            "requirements",
        ),
    ],
)
def test_direction(tmp_path: Path, release: str, last: str, said: str) -> None:
    path = tmp_path / "trainer.log"
    path.write_text(LOG.format(program="sometrainer", code="from sglang.srt.x import y", last=last))
    knowledge = load_knowledge()
    report = diagnose(read_logs([str(path)], knowledge.literals), knowledge, Given(release=release))
    first = report.diagnoses[0]
    assert first.rule == "MTP0165"
    shown = " ".join([first.fixes[0].title, first.fixes[0].why, *first.fixes[0].run])
    assert (
        said in shown and "sometrainer" in " ".join(f.title + f.why for f in first.fixes)
    ) or said == "--force-reinstall"
    assert "--upgrade sglang" not in shown


COMPANION = """Traceback (most recent call last):
  File "/opt/site-packages/sglang/srt/entrypoints/grpc_server.py", line 160, in serve_grpc
    from smg_grpc_servicer.sglang.server import serve_grpc as _serve_grpc
  File "/opt/site-packages/smg_grpc_servicer/sglang/servicer.py", line 35, in <module>
    from sglang.srt.utils import get_zmq_socket
ImportError: cannot import name 'get_zmq_socket' from 'sglang.srt.utils' (/opt/site-packages/sglang/srt/utils/__init__.py)
"""


def test_a_package_that_sglang_itself_calls_is_brought_to_sglang(tmp_path: Path) -> None:
    """Not SGLang back to an old release for the sake of its own gRPC servicer."""
    path = tmp_path / "grpc.log"
    path.write_text(COMPANION)
    knowledge = load_knowledge()
    report = diagnose(read_logs([str(path)], knowledge.literals), knowledge, Given(release="0.5.21"))
    fixes = report.diagnoses[0].fixes
    assert fixes[0].run == (
        "pip show smg-grpc-servicer",
        "pip install --upgrade 'smg-grpc-servicer>=0.9.0'",
    )
    assert fixes[1].run[0] == "pip install sglang==0.5.9"


RAY = """Traceback (most recent call last):
  File "/opt/trainer/main.py", line 85, in run
    ray.get(runner.run.remote(config))
ray.exceptions.RayTaskError(ImportError): ray::TaskRunner.run() (pid=5726, ip=10.0.0.5, actor_id=5be9)
(TaskRunner pid=5726)   File "/opt/trainer/rollout.py", line 48, in <module>
(TaskRunner pid=5726)     from sglang.srt.utils import (
(TaskRunner pid=5726) {inner}
"""


@pytest.mark.parametrize(
    ("inner", "root"),
    [
        (
            "ImportError: cannot import name 'get_ip' from 'sglang.srt.utils' (/x/utils.py)",
            "ImportError: cannot",
        ),
        # of another type than the wrapper names: nothing says that it is the same failure
        ("ModuleNotFoundError: No module named 'sglang.srt.openai_api'", "ray.exceptions.RayTaskError"),
    ],
)
def test_what_ray_raises_again_is_the_task_s_own_exception(tmp_path: Path, inner: str, root: str) -> None:
    path = tmp_path / "trainer.log"
    path.write_text(RAY.format(inner=inner))
    knowledge = load_knowledge()
    report = diagnose(read_logs([str(path)], knowledge.literals), knowledge, Given(release="0.5.3"))
    assert report.diagnoses[0].root.body.startswith(root)
