"""End programs: while they start, without a traceback, and whatever hangs in them."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def ends_process() -> Iterator[None]:
    """Let Ctrl-C end the process immediately while there is nothing to finish or restore.

    Python's handler raises an exception wherever the program is; inside an import or a callback of llama.cpp it prints
    a traceback.  Other handlers are left alone, as are threads other than the main one.
    """
    here = threading.current_thread() is threading.main_thread()
    handler = signal.getsignal(signal.SIGINT)
    if not here or handler is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


def end_process_after(seconds: float, status: int = 1) -> threading.Timer:
    """End the process after so many seconds, even if a thread or a library hangs, unless the timer is cancelled."""
    timer = threading.Timer(seconds, os._exit, [status])
    timer.daemon = True
    timer.start()
    return timer
