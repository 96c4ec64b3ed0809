"""A server, and what shows its pages in a real browser."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urljoin

import pytest

DESKTOP = {"width": 1280, "height": 800}


@pytest.fixture
def server() -> Iterator[Any]:
    from tests.serve.servers import running

    # One each, and never too busy: no test is to wait for what others have asked for.
    with running(busy=1.0) as found:
        yield found


@pytest.fixture(scope="module")  # no longer: Playwright's loop runs in this thread, and with it no other can
def browser() -> Iterator[Any]:
    from tests.serve.browsers import chromium

    with chromium() as found:
        yield found


@pytest.fixture
def visit(browser: Any, server: Any) -> Iterator[Callable[..., Any]]:
    """Opens a page; nothing may go wrong in it but what is `tolerated`, nor be kept from it by the policy."""
    from tests.serve.browsers import deadline, shortened

    complaints: list[str] = []
    contexts: list[Any] = []

    def open_page(path: str = "/", script: str = "", tolerated: str = "nothing", **options: Any) -> Any:
        # In Esperanto, which neither pages nor talks have: words are English, and viewers see the first translation.
        context = browser.new_context(**{"viewport": DESKTOP, "locale": "eo", **options})
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))

        def listen(line: Any) -> None:
            if line.type == "error" and not re.search(tolerated, line.text):
                complaints.append(line.text)

        page.on("console", listen)
        page.route("**/v1/talk", lambda route: route.fulfill(json=shortened(12)))
        if script:
            page.add_init_script(script)
        page.goto(urljoin(server.url, path))
        return page

    with deadline(browser):
        yield open_page
        for context in contexts:
            context.close()
    assert complaints == []


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """How much was sent to servers to see whether they stand it."""
    servers = sys.modules.get("tests.serve.servers")
    if servers is not None and servers.FUZZED:
        counts = ", ".join(f"{count} {kind}" for kind, count in sorted(servers.FUZZED.items()))
        terminalreporter.write_line(f"sent to servers at random: {counts}")
