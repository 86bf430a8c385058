"""The runtime on Ray Serve: models as replicas in other processes, on one machine or several."""

import os

# Read by Ray when it is imported.  Nothing is reported to anybody unless the operator asks for it.
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")

# `ray start` asks for a token where there is one, and so do we: Ray itself would join without.
TOKENS = ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH")
if any(name in os.environ for name in TOKENS) or os.path.exists(os.path.expanduser("~/.ray/auth_token")):
    os.environ.setdefault("RAY_AUTH_MODE", "token")
