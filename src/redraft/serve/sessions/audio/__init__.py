"""Speech of sessions: audio from clients to recognisers, and transcripts back.

``session`` is the audio of one session and its streams, and ``recognisers`` runs recognisers and admits sessions to
them.  The messages are in `redraft.protocol`.
"""
