"""A log whose text tries to be something else: mark-up, styles, links, mentions, terminal escapes."""

from __future__ import annotations

from pathlib import Path

EVIL = (
    "</code></pre></td></style></title></script><script>window.pwned=1</script>"
    "<img src=x onerror='window.pwned=2'><svg onload=window.pwned=3> \x1b[31mred\x1b[0m \x1b]8;;https://evil.example\x07"
    "click\x1b]8;;\x07 \u202egnp.exe\u202c ``` ```` @octocat #1 org/repo#2 [x](javascript:alert(1)) ![y](//evil.example/z) "
    "</details> <!-- --> &lt;b&gt; | a | <https://evil.example> https://evil.example/a?b=c"
)
TOKEN = "hf_" + "aB3dE6gH9jK2mN5pQ8rS"


def hostile_log(folder: Path) -> Path:
    """An unknown failure with such a message, rank, file and function; and a secret."""
    log = folder / "server <b>.log"
    log.write_text(
        f"$ HF_TOKEN={TOKEN} python -m sglang.launch_server --model-path '/m/<i>x</i>' --port 30000\n"
        "[2026-11-29 13:46:12 TP1] Init torch distributed begin.\n"
        "[2026-11-29 13:46:42 TP1] Scheduler hit an exception: Traceback (most recent call last):\n"
        '  File "/opt/sglang/srt/managers/scheduler.py", line 4046, in run_scheduler_process\n'
        "    scheduler = Scheduler(\n"
        '  File "/opt/sglang/srt/<script>.py", line 7, in turn\n'
        "    raise WidgetError(size)\n"
        f"sglang.srt.widgets.WidgetError: {EVIL} {TOKEN}\n\n"
        "[2026-11-29 13:46:42] Received sigquit from a child process. It usually means the child failed.\n",
        encoding="utf-8",
    )
    return log
