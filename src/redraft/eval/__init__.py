"""Measuring: streams in, rows of figures out.

Everything here but `redraft.eval.quality` works with the default install; that needs the ``eval`` extra.
"""
