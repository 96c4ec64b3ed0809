"""Checks that imports inside Redraft point down one list of layers, and that the core needs the standard library only.

    python -m tools.check_layers

Every import counts: those inside functions and under ``TYPE_CHECKING`` too.  Written out, since the contracts of the
usual import checkers forbid packages by name, while "nothing but the standard library" forbids the next one as well.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

PACKAGE = "redraft"

#: Top to bottom.  A module imports from the layers below its own, and from its own.
LAYERS = (
    "cli __main__",
    "loadtest",
    "client",
    "serve",
    "bench",
    "viz",
    "eval",
    "train",
    "__init__",
    "translator",
    "streams talk",
    "backends",
    "models",
    "sentence",
    "prompt chat languages",
    "session",
    "stabilise",
    "methods",
    "method",
    "accept",
    "draft",
    "decode drive sampling cost",
    "loops",
    "types events",
    "segments",
    "errors interrupt",
)
RANK = {name: rank for rank, layer in enumerate(LAYERS) for name in layer.split()}

#: From here down: the core, which knows neither engine nor web framework nor event loop.
CORE = RANK["session"]
ALLOWED_IN_CORE = sys.stdlib_module_names - {"asyncio", "http", "socket", "socketserver", "wsgiref"}


def violations(root: Path) -> Iterator[str]:
    """One sentence for each wrong import of the package in ``root``, with file and line."""
    for path in sorted(root.rglob("*.py")):
        inside = path.relative_to(root).with_suffix("").parts
        module, place = inside[0], path.relative_to(root.parent)
        if module not in RANK:
            yield f"{place}: {module} is in no layer; add it to LAYERS in tools/check_layers.py"
            continue
        for line, name in imports(ast.parse(path.read_bytes(), str(path)), (PACKAGE, *inside[:-1])):
            top, _, rest = name.partition(".")
            if top == PACKAGE:
                first = rest.partition(".")[0]
                below = first if first in RANK else "__init__"
                if RANK[below] < RANK[module]:
                    yield f"{place}:{line}: {module} imports {below}, which lies above it"
            elif RANK[module] >= CORE and top not in ALLOWED_IN_CORE:
                yield f"{place}:{line}: {module} belongs to the core and imports {top}"


def imports(tree: ast.Module, package: tuple[str, ...]) -> Iterator[tuple[int, str]]:
    """Line and absolute dotted name of everything that a module of ``package`` imports."""
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
