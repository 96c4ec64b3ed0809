"""The registry of methods, including plug-ins.

Packages with an entry point in the group ``redraft.methods`` are imported on first use and call `register`.  One that
cannot be imported is left out with all its methods, and named where one of them is asked for or methods are listed.
"""

from __future__ import annotations

import threading
from importlib.metadata import entry_points

from redraft.decoding.method import Method
from redraft.errors import OptionError, nearest

ENTRY_POINT_GROUP = "redraft.methods"

_REGISTRY: dict[str, Method] = {}
#: Why plug-ins are left out, a sentence for each.
_BROKEN: list[str] = []
_loaded = False
_loading = threading.RLock()


def register(method: Method) -> None:
    """Add a method to the table; raise `OptionError` if there is one with its name."""
    if method.name in _REGISTRY:
        raise OptionError(f"method {method.name!r} is registered already")
    _REGISTRY[method.name] = method


def all_methods() -> dict[str, Method]:
    """Return all methods by name, including plug-ins."""
    global _loaded
    with _loading:
        if not _loaded:
            _loaded = True  # before a plug-in asks for methods while it is imported
            for entry_point in entry_points(group=ENTRY_POINT_GROUP):
                before = dict(_REGISTRY)
                try:
                    entry_point.load()
                except (Exception, SystemExit) as error:  # its code may raise anything
                    _REGISTRY.clear()
                    _REGISTRY.update(before)
                    plug_in, found = f"{entry_point.name!r} ({entry_point.value})", f"{type(error).__name__}: {error}"
                    _BROKEN.append(f"plug-in {plug_in} could not be loaded: {found}")
        return dict(_REGISTRY)


def broken_plug_ins() -> tuple[str, ...]:
    """Return a sentence for each plug-in that could not be imported: its name, its module and the error."""
    all_methods()
    return tuple(_BROKEN)


def get_method(name: str | Method) -> Method:
    """Return the method called ``name``; a method is returned unchanged.

    Raises:
        OptionError: no method has this name; the message names plug-ins that could not be loaded.
    """
    if isinstance(name, Method):
        return name
    methods = all_methods()
    if not isinstance(name, str) or name not in methods:
        unknown = f"method {name!r} is not known{nearest(str(name), methods)}"
        raise OptionError("; ".join((unknown, f"known methods: {', '.join(methods)}", *broken_plug_ins())))
    return methods[name]
