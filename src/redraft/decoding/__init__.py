"""The engine core: one loop, drafters, acceptance rules, methods and what a pass costs.

It needs the standard library only, and knows neither model, nor thread, nor clock: `redraft.decoding.decode` asks,
and a driver (`redraft.decoding.drive`) answers.
"""
