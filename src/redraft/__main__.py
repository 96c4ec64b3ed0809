"""The program ``redraft``, also as ``python -m redraft``."""

from __future__ import annotations

# The C module behind `signal`, which is loaded at start-up; importing `signal` takes a moment.
import _signal  # type: ignore[import-not-found]

# Ctrl-C ends the process until a command has something to finish (`redraft.interrupt.raises`): an exception would print
# a traceback out of an import or a callback of llama.cpp.
if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)

from redraft.cli import main

if __name__ == "__main__":
    main()
