"""Measurement: metrics (``eval``), benchmark tables (``bench``), load tests (``loadtest``) and pictures (``viz``)."""


def install(extra: str) -> str:
    """Return the command that installs an extra of this package."""
    return f"pip install 'redraft-bench[{extra}]'"
