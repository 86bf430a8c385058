"""Wire types that the dialects over HTTP share."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request

from service.core.fields import Prompt
from service.core.settings.dialects import MOST_PICTURES
from service.web.dialects.scoring import Dialects
from service.web.routing import service_of
from service.web.server import body
from service.web.server.body import B


class Loose(BaseModel):
    """Ignores fields that it does not know: other people's formats grow."""

    model_config = ConfigDict(extra="ignore", strict=True, frozen=True)


# Of lists with an entry for each picture: of one that is longer, no more entries than these are looked at.
LISTED = Field(min_length=1, max_length=MOST_PICTURES, fail_fast=True)
Prompts = Annotated[list[Prompt], LISTED]
Anything = Annotated[Any, Field(default=None)]


def dialects_of(request: Request) -> Dialects:
    """What the dialects of this app ask."""
    dialects: Dialects = request.app.state.dialects
    return dialects


async def read(request: Request, wire: type[B]) -> B:
    """The checked JSON body.  Raises as `service.web.server.body.read` does."""
    content, _ = await body.read(request, wire, service_of(request).settings.server)
    return content
