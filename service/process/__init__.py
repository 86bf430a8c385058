"""The command line and the process: ports, launch, shutdown."""

import os

STOPPED, WRONG, BROKEN, LATER = 0, 2, 3, os.EX_TEMPFAIL
"""
Exit statuses: stopped by a signal; the configuration has to be changed by a person; a device broke while
serving; the configuration cannot be served yet (75).
"""
