"""Metadata that depends on where the project is published, for the build by hatchling.

REDRAFT_REPOSITORY in the environment of a build, such as ``https://github.com/OWNER/redraft``, becomes the project's
address, and README's links and pictures become absolute: an index shows README without the files beside it.

It is the hook of all packages of the repository; the others name their ``folder`` in it.
"""

from __future__ import annotations

import os
import posixpath
import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

#: A link or picture in Markdown, and its path in the repository: without a scheme, and not only an anchor.
_LINK = re.compile(r"(?P<head>!?\[(?:[^\[\]]|\[[^\]]*\])*\]\()(?P<path>(?![a-z][a-z0-9+.-]*:|#|/)[^)\s]+)")


class RepositoryHook(MetadataHookInterface):
    """Sets README and, if the repository is known, the addresses."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        """Add ``readme`` and ``urls``."""
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        if repository := os.environ.get("REDRAFT_REPOSITORY", "").rstrip("/"):
            text = absolute(text, repository, self.config.get("folder", ""))
            metadata["urls"] = {
                "Repository": repository,
                "Documentation": f"{repository}/blob/main/docs/README.md",
                "Changelog": f"{repository}/blob/main/CHANGELOG.md",
                "Issues": f"{repository}/issues",
            }
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


def absolute(text: str, repository: str, folder: str = "") -> str:
    """Return Markdown of a folder with absolute links to files of the repository; pictures are linked as files."""

    def link(match: re.Match[str]) -> str:
        kind = "raw" if match["head"].startswith("!") else "blob"
        path, anchor, part = match["path"].partition("#")
        path = posixpath.normpath(posixpath.join(folder, path))
        return f"{match['head']}{repository}/{kind}/main/{path}{anchor}{part}"

    return _LINK.sub(link, text)
