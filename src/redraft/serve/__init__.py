"""The server: many live sessions on one model.

``lanes`` and ``scheduler`` run on an engine's thread and do not use the network; ``engine`` is that thread.
``protocol`` defines the messages on the wire.  Everything else runs on the server's event loop.
"""
