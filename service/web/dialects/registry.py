"""The declaration of a dialect, and all that the modules of this folder declare."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from fastapi import APIRouter
from fastapi.routing import APIRoute
from starlette.types import ASGIApp

from service.web import dialects as package
from service.web.dialects.scoring import DialectScoring
from service.web.problems import ErrorFormat
from service.wiring.bootstrap import Service


@dataclass(frozen=True, slots=True)
class Dialect:
    """
    A dialect, as `dialect` in its module or package: its router, or an app on a port of its own.

    Attributes:
        name: in the setting `dialects.enabled`, or of its port, `dialects.NAME_port`; also of its timeout in
            `dialects.timeouts_s`.
        router: its routes.
        clients: what sends it requests, in words.
        on_own_port: routes for the dialects' own port alone, whose paths the public API has on the main one.
        app: builds the app on a port of its own.
        error_format: of the errors of such an app.
    """

    name: str
    router: APIRouter | None = None
    on_own_port: APIRouter | None = None
    clients: str = ""
    app: Callable[[Service, DialectScoring], ASGIApp] | None = None
    error_format: ErrorFormat | None = None

    @property
    def takes_any_path(self) -> bool:
        """True if a path may begin with any metric, so that it may be another dialect's, too."""
        routes = self.router.routes if self.router else ()
        return any(isinstance(each, APIRoute) and each.path.startswith("/{") for each in routes)


@cache
def dialects() -> Mapping[str, Dialect]:
    """Return every dialect by name, in the order of their modules, those that take any path last."""
    modules = [import_module(f"{package.__name__}.{info.name}") for info in iter_modules(package.__path__)]
    declared = [vars(module).get("dialect") for module in modules]
    found = [each for each in declared if isinstance(each, Dialect)]
    return {each.name: each for each in sorted(found, key=lambda each: each.takes_any_path)}


def routers(enabled: Iterable[str], *, own_port: bool = False) -> Iterator[APIRouter]:
    """Yield the routers of the *enabled* dialects; an *own_port* has more routes than the main one."""
    chosen = set(enabled)
    for dialect in dialects().values():
        if dialect.router and dialect.name in chosen:
            yield dialect.router
            if own_port and dialect.on_own_port:
                yield dialect.on_own_port
