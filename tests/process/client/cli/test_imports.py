"""What importing the command costs."""

import subprocess
import sys


def test_other_commands_do_not_load_what_figures_need():
    """SciPy takes a second, and is an extra."""
    code = "import sys, scoregate.cli.main; print({'numpy', 'scipy', 'matplotlib'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=True)

    assert "set()\n" == done.stdout
