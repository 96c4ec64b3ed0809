"""Measuring: streams in, records and rows of figures out.

Most of it works with the default install.  `redraft.eval.quality` needs the ``eval`` extra, `redraft.eval.stream_laal`
that of its own name, `redraft.eval.comet` a library that is in no extra.
"""
