"""Models on other machines, served by vLLM or SGLang (`redraft.backends.remote.backend`)."""
