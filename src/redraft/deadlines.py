"""How long anything waits, in seconds, and the delays between attempts: every wait has a deadline, and all are here."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

# Connections

#: A server sends something at least this often; a client counts a connection as lost after two such intervals.
HEARTBEAT = 5.0
#: A client must send `start`, and a reader must read what it is sent.
FIRST_MESSAGE, SLOW_READER = 10.0, 10.0
#: The head of a request, and its body, must arrive within so long.
REQUEST = 30.0
#: The closing of a connection; and of all, after what is queued for them, by a server that stops.
GOODBYE, FAREWELL = 1.0, 2.0
#: A client is pinged this often; one that answers to nothing for twice as long is dropped.
PING = 20.0
#: A server must accept a connection, and must answer `start`, for which it may wait for `COMMAND`, and for Redis. Pages
#: have the same two (`serve/web/js/net/connection.js`).
OPENED, STARTED = 10.0, 60.0
#: A client waits for a server that is away once the end was asked for.
LAST = 3.0

# Sessions

#: Sessions are looked after this often.
LOOK = 1.0
#: A session by POST without captions.
POSTS = 3600.0
#: A session whose client has left, without a pass.
STUCK = 3.0
#: Room in a session whose transcript is as long as it may be.
ROOM = 5.0
#: An update of WhisperLiveKit after its last answer: it leaves connections of closed browsers open, and connects again.
IDLE_PEER = 300.0
#: A published session without an update, until another one may replace it.
QUIET = 10.0

# Redis

#: Redis must answer, and a log must be read; after so long a silence it is pinged.
REDIS = 5.0
#: What is written at the end, and its tasks must end; a session that is leaving its room.
LAST_WORDS, LEAVING = 2.0, 0.5

# The disk

#: A caption must be written to the folder of transcripts; one that could not be is tried again.
DISK, RETRY = 5.0, 2.0

# The model

#: A pass: so many times its measured cost, but no less, or this if nothing was measured.
PASS_FACTOR, PASS, FIRST_PASS = 20.0, 10.0, 300.0
#: After that, the model may still answer; then it is given up, and a little later the process ends.
HUNG, WITHOUT_ENGINE = 30.0, 5.0
#: The answer to a command, a translation, and the turn of a text or chat.
COMMAND, TRANSLATION, TURN = 30.0, 60.0, 300.0

# The recogniser

#: It must open, at a server, where it was opened before; elsewhere it may download a model.
RECOGNISER_OPENS = 120.0
#: It must make progress, or is started again; at a server sooner, before audio is dropped.
STALLED, STALLED_AT_SERVER = 60.0, 15.0
#: Audio must come, or its place is given to others.
AUDIO = 15.0
#: Its process must end after its last message.
PROCESS_ENDS = 30.0

#: A server that recognises is pinged this often, must answer that, and must send the rest of a text.
RECOGNISER_PING, RECOGNISER_PONG, RECOGNISER_ANSWERS = 5.0, 15.0, 30.0

# Captions that are pushed to a service

#: It must answer, at least so long is waited for it; at the end, what waits must be sent.
PUSH, PUSH_LEAST, PUSHED = 5.0, 1.0, 15.0

# Logs, when the process ends

#: What is written to the logs, which nobody may read.
LOGS = 0.3

# Signals

#: Signals that come together are one: `timeout`, for example, sends its signal to a process and its group.
TOGETHER = 0.1
#: What ends a process may take so long after the drain, and after a second signal.
AFTER_DRAIN, AT_ONCE = 10.0, 0.3


@dataclass(frozen=True, slots=True)
class Backoff:
    """Delays between attempts to reconnect, in seconds; they double each time, with random variation.

    Attributes:
        patience: give up after this long without a connection.
    """

    first: float = 0.2
    longest: float = 10.0
    patience: float = 300.0

    def waits(self) -> Iterator[float]:
        """Yield the delays until patience runs out; random variation keeps clients from reconnecting simultaneously."""
        wait, total = self.first, 0.0
        while total < self.patience:
            varied = wait * random.uniform(0.5, 1.0)
            yield varied
            total += varied
            wait = min(2 * wait, self.longest)
