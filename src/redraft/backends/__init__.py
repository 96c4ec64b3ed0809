"""Engines that run models; `redraft.backends.load` opens one by name."""

import os

# OpenMP threads spin while waiting for each other; GCC's spin 300,000 times before they sleep.  If another process
# occupies the core of one thread, the others wait for it after every operation, and a pass takes seconds.  OpenMP reads
# this variable when it is loaded, so it is set before any engine is imported.
if "OMP_WAIT_POLICY" not in os.environ:
    os.environ.setdefault("GOMP_SPINCOUNT", "4000")
