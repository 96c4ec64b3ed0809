"""Transcripts in, captions out: lines, JSON Lines, plain text; subtitles and a live display.

`redraft.captions.formats.read` and `redraft.captions.formats.simulstreaming` turn bytes into updates.
`redraft.captions.formats.write` turns events into lines, JSON Lines, SRT and WebVTT, and
`redraft.captions.formats.live` shows them on a terminal.  Nothing here knows of models; errors of content are data, not
raised.
"""
