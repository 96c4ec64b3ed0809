"""A client of ``redraft serve``.

Examples:
    >>> async with Client("http://127.0.0.1:8765", to=["de"]) as client:
    ...     await client.send(Update("1", 0, "I have a dog.", final=True))
    ...     await client.end()
    ...     async for event in client:
    ...         print(event.text)

The client keeps what a server needs to resume: updates without a final caption, and the final captions that it has
received. After a drop it reconnects and sends the former again; if the server was restarted, it also restores the
latter. So every final caption arrives exactly once.
"""

from redraft.deadlines import Backoff
from redraft.errors import from_extra

with from_extra("client", "the client needs"):
    from redraft.client.client import Client
    from redraft.client.wire import ServerError

__all__ = ["Backoff", "Client", "ServerError"]
