"""The runtime on Ray Serve: models as replicas in other processes, on one machine or several."""

import os
import secrets

# Ray reads this when it is imported.  No usage is reported unless the operator enables it.
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
# Serve's router runs on the gateway's event loop: a thread of its own costs each call time (ADR 0017).
os.environ.setdefault("RAY_SERVE_RUN_ROUTER_IN_SEPARATE_LOOP", "0")

# `ray start` requires a token if there is one, and so does this process: Ray itself would join without.
TOKENS = ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH")
if any(name in os.environ for name in TOKENS) or os.path.exists(os.path.expanduser("~/.ray/auth_token")):
    os.environ.setdefault("RAY_AUTH_MODE", "token")


def keep_to_this_machine() -> None:
    """
    Restrict the cluster that this process starts to 127.0.0.1 and a token, a new one by default.

    Must be called before Ray is first imported.  The first variable is read on every system: without
    clusters, a node's address is the loopback's.  Serve's port of each replica listens on all addresses
    regardless, so only the token protects it.
    """
    os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
    if "RAY_AUTH_MODE" not in os.environ:
        os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
