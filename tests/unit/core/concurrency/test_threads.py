"""Work that the event loop has done on a thread."""

from tests.support.paths import ROOT


def test_the_service_has_one_way_to_an_executor():
    """Another one takes `StopIteration` to a future that refuses it; ruff cannot ban a loop's method."""
    files = (ROOT / "service").rglob("*.py")
    used = [file for file in files if ".run_in_executor(" in file.read_text("utf-8")]

    assert [ROOT / "service/core/concurrency/cpu_threads.py"] == used
