"""`python -m scoregate.cli`."""

import sys

from scoregate.cli.main import main

sys.exit(main())
