"""A client of ``redraft serve``.

Example:
    >>> async with Client("http://127.0.0.1:8765", to=["de"]) as client:
    ...     await client.send(Update("1", 0, "I have a dog.", final=True))
    ...     await client.end()
    ...     async for event in client:
    ...         print(event.text)

The client keeps what a server needs to go on: updates that no final caption has answered yet, and the final captions
that it has received.  After a drop it connects again, sends the former anew and, to a server that was restarted and
knows nothing, tells the latter.  So every final caption comes exactly once.
"""

from redraft.backoff import Backoff
from redraft.client.options import ServerError
from redraft.client.session import Client

__all__ = ["Backoff", "Client", "ServerError"]
