"""The command line: ``redraft --help`` teaches it.

The module of a command declares its options; engine, tables and displays are imported inside the command, so that help
and the short commands answer at once.
"""

from redraft.cli.main import main

__all__ = ["main"]
