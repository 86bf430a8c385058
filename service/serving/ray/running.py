"""
Which replicas run, as Ray Serve tells the routers in this process.

Serve makes a router for each deployment that is asked here, from a copy of its class.  So what routers
learn is kept in this module, which is not copied.
"""

from collections.abc import Callable, Sequence
from threading import Lock

Listener = Callable[[Sequence[str]], None]

_lock = Lock()
_ids: dict[str, tuple[str, ...]] = {}
_listeners: dict[str, set[Listener]] = {}


def tell(deployment: str, ids: Sequence[str]) -> None:
    """The replicas of *deployment* that take groups from now on.  Called on Serve's own thread."""
    with _lock:
        _ids[deployment] = tuple(ids)
        listeners = list(_listeners.get(deployment, ()))
    for listener in listeners:
        listener(ids)


def listen(deployment: str, listener: Listener) -> Callable[[], None]:
    """Tell *listener* now and whenever they change, on any thread; the function returned ends that."""
    with _lock:
        _listeners.setdefault(deployment, set()).add(listener)
        ids = _ids.get(deployment, ())
    listener(ids)
    return lambda: _listeners[deployment].discard(listener)
