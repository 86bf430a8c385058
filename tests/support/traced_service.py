"""
The service with a trace of its functions: `python -m tests.support.traced_service FILE ...`.

SIGUSR1 begins a trace, and SIGUSR2 writes it to FILE as JSON; what follows FILE is the service's own.
"""

import itertools
import json
import signal
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Any

from tests.support.paths import ROOT

OURS = tuple(f"{ROOT / package}/" for package in ("service", "models"))


class Trace:
    """The calls of functions of the service and its models, in all threads that begin after `start`."""

    def __init__(self, path: Path) -> None:
        self._path, self._on = path, False
        self._calls: list[tuple[str, str]] = []

    def start(self) -> None:
        """Take the two signals, and see the calls of this thread and of those to come."""
        signal.signal(signal.SIGUSR1, self._begin)
        signal.signal(signal.SIGUSR2, self._end)
        threading.setprofile(self._called)
        sys.setprofile(self._called)

    def _called(self, frame: FrameType, event: str, arg: Any) -> None:
        code = frame.f_code
        if self._on and event == "call" and code.co_filename.startswith(OURS) and code.co_name[0] != "<":
            self._calls.append((code.co_filename, code.co_qualname))

    def _begin(self, *_: Any) -> None:
        self._calls, self._on = [], True

    def _end(self, *_: Any) -> None:
        self._on = False
        files = [file for file, _ in self._calls]
        changes = 1 + sum(file != last for last, file in itertools.pairwise(files))
        counts = {"functions": len({*self._calls}), "files": len({*files}), "changes": changes}
        whole = self._path.with_suffix(".part")
        whole.write_text(json.dumps(counts), "utf-8")
        whole.rename(self._path)


def main() -> None:
    """Start the trace and the service."""
    from scoregate_server import main as serve

    path = Path(sys.argv.pop(1))
    Trace(path).start()
    serve()


if __name__ == "__main__":
    main()
