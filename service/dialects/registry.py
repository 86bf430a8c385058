"""The dialects over HTTP, by name."""

from collections.abc import Iterable, Iterator

from fastapi import APIRouter

from service.dialects.flow_factory import router as flow_factory
from service.dialects.rerank import router as rerank
from service.dialects.unirl import router as unirl

# The one whose paths may begin with any metric comes last.
ROUTERS = {"unirl": unirl, "rerank": rerank, "flow_factory": flow_factory}


def routers(enabled: Iterable[str]) -> Iterator[APIRouter]:
    """The routes of those that are *enabled*."""
    chosen = set(enabled)
    return (router for name, router in ROUTERS.items() if name in chosen)
