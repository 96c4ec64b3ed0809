"""Models that run on another machine, on stock vLLM or SGLang servers (`redraft.backends.remote.backend`)."""
