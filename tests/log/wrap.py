"""Wraps the lines of a log the way transports carry them, one physical line for each.

``wrap(lines, transport)`` gives the bytes of a log file; ``TRANSPORTS`` names the forms. Used to
check that whatever is read off a plain log is read off a carried one too.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

_NANO = "2026-11-29T13:46:{:02d}.{:09d}Z"


def _iso(i: int) -> str:
    return _NANO.format(i // 20 % 60, (i * 7_654_321) % 10**9)


def _clock(i: int) -> str:
    return f"13:46:{i // 20 % 60:02d}"


def _wrapper(form: Callable[[int, str], str]) -> Callable[[Sequence[str]], str]:
    return lambda lines: "".join(form(i, line) + "\n" for i, line in enumerate(lines))


def _docker(i: int, line: str) -> str:
    text = json.dumps(line + "\n", ensure_ascii=False)
    for c in "<>&":  # as Go writes JSON
        text = text.replace(c, f"\\u{ord(c):04x}")
    return f'{{"log":{text},"stream":"stderr","time":"{_iso(i)}"}}'


def _journal_json(i: int, line: str) -> str:
    # journald gives bytes where a message holds escapes or bars
    message: object = list(line.encode()) if any(c < " " and c != "\t" for c in line) else line
    return json.dumps(
        {
            "__REALTIME_TIMESTAMP": str(1_764_423_972_000_000 + i),
            "_HOSTNAME": "gpu1",
            "PRIORITY": "6",
            "SYSLOG_IDENTIFIER": "python3",
            "_PID": "4242",
            "MESSAGE": message,
        }
    )


def _coloured(i: int, line: str) -> str:
    """Colours in the middle of words, a hyperlink, a cursor movement."""
    if not line.strip():
        return line
    half = len(line) // 2
    link = "\x1b]8;;https://example.org/\x1b\\" if i % 3 == 0 else ""
    end = "\x1b]8;;\x1b\\" if link else ""
    return f"\x1b[1;3{i % 8}m{line[:half]}\x1b[0m\x1b[K{link}{line[half:]}{end}\x1b(B\x1b[m"


FORMS: dict[str, Callable[[Sequence[str]], str]] = {
    "plain": _wrapper(lambda i, line: line),
    "crlf": _wrapper(lambda i, line: line + "\r"),
    "compose": _wrapper(lambda i, line: f"sglang-1  | {line}"),
    "compose_colour": _wrapper(lambda i, line: f"\x1b[36msglang-1  | \x1b[0m{line}"),
    "compose_v1": _wrapper(lambda i, line: f"sglang_1      | {line}"),
    "compose_timestamps": _wrapper(lambda i, line: f"sglang-1  | {_iso(i)} {line}"),
    "compose_name": _wrapper(lambda i, line: f"vllm-sglang-server | {line}"),
    "docker_timestamps": _wrapper(lambda i, line: f"{_iso(i)} {line}"),
    "docker_json": _wrapper(_docker),
    "swarm": _wrapper(lambda i, line: f"llm_sglang.1.kx3q9zr2@gpu1    | {line}"),
    "kubectl_timestamps": _wrapper(lambda i, line: f"{_iso(i)} {line}"),
    "kubectl_prefix": _wrapper(lambda i, line: f"[pod/sglang-7d9c6b5f4-x2x8z/server] {line}"),
    "kubectl_both": _wrapper(lambda i, line: f"[pod/sglang-0/server] {_iso(i)} {line}"),
    "cri": _wrapper(lambda i, line: f"{_iso(i)} stderr F {line}"),
    "journald": _wrapper(lambda i, line: f"Nov 29 {_clock(i)} gpu1 sglang[4242]: {line}"),
    "journald_early_month": _wrapper(lambda i, line: f"Nov  3 {_clock(i)} gpu1 sglang[4242]: {line}"),
    "journald_precise": _wrapper(lambda i, line: f"Nov 29 {_clock(i)}.{i:06d} gpu1 sglang[4242]: {line}"),
    "journald_unix": _wrapper(lambda i, line: f"1764423972.{i:06d} gpu1 sglang[4242]: {line}"),
    "journald_json": _wrapper(_journal_json),
    "systemd": _wrapper(lambda i, line: f"2026-11-29T{_clock(i)}+0000 gpu1 sglang.service[4242]: {line}"),
    "systemd_unit": _wrapper(
        lambda i, line: f"Sun 2026-11-29 {_clock(i)} UTC gpu1 sglang.service[42]: {line}"
    ),
    "syslog": _wrapper(lambda i, line: f"<30>1 {_iso(i)} gpu1 sglang 4242 - - {line}"),
    "slurm": _wrapper(lambda i, line: f"0: {line}"),
    "slurm_padded": _wrapper(lambda i, line: f" 3: {line}"),
    "ray": _wrapper(lambda i, line: f"(RayWorker pid=4242, ip=10.0.0.7) {line}"),
    "ray_colour": _wrapper(lambda i, line: f"\x1b[36m(sglang::scheduler pid=4242)\x1b[0m {line}"),
    "ray_colour_lost": _wrapper(lambda i, line: f"[36m(RayWorkerWrapper pid=4242)[0m {line}"),
    "rank_prefix": _wrapper(lambda i, line: f"[rank3]: {line}"),
    "torchrun": _wrapper(lambda i, line: f"[default3]:{line}"),
    "mpi_no_blank": _wrapper(lambda i, line: f"[1,0]<stdout>:{line}"),
    "mpi": _wrapper(lambda i, line: f"[1,3]<stderr>: {line}"),
    "ts": _wrapper(lambda i, line: f"Nov 29 {_clock(i)} {line}"),
    "ts_iso": _wrapper(lambda i, line: f"2026-11-29 {_clock(i)} {line}"),
    "github_actions": _wrapper(lambda i, line: f"{_iso(i)[:27]}Z {line}"),
    "pdsh": _wrapper(lambda i, line: f"gpu-node03: {line}"),
    "stern": _wrapper(lambda i, line: f"sglang-7d9c6b5f4-x2x8z server {line}"),
    "supervisor": _wrapper(lambda i, line: f"sglang: {line}"),
    "indented": _wrapper(lambda i, line: f"    {line}"),
    "quoted": _wrapper(lambda i, line: f"> {line}"),
    "logging": _wrapper(lambda i, line: f"2026-11-29 {_clock(i)},{i:03d} - __main__ - INFO - {line}"),
    "loguru": _wrapper(lambda i, line: f"2026-11-29 {_clock(i)}.{i:03d} | INFO     | runner:go:12 - {line}"),
    "airflow": _wrapper(lambda i, line: f"[2026-11-29, {_clock(i)} UTC] {{subprocess.py:93}} INFO - {line}"),
    "grafana": _wrapper(lambda i, line: f"{_iso(i)}\t{line}"),
    "ansi": _wrapper(_coloured),
    "json_logger": _wrapper(
        lambda i, line: json.dumps({"timestamp": _iso(i), "level": "INFO", "message": line})
    ),
    # nested
    "kubernetes_slurm": _wrapper(lambda i, line: f"[pod/sglang-0/server] {_iso(i)} 3: {line}"),
    "journald_compose": _wrapper(lambda i, line: f"Nov 29 {_clock(i)} gpu1 docker[812]: sglang-1  | {line}"),
    "cri_ray": _wrapper(lambda i, line: f"{_iso(i)} stdout F (RayWorker pid=77) {line}"),
    "docker_json_slurm": _wrapper(lambda i, line: _docker(i, f"1: {line}")),
    "docker_json_ansi": _wrapper(lambda i, line: _docker(i, _coloured(i, line))),
}
TRANSPORTS = tuple(FORMS)


def wrap(lines: Sequence[str], transport: str) -> bytes:
    """The log file that ``transport`` makes of ``lines`` (without newlines; ``\\r`` is allowed)."""
    return FORMS[transport](lines).encode("utf-8", "surrogatepass")
