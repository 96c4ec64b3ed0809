"""Pictures of decoding: the decoding dependency graph (`redraft.viz.ddg`) and the draft view (`redraft.viz.drafts`).

Both are made from a trace (`redraft.viz.trace`), which any method can leave, and are drawn as SVG or PNG
(`redraft.viz.figure`, extra ``viz``) or as one HTML file (`redraft.viz.page`).
"""
