"""The dialects over HTTP, by name."""

from collections.abc import Iterable, Iterator

from fastapi import APIRouter

from service.web.dialects import chat_judge, cosmos_rl, flow_factory, openrlhf, rerank, slime, unirl
from service.web.dialects.decisions import routes as decisions

# Those whose paths may begin with any metric come last.
ROUTERS = {
    "unirl": unirl.router,
    "cosmos_rl": cosmos_rl.router,
    "rerank": rerank.router,
    "decisions": decisions.router,
    "chat_judge": chat_judge.router,
    "openrlhf": openrlhf.router,
    "slime": slime.router,
    "flow_factory": flow_factory.router,
}
ON_OWN_PORT = {"rerank": rerank.on_own_port}  # routes that the public API uses


def routers(enabled: Iterable[str], *, own_port: bool = False) -> Iterator[APIRouter]:
    """Yield the routers of the *enabled* dialects; an *own_port* has more routes than the main one."""
    chosen = set(enabled)
    for name, router in ROUTERS.items():
        if name in chosen:
            yield router
            if own_port and name in ON_OWN_PORT:
                yield ON_OWN_PORT[name]
