"""The server: many live sessions on one model.

    http      the API over HTTP and websockets, the pages, and other services' APIs
    sessions  sessions, their rooms, viewers, transcripts and audio; `Fanout`, the door to other servers
    engine    the models, and a thread for each that schedules translations; it does not use the network

The messages on the wire are in `redraft.protocol`.  All but the engines' threads runs on the server's event loop.
"""
