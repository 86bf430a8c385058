"""Progress of a run with several workers: a line per tenth of a tier, and each failure as it comes."""

import time
from collections import Counter
from collections.abc import Sequence

import pytest

from tests.support.schedule import tier


def pytest_configure(config: pytest.Config) -> None:
    """Show progress if there are several workers, in the process that prints."""
    if config.getoption("numprocesses", None) and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Progress(config))


class Progress:
    """
    The plugin, for the process that prints.

    Attributes:
        of: tests in each tier.
        done: tests of each tier that have ended.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._begun = time.monotonic()
        self.of: Counter[str] = Counter()
        self.done: Counter[str] = Counter()

    def pytest_xdist_node_collection_finished(self, ids: Sequence[str]) -> None:
        """Count the tests; every worker collects the same."""
        self.of = Counter(map(tier, ids))

    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        """Print no dots."""
        return ("passed", "", "") if report.passed and report.when == "call" else None

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Print a failure at once, and a line when a tenth of its tier has ended."""
        if report.failed:
            self._line(f"failed: {report.nodeid}")
        if report.when != "teardown":
            return
        name = tier(report.nodeid)
        before, self.done[name] = self.done[name], self.done[name] + 1
        if 10 * before // self.of[name] < 10 * self.done[name] // self.of[name]:
            self._line(f"{name:8} {self.done[name]:4} of {self.of[name]}")

    def _line(self, text: str) -> None:
        share = self.done.total() / max(self.of.total(), 1)
        seconds = time.monotonic() - self._begun
        terminal = self._config.pluginmanager.get_plugin("terminalreporter")
        terminal.ensure_newline()
        terminal.write_line(f"[{share:4.0%} {seconds // 60:2.0f}:{seconds % 60:02.0f}] {text}")
