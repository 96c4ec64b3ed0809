"""Check that imports inside Redraft point down one list of layers, and that the core needs only the standard library.

    python -m tools.check_layers

Imports inside functions and under ``TYPE_CHECKING`` count too.  Existing import checkers forbid packages by name and
cannot express "only the standard library", hence this one.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

PACKAGE = "redraft"

#: Layers from top to bottom; a module may import from its own layer and from those below.
LAYERS = (
    "cli __main__",
    "serve",
    "serve/http",
    "serve/sessions",
    "__init__ async_translator signature",
    "serve/access serve/metrics serve/service serve/settings",
    "client",
    "protocol",
    "translator generator",
    "engine",
    "backends",
    "speech",
    "models",
    "captions",
    "decoding",
    "cores deadlines errors folders interrupt proxies tasks",
)
RANK = {name: rank for rank, layer in enumerate(LAYERS) for name in layer.split()}

#: The core, which uses no engine, web framework or event loop: packages and modules.
CORE = (
    "decoding",
    "errors",
    "interrupt",
    "captions/align",
    "captions/answer",
    "captions/events",
    "captions/ending",
    "captions/finals",
    "captions/state",
    "captions/metadata",
    "captions/sentence",
    "captions/stabilise",
    "captions/translation",
    "captions/words",
)
ALLOWED_IN_CORE = sys.stdlib_module_names - {"asyncio", "http", "socket", "socketserver", "wsgiref"}
#: Beside the package, and not in its wheel.
BESIDE = {"redraft_bench", "redraft_fanout", "redraft_train", "tests", "tools"}


def violations(root: Path) -> Iterator[str]:
    """Yield a sentence for each forbidden import in the package at ``root``, with file and line."""
    for path in sorted(root.rglob("*.py")):
        inside = path.relative_to(root).with_suffix("").parts
        room, place = room_of(inside), path.relative_to(root.parent)
        if room not in RANK:
            yield f"{place}: {room} is in no layer; add it to LAYERS in tools/check_layers.py"
            continue
        for line, name in imports(ast.parse(path.read_bytes(), str(path)), (PACKAGE, *inside[:-1])):
            top, _, rest = name.partition(".")
            if top in BESIDE:
                yield f"{place}:{line}: {room} imports {top}, which is not in the wheel"
            elif top != PACKAGE:
                if is_core(inside) and top not in ALLOWED_IN_CORE:
                    yield f"{place}:{line}: {room} imports {top}, and the core needs the standard library only"
            else:
                parts = tuple(rest.split("."))
                below = room_of(parts) if parts[0] in RANK else "__init__"
                if RANK[below] < RANK[room]:
                    yield f"{place}:{line}: {room} imports {below}, which lies above it"
                elif is_core(inside) and not is_core(parts):
                    yield f"{place}:{line}: {'.'.join(inside)} belongs to the core, and {rest} does not"


def room_of(inside: Sequence[str]) -> str:
    """Return the layer's room that has the module at this path inside the package."""
    floor = "/".join(inside[:2])
    return floor if floor in RANK else inside[0]


def is_core(inside: Sequence[str]) -> bool:
    """Whether the module at this path inside the package belongs to the core."""
    return inside[0] in CORE or "/".join(inside[:2]) in CORE


def imports(tree: ast.Module, package: tuple[str, ...]) -> Iterator[tuple[int, str]]:
    """Yield line and absolute dotted name of every import of a module in ``package``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = [*package[: len(package) - node.level + 1]] if node.level else []
            base += [node.module] if node.module else []
            yield from ((node.lineno, ".".join([*base, alias.name])) for alias in node.names)


if __name__ == "__main__":
    found = list(violations(Path(__file__).parents[1] / "src" / PACKAGE))
    print("\n".join(found) or "layers: every import points down")
    sys.exit(bool(found))
