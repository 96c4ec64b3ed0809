"""Puts compiled libraries into the wheel; ``REDRAFT_LLAMA_LIBRARIES`` is their folder (`tools.build_llama`)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Libraries(BuildHookInterface[Any]):  # type: ignore[misc]  # hatchling is not read
    """Adds the libraries, and the platform that they need."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add them to the wheel."""
        folder = os.environ.get("REDRAFT_LLAMA_LIBRARIES")
        if folder is None:
            raise RuntimeError("build this package with `python -m tools.build_llama`, which compiles the libraries")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{os.environ['REDRAFT_LLAMA_PLATFORM']}"
        for path in Path(folder).iterdir():
            build_data["force_include"][str(path)] = f"redraft_llama/lib/{path.name}"
