"""How programs end: by Ctrl-C, at once or by an exception, and whatever hangs in them."""

from __future__ import annotations

import os
import signal
import threading


def raises() -> None:
    """Let Ctrl-C raise `KeyboardInterrupt` from here on, because there is something to finish or to restore.

    Before, it ends the program `redraft` at once (`redraft.__main__`).  Other handlers are left alone, as are threads
    other than the main one.
    """
    here = threading.current_thread() is threading.main_thread()
    if here and signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def end_process_after(seconds: float, status: int = 1) -> threading.Timer:
    """End the process after so many seconds, even if a thread or a library hangs, unless the timer is cancelled."""
    timer = threading.Timer(seconds, os._exit, [status])
    timer.daemon = True
    timer.start()
    return timer
