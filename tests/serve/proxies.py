"""nginx in front of servers of the tests."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.programs import program
from tests.serve.servers import SECONDS


@contextmanager
def nginx(folder: Path, configuration: Callable[[int], str]) -> Iterator[str]:
    """An nginx on a free port of this machine; its address.

    Args:
        configuration: returns it, given the port.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    kept = "".join(f"{name}_temp_path {folder};" for name in ("client_body", "proxy", "fastcgi", "scgi", "uwsgi"))
    file = folder / "nginx.conf"
    text = configuration(port).replace("http {", f"http {{ access_log off; {kept}")
    file.write_text(f"daemon off; pid {folder}/pid; error_log stderr;\n{text}", encoding="utf-8")
    command = [program("nginx"), "-c", str(file), "-p", str(folder)]
    tested = subprocess.run([*command, "-t"], capture_output=True, text=True, timeout=SECONDS)
    assert tested.returncode == 0, tested.stderr
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        until = time.monotonic() + SECONDS
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except ConnectionRefusedError:
                assert time.monotonic() < until
                time.sleep(0.02)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(SECONDS)
