"""Measurements: each module is a command, ``python -m redraft_bench.scripts.NAME --help``."""
