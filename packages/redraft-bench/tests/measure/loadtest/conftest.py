"""Without the extra `serve` there is nothing to test here."""

from __future__ import annotations

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("starlette") and find_spec("websockets") else ["test_*.py"]
