"""The server: many live sessions on one model.

    http      the API over HTTP and websockets, the pages, and other services' APIs
    sessions  sessions, their rooms, viewers, transcripts and audio; `Fanout`, the door to other servers

Translations run on `redraft.engine`; the messages on the wire are in `redraft.protocol`.  All but the
engines' threads runs on the server's event loop.
"""
