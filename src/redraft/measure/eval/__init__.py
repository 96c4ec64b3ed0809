"""Evaluation: streams, records, metrics, tables.

Most modules need only the default install.  `redraft.measure.eval.quality` needs the ``eval`` extra,
`redraft.measure.eval.stream_laal` the ``stream-laal`` extra, and `redraft.measure.eval.comet` the library
unbabel-comet, which is not in an extra.
"""
