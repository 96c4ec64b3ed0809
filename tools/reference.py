"""The table of names on the first page of the API reference, whose other pages are complete only in the built site."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

#: Folders with packages.
SOURCES = ("src", "packages/redraft-bench/src")


def names_table(root: Path) -> str:
    """Return a section for each page in docs/api: modules with their files, and their public names.

    Raises:
        ValueError: a page names something that is not in the sources.
    """
    parts = []
    for page in sorted((root / "docs" / "api").glob("*.md")):
        text = page.read_text(encoding="utf-8")
        modules = re.findall(r"^::: (\S+)(?:\n    options:\n      members: \[(.*)\])?", text, re.MULTILINE)
        if modules:
            title = text.partition("\n")[0].removeprefix("# ")
            parts.append(f"### {title}\n\n" + "".join(_module(root, name, chosen) for name, chosen in modules))
    return "\n" + "\n".join(parts) + "\n"


def _module(root: Path, name: str, chosen: str) -> str:
    """Return a module or a name in one, and what it has: all public names, or those chosen."""
    path, member = _file(root, name)
    tree = ast.parse(path.read_text(encoding="utf-8"))
    wanted = {each.strip() for each in chosen.split(",")} if chosen else {member} - {""}
    lines = [f"- `{name}` in `{path.relative_to(root)}`: {_summary(tree)}\n"]
    for node in _public(tree, wanted):
        lines.append(f"    - `{node.name}`: {_summary(node)}\n")
    return "".join(lines)


def _file(root: Path, name: str) -> tuple[Path, str]:
    """Return the file of a module, and the name of its member, if it is one; packages have several files."""
    for folder in SOURCES:
        whole = root / folder / name.replace(".", "/")
        for place, member in ((whole, ""), (whole.parent, whole.name)):
            for path in (place.with_suffix(".py"), place / "__init__.py"):
                if path.is_file():
                    return path, member
    raise ValueError(f"there is no module {name}")


def _public(tree: ast.Module, wanted: set[str]) -> Iterator[ast.ClassDef | ast.FunctionDef]:
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and (
            node.name in wanted or not (wanted or node.name.startswith("_"))
        ):
            yield node


def _summary(node: ast.Module | ast.ClassDef | ast.FunctionDef) -> str:
    """Return the first paragraph of a docstring in one line, up to its first sentence."""
    words = " ".join((ast.get_docstring(node) or "").partition("\n\n")[0].split()).replace("``", "`")
    return re.split(r"(?<=\.) +(?=[A-Z])", words)[0].removesuffix(".")
