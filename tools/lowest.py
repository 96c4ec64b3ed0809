"""Install the lowest versions that pyproject.toml allows, for each extra alone, and use what the extra adds.

    python -m tools.lowest [EXTRA ...]

Needs uv.  llama.cpp is not compiled for it: the wheel that `make demo` has kept is installed.  The extra ``ray`` is
large, and left out unless it is named.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.request import Request, urlopen

from tools import setup_env

TALK = setup_env.SOURCES / "redraft" / "captions" / "talk" / "talk.ogg"
TINY = setup_env.SMALL_MODEL
TEXT = "Good morning.\n"
#: An address at which nothing listens.
NOBODY = "http://127.0.0.1:9"
_PORT = 8799
#: Seconds that a command may take.
_PATIENCE = 300


@dataclass(frozen=True, slots=True)
class Check:
    """What an extra is tried with.

    Attributes:
        extras: those to install together.
        command: arguments of ``redraft``; {text} and {folder} are a file and an empty folder.
        words: what it writes, to any output.
        modules: modules to import.
        package: folder of a package to install beside, perhaps with an extra.
    """

    extras: str
    command: str
    words: str
    modules: str = "redraft"
    package: str | None = None


CHECKS = {
    "": Check("", "translate {text} --input text --to de", "Guten Morgen."),
    "client": Check(
        "client", f"translate {{text}} --input text --to de --server {NOBODY}", "cannot be reached", "redraft.client"
    ),
    "hub": Check("hub", "models get qwen3-0.6b", "does not answer", "huggingface_hub"),
    "listen": Check("listen", f"listen {TALK} --to de", "final\tde\tHallo, alle zusammen."),
    "listen-sherpa": Check(
        "listen,listen-sherpa",
        f"listen {TALK} --to de --recogniser sherpa:kroko-en",
        "has not been downloaded yet",
        "sherpa_onnx",
    ),
    "listen-whisper": Check(
        "listen,listen-whisper",
        f"listen {TALK} --to de --recogniser whisper:{{folder}}",
        "is not a Whisper model",
        "faster_whisper",
    ),
    "detect": Check("detect", "translate {text} --input text --from auto --to de", "Guten Morgen.", "py3langid.langid"),
    "chinese": Check("chinese", "translate {text} --input text --to zh", "早上好。", "opencc"),
    "hf": Check("hf,gguf", f"translate {{text}} --input text --to de --model hf:{TINY}", "no chat template"),
    "remote": Check(
        "remote",
        f"translate {{text}} --input text --to de --model vllm:{NOBODY}/x",
        "cannot be reached",
        "redraft.backends.remote.backend",
    ),
    "serve": Check("serve", f"serve --port {_PORT}", "Guten Morgen."),
    "fanout": Check("serve", f"serve --port {_PORT}", "Guten Morgen.", "redraft_fanout.store", str(setup_env.FANOUT)),
    "ray": Check(
        "serve", f"serve --port {_PORT}", "Guten Morgen.", "redraft_fanout.ray_app", f"{setup_env.FANOUT}[ray]"
    ),
}


def main(names: Sequence[str]) -> int:
    """Try extras; return how many do not work."""
    failed = []
    for name in names or [name for name in CHECKS if name != "ray"]:
        with tempfile.TemporaryDirectory() as scratch:
            problem = tried(CHECKS[name], Path(scratch))
        print(f"{name or 'without extras'}: {problem or 'works'}", flush=True)
        failed += [name] * bool(problem)
    return len(failed)


def tried(check: Check, scratch: Path) -> str:
    """Return what fails with the lowest versions of an extra; empty if all works."""
    python = scratch / "venv" / "bin" / "python"
    uv = [sys.executable, "-m", "uv"]
    subprocess.run([*uv, "venv", "--quiet", "--python", sys.executable, scratch / "venv"], check=True)
    wanted = f"{setup_env.ROOT}[{check.extras}]" if check.extras else str(setup_env.ROOT)
    lowest = ["--resolution", "lowest-direct", *(f"--find-links={folder}" for folder in wheels())]
    installed = subprocess.run(
        [*uv, "pip", "install", "--quiet", "--python", python, *lowest, wanted, *filter(None, [check.package])],
        capture_output=True,
        text=True,
        check=False,
    )
    if installed.returncode:
        return f"cannot be installed: {installed.stderr}"
    (scratch / "text.txt").write_text(TEXT, encoding="utf-8")
    arguments = check.command.format(text=scratch / "text.txt", folder=scratch).split()
    for parts in (["-c", f"import {check.modules}"], ["-m", "redraft", *arguments]):
        command = [str(python), *parts]
        output = served(command) if command[-2:] == ["--port", str(_PORT)] else written(command)
        expected = check.words if "redraft" in command else ""
        if expected not in output or "Traceback" in output:
            return f"{' '.join(parts)} wrote, without {expected!r}:\n{output}"
    return ""


def wheels() -> list[Path]:
    """Return the folders with llama.cpp's wheel of this machine."""
    version = setup_env.engine_version(setup_env.ROOT / "constraints.txt")
    folders = [setup_env.PORTABLE, setup_env.wheel_folder(version, setup_env.build_environment(os.environ))]
    return [folder for folder in folders if folder.is_dir()]


def written(command: Sequence[str]) -> str:
    """Return what a command writes."""
    environment = {**os.environ, "HF_ENDPOINT": NOBODY}
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_PATIENCE, env=environment)
    return done.stdout + done.stderr


def served(command: Sequence[str]) -> str:
    """Return what a server answers to a request for a translation, and what it writes."""
    with tempfile.TemporaryFile("w+") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log)
        answer = ""
        try:
            deadline = time.monotonic() + _PATIENCE
            while not answer and server.poll() is None and time.monotonic() < deadline:
                time.sleep(1)
                with suppress(OSError):
                    answer = _translated()
        finally:
            server.terminate()
            server.wait()
        log.seek(0)
        return answer + log.read()


def _translated() -> str:
    body = json.dumps({"text": TEXT, "targets": ["de"]}).encode()
    request = Request(
        f"http://127.0.0.1:{_PORT}/v1/translate", body, {"Content-Type": "application/json"}, method="POST"
    )
    with urlopen(request, timeout=60) as response:
        return str(response.read().decode())


if __name__ == "__main__":
    sys.exit(min(1, main(sys.argv[1:])))
