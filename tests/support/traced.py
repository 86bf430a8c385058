"""
The service or the client's command, with a trace of functions: `python -m tests.support.traced FILE ...`.

`FILE serve ...` is the service: SIGUSR1 begins a trace, and SIGUSR2 writes it to FILE as JSON.  Other
arguments are those of `scoregate`, which is called twice: first in a copy of the working directory, since it
continues what it finds; the trace is of the second call.
"""

import itertools
import json
import os
import shutil
import signal
import sys
import threading
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any

from tests.support.paths import ROOT

SERVICE = tuple(f"{ROOT / package}/" for package in ("service", "models"))
AROUND = f"{ROOT / 'service' / 'process'}/"  # it wakes ten times a second, whatever the requests
CLIENT = (f"{ROOT / 'client' / 'src'}/",)


class Trace:
    """The calls of functions in files below *ours*, in all threads that begin after `start`."""

    def __init__(self, path: Path, ours: tuple[str, ...]) -> None:
        self._path, self._ours, self._on = path, ours, False
        self._calls: list[tuple[str, str]] = []
        self._all = 0  # calls of any function, those of libraries too

    def start(self) -> None:
        """Take the two signals, and see the calls of this thread and of those to come."""
        signal.signal(signal.SIGUSR1, self.begin)
        signal.signal(signal.SIGUSR2, self.end)
        threading.setprofile(self._called)
        sys.setprofile(self._called)

    def _called(self, frame: FrameType, event: str, arg: Any) -> None:
        if not self._on or event != "call":
            return
        self._all += 1
        code = frame.f_code
        if (
            code.co_filename.startswith(self._ours)
            and not code.co_filename.startswith(AROUND)
            and code.co_name[0] != "<"
        ):
            self._calls.append((code.co_filename, code.co_qualname))

    def begin(self, *_: Any) -> None:
        self._calls, self._all, self._on = [], 0, True

    def end(self, *_: Any) -> None:
        self._on = False
        files = [file for file, _ in self._calls]
        changes = 1 + sum(file != last for last, file in itertools.pairwise(files))
        counts = {
            "functions": len({*self._calls}),
            "files": len({*files}),
            "changes": changes,
            "calls": self._all,
        }
        whole = self._path.with_suffix(".part")
        whole.write_text(json.dumps(counts), "utf-8")
        whole.rename(self._path)


def main() -> None:
    """Start the trace, and the service or the command."""
    path = Path(sys.argv.pop(1))
    if sys.argv[1] == "serve":
        from scoregate_server import main as serve

        del sys.argv[1]
        Trace(path, SERVICE).start()
        serve()
        return
    from scoregate.cli.main import main as scoregate

    folder = Path.cwd()
    with TemporaryDirectory() as copy:
        os.chdir(shutil.copytree(folder, Path(copy) / "copy"))
        scoregate()  # the first call imports
        os.chdir(folder)
    trace = Trace(path, CLIENT)
    trace.start()
    trace.begin()
    try:
        scoregate()
    finally:
        trace.end()


if __name__ == "__main__":
    main()
