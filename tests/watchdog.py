"""A pytest plugin that fails the run if a test leaves a thread for which Python would wait at exit."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures.thread import _threads_queues  # the workers of all pools

import pytest


class Watchdog:
    """Fails the last test of the process if non-daemon threads remain, and then ends the process despite them.

    Args:
        grace: time in seconds that threads have to end after the last test.
    """

    def __init__(self, grace: float = 5.0) -> None:
        self._grace = grace
        self._first_seen: dict[threading.Thread, str] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self, item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
        """Note the threads left by each test; report those that remain after the last, when all fixtures have ended."""
        try:
            return (yield)
        finally:
            for thread in _non_daemon():
                self._first_seen.setdefault(thread, item.nodeid)
            if nextitem is None and (left := self._left()):
                named = ", ".join(f"{each.name!r} (first seen after {self._first_seen[each]})" for each in left)
                pytest.fail(f"non-daemon threads are left, so Python would not exit: {named}", pytrace=False)

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self, config: pytest.Config) -> None:
        """End the process if Python would wait for threads."""
        session = config.pluginmanager.get_plugin("session")
        if _non_daemon() and session is not None:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(session.exitstatus)

    def _left(self) -> list[threading.Thread]:
        until = time.monotonic() + self._grace
        for thread in _non_daemon():
            thread.join(max(0.0, until - time.monotonic()))
        return [thread for thread in _non_daemon() if thread in self._first_seen]


def _non_daemon() -> list[threading.Thread]:
    # Python ends idle workers of thread pools at exit; torch keeps some for its compiler.
    other = {threading.main_thread(), threading.current_thread(), *_threads_queues}
    return [thread for thread in threading.enumerate() if not thread.daemon and thread not in other]
