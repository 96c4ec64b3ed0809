"""Visualizations of decoding: the decoding dependency graph (`ddg`) and the draft view (`drafts`).

Both are made from a trace of any method (`redraft_bench.viz.trace`) and drawn as SVG or PNG (`redraft_bench.viz.draw`).
"""
