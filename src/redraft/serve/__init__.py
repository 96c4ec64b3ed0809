"""Many live sessions on one model: the scheduler, the protocol, and the server around them.

``slots``, ``lanes``, ``batch``, ``load`` and ``scheduler`` run on an engine's thread and know no network; ``engine`` is
that thread, and ``engines`` are several of them.  ``protocol`` is what is said over the wire.  The rest runs on the
event loop of the server.
"""
