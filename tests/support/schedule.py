"""The order of the tests, and which of them share a worker."""

from pathlib import Path

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

# The slow servers of `external` start while `unit` and `app` run.  Their tests mostly wait, so those of one
# server run beside what computes.  The files of `process` are short: both workers end at about the same time.
ORDER = (
    *("unit", "app"),
    *("external/ray", "external/deploy", "external/helm", "external/nginx", "external/prometheus", "models"),
    *("external/vllm", "external/chromium", "process"),
    "costs",
)


def tier(nodeid: str) -> str:
    """Return the tier of a test: its folder below `tests/`."""
    return Path(nodeid.partition("::")[0]).parts[1]


def group(nodeid: str) -> str:
    """Return the name of the tests that share a worker: those of an external server, or of a file."""
    path = Path(nodeid.partition("::")[0])
    return path.parts[2] if path.parts[1] == "external" else str(path)


def rank(nodeid: str) -> int:
    """Return the place in the order of a test's tier, or of its external server."""
    name = tier(nodeid)
    return ORDER.index(f"{name}/{group(nodeid)}" if name == "external" else name)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort by that order."""
    items.sort(key=lambda item: rank(item.nodeid))


class Groups(LoadScopeScheduling):
    """
    A scheduler that makes servers and fixtures of files once: it hands out whole groups, in the order above.

    xdist's own `--dist loadgroup` has no effect with pytest 9.2: it writes the groups to `Item._nodeid`,
    which is not read any more.
    """

    def _split_scope(self, nodeid: str) -> str:
        return group(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Groups:
    """Return the scheduler."""
    return Groups(config, log)
