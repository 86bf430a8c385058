"""The import of a model's loader."""

import gc
import sys

import pytest

from models.core.family import found

# It counts the passes of the garbage collector while it is imported.
FULL = """
import gc

before = gc.get_stats()
kept = [[] for _ in range(100_000)]
passes = sum(now["collections"] - then["collections"] for then, now in zip(before, gc.get_stats()))

def load(): ...
"""
BROKEN = "raise ImportError('no torch')\n"


@pytest.fixture(autouse=True)
def modules(monkeypatch, tmp_path):
    """A module of many objects, and one that cannot be imported."""
    for name, text in {"full_of_objects": FULL, "broken_loader": BROKEN}.items():
        (tmp_path / f"{name}.py").write_text(text, "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sys.modules.pop("full_of_objects", None)


def test_no_pass_of_the_garbage_collector_delays_the_import_of_a_loader():
    """What is imported stays; afterwards the collector is on again."""
    assert callable(found("full_of_objects:load"))
    assert 0 == sys.modules["full_of_objects"].passes
    assert gc.isenabled()


def test_the_garbage_collector_is_on_after_an_import_that_failed():
    """As after one that worked."""
    with pytest.raises(ImportError):
        found("broken_loader:load")

    assert gc.isenabled()


def test_a_garbage_collector_that_was_off_stays_off():
    """The caller turned it off."""
    gc.disable()
    try:
        found("full_of_objects:load")

        assert not gc.isenabled()
    finally:
        gc.enable()
