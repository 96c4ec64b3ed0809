"""Check that the built documentation loads nothing from other servers.

    python -m tools.check_site site

Links to other servers are allowed.  Scripts, styles, fonts, pictures and frames must be part of the site.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

#: Element -> attributes that a browser loads automatically.
LOADED = {
    "audio": {"src"},
    "embed": {"src"},
    "iframe": {"src"},
    "img": {"src", "srcset"},
    "link": {"href"},
    "object": {"data"},
    "script": {"src"},
    "source": {"src", "srcset"},
    "video": {"poster", "src"},
}
#: Link types that load nothing.
NAMES = {"alternate", "canonical", "next", "prev"}
ELSEWHERE = re.compile(r"(?:https?:)?//")
#: URLs that a style sheet loads.
STYLED = re.compile(r"(?:url\(\s*|@import\s+)[\"']?((?:https?:)?//[^\"')\s]+)")


class Loads(HTMLParser):
    """Collects the URLs on other servers that a page loads."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Record what an element loads."""
        given = dict(attrs)
        if tag == "link" and NAMES & {*(given.get("rel") or "").split()}:
            return
        values = [value for name, value in attrs if value and name in LOADED.get(tag, ())]
        self.found += [value for value in values if ELSEWHERE.match(value)]
        self.found += STYLED.findall(given.get("style") or "")


def loads(path: Path) -> list[str]:
    """Return the URLs on other servers that a page or style sheet loads."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".css":
        return STYLED.findall(text)
    page = Loads()
    page.feed(text)
    return page.found


def problems(site: Path) -> Iterator[str]:
    """Yield a line for every page and style sheet that loads something from another server."""
    for path in sorted(site.rglob("*")):
        if path.suffix in (".css", ".html") and (found := loads(path)):
            yield f"{path.relative_to(site)} loads {', '.join(found)}"


def main(site: Path) -> str | None:
    """Return what is wrong with a site, or None."""
    if not (site / "index.html").exists():
        return f"{site} must be a built site: run `make docs`"
    return "\n".join(problems(site)) or None


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
