"""README and addresses for package indexes, from the repository's hook; a source distribution has them in PKG-INFO."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class Hook(MetadataHookInterface):
    """The hook of the repository, if this is a folder of it."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add ``readme`` and ``urls``."""
        hook = Path(self.root, "../../tools/hatch_metadata.py")
        if hook.is_file():
            runpy.run_path(str(hook))["RepositoryHook"](self.root, self.config).update(metadata)
