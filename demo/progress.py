"""What the commands are at: one line on stderr."""

import sys


def progress(line: str) -> None:
    """Show *line* in place of the one before; where stderr is a file, only lines that stay."""
    if sys.stderr.isatty():
        print(f"\r\033[K{line}", end="", file=sys.stderr, flush=True)
    elif line.endswith("\n"):
        print(line, end="", file=sys.stderr, flush=True)
