"""Install Redraft without extras, and fail if that is too large or includes a training framework.

python3 -m tools.check_size
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from pathlib import Path

from tools.setup_env import prepare

#: Maximum size of site-packages on disk in bytes, including pip.
LIMIT = 200_000_000
UNWANTED = ("ray", "redis", "torch", "transformers")


def sizes(site_packages: Path) -> Counter[str]:
    """Return bytes on disk by top-level name."""
    total: Counter[str] = Counter()
    for path in site_packages.rglob("*"):
        total[path.relative_to(site_packages).parts[0]] += path.lstat().st_blocks * 512
    return total


def complaints(found: Counter[str]) -> list[str]:
    """Return what is wrong with an installation, one sentence each."""
    wrong = [f"the default install must not bring {name}" for name in UNWANTED if name in found]
    if found.total() > LIMIT:
        wrong.append(f"site-packages must stay below {LIMIT / 1e6:.0f} MB and has {found.total() / 1e6:.0f} MB")
    return wrong


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        prepare(Path(folder) / "venv", editable=False)
        measured = sizes(next(Path(folder).glob("venv/lib/python*/site-packages")))
    for name, size in measured.most_common(12):
        print(f"{size / 1e6:8.1f} MB  {name}")
    print(f"{measured.total() / 1e6:8.1f} MB  site-packages, {LIMIT / 1e6:.0f} MB allowed")
    sys.exit("\n".join(complaints(measured)) or None)
