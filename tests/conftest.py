"""What holds for every test, whoever runs it."""

from __future__ import annotations

import signal

# Under nohup, or as a background job of a script, signals are ignored, and every process that a test starts would
# inherit that: tests of how a launch is ended would wait for ever.
for _signal, _usual in (
    (signal.SIGINT, signal.default_int_handler),
    (signal.SIGQUIT, signal.SIG_DFL),
    (signal.SIGHUP, signal.SIG_DFL),
):
    if signal.getsignal(_signal) is signal.SIG_IGN:
        signal.signal(_signal, _usual)
