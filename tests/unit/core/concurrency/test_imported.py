"""Libraries that another thread may be importing."""

import sys
import threading

from service.core.concurrency.imports import imported

MODULE = """
from tests.unit.core.concurrency import test_imported as test

test.begun.set()
test.go_on.wait(10)
VALUE = 1
"""
begun, go_on = threading.Event(), threading.Event()


def test_a_module_is_there_once_its_import_has_ended(tmp_path, monkeypatch):
    """A part of it would lack names."""
    (tmp_path / "slowly_imported.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert imported("slowly_imported") is None
    thread = threading.Thread(target=__import__, args=("slowly_imported",))
    thread.start()
    begun.wait(10)
    assert "slowly_imported" in sys.modules
    assert imported("slowly_imported") is None
    go_on.set()
    thread.join()
    module = imported("slowly_imported")
    monkeypatch.delitem(sys.modules, "slowly_imported")

    assert module is not None
    assert 1 == module.VALUE
