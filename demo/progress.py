"""Progress of the commands: one line on stderr."""

import sys


def progress(line: str) -> None:
    """
    Replace the line before by *line*; if stderr is not a terminal, print only lines that end in a newline.
    """
    if sys.stderr.isatty():
        print(f"\r\033[K{line}", end="", file=sys.stderr, flush=True)
    elif line.endswith("\n"):
        print(line, end="", file=sys.stderr, flush=True)
