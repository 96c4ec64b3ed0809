"""Engines that run models.  `redraft.backends.load` turns a name into one of them."""

import os

# OpenMP's threads spin while they wait for each other, GCC's for 300,000 turns before they sleep.  If another process
# has taken the core of one, the others wait so long after every operation, and a pass takes seconds.  The library reads
# this when it is loaded, so it is set before any engine is imported.
if "OMP_WAIT_POLICY" not in os.environ:
    os.environ.setdefault("GOMP_SPINCOUNT", "30000")
