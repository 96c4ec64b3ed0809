"""The command line; start with ``redraft --help``.

The module of a command declares its options and imports the engine, tables and displays inside the command, so that
help and short commands respond quickly.
"""

from redraft.cli.main import main

__all__ = ["main"]
