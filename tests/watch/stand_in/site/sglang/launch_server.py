"""The stand-in's entry: plays back a recorded log as the variable STAND_IN says. See README.md."""

from __future__ import annotations

import contextlib
import ctypes
import datetime
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from sglang.stand_in_http import Server

READY = "The server is fired up and ready to roll!"
LONGEST_S = 300  # nothing of the stand-in lives longer, whatever a test forgets
_CLOCK = re.compile(r"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)")
_LOCK = threading.Lock()


def log(line: str) -> None:
    with _LOCK:
        os.write(1, line.encode() + b"\n")


def arguments(argv: list[str]) -> dict[str, Any]:
    """Long options as SGLang names them, and the defaults that the answers need."""
    out: dict[str, Any] = {"host": "127.0.0.1", "port": 30000, "model_path": "M", "argv": argv}
    at = 0
    while at < len(argv):
        name, _, value = argv[at].partition("=")
        if name.startswith("--"):
            if not value and at + 1 < len(argv) and not argv[at + 1].startswith("--"):
                at += 1
                value = argv[at]
            out[name[2:].replace("-", "_")] = value or True
        at += 1
    out["port"] = int(out["port"])
    return out


def chosen(settings: dict[str, Any], argv: list[str]) -> dict[str, Any]:
    text = " ".join([*(f"{k}={v}" for k, v in os.environ.items() if k.startswith("SGLANG_")), *argv])
    defaults = {k: v for k, v in settings.items() if k != "plays"}
    for play in settings.get("plays") or [{}]:
        if re.search(play.get("when", ""), text) and not (
            "unless" in play and re.search(play["unless"], text)
        ):
            return {**defaults, **play}
    raise SystemExit(f"stand-in: no play fits {text}")


def fitted(line: str, args: dict[str, Any]) -> str:
    """A recorded line with the port, host and key of this launch."""
    if "Uvicorn running on" in line:
        scheme = "https" if args.get("ssl_certfile") else "http"
        host = f"[{args['host']}]" if ":" in args["host"] else args["host"]
        return re.sub(r"https?://\S+", f"{scheme}://{host}:{args['port']}", line)
    if "server_args=" in line:
        line = re.sub(r"\bport=\d+", f"port={args['port']}", line)
        line = re.sub(r"\bhost='[^']*'", f"host='{args['host']}'", line)
        if args.get("fastapi_root_path"):
            line = re.sub(
                r"\bfastapi_root_path='[^']*'", f"fastapi_root_path='{args['fastapi_root_path']}'", line
            )
        if args.get("api_key"):
            line = re.sub(r"\bapi_key=None", f"api_key='{args['api_key']}'", line, count=1)
    return line


def child(name: str, ignore: bool) -> int:
    """A process in its own session, as the scheduler is."""
    pid = os.fork()
    if pid:
        return pid
    os.setsid()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN if ignore else signal.SIG_DFL)
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(15, name.encode()[:15], 0, 0, 0)
    until = time.monotonic() + LONGEST_S
    while time.monotonic() < until:
        time.sleep(0.2)
    os._exit(0)


def main() -> None:
    argv = sys.argv[1:]
    args = arguments(argv)
    play = chosen(json.loads(os.environ.get("STAND_IN") or "{}"), argv)
    ignore = bool(play.get("ignore_sigterm"))
    children: list[int] = []

    def ended(*_: Any) -> None:
        for pid in children:
            os.kill(pid, signal.SIGKILL)
        log("Shutting down")
        os._exit(0)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN if ignore else ended)
    server = Server(play, args, log)
    if play.get("children"):
        children += [child("sglang::schedul", ignore), child("sglang::detoken", ignore)]
    if play.get("compiler"):
        compiler(str(play["compiler"]))
    played = played_lines(play)
    speed, before = float(play.get("speed", 0)), None
    until, listening = play.get("until"), False
    for line in played:
        clock = _CLOCK.match(line)
        if clock and speed:
            now = datetime.datetime.strptime(clock[1], "%Y-%m-%d %H:%M:%S")
            if before is not None and now > before:
                time.sleep(min((now - before).total_seconds() / speed, LONGEST_S))
            before = now
        if "Uvicorn running on" in line and not listening:
            server.start()
            listening = True
        server.up = server.up or READY in line
        log(fitted(line, args))
        if play.get("pause_at") and play["pause_at"] in line:
            wait_for(play["go_on"])
        if until and until in line:
            break
    flood(int(play.get("flood", 0)))
    finish(play, server, listening)


def played_lines(play: dict[str, Any]) -> list[str]:
    if "lines" in play:
        return [str(line) for line in play["lines"]]
    if not play.get("log"):
        return []
    lines = Path(play["log"]).read_text(encoding="utf-8", errors="replace").split("\n")
    lines = lines[1:] if lines[0].startswith("$ ") else lines
    return lines[:-1] if lines and not lines[-1] else lines


def wait_for(path: str) -> None:
    """Until the test has made the file."""
    until = time.monotonic() + LONGEST_S
    while not os.path.exists(path) and time.monotonic() < until:
        time.sleep(0.02)


def flood(size: int) -> None:
    line = b"[2026-01-01 00:00:00] " + b"x" * 1000 + b"\n"
    block = line * 64
    while size > 0:
        size -= os.write(1, block)


def finish(play: dict[str, Any], server: Server, listening: bool) -> None:
    then = play.get("then", "serve")
    if then == "exit":
        os._exit(int(play.get("code", 1)))
    if then == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    until = time.monotonic() + LONGEST_S
    if then == "hang":
        while time.monotonic() < until:
            if not play.get("busy"):
                time.sleep(0.1)
        os._exit(9)
    if not listening:
        server.start()
    server.up = True
    if "die_when" in play:
        wait_for(play["die_when"])
        code = int(play.get("code", 1))
        if code < 0:
            os.kill(os.getpid(), -code)
        os._exit(code)
    while time.monotonic() < until:
        time.sleep(0.2)
    os._exit(0)


def compiler(name: str) -> None:
    """A busy child that is called as a compiler is."""
    named = f"import ctypes, time\nctypes.CDLL(None).prctl(15, {name.encode()!r}, 0, 0, 0)\n"
    code = f"{named}until = time.monotonic() + {LONGEST_S}\nwhile time.monotonic() < until: pass"
    pid = subprocess.Popen([name, "-c", code], executable=sys.executable).pid
    while not Path(f"/proc/{pid}/comm").read_text().startswith(name):
        time.sleep(0.01)


if __name__ == "__main__":
    main()
