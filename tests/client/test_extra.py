"""The client's dependencies, and the extra that its error names if they are missing."""

from __future__ import annotations

import subprocess
import sys

from redraft.errors import install

#: The packages of the extra, what they need, and the default installation's for names of languages.
NEEDED = {"annotated_types", "pydantic", "pydantic_core", "typing_extensions", "typing_inspection", "websockets"}
LANGUAGES = {"iso639", "langcodes"}


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=200)


def test_extra_is_named() -> None:
    found = run("import sys; sys.modules['websockets'] = None; import redraft.client")
    assert found.returncode == 1
    assert found.stderr.splitlines()[-1].endswith(f"which is not installed: {install('client')}")


def test_needs_nothing_else() -> None:
    listed = "print(*{name.partition('.')[0] for name in {*sys.modules} - before} - {*sys.stdlib_module_names})"
    found = run(f"import sys; before = {{*sys.modules}}; import redraft.client, redraft.protocol; {listed}")
    assert {name for name in found.stdout.split() if not name.startswith("_")} - NEEDED - LANGUAGES == {"redraft"}, (
        found.stderr
    )
