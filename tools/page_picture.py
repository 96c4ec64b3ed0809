"""Draw docs/page.png: the page of a server with the demo model, while sentences are typed.

    python -m tools.page_picture

Needs the extras `serve` and `browser`, Debian's chromium, and fonts for Chinese and Japanese.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tools.pictures import keep, opened

if TYPE_CHECKING:
    from playwright.sync_api import ViewportSize

PICTURE = Path(__file__).resolve().parents[1] / "docs" / "page.png"
SIZE: ViewportSize = {"width": 1180, "height": 740}
LANGUAGES = ("de", "zh", "ja")
#: The demo model translates these correctly into all of the languages.  The last one stays unfinished.
SENTENCES = (
    "Today I want to talk about the history of our city.",
    "Tomorrow we will visit the old bridge.",
    "An old man sat down next to me and opened his bag.",
    "She opened the window and",
)
#: Milliseconds between two keys.
KEY = 60


@contextmanager
def served(model: str = "demo") -> Iterator[str]:
    """Run a server while the block runs; yield its URL."""
    command = [str(Path(sys.executable).with_name("redraft")), "serve", "--model", model, "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stderr is not None  # noqa: S101  # for the type checker
            lines = (json.loads(line)["message"] for line in server.stderr if line.startswith("{"))
            yield next(line for line in lines if line.startswith("listening on")).split()[-1]
        finally:
            server.terminate()


def draw(url: str) -> bytes:
    """Return a screenshot of the page in the middle of the last sentence."""
    with opened(url, SIZE) as page:
        page.get_by_text("Type", exact=True).click()
        page.locator("#typed").press_sequentially("\n".join(SENTENCES), delay=KEY)
        for language in LANGUAGES:
            page.locator(f".cell.final[lang={language}]").nth(len(SENTENCES) - 2).wait_for(timeout=120_000)
        source = page.locator(".cell.source").last
        source.get_by_text(SENTENCES[-1]).wait_for()
        page.wait_for_timeout(3000)  # the captions of what was typed last
        picture: bytes = page.screenshot()
    return picture


def main() -> None:
    """Write the picture."""
    with served() as url:
        picture = draw(url)
    keep(picture, PICTURE, "lower SIZE")


if __name__ == "__main__":
    main()
