"""The program ``redraft``, also as ``python -m redraft``."""

from __future__ import annotations

# The C module behind `signal`, which is loaded at start-up; importing `signal` takes a moment.
import _signal  # type: ignore[import-not-found]

# Ctrl-C during the imports ends the process without a traceback.
_handler = _signal.getsignal(_signal.SIGINT)
if _handler is _signal.default_int_handler:
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)

from redraft.cli import main  # noqa: E402

_signal.signal(_signal.SIGINT, _handler)

if __name__ == "__main__":
    main()
