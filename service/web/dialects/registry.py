"""The dialects over HTTP, by name."""

from collections.abc import Iterable, Iterator

from fastapi import APIRouter

from service.web.dialects import flow_factory, pairs, rerank, rerankers, unirl
from service.web.dialects.chat_judge import routes as chat_judge
from service.web.dialects.decisions import routes as decisions

# Flow-Factory comes last, since its paths may begin with any metric.
ROUTERS = {
    "unirl": [unirl.router],
    "rerank": [rerank.router, pairs.router, rerankers.router],
    "decisions": [decisions.router],
    "chat_judge": [chat_judge.router],
    "flow_factory": [flow_factory.router],
}
ON_OWN_PORT = {"rerank": [pairs.on_own_port]}  # routes that the public API uses


def routers(enabled: Iterable[str], *, own_port: bool = False) -> Iterator[APIRouter]:
    """Yield the routers of the *enabled* dialects; an *own_port* has more routes than the main one."""
    chosen = set(enabled)
    for name, listed in ROUTERS.items():
        if name in chosen:
            yield from listed
            yield from ON_OWN_PORT.get(name, ()) if own_port else ()
