"""Speech of sessions: audio from clients to recognisers, and transcripts back.

``session_audio`` is the audio of one session, ``stream`` its streams, and ``recognisers`` runs recognisers and admits
sessions to them.  The messages are in `redraft.protocol`.
"""
