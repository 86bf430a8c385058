"""The end of a command's process."""

import subprocess
import sys

SCRIPT = """
import atexit
import gc
import sys

atexit.register(lambda: print(gc.get_freeze_count() > 0))  # what is registered first is called last
sys.argv = ["scoregate", "--help"]
from scoregate.cli.main import main

main()
"""


def test_a_command_that_ends_leaves_its_objects_to_no_last_collection():
    """With torch's, that takes a second."""
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True)

    assert "True" == done.stdout.splitlines()[-1]


def test_a_command_that_loaded_triton_prints_no_leaks():
    """Its bindings print each object that no collection has freed."""
    script = f"import triton._C.libtriton\n{SCRIPT}"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)

    assert ("False", "") == (done.stdout.splitlines()[-1], done.stderr)
