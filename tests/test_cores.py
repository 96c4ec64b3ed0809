"""The cores that a process may use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from redraft import cores
from redraft.cores import quota, usable_cores


def cgroups(folder: Path, **limits: str) -> Path:
    """Write the limits of a process's cgroup and those around it, by path; return the process's own file."""
    for name, limit in limits.items():
        place = folder.joinpath(*name.split("_")) if name != "root" else folder
        place.mkdir(parents=True, exist_ok=True)
        (place / "cpu.max").write_text(limit + "\n")
    own = folder / "cgroup"
    own.write_text(f"1:cpuset:/other\n0::/{max(limits, key=len).replace('_', '/').removeprefix('root')}\n")
    return own


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({"root": "150000 100000"}, 1.5),  # a container
        ({"system_redraft": "max 100000", "system": "400000 100000"}, 4),  # a service in a slice
        ({"system_redraft": "50000 100000", "system": "400000 100000"}, 0.5),
        ({"system_redraft": "max 100000"}, float("inf")),
        ({"root": "broken"}, float("inf")),
    ],
)
def test_quota(tmp_path: Path, limits: dict[str, str], expected: float) -> None:
    assert quota(cgroups(tmp_path, **limits), tmp_path) == expected


def test_systems_without_cgroups(tmp_path: Path) -> None:
    assert quota(tmp_path / "none", tmp_path) == float("inf")
    (tmp_path / "v1").write_text("3:cpu,cpuacct:/docker\n")
    assert quota(tmp_path / "v1", tmp_path) == float("inf")


@pytest.mark.parametrize(("limit", "expected"), [(0.5, 1), (1.9, 1), (2.5, 2), (64, 4), (float("inf"), 4)])
def test_usable_cores(limit: float, expected: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cores, "quota", lambda: limit)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {0, 1, 2, 3}, raising=False)
    assert usable_cores() == expected
