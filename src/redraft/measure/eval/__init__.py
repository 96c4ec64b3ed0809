"""Measuring: streams in, records and rows of figures out.

Most of it works with the default install.  `redraft.measure.eval.quality` needs the ``eval`` extra,
`redraft.measure.eval.stream_laal` that of its own name, `redraft.measure.eval.comet` a library that is in no extra.
"""
