"""The program ``redraft``, also as ``python -m redraft``."""

from __future__ import annotations

# What `signal` wraps: there already when Python starts, where `signal` takes a moment to import.
import _signal  # type: ignore[import-not-found]

# While the command line is imported, Ctrl-C ends the process without a traceback.
_handler = _signal.getsignal(_signal.SIGINT)
if _handler is _signal.default_int_handler:
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)

from redraft.cli import main  # noqa: E402

_signal.signal(_signal.SIGINT, _handler)

if __name__ == "__main__":
    main()
