"""Wire types that the dialects over HTTP share."""

from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request

from service.core.fields import Prompt
from service.core.settings.dialects import MOST_PICTURES
from service.web.dialects.scoring import Dialects
from service.web.endpoints import service_of
from service.web.server import body
from service.web.server.body import B

T = TypeVar("T")


class Loose(BaseModel):
    """A model that ignores unknown fields: formats of other projects grow."""

    # Pydantic refuses lone surrogates, which no response can hold, only in texts whose length is limited.
    model_config = ConfigDict(extra="ignore", strict=True, frozen=True, str_max_length=2**31)


# Limit of lists with an entry for each picture; entries beyond it are not validated.
LISTED = Field(min_length=1, max_length=MOST_PICTURES, fail_fast=True)
Prompts = Annotated[list[Prompt], LISTED]
Anything = Annotated[Any, Field(default=None)]


def dialects_of(request: Request) -> Dialects:
    """Return the dialects of this app."""
    dialects: Dialects = request.app.state.dialects
    return dialects


async def read(request: Request, wire: type[B]) -> B:
    """Read and check the JSON body.  Raises as `service.web.server.body.read_body`."""
    return await read_as(request, wire, lambda content: content)


async def read_as(request: Request, wire: type[B], convert: Callable[[B], T]) -> T:
    """Return what *convert* makes of the JSON body.  Raises as `service.web.server.body.read_as`."""
    converted, _ = await body.read_as(request, wire, service_of(request).settings.server, convert)
    return converted
