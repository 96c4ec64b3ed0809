"""A vLLM server on this machine's CPU, for measurements and tests."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import httpx2

#: Variable with the interpreter of an environment with vLLM.
PYTHON_VARIABLE = "REDRAFT_VLLM_PYTHON"
#: The proposer with which a server verifies drafts through ``redraft-vllm``.
PROPOSER = "redraft_vllm.proposer.DraftProposer"
#: Timeout of a server's start in seconds, on a busy machine.
PATIENCE = 600


def with_drafts(tokens: int = 100) -> list[str]:
    """Return the arguments of a server with the plug-in; a step verifies at most ``tokens`` draft tokens."""
    config = {"method": "custom_class", "model": PROPOSER, "num_speculative_tokens": tokens}
    return ["--speculative-config", json.dumps(config)]


class VllmServer:
    """A server for the model in a folder; it can be stopped and started again on the same port.

    Args:
        folder: the model's folder.
        name: name of the model in requests.
        more: further arguments of the server.
        environment: further environment variables.
        key: API key that requests must send; empty for none.
        python: interpreter of vLLM's environment; None uses `PYTHON_VARIABLE`.
    """

    def __init__(
        self,
        folder: Path,
        name: str,
        more: Sequence[str] = (),
        environment: dict[str, str] | None = None,
        key: str = "",
        python: str | None = None,
    ) -> None:
        self.folder, self.name, self.key = folder, name, key
        self._more, self._environment = more, environment or {}
        self._python = python or os.environ[PYTHON_VARIABLE]
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.log = folder.with_name(f"vllm-{self.port}.log")
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Scheme, host and port."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def model(self) -> str:
        """Value for ``--model``."""
        return f"vllm:{self.url}/{self.name}"

    def start(self) -> None:
        """Start the server and wait until it responds.

        Raises:
            RuntimeError: it does not start; the message ends with its log.
        """
        command = [self._python, "-m", "vllm.entrypoints.openai.api_server", "--model", str(self.folder)]
        command += ["--served-model-name", self.name, "--host", "127.0.0.1", "--port", str(self.port)]
        command += [
            "--dtype",
            "float32",
            "--enforce-eager",
            *(["--api-key", self.key] if self.key else []),
            *self._more,
        ]
        own = {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind", "OMP_NUM_THREADS": "1"}
        own |= {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1"}
        # Hides the caller's virtual environment.
        inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(
                command, env=inherited | own | self._environment, stdout=output, stderr=output, start_new_session=True
            )
        begun = time.monotonic()
        while not self._answers():
            if self.process.poll() is not None or time.monotonic() - begun > PATIENCE:
                self.kill()
                raise RuntimeError("vLLM did not start:\n" + self.log.read_text(errors="replace")[-6000:])
            time.sleep(0.5)

    def steps(self) -> int:
        """Return the number of passes that the engine has run."""
        for line in httpx2.get(f"{self.url}/metrics").text.splitlines():
            if line.startswith("vllm:iteration_tokens_total_count"):
                return round(float(line.split()[-1]))
        return 0

    def cpu_seconds(self) -> float:
        """What all of its processes have computed, whatever else runs on the machine; Linux only."""
        ticks = 0
        for path in Path("/proc").glob("[0-9]*/stat"):
            with suppress(OSError):
                # The name before these fields may have spaces; the sixth field of all is the session.
                fields = path.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
                if self.process is not None and int(fields[3]) == self.process.pid:
                    ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def _answers(self) -> bool:
        try:
            return httpx2.get(f"{self.url}/health").status_code == 200
        except httpx2.TransportError:
            return False

    def kill(self) -> None:
        """Kill the server and the processes that it has started."""
        if self.process is not None:
            with suppress(ProcessLookupError):  # it has ended already
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(60)
            self.process = None
