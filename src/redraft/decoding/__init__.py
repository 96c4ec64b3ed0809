"""The engine core: the decoding loop, drafters, acceptance rules, methods, and the cost of a pass.

It needs only the standard library and uses no model, thread or clock: `redraft.decoding.decode` yields requests, and a
driver (`redraft.decoding.drive`) answers them.
"""
