"""Checks and loading before a server starts."""

from __future__ import annotations

import asyncio

from redraft import interrupt
from redraft.serve.app import make_hub, open_backends
from redraft.serve.audio.recognisers import check_recognition, try_recogniser
from redraft.serve.compat import check_compat
from redraft.serve.hub import Hub
from redraft.serve.rooms import check_rooms
from redraft.serve.security import Keys
from redraft.serve.service import Service
from redraft.serve.settings import ServeSettings


def check(settings: ServeSettings) -> None:
    """Check everything that can be checked without loading a model.

    Raises:
        MissingExtra: a package is not installed.
        OptionError: a file of API keys, a room, an imitated API, a recogniser or the fan-out cannot be used.
    """
    if not settings.viewers_only:
        check_rooms(settings.rooms, Keys(settings.keys) if settings.keys else None)
    check_compat(settings)
    check_recognition(settings)
    if settings.fanout:
        asyncio.run(_check_fanout(settings))


async def _check_fanout(settings: ServeSettings) -> None:
    """Check that captions can go through Redis.

    Raises:
        MissingExtra: a package is not installed.
        OptionError: the address is invalid, or Redis does not respond.
    """
    from redraft.serve.fanout.store import Store  # needs an extra

    store = Store(settings)
    try:
        await store.check()
    finally:
        await store.close()


def open_hub(settings: ServeSettings) -> Hub:
    """Return the hub, with the models loaded unless the server has only viewers.

    Raises:
        RedraftError: a model or a recogniser in the settings cannot be used.
    """
    if settings.viewers_only:
        return make_hub(settings, None, [])
    with interrupt.ends_process():
        engines = open_backends(settings)
    service = Service(engines[0], settings)
    try_recogniser(settings, service.languages[0])
    return make_hub(settings, service, engines)
