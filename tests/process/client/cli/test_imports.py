"""What importing the command costs."""

import subprocess
import sys

CODE = """
import sys
from contextlib import suppress

import scoregate.cli.main

with suppress(SystemExit):
    scoregate.cli.main.main(["bench", "--help"])
print({"numpy", "scipy", "matplotlib"} & {*sys.modules})
"""


def test_other_commands_do_not_load_what_figures_need():
    """SciPy takes a second, and is an extra; the list of benchmarks imports none of their files."""
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, encoding="utf-8", check=True)

    assert "gecko2k" in done.stdout
    assert "set()" == done.stdout.splitlines()[-1]
