"""What the programs that draw pictures of pages have in common: a page in Debian's chromium, and a limit of bytes."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Page, ViewportSize

MOST_BYTES = 200_000


@contextmanager
def opened(url: str, size: ViewportSize, *options: str) -> Iterator[Page]:
    """Open a page of a size in pixels while the block runs, with further options of the browser."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    with sync_playwright() as playwright:
        arguments = [*options, *["--no-sandbox"] * (os.geteuid() == 0)]
        browser = playwright.chromium.launch(executable_path=chromium, args=arguments)
        page = browser.new_page(viewport=size, color_scheme="light")
        page.goto(url)
        yield page
        browser.close()


def keep(picture: bytes, path: Path, remedy: str) -> None:
    """Write a picture to its file; end the program if it is too large, with what to do about that."""
    if len(picture) > MOST_BYTES:
        sys.exit(f"the picture has {len(picture)} bytes, and at most {MOST_BYTES} are meant: {remedy}")
    path.write_bytes(picture)
    print(f"{path}: {len(picture)} bytes")
