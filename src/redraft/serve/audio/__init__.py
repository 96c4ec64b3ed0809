"""Speech of sessions: audio from clients to recognisers, and transcripts back.

``session`` is the audio of one session, ``stream`` a stream of it, ``recognisers`` admits sessions to recognisers, and
``process`` runs one.  The messages are in `redraft.serve.protocol_audio`.
"""
