"""Input and output formats: lines, JSON Lines, plain text, subtitles, and a live display.

`redraft.captions.formats.read` parses updates.
`redraft.captions.formats.write` writes events as lines, JSON Lines, SRT and WebVTT, and `redraft.captions.formats.live`
shows them on a terminal.  Invalid content is yielded as a failure, not raised.
"""
