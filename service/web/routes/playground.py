"""`GET /`: the playground, a static page; `GET /docs`, which leads to its page about the API."""

import hashlib
from pathlib import Path

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from service.core.errors import NotFound

FOLDER = Path(__file__).parents[1] / "playground"
KINDS = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
FILES = {path.name: path.read_bytes() for path in sorted(FOLDER.iterdir()) if path.suffix in KINDS}
PATHS = {"/", *(f"/playground/{name}" for name in FILES)}  # these need no key

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Cache-Control": "no-cache",  # kept, and asked for anew with its ETag: an update shows at once
}


async def page(request: Request) -> Response:
    """The playground."""
    return served(request, "index.html")


async def file(request: Request) -> Response:
    """One of its files.  Raises `NotFound`."""
    return served(request, request.path_params["name"])


async def docs(request: Request) -> Response:
    """Where the API is described for people; relative, since a proxy may have put a prefix before it."""
    return RedirectResponse("playground/docs.html")


routes = [Route("/", page), Route("/playground/{name}", file), Route("/docs", docs)]  # GET and HEAD


def served(request: Request, name: str) -> Response:
    """The file of that *name*, or that the caller has it already.  Raises `NotFound`."""
    if name not in FILES:
        raise NotFound
    content = FILES[name]
    headers = HEADERS | {"ETag": f'"{hashlib.sha256(content).hexdigest()[:32]}"'}
    if headers["ETag"] in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return Response(content, headers=headers, media_type=KINDS[Path(name).suffix])
