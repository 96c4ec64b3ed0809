"""Runs modules of the pages in node."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

from redraft.serve.http.pages import BREAK_RULES, WEB, break_rules
from tests.programs import program

#: Calls a function with each case.
SCRIPT = """
import { readFileSync } from "node:fs";
const { module, body, cases } = JSON.parse(readFileSync(0, "utf-8"));
const run = new Function("module", "given", body);
const found = await import(`./js/${module}.js`);
console.log(JSON.stringify(await Promise.all(cases.map((given) => run(found, given)))));
"""


def in_node(folder: Path, module: str, body: str, cases: list[Any]) -> Any:
    """What a function of a ``module`` of the page and a ``given`` case returns for each case."""
    shutil.copytree(WEB / "js", folder / "js")
    (folder / BREAK_RULES).write_bytes(break_rules())
    (folder / "package.json").write_text('{"type": "module"}')
    (folder / "run.js").write_text(SCRIPT)
    given = json.dumps({"module": module, "body": body, "cases": cases})
    command = [program("node"), "run.js"]
    done = subprocess.run(command, input=given, capture_output=True, text=True, cwd=folder, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
