"""Pictures of decoding: the decoding dependency graph (`ddg`) and the draft view (`drafts`).

Both are made from a trace (`redraft.measure.viz.trace`), which any method can leave, and are drawn as SVG or PNG
(`redraft.measure.viz.figure`, extra ``viz``) or as one HTML file (`redraft.measure.viz.page`).
"""
