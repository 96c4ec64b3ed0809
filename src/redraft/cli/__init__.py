"""The command line: ``redraft --help`` teaches it."""

from redraft.cli.main import main

__all__ = ["main"]
