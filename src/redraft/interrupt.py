"""Ctrl-C while a program starts: it ends at once, without a traceback."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def ends_process() -> Iterator[None]:
    """Let the system end the process at Ctrl-C while nothing has begun that must be finished or restored.

    Python's own handler raises wherever the program is: inside an import or a callback of llama.cpp this prints a
    traceback.  A handler of somebody else's is left alone, and so are threads other than the main one.
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
