"""Visualizations of decoding: the decoding dependency graph (`ddg`) and the draft view (`drafts`).

Both are made from a trace of any method (`redraft.measure.viz.trace`) and drawn as SVG or PNG
(`redraft.measure.viz.figure`, extra ``viz``) or as a single HTML file (`redraft.measure.viz.page`).
"""
