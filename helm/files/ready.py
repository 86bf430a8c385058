"""Print a release's readiness response; exit with status 1 if it is not ready or cannot be reached."""

import os
import sys
from urllib.error import HTTPError
from urllib.request import urlopen

try:
    with urlopen(os.environ["SERVICE"] + "/readyz", timeout=10) as answer:
        print(answer.read().decode())
except HTTPError as error:
    sys.exit(error.read().decode())
except OSError as error:
    sys.exit(str(error))
