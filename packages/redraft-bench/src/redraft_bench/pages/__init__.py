"""Makes docs/benchmarks from benchmarks/results; the modules work in a clone of the repository only."""
