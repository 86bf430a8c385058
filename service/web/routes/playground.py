"""`GET /`: the playground, a static page, and its files."""

import mimetypes
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.staticfiles import StaticFiles

from service.core.errors import NotFound

FOLDER = Path(__file__).parents[1] / "playground"
NAMES = {path.name for path in FOLDER.iterdir() if path.suffix in (".html", ".css", ".js", ".svg")}
PATHS = {"/", *(f"/playground/{name}" for name in NAMES)}  # these need no key
FILES = StaticFiles(directory=FOLDER)
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; "
        "media-src blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Cache-Control": "no-cache",  # browsers revalidate by the ETag, so an update shows immediately
}

mimetypes.add_type("text/javascript", ".js")  # the default from Python 3.12 on


async def file(request: Request) -> Response:
    """Return a file of the playground, or its page.  Raises `NotFound`."""
    name = request.path_params.get("name", "index.html")
    if name not in NAMES:
        raise NotFound
    response = await FILES.get_response(name, request.scope)
    response.headers.update(HEADERS)
    return response


routes = [Route("/", file), Route("/playground/{name}", file)]
