"""The page, the viewer and the overlay of a server that needs API keys."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from redraft.serve.security import new_key
from tests.serve.browsers import SENTENCES, expect, finals, play, session_of, wait_for_finals
from tests.serve.servers import running

FOCUSED = "document.activeElement.name"


@pytest.fixture
def locked(tmp_path: Path) -> Iterator[tuple[str, str]]:
    """The address of a server with keys, and a key."""
    path = tmp_path / "keys"
    key = new_key(path, "stage")
    with running(keys=path, busy=1.0) as server:
        yield server.url, key


def test_key(locked: tuple[str, str], visit: Callable[..., Any]) -> None:
    url, key = locked
    page = visit(url)
    field = page.get_by_label("API key")
    expect(field).to_be_visible()
    play(page)
    assert field.evaluate("(field) => field.validationMessage").startswith("Enter the API key")
    assert page.evaluate(FOCUSED) == "key"
    expect(page.locator("#state")).to_have_text("Not connected")
    field.fill(f" {key} ")
    page.check("#compare")  # the session beside it needs the key, too
    play(page)
    wait_for_finals(page)
    expect(page.locator('[data-plain="lag"]')).not_to_have_text("–")
    page.reload()
    wait_for_finals(page)
    name = session_of(page)["name"]
    viewer = visit(f"{url}/watch?session={name}&language=ja")  # without a key
    for path in ("watch", "overlay"):
        viewer.goto(f"{url}/{path}?session={name}&language=ja")
        wait_for_finals(viewer, "ja", SENTENCES)
        assert finals(viewer, "ja") == finals(page, "ja")
        assert key not in viewer.content()
    page.click("text=End session")
    expect(page.locator("#state")).to_have_text("Ended")
    assert field.input_value() == key  # for the next session


def test_wrong_key(locked: tuple[str, str], visit: Callable[..., Any]) -> None:
    url, key = locked
    page = visit(url)
    page.get_by_label("API key").fill("wrong")
    play(page)
    expect(page.locator("#key-wrong")).to_contain_text("the API key is not known to this server")
    expect(page.locator("#problem")).not_to_be_visible()
    expect(page.locator(".empty")).to_be_visible()
    assert page.evaluate(FOCUSED) == "key"
    assert page.get_attribute("[name=key]", "aria-invalid") == "true"
    page.fill("[name=key]", key)
    expect(page.locator("#key-wrong")).not_to_be_visible()
    play(page)
    expect(page.locator("#state")).to_have_text("Live")
