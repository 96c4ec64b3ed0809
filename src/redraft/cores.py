"""The cores that this process may use."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

#: A process's cgroups, and the folder of all of version 2.
_OWN, _ALL = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")


def usable_cores() -> int:
    """Return the number of cores that this process may use, at least 1: by its affinity, and by its CPU quota.

    With a quota, more threads would use up each period early, and then all of them wait.  A part of a core counts as
    none.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, int(min(cores, quota())))


def quota(own: Path = _OWN, folder: Path = _ALL) -> float:
    """Return the smallest CPU quota of this process's cgroup and those around it, in cores; infinity without one.

    That of a container (``--cpus``, a limit of Kubernetes) or a service (``CPUQuota``), in cgroups of version 2.
    """
    found = [float("inf")]
    with suppress(OSError, StopIteration):
        lines = own.read_text(encoding="utf-8").splitlines()
        path = Path(next(line for line in lines if line.startswith("0::"))[3:])
        for each in (path, *path.parents):
            with suppress(OSError, ValueError):
                limit, period = (folder / each.relative_to("/") / "cpu.max").read_text(encoding="utf-8").split()
                found.append(int(limit) / int(period))  # otherwise "max"
    return min(found)
