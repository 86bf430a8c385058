"""
The running replicas, as published by the routers in this process.

Serve makes a router for each deployment that is called, from a copy of its class.  Its replicas are kept
in this module, which is not copied (ADR 0017).
"""

from collections.abc import Callable, Sequence
from threading import Lock

ReplicaListener = Callable[[Sequence[str]], None]

_lock = Lock()
_ids: dict[str, tuple[str, ...]] = {}
_listeners: dict[str, set[ReplicaListener]] = {}


def publish(deployment: str, ids: Sequence[str]) -> None:
    """Set the running replicas of *deployment*, and call its listeners.  Runs on Serve's event loop."""
    with _lock:
        _ids[deployment] = tuple(ids)
        listeners = list(_listeners.get(deployment, ()))
    for listener in listeners:
        listener(ids)


def listen(deployment: str, listener: ReplicaListener) -> Callable[[], None]:
    """Call *listener* now and after each change, on any thread.  Returns a function that ends this."""
    with _lock:
        _listeners.setdefault(deployment, set()).add(listener)
        ids = _ids.get(deployment, ())
    listener(ids)
    return lambda: _listeners[deployment].discard(listener)
