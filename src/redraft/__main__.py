"""``python -m redraft``: the command line."""

from redraft.cli import main

if __name__ == "__main__":
    main()
