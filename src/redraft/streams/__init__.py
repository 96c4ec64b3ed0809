"""Transcripts in, captions out: lines, JSON Lines, plain text; subtitles and a live display.

`redraft.streams.read` turns bytes into updates, `redraft.streams.write` events into lines, JSON Lines, SRT and WebVTT,
`redraft.streams.live` shows them on a terminal.  Nothing here knows of models; errors of content are data, not raised.
"""
