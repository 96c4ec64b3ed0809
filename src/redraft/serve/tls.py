"""TLS: the operator's certificate, or one that the server makes for itself, with the program ``openssl``."""

from __future__ import annotations

import hashlib
import ssl
import subprocess
import time
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from redraft.errors import OptionError
from redraft.folders import cache_folder
from redraft.serve.settings import ServeSettings, ip_of

#: Days for which a certificate is valid, and for which it is used again: browsers forget an exception with it.
_VALID, _USED = 365, 300
_SECONDS = 60.0


def uses_tls(settings: ServeSettings) -> bool:
    """Whether the server speaks https."""
    return settings.tls is not None or settings.tls_cert is not None


def context_of(settings: ServeSettings, names: Collection[str]) -> ssl.SSLContext | None:
    """Return what TLS needs; None if the server speaks plain HTTP.

    Args:
        names: the server's host names and addresses, for which a certificate of its own is valid.

    Raises:
        OptionError: a file cannot be used, or no certificate could be made.
    """
    cert, key = settings.tls_cert, settings.tls_key
    if not uses_tls(settings):
        if key is not None:
            raise OptionError("needs tls_cert, the file with the certificate", "tls_key")
        return None
    if cert is None:
        cert = key = _own(sorted({"localhost", "127.0.0.1", "::1", *names}))
    made = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        made.load_cert_chain(cert, key, password="")  # of an encrypted key it would be asked for in the terminal
    except (OSError, ValueError) as error:
        raise OptionError(f"{str(cert)!r} and its key cannot be used: {error}", "tls_cert") from None
    return made


def _own(names: Collection[str]) -> Path:
    """Return a file with a self-signed certificate and its key, kept from start to start."""
    if (cache := cache_folder()) is None:
        raise OptionError("self-signed needs a home directory, where its certificate is kept", "tls")
    folder = cache / "tls"
    path = folder / f"{hashlib.sha256(' '.join(names).encode()).hexdigest()[:16]}.pem"
    with suppress(OSError):
        if time.time() - path.stat().st_mtime < 86_400 * _USED:
            return path
    kinds = ",".join(f"{'IP' if ip_of(name) else 'DNS'}:{name}" for name in names)
    ask = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    ask += ["-days", str(_VALID), "-subj", "/CN=Redraft", "-addext", f"subjectAltName={kinds}"]
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with TemporaryDirectory(dir=folder) as fresh:  # only its owner can read it
            files = [Path(fresh) / name for name in ("key", "cert")]
            ask += ["-keyout", str(files[0]), "-out", str(files[1])]
            subprocess.run(ask, check=True, capture_output=True, timeout=_SECONDS)
            both = Path(fresh) / "both"
            both.touch(mode=0o600)
            both.write_bytes(b"".join(file.read_bytes() for file in files))
            both.replace(path)
    except (OSError, subprocess.SubprocessError) as error:
        raise OptionError(f"self-signed needs the program openssl, which failed: {error}", "tls") from None
    return path
