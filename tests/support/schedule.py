"""The order of the tests, and which of them share a worker."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

# The slow servers of `external` start while `unit` and `app` run.  Their tests mostly wait, so those of one
# server run beside what computes.  The files of `process` are short: all workers end at about the same time.
ORDER = (
    *("unit", "app"),
    *("external/ray", "external/deploy", "external/helm", "external/nginx", "external/prometheus", "models"),
    *("external/chromium", "external/vllm", "process"),
    "costs",
)

# Fixtures of `started.py` whose tests in `process` share a worker, with their files.  These groups come first
# of their tier, being the longest.  The fake service starts in no time: it may run in each worker.
SHARED = {
    "demo_service": (
        "tests/process/client/cli/test_page.py",
        "tests/process/client/cli/test_suite.py",
        "tests/process/client/cli/test_verify.py",
        "tests/process/client/test_load.py",
        "tests/process/docs/guides/test_benchmarks.py",
        "tests/process/docs/guides/test_surprising_scores.py",
        "tests/process/docs/test_profiles_page.py",
        "tests/process/test_end_to_end.py",
    ),
    "double": (
        "tests/process/client/test_failover.py",
        "tests/process/test_connections.py",
        "tests/process/test_disconnects.py",
        "tests/process/test_faults.py",
        "tests/process/test_slow_callers.py",
    ),
    "locked_service": (
        "tests/process/docs/guides/test_running.py",
        "tests/process/fuzz/test_contract.py",
    ),
    "redis_process": (
        "tests/process/test_doctor.py",
        "tests/process/questions/test_exchange.py",
        "tests/process/questions/test_stores.py",
        "tests/process/core/redis/test_client.py",
        "tests/process/core/redis/test_shared.py",
        "tests/process/serving/test_redis_cache.py",
        "tests/process/test_shared_sets.py",
    ),
}
# A server that the tests of a folder of `external` use, too: the files above follow on the worker of these.
WITH_EXTERNAL = {"locked_service": "chromium"}
SERVER_OF = {file: server for server, files in SHARED.items() for file in files}
# The longest files of `costs` come first, so that its two workers end at about the same time.
LONG = ("tests/costs/client/test_throughput_of_shards.py", "tests/costs/web/test_memory_of_video.py")


def tier(nodeid: str) -> str:
    """Return the tier of a test: its folder below `tests/`."""
    return nodeid.split("/", 2)[1]


def group(nodeid: str) -> str:
    """Return the name of the tests that share a worker: those of a server, or of a file."""
    file = nodeid.partition("::")[0]
    if tier(file) == "external":
        return file.split("/")[2]
    server = SERVER_OF.get(file, file)
    return WITH_EXTERNAL.get(server, server)


def rank(nodeid: str) -> tuple[int, bool]:
    """Return the place of a test's tier, or external server; shared servers and long files come first."""
    name, own = tier(nodeid), group(nodeid)
    return ORDER.index(f"{name}/{own}" if name == "external" else name), own not in (*SHARED, *LONG)


def files(argument: str, ignored: Sequence[str] = ()) -> list[str]:
    """Return the files of tests in a folder, without *ignored* ones; of no folder the argument itself."""
    folder = Path(argument)
    if not folder.is_dir():
        return [argument]
    # pytest would collect a file that is named, ignored or not.
    found = (path for path in folder.rglob("test_*.py") if not any(map(path.is_relative_to, ignored)))
    return sorted(map(str, found))


def pytest_configure(config: pytest.Config) -> None:
    """
    Have each worker begin to collect at another file.

    In the same order, all of them would compile each module at the same moment, in a fresh checkout.
    """
    worker = getattr(config, "workerinput", None)
    if worker:
        number, workers = int(worker["workerid"].removeprefix("gw")), worker["workercount"]
        ignored = config.getoption("ignore") or ()
        paths = list(dict.fromkeys(path for argument in config.args for path in files(argument, ignored)))
        begin = len(paths) * number // workers
        config.args = paths[begin:] + paths[:begin]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort by that order, whatever the order in which a worker has collected them."""
    items.sort(key=lambda item: (rank(item.nodeid), item.path))


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
