"""The socket that a server listens on."""

from __future__ import annotations

import socket
from contextlib import closing

import pytest

from redraft.errors import OptionError
from redraft.serve.run import listen


def test_taken_port() -> None:
    with closing(listen("127.0.0.1", 0)) as first, pytest.raises(OptionError, match="cannot listen on host .* --port$"):
        listen("127.0.0.1", first.getsockname()[1])


def test_windows_exclusive_port(monkeypatch: pytest.MonkeyPatch) -> None:
    # There SO_REUSEADDR lets a second server take the port too.  Any option of that level stands for the one it has.
    monkeypatch.setattr(socket, "SO_EXCLUSIVEADDRUSE", socket.SO_KEEPALIVE, raising=False)
    with closing(listen("127.0.0.1", 0)) as made:
        options = [made.getsockopt(socket.SOL_SOCKET, each) for each in (socket.SO_KEEPALIVE, socket.SO_REUSEADDR)]
    assert [bool(each) for each in options] == [True, False]
