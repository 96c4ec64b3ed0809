"""Transcripts in, captions out: lines, JSON Lines, plain text; subtitles and a live display.

`redraft.streams.read` and `redraft.streams.simulstreaming` turn bytes into updates.  `redraft.streams.write` turns
events into lines, JSON Lines, SRT and WebVTT, and `redraft.streams.live` shows them on a terminal.  Nothing here knows
of models; errors of content are data, not raised.
"""
