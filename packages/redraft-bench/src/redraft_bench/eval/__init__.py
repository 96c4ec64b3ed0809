"""Evaluation: streams, records, metrics, tables.

Most modules need only the default install.  `redraft_bench.eval.quality` needs the ``eval`` extra,
`redraft_bench.eval.stream_laal` the ``stream-laal`` extra, and `redraft_bench.eval.comet` the library
unbabel-comet, which is not in an extra.
"""
