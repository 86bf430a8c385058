"""The dialects over HTTP, by name."""

from collections.abc import Iterable, Iterator

from fastapi import APIRouter

from service.web.dialects import flow_factory, pairs, rerank, rerankers, unirl

# The one whose paths may begin with any metric comes last.
ROUTERS = {
    "unirl": [unirl.router],
    "rerank": [rerank.router, pairs.router, rerankers.router],
    "flow_factory": [flow_factory.router],
}
ON_OWN_PORT = {"rerank": [pairs.on_own_port]}  # what would be in the way of the public API


def routers(enabled: Iterable[str], *, own_port: bool = False) -> Iterator[APIRouter]:
    """The routes of those that are *enabled*, with all that an *own_port* has beside the main one."""
    chosen = set(enabled)
    for name, listed in ROUTERS.items():
        if name in chosen:
            yield from listed
            yield from ON_OWN_PORT.get(name, ()) if own_port else ()
