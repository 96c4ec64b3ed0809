"""Viewers on other replicas: captions go through Redis, so any replica can serve the viewers of any session.

    feed    publishes a session, to which the other replicas are like one more viewer, and mirrors one of theirs
    store   keys and operations in Redis, and the session in each room, on any replica
    fanout  receives what is published, and combines these for `redraft.serve.sessions.hub`

The session itself is the source of truth.  Redis has a *log* of what its viewers may see, and pub/sub announces new
entries.  Positions of entries only increase, so a replica that missed some continues reading from its own position; a
log that ends before that is another one, and is read from its start.  After a failure of Redis, the session's replica
writes the log again from its transcript.
"""
