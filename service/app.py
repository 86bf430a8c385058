"""The FastAPI app around a service."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request
from fastapi.openapi.utils import get_openapi
from starlette.exceptions import HTTPException
from starlette.responses import Response

from service import __version__
from service.answers import Problem
from service.documents import components
from service.errors import Malformed, MethodNotAllowed, NotFound, ScoregateError
from service.keys import Keys
from service.middleware import Edge
from service.problems import problem
from service.routes import metrics_router, router
from service.schemas import QuestionsRequest, ScoreRequest
from service.service import Service
from service.serving.runtime import Loaded
from service.settings import Settings


def create_app(
    settings: Settings,
    models: Mapping[str, Loaded],
    on_broken: Callable[[str], None] = lambda reason: None,
) -> FastAPI:
    """
    An app that serves *models*; its lifespan opens the service and closes it again.

    *on_broken* is told, in one line, when a device can't go on and the process should end.
    """
    service = Service(settings, models, on_broken)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with service:
            app.state.service = service
            yield

    app = FastAPI(title="Scoregate", version=__version__, lifespan=lifespan, redirect_slashes=False)
    app.include_router(router)
    if settings.server.metrics_port is None:
        app.include_router(metrics_router)
    app.add_middleware(
        Edge,
        keys=Keys.read(settings.server.api_keys_file),
        body_limit=settings.server.body_limit_mb * 2**20,
        instruments=service.instruments,
    )
    app.add_exception_handler(ScoregateError, failed)
    app.add_exception_handler(HTTPException, routed_wrong)
    app.openapi = lambda: openapi(app)  # type: ignore[method-assign]
    return app


async def failed(request: Request, error: Exception) -> Response:
    """One of our errors."""
    assert isinstance(error, ScoregateError)
    request.app.state.service.instruments.count_rejection(error)
    return problem(error, request.state.request_id)


async def routed_wrong(request: Request, error: Exception) -> Response:
    """Starlette's own errors, in our form."""
    assert isinstance(error, HTTPException)
    kinds: dict[int, type[ScoregateError]] = {404: NotFound, 405: MethodNotAllowed}
    known = kinds.get(error.status_code, Malformed)()
    answer = problem(known, request.state.request_id)
    answer.headers.update(error.headers or {})
    return answer


def openapi(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document, with the bodies that the routes read themselves."""
    if app.openapi_schema is None:
        app.openapi_schema = get_openapi(title=app.title, version=app.version, routes=app.routes)
        schemas = app.openapi_schema.setdefault("components", {}).setdefault("schemas", {})
        schemas |= components(ScoreRequest, QuestionsRequest, Problem)
    return app.openapi_schema
