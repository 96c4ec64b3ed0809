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
    monkeypatch.setattr(socket, "SO_EXCLUSIVEADDRUSE", socket.SO_OOBINLINE, raising=False)
    with closing(listen("127.0.0.1", 0)) as made:
        options = [made.getsockopt(socket.SOL_SOCKET, each) for each in (socket.SO_OOBINLINE, socket.SO_REUSEADDR)]
    assert [bool(each) for each in options] == [True, False]


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="other systems have no such limit")
def test_silent_peers_are_probed() -> None:
    """Or a device that has gone in the middle of a request would keep its connection; those accepted inherit it."""
    with closing(listen("127.0.0.1", 0)) as made, socket.create_connection(made.getsockname()):
        accepted, _ = made.accept()
        with accepted:
            assert accepted.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
            idle = accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE)
            assert 0 < idle <= 60 and accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) <= 60_000
