"""Servers on this machine that recognise by a script: for each connection a function that speaks their protocol."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from redraft.deadlines import Backoff

#: A connection, in the words of websockets: it is received from and sent to.
Talk = Callable[[Any], None]

QUICK = Backoff(0.01, 0.05, 5.0)


class Died(Exception):
    """Raised by a script to cut its connection without a word."""


@contextmanager
def serving(*talks: Talk) -> Iterator[str]:
    """The address of a server that leads the first connection by the first script, and so on; the last goes on."""
    from websockets.sync.server import serve

    waiting = list(talks)

    def lead(socket: Any) -> None:
        talk = waiting.pop(0) if len(waiting) > 1 else waiting[0]
        try:
            talk(socket)
        except Died:
            time.sleep(0.2)  # what was sent before must have been read, or the system drops it
            socket.socket.shutdown(2)

    with serve(lead, "127.0.0.1", 0) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"ws://127.0.0.1:{server.socket.getsockname()[1]}"
        finally:
            server.shutdown()
            thread.join(60)
