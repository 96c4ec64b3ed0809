"""llama.cpp's own server, ``llama-server``, with its cache of prompts and its drafts by ``ngram-mod``.

``ngram-mod`` is a pool of hashes that all requests share: after every n-gram it remembers the next token.  It learns a
prompt when a request begins, and an output once its newest part is 32 tokens long, together with the end of the prompt
that makes its first n-gram.  With ``--spec-default``, it drafts after 24 tokens that repeat, and only if 48 more are
known, which sentences hardly ever have.

The server is the program of that name on the path, or the one that `PROGRAM` names; build it from the sources of
llama-cpp-python to compare with the same llama.cpp.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import IO, Any, Final
from urllib.error import URLError
from urllib.request import Request, urlopen

from redraft.backends.options import LlamaOptions
from redraft.cores import usable_cores
from redraft.errors import CapabilityError, ModelError
from redraft.models.disk import check_gguf
from redraft_bench.bench.peers.engine import Generated
from redraft_bench.eval.record import PassRecord

#: Environment variable with the path of the program.
PROGRAM: Final = "REDRAFT_LLAMA_SERVER"
#: Most seconds until a model is loaded, until one request is answered, and until the server has ended.
_LOADED, _ANSWERED, _ENDED = 120.0, 600.0, 10.0
#: Longest draft of ``ngram-mod``, the server's default.
_LONGEST = 64


class LlamaServer:
    """A server of its own with one slot, on a free port of this machine.

    Args:
        path: the GGUF file.
        options: supplies context length, threads and GPU layers.
        ends: ids that end an output.
        ngram: tokens that are looked up in the pool; the shortest draft has twice as many.  24 is ``--spec-default``, 0
            drafts nothing.

    Raises:
        CapabilityError: there is no such program.
        ModelError: the file is missing or broken, or the server does not load it.
    """

    def __init__(self, path: Path, options: LlamaOptions, ends: frozenset[int], ngram: int) -> None:
        check_gguf(path)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        threads = str(options.threads or usable_cores())
        arguments = {
            "--model": str(path),
            "--host": "127.0.0.1",
            "--port": str(port),
            "--ctx-size": str(options.context_length),
            "--threads": threads,
            "--threads-batch": threads,
            "--gpu-layers": str(options.gpu_layers),
            "--parallel": "1",
        }
        if ngram:
            arguments |= {
                "--spec-type": "ngram-mod",
                "--spec-ngram-mod-n-match": str(ngram),
                "--spec-ngram-mod-n-min": str(2 * ngram),
                "--spec-ngram-mod-n-max": str(_LONGEST),
            }
        self._ends, self._address = ends, f"http://127.0.0.1:{port}"
        command = [program(), *(word for pair in arguments.items() for word in pair)]
        with tempfile.TemporaryFile() as log:
            self._server = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
            try:
                self._wait(path, log)
            except BaseException:
                self.close()
                raise

    def _wait(self, path: Path, log: IO[bytes]) -> None:
        """Wait until the model is loaded."""
        latest = time.monotonic() + _LOADED
        while time.monotonic() < latest and self._server.poll() is None:
            try:
                with urlopen(f"{self._address}/health", timeout=_ENDED):
                    return
            except (URLError, OSError):
                time.sleep(0.05)
        log.seek(0)
        said = log.read().decode(errors="replace").strip().splitlines()
        raise ModelError(f"llama-server does not load {str(path)!r}: {said[-1] if said else 'it says nothing'}")

    def generate(self, prompt: tuple[int, ...], limit: int) -> Generated:
        """Decode greedily after ``prompt``, up to ``limit`` tokens.

        The server tells how many tokens it has drafted and accepted, and not in which pass: passes after the first one
        are given equal shares.
        """
        before, started = self._processor_time(), time.perf_counter()
        wanted = {"prompt": prompt, "n_predict": limit, "temperature": 0.0, "return_tokens": True, "cache_prompt": True}
        request = Request(
            f"{self._address}/completion", json.dumps(wanted).encode(), {"Content-Type": "application/json"}
        )
        with urlopen(request, timeout=_ANSWERED) as answer:
            found: dict[str, Any] = json.load(answer)
        seconds, timings = time.perf_counter() - started, found["timings"]
        tokens = tuple(token for token in found["tokens"] if token not in self._ends)
        return Generated(
            tokens,
            found["stop_type"] == "eos",
            seconds,
            (timings["prompt_ms"] + timings["predicted_ms"]) / 1e3,
            _passes(len(prompt), timings),
            elsewhere=self._processor_time() - before,
        )

    def _processor_time(self) -> float:
        """Return the processor time of the server so far in seconds; 0 where the system does not tell it."""
        try:
            fields = Path(f"/proc/{self._server.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        except OSError:
            return 0.0
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def close(self) -> None:
        """End the server."""
        self._server.terminate()
        try:
            self._server.wait(_ENDED)
        except subprocess.TimeoutExpired:
            self._server.kill()
            self._server.wait()


def program() -> str:
    """Return the path of the server.  Raises `CapabilityError` if there is none."""
    found = os.environ.get(PROGRAM) or shutil.which("llama-server")
    if not found:
        raise CapabilityError(
            f"peer 'llama-server' needs that program of llama.cpp on the path, or its path in {PROGRAM}"
        )
    return found


def server_version() -> str:
    """Return the program with its version, such as ``llama-server 8020``.  Raises `CapabilityError` without one."""
    answer = subprocess.run([program(), "--version"], capture_output=True, text=True, timeout=_LOADED, check=False)
    words = (answer.stdout + answer.stderr).partition("version: ")[2].split()
    return f"llama-server {words[0] if words else 'of an unknown version'}"


def _passes(prompt: int, timings: dict[str, Any]) -> tuple[PassRecord, ...]:
    drafted, accepted = timings.get("draft_n", 0), timings.get("draft_n_accepted", 0)
    later = timings["predicted_n"] - accepted - 1
    first = PassRecord(prompt - timings["prompt_n"], timings["prompt_n"], 0, 0, 0)
    found, cached = [first], prompt
    for number in range(later):
        depth, kept = (count * (number + 1) // later - count * number // later for count in (drafted, accepted))
        found.append(PassRecord(cached, depth + 1, depth, depth, kept))
        cached += kept + 1
    return tuple(found)
