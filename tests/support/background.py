"""
Servers that take long to start: begun as soon as tests are collected, awaited by the fixtures that need them.

The process that collects without xdist, or the controller of its workers, starts one process of
tests/support/servers.py, which starts those whose tests were collected; Ray, which takes CPU time when idle,
when it is awaited.  nginx, Prometheus, Redis and Chromium start in less than two seconds, so that fixtures
start them.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.paths import ROOT

FOLDER = "TESTS_SERVERS_FOLDER"  # a variable, which xdist's workers inherit
STARTED_WITHIN_S = 280  # less than the limit for one test, so that the log is shown
NEEDED_BY = {  # in the order in which they are started, one after another
    "ray": "tests/external/ray/",
    "template": "tests/external/vllm/",
    "decisions": "tests/external/vllm/test_decisions.py",
    "llm": "tests/external/vllm/test_question_llm.py",
    "reward": "tests/external/vllm/test_reward.py",
    "vlm": "tests/external/vllm/test_vlm.py",
    "qwen_vlm": "tests/external/vllm/test_qwen_vlm.py",
    "embedder": "tests/external/vllm/test_embedder.py",
    "reranker": "tests/external/vllm/test_reranker.py",
}


class Background:
    """The hooks of the process that starts the servers."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="servers"))
        self._process: subprocess.Popen[bytes] | None = None
        os.environ[FOLDER] = str(self._folder)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Start what the tests of this process need."""
        if not session.config.option.collectonly:
            self._start(item.nodeid for item in session.items)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        """Start what the tests of the workers need, when the first of them has collected."""
        self._start(ids)

    def pytest_unconfigure(self) -> None:
        """End the servers, however the session ends."""
        if self._process:
            self._process.communicate()  # closes its stdin
        shutil.rmtree(self._folder, ignore_errors=True)

    def _start(self, ids: Iterable[str]) -> None:
        collected = tuple(ids)
        names = [
            name for name, place in NEEDED_BY.items() if any(each.startswith(place) for each in collected)
        ]
        if names and not self._process:
            command = [sys.executable, "-m", "tests.support.servers", str(self._folder), *names]
            with (self._folder / "log").open("wb") as log:
                # A group of its own, which Ctrl-C does not reach: it ends with its stdin.
                self._process = subprocess.Popen(
                    command,
                    cwd=ROOT,
                    stdin=subprocess.PIPE,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )


def pytest_configure(config: pytest.Config) -> None:
    """Register the hooks, but in workers, which find the servers through the variable."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Background())


@contextmanager
def background(name: str) -> Iterator[dict[str, Any]]:
    """Yield the description of a server once it answers, and have it ended: it takes CPU time when idle."""
    try:
        yield awaited(name)
    finally:
        Path(os.environ[FOLDER], f"{name}.over").touch()


def awaited(name: str) -> dict[str, Any]:
    """Return the description of a server once it answers."""
    folder = Path(os.environ[FOLDER])
    (folder / f"{name}.wanted").touch()
    described, failed = folder / f"{name}.json", folder / "failed"
    deadline = time.monotonic() + STARTED_WITHIN_S
    while not described.exists():
        assert not failed.exists(), failed.read_text()
        assert time.monotonic() < deadline, (folder / "log").read_text()
        time.sleep(0.1)
    found: dict[str, Any] = json.loads(described.read_text())
    return found
