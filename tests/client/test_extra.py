"""Without the extra, the client says which one to install."""

from __future__ import annotations

import subprocess
import sys

from redraft.errors import install


def test_the_extra_is_named() -> None:
    code = "import sys; sys.modules['websockets'] = None; import redraft.client"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert found.returncode == 1
    assert found.stderr.splitlines()[-1].endswith(f"which is not installed: {install('serve')}")
